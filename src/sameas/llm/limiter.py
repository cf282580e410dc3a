"""The one gate in front of a provider's account. It drives an `Admission`: waits, asks the account, and tells.

Rule: a call holds its slot until it has ended. Whoever waits is told how long, does not use up the time of its stage,
and leaves nothing behind when it is cancelled. What may go, and when, is not decided here.

A limiter belongs to one event loop at a time; several nodes or loops share their limits through a `RedisAccount`. An
account is a provider at an address: its models share limits and circuit, and what happens to it does not keep anybody
from another (`AccountLimiters`). A server of one's own has no limit by the minute, and answers one call after another
unless somebody knows better.
"""

import asyncio
import hashlib
import logging
import math
import sys
import warnings
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from contextvars import Context
from random import Random
from types import TracebackType
from typing import TYPE_CHECKING, cast

from sameas.llm.account import Account, Ending, Granted, LocalAccount, RateLimits, Wait
from sameas.llm.admission import Admission, AskAccount, Call, Decision, GiveBack, Go, Refuse, RunCalls
from sameas.llm.circuit import Change, CircuitBreaker, CircuitSettings
from sameas.llm.errors import LimitsUnreachable, RequestTooLarge
from sameas.llm.models import ModelError
from sameas.llm.signals import CircuitClosed, CircuitOpened, Listener, emit
from sameas.llm.timeouts import paused
from sameas.once.errors import StoreError

if TYPE_CHECKING:
    from sameas.llm.address import ModelAddress
    from sameas.once.store import Backend
    from sameas.stores.redis import RedisBackend

# No model answers as often, or says as much, in a minute.
UNLIMITED = RateLimits(requests_per_minute=1_000_000, tokens_per_minute=1_000_000_000, max_concurrent=1)
# A wait that ends a moment early, as timers may, must not become a busy loop. Calls of a run may be less apart.
_SHORTEST_WAIT = 0.001
_SHORTEST_MOMENT = 1e-6
_WITHDRAWN = Ending(verdict="withdrawn")

_log = logging.getLogger("sameas.llm")


class Permit:
    """Leave to make one call, now. Say how it went with `reconcile` or `failed`. What names no error raises none."""

    def __init__(self, call: Call, *, waited: float) -> None:
        self._call = call
        self.waited_seconds = waited
        self.actual_tokens: int | None = None
        self.error: ModelError | None = None
        self.is_over = False

    @property
    def run_id(self) -> str:
        return self._call.run.run_id

    @property
    def estimated_tokens(self) -> int:
        return self._call.tokens

    @property
    def is_answered(self) -> bool:
        return self.error is None and (self.is_over or self.actual_tokens is not None)

    def reconcile(self, actual_tokens: int) -> None:
        """What the call really used. Raises ValueError for less than nothing."""
        if actual_tokens < 0:
            raise ValueError("a call cannot have used less than nothing")
        self.actual_tokens = actual_tokens

    def failed(self, error: ModelError) -> None:
        """There was no reply. The estimate stays counted: a provider counts what it was asked, not what it gave."""
        self.error = error
        if error.usage is not None:
            self.actual_tokens = max(self.estimated_tokens, error.usage.total_tokens)

    def ending(self, *, stretch: float) -> Ending:
        """What this means to the account."""
        tokens = self.estimated_tokens if self.actual_tokens is None else self.actual_tokens
        if self.error is None:
            return Ending(verdict="answered" if self.is_answered else "untold", tokens=tokens)
        hint = self.error.retry_after
        pause = hint * stretch if hint is not None and math.isfinite(hint) and hint > 0 else 0.0
        if self.error.code == "rate_limited":
            return Ending(verdict="refused", tokens=tokens, pause=pause, stretch=stretch)
        return Ending(verdict="failed" if self.error.counts_for_circuit else "untold", tokens=tokens, pause=pause)


class CentralRateLimiterService:
    """The limits of one account, with its circuit breaker.

    `longest_pause` is how long a server may ask everybody to wait, or be down, before calls are refused instead; with 0
    nobody waits for either. A pause is made up to a tenth longer than asked, at random, so that nodes do not come back
    together. `account` is where calls are counted, with limits and circuit of its own; by default in this process.

    Raises ValueError if limits or a circuit are given besides an account, which has its own.
    """

    def __init__(
        self,
        limits: RateLimits | None = None,
        *,
        account: Account | None = None,
        circuit: CircuitSettings | CircuitBreaker | None = None,
        windows: Account | None = None,
        longest_pause: float = 300.0,
        max_waiting: int = 10_000,
        random: Random | None = None,
    ) -> None:
        if windows is not None:
            warnings.warn("windows= is called account= now", DeprecationWarning, stacklevel=2)
            account = windows
        if account is not None and (limits is not None or circuit is not None):
            raise ValueError("limits and circuit belong to the account: give them to it")
        if isinstance(circuit, CircuitBreaker):
            circuit = circuit.settings
        self.account: Account = account or LocalAccount(limits, circuit=circuit)
        # What is decided in this process is decided without waiting.
        self._local = self.account if type(self.account) is LocalAccount else None
        self._admission = Admission(longest_pause=longest_pause, max_waiting=max_waiting)
        self._random = random or Random()
        self._loop: asyncio.AbstractEventLoop | None = None
        # Of nobody: that of whoever happens to be first would be kept with all that is in it.
        self._context = Context()
        self._waiters: dict[Call, asyncio.Future[None]] = {}
        self._asking: asyncio.Task[None] | None = None
        self._has_changed = False
        self._timer: asyncio.TimerHandle | None = None
        self._blocked: tuple[Wait, float] | None = None
        self._ending: set[asyncio.Task[None]] = set()
        self.held = 0
        """How many calls of this limiter are under way."""
        self.answers = 0
        """How many calls were answered so far: who is refused again and again sees whether anybody is served."""
        self.failing: set[object] = set()
        """The calls that have failed and are to be made again."""

    @property
    def limits(self) -> RateLimits:
        return self.account.limits

    @property
    def waiting(self) -> int:
        """How many calls wait for the account."""
        return self._admission.waiting

    @property
    def known_models(self) -> set[str]:
        """The models that have answered: their names and their address are right."""
        return self._admission.known_models

    def slot(
        self, run_id: str, estimated_tokens: int, *, on_signal: Listener | None = None
    ) -> AbstractAsyncContextManager[Permit]:
        """Leave to make a call of at most so many tokens, waited for in turn; the slot is held inside the block.

        Raises `RequestTooLarge`, `CircuitOpen`, `HeldBack`, `TooManyWaiting`, or `LimitsUnreachable` if the limits
        are shared in a store and it does not answer: then nobody is let through.
        """
        return self.slot_for(Call(RunCalls(run_id, on_signal=on_signal, lane=run_id), tokens=estimated_tokens))

    def slot_for(self, call: Call) -> AbstractAsyncContextManager[Permit]:
        """The same for a call of a run with a bound or a budget of its own; `BudgetSpent` if that does not allow it.
        Raises ValueError and RequestTooLarge at once, as `slot` does; to enter raises what it raises there."""
        if call.tokens < 0:
            raise ValueError("a call cannot need less than nothing")
        if call.tokens > self.limits.tokens_per_minute:
            raise RequestTooLarge(call.tokens, limit=self.limits.tokens_per_minute)
        return _Slot(self, call)

    def give_place_back(self, call: Call) -> None:
        """The run of a call may begin another. Raises nothing."""
        if call.began_at is not None and self._loop is not None:
            call.give_place_back(self._loop.time())
            self._look_again()

    async def _admit(self, call: Call) -> asyncio.AbstractEventLoop:
        """Wait until the call is let through; the loop in which it was."""
        loop = self._bound()
        self._admission.enter(call, loop.time())
        waiter = self._waiters[call] = loop.create_future()
        try:
            if self._blocked is None:
                self._advance()
            elif call.run.free >= 1:
                # Nobody overtakes those who wait for the account.
                wait, since = self._blocked
                call.emit(wait.after(loop.time() - since))
            if waiter.done():
                waiter.result()
            else:
                with paused():
                    await waiter
        except BaseException:
            self._admission.leave(call)
            if call.grant is not None:
                # It was let through at the moment it left.
                await self._undo(call)
            else:
                self._look_again()
            raise
        finally:
            self._waiters.pop(call, None)
        return loop

    async def _end(self, call: Call, permit: Permit) -> None:
        self.answers += permit.is_answered
        self._admission.ended(call, error=permit.error, is_answered=permit.is_answered)
        await self._finish(call, permit.ending(stretch=1 + self._random.random() / 10))

    async def _undo(self, call: Call) -> None:
        self._admission.ended(call, error=None, is_answered=False)
        if self._loop is not None:
            call.give_place_back(self._loop.time())
        await self._finish(call, _WITHDRAWN)

    async def _finish(self, call: Call, ending: Ending) -> None:
        """Tell the account that a call has ended: not even a cancellation may keep a slot."""
        assert call.grant is not None
        if self._local is None:
            task = asyncio.get_running_loop().create_task(self._finish_shared(call, call.grant, ending))
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)
            await asyncio.shield(task)
            return
        # Nothing here waits, so that nothing can strike.
        self._announce(self._local.state.finish(call.grant, ending, self._local.clock()), call)
        self._look_again()

    async def _finish_shared(self, call: Call, grant: Granted, ending: Ending) -> None:
        try:
            self._announce(await self.account.finish(grant, ending), call)
        except StoreError:
            # A reply that was paid for is worth more than the count, which stays on the safe side.
            _log.warning("a call that ended could not be told to the store that limits are shared in", exc_info=True)
        finally:
            self._look_again()

    def _announce(self, change: Change | None, call: Call) -> None:
        circuit = self.account.circuit
        if change == "opened":
            wait = round(circuit.recover_after * 1000)
            emit(call.run.listener, CircuitOpened(failures=circuit.failures_to_open, retry_after_ms=wait))
        elif change == "closed":
            emit(call.run.listener, CircuitClosed())

    def _look_again(self) -> None:
        """Something has changed: somebody may go who could not."""
        if not self._waiters or self._loop is None or self._loop.is_closed():
            return
        try:
            is_here = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            is_here = False
        if is_here:
            # What the store is about to answer may be of before.
            self._has_changed = True
            self._advance()
        else:
            # A call that a closed loop left behind may end while another loop's calls wait.
            self._loop.call_soon_threadsafe(self._advance)

    def _advance(self) -> None:
        """Do what the admission says until somebody has to wait."""
        loop = self._loop
        if self._asking is not None or loop is None:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._blocked = None
        while (decision := self._admission.next(loop.time())) is not None:
            if isinstance(decision, AskAccount):
                call = decision.call
                if self._local is None:
                    self._has_changed = False
                    self._asking = loop.create_task(self._ask_store(call), context=self._context)
                    return
                answer = self._local.state.admit(call.tokens, self._local.clock())
                decision = self._admission.answered(call, answer, loop.time())
            if self._must_wait(decision, loop):
                return

    async def _ask_store(self, call: Call) -> None:
        loop = asyncio.get_running_loop()
        answer: Granted | Wait | Exception
        try:
            answer = await self.account.admit(call.tokens)
        except StoreError as error:
            answer = LimitsUnreachable(f"{LimitsUnreachable.__doc__} {error}", retry_after=1.0)
            answer.__cause__ = error
        except Exception as error:
            answer = error
        except asyncio.CancelledError:
            # Only when the loop is being closed: nobody may be left waiting for a turn that never comes.
            for waiter in self._waiters.values():
                waiter.cancel()
            raise
        decision = self._admission.answered(call, answer, loop.time())
        if isinstance(decision, GiveBack):
            await self._finish_shared(call, decision.grant, _WITHDRAWN)
        self._asking = None
        if not self._must_wait(decision, loop) or self._has_changed:
            self._advance()

    def _must_wait(self, decision: Decision, loop: asyncio.AbstractEventLoop) -> bool:
        """Whether nobody can go now; those who can, or never will, are told."""
        if isinstance(decision, Wait):
            self._blocked = None if decision.reason is None else (decision, loop.time())
            known = [seconds for seconds in (decision.seconds, decision.look_again) if seconds is not None]
            if known:
                wait = max(min(known), _SHORTEST_MOMENT if decision.reason is None else _SHORTEST_WAIT)
                self._timer = loop.call_later(wait, self._advance, context=self._context)
            for spending in self._admission.short_of:
                spending.when_settled(self._look_again)
            return True
        if isinstance(decision, (Go, Refuse)):
            waiter = self._waiters.get(decision.call)
            if waiter is not None and not waiter.done():
                if isinstance(decision, Go):
                    waiter.set_result(None)
                else:
                    waiter.set_exception(decision.error)
        return False

    def _bound(self) -> asyncio.AbstractEventLoop:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            if self._loop is not None and not self._loop.is_closed() and (self._waiters or self.held):
                raise RuntimeError(
                    "this limiter is in use on another event loop: give each loop its own, over the same RedisAccount"
                )
            self._loop = loop
            self._admission.clear()
            self._waiters = {}
            self._asking = self._timer = self._blocked = None
            self.held = 0
        return loop

    def __repr__(self) -> str:
        return f"<CentralRateLimiterService held={self.held} waiting={self.waiting}>"


class _Slot(AbstractAsyncContextManager[Permit]):
    """The slot of one call."""

    __slots__ = ("_call", "_limiter", "_loop", "_permit")

    def __init__(self, limiter: CentralRateLimiterService, call: Call) -> None:
        self._limiter = limiter
        self._call = call

    async def __aenter__(self) -> Permit:
        began = asyncio.get_running_loop().time()
        self._loop = await self._limiter._admit(self._call)
        self._limiter.held += 1
        self._permit = Permit(self._call, waited=self._loop.time() - began)
        return self._permit

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        permit = self._permit
        permit.is_over = error is None
        if isinstance(error, ModelError) and permit.error is None:
            permit.failed(error)
        # A call that a closed loop left behind may end when another loop's calls are counted.
        if self._limiter._loop is self._loop:
            self._limiter.held -= 1
        await self._limiter._end(self._call, permit)


def usual_limits(model: "ModelAddress") -> RateLimits:
    """The limits of a model's account, as far as nobody said otherwise."""
    return UNLIMITED if model.is_own else RateLimits()


class AccountLimiters:
    """Limiters, each made when its account is first named, with limits for all or by account. They belong to one event
    loop.
    """

    def __init__(
        self,
        limits: "RateLimits | Callable[[ModelAddress], RateLimits] | None" = None,
        *,
        backend: "Backend | None" = None,
    ) -> None:
        self._limits = limits or RateLimits()
        self._place = None if backend is None else backend.place
        self._limiters: dict[str, CentralRateLimiterService] = {}

    def of(self, model: "ModelAddress") -> CentralRateLimiterService:
        """The limiter of a model's account."""
        account = (
            f"{model.provider}:{hashlib.sha256(model.url.encode()).hexdigest()[:16]}" if model.url else model.provider
        )
        if account not in self._limiters:
            limits = self._limits if isinstance(self._limits, RateLimits) else self._limits(model)
            self._limiters[account] = self._made(account, limits)
        return self._limiters[account]

    def all(self) -> dict[str, CentralRateLimiterService]:
        """The limiters that were made, by account."""
        return dict(self._limiters)

    def _made(self, account: str, limits: RateLimits) -> CentralRateLimiterService:
        # Whoever has a store on Redis has loaded it; others need not.
        redis = sys.modules.get("sameas.stores.redis")
        if redis is None or not isinstance(self._place, redis.RedisBackend):
            return CentralRateLimiterService(limits)
        from sameas.llm.redis_account import RedisAccount

        return CentralRateLimiterService(
            account=RedisAccount(cast("RedisBackend", self._place), limits, account=account)
        )
