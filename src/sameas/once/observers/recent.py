"""What was last known of the latest keys: a bounded memory, for what one event does not say and an earlier one did."""

from __future__ import annotations

from threading import Lock
from typing import Generic, TypeVar

from sameas.once.forks import renew_after_fork

V = TypeVar("V")


class Recent(Generic[V]):
    """One value per digest; above `at_most` the one noted longest ago goes. Safe for threads, empty after a fork."""

    def __init__(self, at_most: int) -> None:
        if at_most < 1:
            raise ValueError("at least one key must be remembered")
        self._at_most = at_most
        self.after_fork()
        renew_after_fork(self)

    def after_fork(self) -> None:
        self._lock = Lock()
        self._values: dict[bytes, V] = {}

    def __len__(self) -> int:
        return len(self._values)

    def note(self, digest: bytes, value: V) -> None:
        with self._lock:
            self._values.pop(digest, None)
            self._values[digest] = value
            if len(self._values) > self._at_most:
                del self._values[next(iter(self._values))]

    def get(self, digest: bytes) -> V | None:
        return self._values.get(digest)

    def drop(self, digest: bytes) -> None:
        with self._lock:
            self._values.pop(digest, None)
