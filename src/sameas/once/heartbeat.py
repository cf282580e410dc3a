"""Leases are renewed at a third of their length for as long as the work goes on: one thread, or one timer per event
loop.

What is due at about the same time is renewed together, in as few round trips as the store can. A renewal that the
store does not answer is tried again soon; a renewal that is lost is told to the work through its context.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from contextvars import Context as ContextVars
from math import inf
from threading import Condition, Thread, current_thread
from time import monotonic
from weakref import WeakKeyDictionary, ref

from msgspec import Struct

from sameas.once.context import Context
from sameas.once.errors import StoreError
from sameas.once.policy import Policy
from sameas.once.record import Answer, Lost, Renewal
from sameas.once.store import AsyncStore, Backend, Store

_LOG = logging.getLogger("sameas")

_BEATS_PER_LEASE = 3
# The part of a lease that is left when its first beat is due.
_LEFT_AT_FIRST = 1 - 1 / _BEATS_PER_LEASE
# The part of a lease by which a renewal may come early, to go with others.
_EARLY_BY = 1 / 12
# After a store error: several more tries fit before the lease is over.
_RETRIES_PER_LEASE = 12
# A timer that is late by this part of a lease was kept from running.
_TOO_LATE = 4
# A thread with nothing to renew goes after this; the next lease starts another.
_LINGER = 5.0


class Beat(Struct, eq=False):
    """One lease to keep."""

    context: Context
    policy: Policy
    due: float
    sent_at: float = 0.0
    ended: bool = False

    def is_due(self, now: float) -> bool:
        """Whether it goes with those that are due now."""
        return self.due - self.policy.lease * _EARLY_BY <= now and not self.ended

    def renewal(self) -> Renewal:
        self.sent_at = monotonic()
        return Renewal(self.context.lease, self.policy.lease_micros, self.policy.retention_micros)

    def answered(self, answer: Answer | StoreError) -> None:
        if isinstance(answer, StoreError):
            self.unanswered()
        elif isinstance(answer, Lost):
            # A lease that was just settled is lost too, but then the work has ended and nobody looks.
            self.context.lost = not self.ended
            self.ended = True
        else:
            self.context.safe_until = self.sent_at + self.policy.lease
            self.due = self.sent_at + self.policy.lease / _BEATS_PER_LEASE

    def warn_of_a_held_up_loop(self, now: float) -> None:
        """Say so if the loop's timer came too late for the lease: a store that does not answer cannot be why."""
        lease = self.policy.lease
        if now > self.context.safe_until and now - self.due > lease / _TOO_LATE:
            _LOG.warning(
                "the event loop was held up for longer than the lease of %s (%.3g s), by it or by other work: "
                "it may be run again beside this; let what blocks run in a thread, or give it a longer lease",
                self.context.identity.scope,
                lease,
            )

    def unanswered(self) -> None:
        self.due = monotonic() + self.policy.lease / _RETRIES_PER_LEASE


class Heartbeat:
    """Renews for threads, from a thread of its own that lives while there is something to renew."""

    def __init__(self, backend: Backend) -> None:
        self._store = Store(backend)
        self.after_fork()

    def after_fork(self) -> None:
        self._beats: dict[Context, Beat] = {}
        self._changed = Condition()
        self._thread: Thread | None = None
        self._wakes_at = inf

    def add(self, context: Context, policy: Policy) -> None:
        beat = Beat(context, policy, context.safe_until - policy.lease * _LEFT_AT_FIRST)
        self._beats[context] = beat
        if self._thread is None or beat.due < self._wakes_at:
            with self._changed:
                if self._thread is None:
                    thread = Thread(target=self._renew_all, name="sameas-heartbeat", daemon=True)
                    thread.start()
                    self._thread = thread
                self._changed.notify()

    def remove(self, context: Context) -> None:
        beat = self._beats.pop(context, None)
        if beat is not None:
            beat.ended = True

    def _renew_all(self) -> None:
        while True:
            with self._changed:
                now = monotonic()
                # Whoever adds a lease from here on takes the lock, and so waits until we do.
                self._wakes_at = inf
                beats = list(self._beats.values())
                self._wakes_at = min((beat.due for beat in beats), default=now + _LINGER)
                if self._wakes_at > now:
                    self._changed.wait(self._wakes_at - now)
                    if not self._beats and monotonic() >= self._wakes_at:
                        self._thread = None
                        # A lease that came in just now saw a thread and did not start one.
                        if not self._beats:
                            return
                        self._thread = current_thread()
                    continue
            self._renew([beat for beat in beats if beat.is_due(now)])

    def _renew(self, beats: Sequence[Beat]) -> None:
        try:
            _emit(beats, self._store.renew_many([beat.renewal() for beat in beats]))
        except Exception as error:
            _put_off(beats, error)
        _drop_ended(beats, self._beats)


class AsyncHeartbeat:
    """Renews for tasks. A timer, unlike a waiting task, needs no ending when its loop ends."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.after_fork()

    def after_fork(self) -> None:
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, _LoopBeats] = WeakKeyDictionary()
        # The loop that asked last, which is nearly always the only one: looking it up costs more than the rest.
        self._last: tuple[ref[asyncio.AbstractEventLoop], _LoopBeats] | None = None

    def add(self, context: Context, policy: Policy) -> None:
        loop = asyncio.get_running_loop()
        self._of(loop).add(Beat(context, policy, context.safe_until - policy.lease * _LEFT_AT_FIRST), loop)

    def remove(self, context: Context) -> None:
        self._of(asyncio.get_running_loop()).remove(context)

    def _of(self, loop: asyncio.AbstractEventLoop) -> _LoopBeats:
        if self._last is not None and self._last[0]() is loop:
            return self._last[1]
        known = self._loops.get(loop)
        if known is None:
            known = self._loops[loop] = _LoopBeats(self._backend)
        self._last = (ref(loop), known)
        return known


class _LoopBeats:
    def __init__(self, backend: Backend) -> None:
        self._store = AsyncStore(backend)
        self._beats: dict[Context, Beat] = {}
        self._renewals: set[asyncio.Task[None]] = set()
        self._wakes_at = inf

    def add(self, beat: Beat, loop: asyncio.AbstractEventLoop) -> None:
        self._beats[beat.context] = beat
        if beat.due < self._wakes_at:
            self._schedule(beat.due, loop)

    def remove(self, context: Context) -> None:
        beat = self._beats.pop(context, None)
        if beat is not None:
            now = monotonic()
            if beat.due < now:
                beat.warn_of_a_held_up_loop(now)
            beat.ended = True

    def _schedule(self, due: float, loop: asyncio.AbstractEventLoop) -> None:
        # No hold on the timer: it would keep the loop alive. One that comes too early finds nothing due. The context
        # is a new one: renewals must not inherit what the caller is inside of.
        self._wakes_at = due
        loop.call_later(max(0.0, due - monotonic()), self._tick, ref(loop), context=ContextVars())

    def _tick(self, of: ref[asyncio.AbstractEventLoop]) -> None:
        loop = of()
        if loop is None:
            return
        self._wakes_at = inf
        now = monotonic()
        due = [beat for beat in self._beats.values() if beat.is_due(now)]
        for beat in due:
            beat.warn_of_a_held_up_loop(now)
            # Until it is answered it is not due again, but it must not be forgotten either.
            beat.due = now + beat.policy.lease / _BEATS_PER_LEASE
        if due:
            renewal = loop.create_task(self._renew(due, loop))
            self._renewals.add(renewal)
            renewal.add_done_callback(self._renewals.discard)
        self._reschedule(loop)

    async def _renew(self, beats: Sequence[Beat], loop: asyncio.AbstractEventLoop) -> None:
        try:
            _emit(beats, await self._store.renew_many([beat.renewal() for beat in beats]))
        except Exception as error:
            _put_off(beats, error)
        _drop_ended(beats, self._beats)
        self._reschedule(loop)

    def _reschedule(self, loop: asyncio.AbstractEventLoop) -> None:
        due = min((beat.due for beat in self._beats.values()), default=inf)
        if due < self._wakes_at:
            self._schedule(due, loop)


def _emit(beats: Sequence[Beat], answers: Iterable[Answer | StoreError]) -> None:
    for beat, answer in zip(beats, answers, strict=True):
        beat.answered(answer)


def _put_off(beats: Sequence[Beat], error: Exception) -> None:
    if not isinstance(error, StoreError):
        _LOG.error("leases could not be renewed", exc_info=error)
    for beat in beats:
        beat.unanswered()


def _drop_ended(beats: Sequence[Beat], kept: dict[Context, Beat]) -> None:
    for beat in beats:
        if beat.ended:
            kept.pop(beat.context, None)
