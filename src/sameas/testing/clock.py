"""A clock that moves when it is told to."""

from __future__ import annotations

from threading import Lock


class MovableClock:
    """Microseconds since 1970. Each look moves it on by one, as any real clock does between two writes."""

    def __init__(self, start: int = 1_700_000_000_000_000) -> None:
        self._lock = Lock()
        self._now = start

    def __call__(self) -> int:
        with self._lock:
            self._now += 1
            return self._now

    def advance(self, seconds: float) -> None:
        with self._lock:
            self._now += round(seconds * 1_000_000)
