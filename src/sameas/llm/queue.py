"""Who waits for the limiter, in the order in which they go: run by run in turn, first come first served inside a run.

Rule: the one whose turn it is keeps it until it has gone or left, however large its call is, so that nobody starves.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Iterator
from typing import Generic, TypeVar

from sameas.llm.signals import LimitReason, Listener, RateLimited, tell
from sameas.llm.windows import Wait

T = TypeVar("T")


class Waiter(Generic[T]):
    """One call that wants to be made; `answer` is what it gets."""

    def __init__(self, run_id: str, *, tokens: int, listener: Listener | None) -> None:
        self.run_id = run_id
        self.tokens = tokens
        self.answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._listener = listener
        self._told: set[LimitReason] = set()

    def tell(self, wait: Wait) -> None:
        """Say why it waits, once for each reason."""
        if wait.reason in self._told:
            return
        self._told.add(wait.reason)
        signal = RateLimited(
            run_id=self.run_id,
            wait_ms=round((wait.seconds or 0.0) * 1000),
            reason=wait.reason,
            asked_by_server=wait.asked_by_server,
        )
        tell(self._listener, signal)


class TurnQueue(Generic[T]):
    """Those who wait."""

    def __init__(self) -> None:
        self._runs: OrderedDict[str, deque[Waiter[T]]] = OrderedDict()

    def __len__(self) -> int:
        return sum(len(waiters) for waiters in self._runs.values())

    def __bool__(self) -> bool:
        return bool(self._runs)

    def __iter__(self) -> Iterator[Waiter[T]]:
        return (waiter for waiters in self._runs.values() for waiter in waiters)

    def add(self, waiter: Waiter[T]) -> None:
        self._runs.setdefault(waiter.run_id, deque()).append(waiter)

    def first(self) -> Waiter[T]:
        """Whose turn it is."""
        return next(iter(self._runs.values()))[0]

    def go(self, waiter: Waiter[T]) -> None:
        """It has gone: the turn passes to the next run."""
        self.remove(waiter)
        if waiter.run_id in self._runs:
            self._runs.move_to_end(waiter.run_id)

    def remove(self, waiter: Waiter[T]) -> None:
        """It has left; the turn stays with its run."""
        waiters = self._runs.get(waiter.run_id)
        if waiters is None or waiter not in waiters:
            return
        waiters.remove(waiter)
        if not waiters:
            del self._runs[waiter.run_id]
