"""From text to graph: seven stages, their settings, checkpoints and outcome."""
