"""How long an engine means to wait for others: what a slow machine adds to it does not count."""

import time

from sameas.once.steps import Pause


class Waits:
    """Counts the pauses of an engine for threads, each with what it asked for or, where it was woken, what it took."""

    def __init__(self, engine):
        self.seconds = 0.0
        self._pause = engine._effects[Pause]
        engine._effects[Pause] = self._counted

    def _counted(self, pause):
        began = time.monotonic()
        self._pause(pause)
        self.seconds += min(pause.seconds, time.monotonic() - began)
