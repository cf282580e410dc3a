"""Where the events of a run go: into its journal, and to everybody who listens.

Rule: publishing never waits. Each subscriber has a bounded queue of its own. Above a part of its size only one in so
many progress events is kept; when it is full, the oldest event that may be dropped makes room. So a subscriber that
falls behind misses discovery and progress events (and is told how many), never a lifecycle or stage event, and slows
down neither the run nor another subscriber. A late subscriber gets the run from its beginning, out of the journal.
Threads iterate a subscription, asyncio code iterates it with `async for`.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Generic, TypeVar

import msgspec

from sameas.extraction.events.events import BackpressureWarning, Event, is_droppable, is_sampled
from sameas.extraction.events.journal import Journal, MemoryJournal
from sameas.identity.ids import uuid7

T = TypeVar("T")


class Backpressure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How far a subscriber may fall behind (source document 001, part 2.4)."""

    queue_size: int = 1000
    sample_above: float = 0.8
    keep_one_in: int = 10

    def __post_init__(self) -> None:
        if self.queue_size < 1 or not 0 < self.sample_above <= 1 or self.keep_one_in < 1:
            raise ValueError("backpressure needs queue_size >= 1, 0 < sample_above <= 1, keep_one_in >= 1")


class EventQueue(Generic[T]):
    """A bounded queue of events in any form; not safe for several threads at once."""

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
        """Add the events, as far as there is room."""
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
        """Remove all events and return them."""
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


__all__ = ["Backpressure", "Bus", "Subscription"]

E = TypeVar("E", bound=Event)
_CATCH_UP = 256
# So few that a queue's bound is hardly passed by what was taken from it and not heard yet.
_AT_ONCE = 32


class Subscription:
    """The queue of one listener. Iterate it in a thread or in asyncio, not both; it ends when the run has ended."""

    def __init__(
        self, *, settings: Backpressure, past: Iterator[Event], warn: Callable[[int], BackpressureWarning]
    ) -> None:
        self._past = past
        self._warn = warn
        self._queue: EventQueue[Event] = EventQueue(settings, is_droppable=is_droppable, is_sampled=is_sampled)
        self._over = False
        self._ready = threading.Condition()
        self._waiter: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None
        self._is_woken = False

    def offer(self, events: Sequence[Event]) -> None:
        """Take events, as far as there is room; never waits."""
        with self._ready:
            if self._over:
                return
            self._queue.offer(events)
            self._wake()

    def close(self) -> None:
        """No event follows; what is queued can still be read."""
        with self._ready:
            self._over = True
            self._wake()

    def __iter__(self) -> Iterator[Event]:
        yield from self._past
        while True:
            with self._ready:
                self._ready.wait_for(self._has_something)
                taken = self._take()
            if taken is None:
                return
            yield taken

    async def __aiter__(self) -> AsyncIterator[Event]:
        for number, event in enumerate(self._past, 1):
            yield event
            if number % _CATCH_UP == 0:
                await asyncio.sleep(0)
        signal = asyncio.Event()
        with self._ready:
            self._waiter = (asyncio.get_running_loop(), signal)
        try:
            while True:
                with self._ready:
                    something = self._has_something()
                    taken: list[Event] = []
                    while len(taken) < _AT_ONCE and (next_one := self._take()) is not None:
                        taken.append(next_one)
                    signal.clear()
                    self._is_woken = False
                for event in taken:
                    yield event
                if not taken and something:
                    return
                if not taken:
                    await signal.wait()
        finally:
            with self._ready:
                self._waiter = None

    def _has_something(self) -> bool:
        return bool(self._queue) or self._over

    def _take(self) -> Event | None:
        missed = self._queue.take_missed() if self._queue.is_low else 0
        return self._warn(missed) if missed else self._queue.pop()

    def _wake(self) -> None:
        self._ready.notify_all()
        # Once is enough until the listener looks: a call to another loop costs as much as the event.
        if self._waiter is not None and not self._is_woken:
            loop, signal = self._waiter
            try:
                loop.call_soon_threadsafe(signal.set)
                self._is_woken = True
            except RuntimeError:
                # The listener's loop was closed; nobody reads this queue any more.
                self._over = True


class Bus:
    """Gives each event its id, time and number, writes it to the journal and hands it to the subscribers."""

    def __init__(
        self,
        request_id: str,
        *,
        journal: Journal | None = None,
        settings: Backpressure | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.request_id = request_id
        self._journal: Journal = MemoryJournal() if journal is None else journal
        self._settings = settings or Backpressure()
        self._clock = clock
        self._lock = threading.Lock()
        self._subscriptions: list[Subscription] = []
        self._progress = 0.0
        self._closed = False

    @property
    def progress(self) -> float:
        return self._progress

    def advance(self, progress: float) -> None:
        """Set the run's overall progress, from 0 to 1; it never goes back."""
        self._progress = max(self._progress, min(1.0, round(progress, 4)))

    def emit(self, kind: type[E], **fields: object) -> E:
        """Make an event of this kind, keep it and hand it out."""
        return self.emit_all(kind, (fields,))[0]

    def emit_all(self, kind: type[E], about: Sequence[dict[str, object]]) -> list[E]:
        """Several events of a kind at once, in their order; cheaper than one by one."""
        if not about:
            return []
        with self._lock:
            if self._closed:
                raise RuntimeError(f"the run {self.request_id} has ended; no event can follow")
            first = self._journal.length + 1
            events = [self._make(kind, number, fields) for number, fields in enumerate(about, first)]
            self._journal.append(*events)
            for subscription in self._subscriptions:
                subscription.offer(events)
        return events

    def subscribe(self, *, after: int = 0, settings: Backpressure | None = None) -> Subscription:
        """Listen from the event after number `after`, past ones first."""
        with self._lock:
            known = self._journal.length
            subscription = Subscription(
                settings=settings or self._settings,
                past=iter(self._journal.read(after=after, up_to=known)) if after < known else iter(()),
                warn=self._warning,
            )
            if self._closed:
                subscription.close()
            else:
                self._subscriptions.append(subscription)
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        with self._lock:
            if subscription in self._subscriptions:
                self._subscriptions.remove(subscription)
        subscription.close()

    def close(self) -> None:
        """The run has ended: close the journal and let subscribers read what they have left."""
        with self._lock:
            self._closed = True
            self._journal.close()
            for subscription in self._subscriptions:
                subscription.close()
            self._subscriptions.clear()

    def _make(self, kind: type[E], number: int | None, fields: dict[str, object]) -> E:
        return kind(
            event_id=uuid7.text(),
            request_id=self.request_id,
            timestamp=int(self._clock() * 1000),
            sequence_number=number,
            progress=self._progress,
            **fields,
        )

    def _warning(self, missed: int) -> BackpressureWarning:
        fields: dict[str, object] = {"dropped": missed, "queue_size": self._settings.queue_size}
        return self._make(BackpressureWarning, None, fields)
