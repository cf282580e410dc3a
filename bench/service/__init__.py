"""`./run bench service`: how fast cached answers are, and how many can listen to runs at once."""

from bench.service.figures import main

__all__ = ["main"]
