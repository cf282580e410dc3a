"""May this call go now, and if not, when? One line for all calls to an account, and the one place that decides.

Rule: `Admission` is told the time and what its account answered; it reads no clock, asks no store and waits for nobody.
Whoever drives it (`limiter.py`) does what it says: ask the account for a call, let it go, refuse it, or look again
later. A call needs, in this order,

1. its run: a place among the calls that the run has under way, a moment after the one before, and the run's money;
2. its model: before one has ever answered, the first call goes a moment ahead, so that a wrong name, address or key is
   one call;
3. its account: pauses, pace, circuit, concurrent calls, requests and tokens (`account.py`, or `limits.lua`).

Runs take turns, and inside a run the first goes first. A run that cannot go for reasons of its own does not keep others
from going; one that waits for the account keeps its turn, however large its call is, so that nobody starves. Nothing is
taken before all of it can be had.
"""

import math
from collections import OrderedDict, deque
from collections.abc import Iterator
from decimal import Decimal
from itertools import islice
from typing import TypeAlias

import msgspec

from sameas.llm.account import Granted, Wait
from sameas.llm.budget import Reservation, SpendingLimit, TokenBudgetService
from sameas.llm.errors import CallRefused, CircuitOpen, HeldBack, TooManyWaiting
from sameas.llm.models import ModelError
from sameas.llm.signals import LimitReason, Listener, RateLimited, emit

# Calls that begin together are answered together, and then their answers wait for each other, wave after wave. Longer
# moments than this gain no time, and a processor that rests between two replies is slower for both.
APART = 0.003
# All of them together, before it is known how long calls take.
FIRST_TOGETHER = 0.1
# Seconds that a model's first call goes alone: a name, address or key that is wrong is refused within them.
HEAD_START = 0.25

_NOTHING = Decimal(0)
_UNTIL_A_CALL_ENDS = Wait(seconds=None, reason=None)


class RunCalls:
    """The calls of one run: at most `at_once` under way, each begun a moment after the one before, from one budget."""

    def __init__(
        self,
        run_id: str,
        *,
        at_once: int | None = None,
        budget: TokenBudgetService | None = None,
        on_signal: Listener | None = None,
        lane: object = None,
    ) -> None:
        if at_once is not None and at_once < 1:
            raise ValueError("at_once must be at least 1")
        self.run_id = run_id
        self.lane = object() if lane is None else lane
        """In which line its calls wait: one of their own, by default."""
        self.budget = budget
        self.listener = on_signal
        self.locked_out: ModelError | None = None
        """Why no call of this run would fare better than the one that met it."""
        self._at_once = math.inf if at_once is None else at_once
        self._apart = 0.0 if at_once is None else min(APART, FIRST_TOGETHER / at_once)
        self._latest_at = -math.inf
        self._under_way = 0

    @property
    def free(self) -> float:
        """How many more calls may be under way."""
        return self._at_once - self._under_way

    def wait(self, now: float) -> Wait | None:
        """What keeps the next call from beginning, as far as this run is concerned."""
        if self.free < 1:
            return _UNTIL_A_CALL_ENDS
        apart = self._latest_at + self._apart - now
        return Wait(seconds=apart, reason=None) if apart > 0 else None

    def begin(self, now: float) -> None:
        self._latest_at = now
        self._under_way += 1

    def end(self, *, began_at: float, now: float) -> None:
        self._under_way -= 1
        if self._apart:
            # All of them together are apart by no more than half a call.
            self._apart = min(APART, (now - began_at) * 0.5 / self._at_once)


class Call:
    """One call that wants to be made, or is. It holds its place in the run until that is given back, which may be long
    after it has ended: who is killed makes no more calls again than had a place.
    """

    def __init__(
        self, run: RunCalls, *, tokens: int, cost: Decimal = _NOTHING, stage: str = "", model: str = ""
    ) -> None:
        self.run = run
        self.tokens = tokens
        self.cost = cost
        self.stage = stage
        self.model = model
        self.grant: Granted | None = None
        self.reservation: Reservation | None = None
        self.entered_at = 0.0
        self.began_at: float | None = None
        self._emitted: set[tuple[LimitReason, bool, bool]] = set()

    def give_place_back(self, now: float) -> None:
        """Its run may begin another; a second time changes nothing."""
        if self.began_at is not None:
            began_at, self.began_at = self.began_at, None
            self.run.end(began_at=began_at, now=now)

    def emit(self, wait: Wait) -> None:
        """Say why it waits for the account, once for each reason, and once more when it is known how long."""
        if wait.reason is None:
            return
        reason = (wait.reason, wait.asked_by_server, wait.seconds is None)
        if reason in self._emitted:
            return
        self._emitted.add(reason)
        signal = RateLimited(
            run_id=self.run.run_id,
            wait_ms=round((wait.seconds or 0.0) * 1000),
            reason=wait.reason,
            asked_by_server=wait.asked_by_server,
        )
        emit(self.run.listener, signal)


class AskAccount(msgspec.Struct, frozen=True):
    """Ask the account whether the call may go, and hand its answer to `Admission.answered`."""

    call: Call


class Go(msgspec.Struct, frozen=True):
    """The call is let through."""

    call: Call


class Refuse(msgspec.Struct, frozen=True):
    """The call is not made."""

    call: Call
    error: Exception


class GiveBack(msgspec.Struct, frozen=True):
    """The account let a call through that can no longer go."""

    grant: Granted


Decision: TypeAlias = AskAccount | Go | Refuse | GiveBack | Wait


class Admission:
    """The line in front of one account.

    `longest_pause` is how long a server may ask everybody to wait, or be down, before calls are refused instead.
    """

    def __init__(self, *, longest_pause: float, max_waiting: int) -> None:
        self._longest_pause = longest_pause
        self._max_waiting = max_waiting
        # By run, whose turn it is first.
        self._line: OrderedDict[object, deque[Call]] = OrderedDict()
        self._latest: object = None
        self._first_calls: dict[str, tuple[Call, float]] = {}
        self.known_models: set[str] = set()
        """The models that have answered: their names and their address are right."""
        self.short_of: set[SpendingLimit] = set()
        """The money that calls wait for, which others may give back."""

    @property
    def waiting(self) -> int:
        """How many calls wait for the account."""
        return sum(int(min(len(lane), max(0, lane[0].run.free))) for lane in self._line.values())

    def enter(self, call: Call, now: float) -> None:
        """Take a place in the line; raises what refuses it in any case."""
        refusal = self._run_wait(call, now)
        if isinstance(refusal, Exception):
            raise refusal
        if self.waiting >= self._max_waiting:
            raise TooManyWaiting
        call.entered_at = now
        lane = call.run.lane
        if lane not in self._line:
            latest = self._line.get(self._latest)
            self._line[lane] = deque()
            if latest is not None and now - latest[0].entered_at < APART:
                # They came together, and that one has had its turn.
                self._line.move_to_end(self._latest)
        self._line[lane].append(call)

    def clear(self) -> None:
        """Nobody waits any more, and nobody is under way: their loop is gone."""
        self._line.clear()
        self._latest = None
        self._first_calls.clear()
        self.short_of.clear()

    def leave(self, call: Call) -> None:
        """It has gone away; the turn stays with its run."""
        lane = self._line.get(call.run.lane)
        if lane is not None and call in lane:
            lane.remove(call)
            if not lane:
                del self._line[call.run.lane]

    def next(self, now: float) -> Decision | None:
        """What to do now; None if nobody waits."""
        if not self._line:
            return None
        self.short_of.clear()
        soonest: float | None = None
        for lane in self._line.values():
            call = lane[0]
            obstacle = self._run_wait(call, now) or self._model_wait(call, now)
            if obstacle is None:
                return AskAccount(call)
            if isinstance(obstacle, Exception):
                self.leave(call)
                return Refuse(call, obstacle)
            if obstacle.seconds is not None:
                soonest = obstacle.seconds if soonest is None else min(soonest, obstacle.seconds)
        return Wait(seconds=soonest, reason=None)

    def answered(self, call: Call, answer: Granted | Wait | Exception, now: float) -> Decision:
        """What follows from the account's answer, or from its failure to give one."""
        lane = self._line.get(call.run.lane, ())
        if isinstance(answer, Granted):
            if call not in lane or isinstance(self._run_wait(call, now), Exception):
                return GiveBack(answer)
            return self._go(call, answer, now)
        refusal = answer if isinstance(answer, Exception) else self._too_long(answer)
        if refusal is not None:
            self.leave(call)
            return Refuse(call, refusal)
        assert isinstance(answer, Wait)
        for waiting in self._ready():
            waiting.emit(answer)
        return answer

    def ended(self, call: Call, *, error: ModelError | None, is_answered: bool) -> None:
        """A call that was let through is over."""
        if call.model:
            if is_answered:
                self.known_models.add(call.model)
            first, _ = self._first_calls.get(call.model, (None, 0.0))
            if first is call:
                del self._first_calls[call.model]
            if error is not None and error.ends_run:
                self._lock_out(call, error, everybody=first is call)
        if call.reservation is not None:
            # Nothing if it was settled; else the call was never made.
            call.reservation.release()

    def _lock_out(self, call: Call, error: ModelError, *, everybody: bool) -> None:
        """No other call of the run would fare better; nor would those who waited for a model's first call."""
        call.run.locked_out = error
        for lane in self._line.values() if everybody else ():
            if lane[0].model == call.model:
                lane[0].run.locked_out = error

    def _go(self, call: Call, grant: Granted, now: float) -> Go:
        run = call.run
        if run.budget is not None:
            call.reservation = run.budget.reserve(call.stage, call.tokens, cost=call.cost)
        self.leave(call)
        self._latest = call.run.lane
        if self._latest in self._line:
            self._line.move_to_end(self._latest)
        run.begin(now)
        call.grant, call.began_at = grant, now
        if call.model and call.model not in self.known_models:
            self._first_calls.setdefault(call.model, (call, now))
        return Go(call)

    def _ready(self) -> Iterator[Call]:
        """Those who wait for nothing but the account."""
        for lane in self._line.values():
            free = lane[0].run.free
            yield from lane if free >= len(lane) else islice(lane, int(max(0, free)))

    def _run_wait(self, call: Call, now: float) -> Wait | CallRefused | ModelError | None:
        run, budget = call.run, call.run.budget
        if run.locked_out is not None:
            return ModelError(str(run.locked_out), code=run.locked_out.code)
        if (wait := run.wait(now)) is not None:
            return wait
        if budget is None or budget.can_afford(call.stage, call.tokens, cost=call.cost):
            return None
        if budget.may_afford_later(call.stage, call.tokens, cost=call.cost):
            # Nobody is refused for what calls under way have only set aside.
            self.short_of.add(budget.spending)
            return _UNTIL_A_CALL_ENDS
        return budget.refusal(call.stage, call.tokens, cost=call.cost)

    def _model_wait(self, call: Call, now: float) -> Wait | None:
        if not call.model or call.model in self.known_models or call.model not in self._first_calls:
            return None
        left = self._first_calls[call.model][1] + HEAD_START - now
        return Wait(seconds=left, reason=None) if left > 0 else None

    def _too_long(self, wait: Wait) -> CallRefused | None:
        """Why a call is refused that would wait for longer than anybody should."""
        seconds, longest = wait.seconds or 0.0, self._longest_pause
        if wait.down_for is not None and wait.down_for + seconds > longest:
            return CircuitOpen(retry_after=seconds, down_for=wait.down_for)
        if wait.asked_by_server and seconds > longest:
            return HeldBack(retry_after=seconds, longest=longest)
        return None
