"""The life of a run: its record, folder, checkpoints and results, and those who wait for it."""
