"""The one gate in front of a provider's account: it counts requests and tokens, bounds how many run at once, and waits.

Rule: a call holds its slot until it has ended. Calls go in turns between runs and first come first served inside a
run. Whoever waits is told how long, does not use up the time of its stage, and leaves nothing behind when it is
cancelled. A call that would wait for ever is refused, and so is every call while the circuit is open.

A limiter belongs to one event loop at a time; several nodes or loops share their limits through `RedisWindows`.
"""

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from contextvars import Context
from random import Random
from typing import Any

import msgspec

from sameas.llm.circuit import Change, CircuitBreaker, Ticket
from sameas.llm.errors import CircuitOpen, HeldBack, LimitsUnreachable, RequestTooLarge, TooManyWaiting
from sameas.llm.models import ModelError
from sameas.llm.queue import TurnQueue, Waiter
from sameas.llm.signals import CircuitClosed, CircuitOpened, Listener, tell
from sameas.llm.timeouts import paused
from sameas.llm.windows import Granted, LocalWindows, RateLimits, Wait, Windows
from sameas.once.errors import StoreError

# A wait that ends a moment early, as timers may, must not become a busy loop.
_SHORTEST_WAIT = 0.001
_FIRST_PAUSE = 1.0
_LONGEST_PAUSE_OF_OUR_OWN = 30.0
# How often to look whether another node's probe has ended.
_PROBE_POLL = 1.0

_log = logging.getLogger("sameas.llm")


class _Pass(msgspec.Struct, frozen=True):
    """Everything a call was given on its way in."""

    grant: Granted
    ticket: Ticket


class Permit:
    """Leave to make one call, now. Say how it went with `reconcile` or `failed`."""

    def __init__(self, run_id: str, *, tokens: int, waited: float, began_at: float = 0.0) -> None:
        self.run_id = run_id
        self.estimated_tokens = tokens
        self.waited_seconds = waited
        self.began_at = began_at
        self.actual_tokens: int | None = None
        self.error: ModelError | None = None
        self.is_over = False

    def reconcile(self, actual_tokens: int) -> None:
        """What the call really used."""
        if actual_tokens < 0:
            raise ValueError("a call cannot have used less than nothing")
        self.actual_tokens = actual_tokens

    def failed(self, error: ModelError) -> None:
        """There was no reply. What it used all the same is in the error; else the estimate stays counted."""
        self.error = error
        if error.usage is not None:
            self.actual_tokens = error.usage.total_tokens


class CentralRateLimiterService:
    """The limits of one account, with its circuit breaker.

    `longest_pause` is how long a server may ask everybody to wait before calls are refused instead; a pause is made up
    to a tenth longer than asked, at random, so that nodes do not come back together.
    """

    def __init__(
        self,
        limits: RateLimits | None = None,
        *,
        windows: Windows | None = None,
        circuit: CircuitBreaker | None = None,
        longest_pause: float = 300.0,
        max_waiting: int = 10_000,
        random: Random | None = None,
    ) -> None:
        if limits is not None and windows is not None:
            raise ValueError("limits belong to the windows: give one of the two")
        self._windows = windows or LocalWindows(limits)
        self._circuit = circuit or CircuitBreaker()
        self._is_local = type(self._windows) is LocalWindows and self._circuit.is_local
        self._longest_pause = longest_pause
        self._max_waiting = max_waiting
        self._random = random or Random()
        self._queue: TurnQueue[_Pass] = TurnQueue()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pump: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._blocked: tuple[Wait, float] | None = None
        self._held = 0
        self._refusals_without_hint = 0
        self._refused_at = -math.inf
        self._ending: set[asyncio.Task[None]] = set()

    @property
    def limits(self) -> RateLimits:
        return self._windows.limits

    @property
    def waiting(self) -> int:
        """How many calls wait."""
        return len(self._queue)

    @property
    def held(self) -> int:
        """How many calls of this limiter are under way."""
        return self._held

    @property
    def circuit(self) -> CircuitBreaker:
        return self._circuit

    @asynccontextmanager
    async def slot(
        self, run_id: str, estimated_tokens: int, *, on_signal: Listener | None = None
    ) -> AsyncIterator[Permit]:
        """Leave to make a call of at most so many tokens, waited for in turn; the slot is held inside the block.

        Raises `RequestTooLarge`, `CircuitOpen`, `HeldBack`, `TooManyWaiting`, or `LimitsUnreachable` where the limits
        are shared in a store and it does not answer: then nobody is let through.
        """
        if estimated_tokens < 0:
            raise ValueError("a call cannot need less than nothing")
        if estimated_tokens > self.limits.tokens_per_minute:
            raise RequestTooLarge(estimated_tokens, limit=self.limits.tokens_per_minute)
        loop = self._bound()
        began = loop.time()
        with paused():
            given = await self._turn(Waiter(run_id, tokens=estimated_tokens, listener=on_signal))
        now = loop.time()
        permit = Permit(run_id, tokens=estimated_tokens, waited=now - began, began_at=now)
        self._held += 1
        try:
            yield permit
            permit.is_over = True
        except ModelError as error:
            if permit.error is None:
                permit.failed(error)
            raise
        finally:
            # A call that a closed loop left behind may end when another loop's calls are counted.
            if self._loop is loop:
                self._held -= 1
            await self._in_any_case(self._end(given, permit, listener=on_signal))

    def _bound(self) -> asyncio.AbstractEventLoop:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            if self._loop is not None and not self._loop.is_closed() and (self._queue or self._held):
                raise RuntimeError(
                    "this limiter is in use on another event loop: give each loop its own, over the same RedisWindows"
                )
            self._loop = loop
            self._queue = TurnQueue()
            self._pump = None
            self._wake = asyncio.Event()
            self._held = 0
            self._refused_at = -math.inf
        return loop

    async def _turn(self, waiter: Waiter[_Pass]) -> _Pass:
        if len(self._queue) >= self._max_waiting:
            raise TooManyWaiting
        self._queue.add(waiter)
        if self._pump is None or self._pump.done():
            # In a context of its own: that of whoever happens to be first would be kept with all that is in it.
            self._pump = asyncio.get_running_loop().create_task(self._admit_all(), context=Context())
        elif self._blocked is not None:
            wait, since = self._blocked
            waiter.tell(wait.after(asyncio.get_running_loop().time() - since))
        try:
            return await waiter.answer
        except BaseException:
            self._queue.remove(waiter)
            self._wake.set()
            if waiter.answer.done() and not waiter.answer.cancelled() and waiter.answer.exception() is None:
                # It was let through at the moment it left.
                await self._in_any_case(self._undo(waiter.answer.result()))
            raise

    async def _in_any_case(self, work: Coroutine[Any, Any, None]) -> None:
        """Not even a cancellation may keep a slot."""
        if self._is_local:
            # Nothing in it waits, so that nothing can strike.
            await work
            return
        task = asyncio.get_running_loop().create_task(work)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        await asyncio.shield(task)

    async def _admit_all(self) -> None:
        """Let them through in turn, for as long as anybody waits."""
        try:
            while self._queue:
                self._wake.clear()
                waiter = self._queue.first()
                try:
                    answer = await self._try(waiter.tokens)
                except Exception as error:
                    self._queue.remove(waiter)
                    if not waiter.answer.done():
                        waiter.answer.set_exception(_told(error))
                    continue
                if isinstance(answer, Wait):
                    await self._wait(answer)
                    continue
                self._queue.go(waiter)
                if waiter.answer.done():
                    await self._undo(answer)
                else:
                    waiter.answer.set_result(answer)
        finally:
            # Only when the loop is being closed: nobody may be left waiting for a turn that never comes.
            for waiter in list(self._queue):
                waiter.answer.cancel()

    async def _try(self, tokens: int) -> _Pass | Wait:
        try:
            ticket = await self._circuit.enter()
        except CircuitOpen as refused:
            if not refused.is_probing:
                raise
            return Wait(seconds=None, reason="concurrent", look_again=_PROBE_POLL)
        try:
            answer = await self._windows.admit(tokens)
        except BaseException:
            await self._circuit.left(ticket)
            raise
        if isinstance(answer, Granted):
            return _Pass(answer, ticket)
        await self._circuit.left(ticket)
        if answer.asked_by_server and answer.seconds is not None and answer.seconds > self._longest_pause:
            raise HeldBack(retry_after=answer.seconds, longest=self._longest_pause)
        return answer

    async def _wait(self, wait: Wait) -> None:
        """Until the time has passed or something has changed here."""
        for waiter in list(self._queue):
            waiter.tell(wait)
        known = [seconds for seconds in (wait.seconds, wait.look_again) if seconds is not None]
        self._blocked = wait, asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(max(min(known), _SHORTEST_WAIT) if known else None):
                await self._wake.wait()
        except TimeoutError:
            pass
        finally:
            self._blocked = None

    async def _undo(self, given: _Pass) -> None:
        await self._windows.withdraw(given.grant)
        await self._circuit.left(given.ticket)
        self._wake.set()

    async def _end(self, given: _Pass, permit: Permit, *, listener: Listener | None) -> None:
        used = given.grant.tokens if permit.actual_tokens is None else permit.actual_tokens
        try:
            await self._windows.settle(given.grant, used)
            if permit.error is not None:
                await self._failed(given.ticket, permit, permit.error, listener)
            elif permit.is_over or permit.actual_tokens is not None:
                self._refusals_without_hint = 0
                self._tell(await self._circuit.succeeded(given.ticket), listener)
            else:
                await self._circuit.left(given.ticket)
        except StoreError:
            # A reply that was paid for is worth more than the count, which stays on the safe side.
            _log.warning("a call that ended could not be told to the store that limits are shared in", exc_info=True)
        finally:
            self._wake.set()

    async def _failed(self, ticket: Ticket, permit: Permit, error: ModelError, listener: Listener | None) -> None:
        if error.counts_for_circuit:
            self._tell(await self._circuit.failed(ticket), listener)
        else:
            await self._circuit.left(ticket)
        pause = self._pause_after(error, began_at=permit.began_at)
        if pause > 0:
            await self._windows.hold(pause * (1 + self._random.random() / 10))

    def _pause_after(self, error: ModelError, *, began_at: float) -> float:
        hint = error.retry_after
        if hint is not None and math.isfinite(hint) and hint > 0:
            return hint
        if error.code != "rate_limited":
            return 0.0
        # The server said no more than "too many": each time in a row the pause is twice as long. Calls that were under
        # way together are refused once: who began before the last refusal has not waited for its pause yet.
        if began_at > self._refused_at:
            self._refusals_without_hint = min(self._refusals_without_hint + 1, 16)
            self._refused_at = asyncio.get_running_loop().time()
        return float(min(_LONGEST_PAUSE_OF_OUR_OWN, _FIRST_PAUSE * 2 ** max(0, self._refusals_without_hint - 1)))

    def _tell(self, change: Change | None, listener: Listener | None) -> None:
        settings = self._circuit.settings
        if change == "opened":
            wait = round(settings.recover_after * 1000)
            tell(listener, CircuitOpened(failures=settings.failures_to_open, retry_after_ms=wait))
        elif change == "closed":
            tell(listener, CircuitClosed())

    def __repr__(self) -> str:
        return f"<CentralRateLimiterService held={self._held} waiting={len(self._queue)}>"


def _told(error: Exception) -> Exception:
    if not isinstance(error, StoreError):
        return error
    unreachable = LimitsUnreachable(f"{LimitsUnreachable.__doc__} {error}", retry_after=1.0)
    unreachable.__cause__ = error
    return unreachable
