"""From text to graph: seven stages, what drives them, their settings, checkpoints and outcome.

From outside: `pipeline`, `settings`, `run`, `estimate`.
"""
