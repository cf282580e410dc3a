"""A listener's bounded queue: who falls behind misses discovery and progress events, never a lifecycle or stage event.

Rule: above a part of its size one in so many of the sampled events is kept; when it is full, the oldest event that may
be dropped makes room. What was missed is counted, to be told. Not for several threads at once.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import msgspec

T = TypeVar("T")


class Backpressure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much a subscriber may fall behind (source document 001, part 2.4)."""

    queue_size: int = 1000
    sample_above: float = 0.8
    keep_one_in: int = 10

    def __post_init__(self) -> None:
        if self.queue_size < 1 or not 0 < self.sample_above <= 1 or self.keep_one_in < 1:
            raise ValueError("backpressure needs queue_size >= 1, 0 < sample_above <= 1, keep_one_in >= 1")


class EventQueue(Generic[T]):
    """Events in whatever form a listener takes them."""

    def __init__(
        self, settings: Backpressure, *, is_droppable: Callable[[T], bool], is_sampled: Callable[[T], bool]
    ) -> None:
        self._settings = settings
        self._is_droppable = is_droppable
        self._is_sampled = is_sampled
        self._queue: deque[T] = deque()
        self._sampled = 0
        self._missed = 0
        self.missed_in_all = 0

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def is_low(self) -> bool:
        """Whether it is short enough to take everything."""
        return len(self._queue) <= self._settings.queue_size * self._settings.sample_above

    def offer(self, events: Sequence[T]) -> None:
        """Take what there is room for."""
        if len(self._queue) + len(events) <= self._settings.queue_size * self._settings.sample_above:
            self._queue.extend(events)
            return
        for event in events:
            if self._make_room(event):
                self._queue.append(event)

    def pop(self) -> T | None:
        """The oldest event, if there is one."""
        return self._queue.popleft() if self._queue else None

    def take(self) -> list[T]:
        """All events."""
        events = list(self._queue)
        self._queue.clear()
        return events

    def take_missed(self) -> int:
        """How many events were missed since this was last asked."""
        missed, self._missed = self._missed, 0
        return missed

    def _make_room(self, event: T) -> bool:
        size = len(self._queue)
        if self.is_low:
            self._sampled = 0
        elif self._is_sampled(event):
            self._sampled += 1
            if self._sampled % self._settings.keep_one_in:
                return self._miss()
        if size < self._settings.queue_size:
            return True
        for index, queued in enumerate(self._queue):
            if self._is_droppable(queued):
                del self._queue[index]
                self._miss()
                return True
        # Only lifecycle and stage events are queued: a run has a few dozen of those, so they may pass the bound.
        return self._miss() if self._is_droppable(event) else True

    def _miss(self) -> bool:
        self._missed += 1
        self.missed_in_all += 1
        return False
