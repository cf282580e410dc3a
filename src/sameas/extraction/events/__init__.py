"""What a run reports while it works: the events, their journal, and the bus that carries them.

From outside: `events`, `journal`, `bus`.
"""
