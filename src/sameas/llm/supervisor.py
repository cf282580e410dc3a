"""Asks a model on behalf of one run: memo, then admission (place, money, limits), the stage's time, and the model.

Rule: what is remembered costs nothing; what is asked was reserved first and is settled with what it used, whether it
was answered, failed or cancelled. A failure that may pass is tried again after a jittered wait, inside the stage's
time and never in vain; so is a call that is stuck, because an attempt has less time than its stage. The supervisor
names how the run ended; it never decides what a result is worth, nor when a call may go.
"""

import asyncio
import warnings
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from random import Random
from typing import cast

import msgspec

from sameas.llm.admission import Call, RunCalls
from sameas.llm.budget import TokenBudgetService
from sameas.llm.errors import CallRefused
from sameas.llm.ledger import RunOutcome, UsageLedger, UsageReport, UsageRow, cost_of, most_cost_of, name_outcome
from sameas.llm.limiter import CentralRateLimiterService
from sameas.llm.lingering import LingeringCalls, sent_call
from sameas.llm.memo import CallMemo, Check
from sameas.llm.models import Ask, Model, ModelError, Openable, Reply, Usage
from sameas.llm.signals import Listener, MemoHit, Retrying, emit
from sameas.llm.timeouts import (
    STAGES,
    StageName,
    StageTimedOutError,
    StageTimeoutService,
    hard_limit_passed,
    paused,
    soft_seconds,
    time_left,
    working,
)
from sameas.llm.tokens import count_input


class Backoff(msgspec.Struct, frozen=True, kw_only=True):
    """How long to wait before another try: doubling from the first, up to the longest, less up to half at random.
    Raises ValueError for times that cannot be. Its call raises nothing."""

    first: float = 1.0
    longest: float = 20.0

    def __post_init__(self) -> None:
        if not 0 < self.first <= self.longest:
            raise ValueError("a backoff needs 0 < first <= longest, in seconds")

    def wait(self, failures: int, random: Random) -> float:
        return min(self.longest, self.first * 2.0 ** min(failures - 1, 30)) * (0.5 + random.random() / 2)


class Retry(msgspec.Struct, frozen=True):
    """Try again after `wait` seconds; `is_work` if these are the stage's own time."""

    wait: float
    is_work: bool


class Tries:
    """The failures of one call, and whether it is made once more. `answers` is how many calls of the account were
    answered when it began.

    A call has so many retries of its own. It does not use them up where it was refused for being one too many, nor
    where the server is down for everybody: nobody was answered since this call failed the last time, others fail now
    too, and the failure cost nothing. Of these it bears `unserved_retries` in a row, and as many in all where the
    server says that it has too much to do, which some say to one call while they answer others. How long that takes is
    for the limiter and its circuit to say, and no work of the stage.
    """

    def __init__(self, *, retries: int, unserved_retries: int, backoff: Backoff, random: Random, answers: int) -> None:
        self._retries = retries
        self._unserved_retries = unserved_retries
        self._backoff = backoff
        self._random = random
        self._answers = answers
        self._failures = self._unserved = self._overloads = 0
        self.count = 0

    def after(self, error: ModelError, *, answers: int, others_fail: bool) -> Retry | None:
        """What follows from a failure; None if there is no other try."""
        nobody_was_answered, self._answers = answers == self._answers, answers
        self.count += 1
        is_one_too_many = error.code == "rate_limited"
        is_down = (
            error.counts_for_circuit
            and error.usage is None
            and self._failures + self._overloads > 0
            and nobody_was_answered
            and others_fail
        )
        is_busy = error.code == "overloaded" and error.usage is None
        if is_one_too_many or is_down:
            self._unserved = self._unserved + 1 if nobody_was_answered else 1
        elif is_busy:
            self._overloads += 1
        else:
            self._failures += 1
        unserved = max(self._unserved, self._overloads)
        if not error.is_retryable or self._failures > self._retries or unserved > self._unserved_retries:
            return None
        # What the server asked for is waited for at the limiter, together with everybody else.
        at_limiter = is_one_too_many or bool(error.retry_after)
        waits = self._failures + self._unserved + self._overloads
        wait = 0.0 if at_limiter else self._backoff.wait(waits, self._random)
        return Retry(wait, is_work=not (is_down or is_busy))


# Tokens of what is said to a model about a reply that cannot be used.
AROUND_REPAIR = 300


class _Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a call may use at most."""

    stage: str
    ask: Ask
    input_tokens: int
    tokens: int
    cost: Decimal


class RequestSupervisor:
    """The calls of one run.

    `retries` is how often a failed call is made again, and `unserved_retries` how often more while nobody is answered:
    because the server refuses calls for being too many, or is down for all of them. `attempt_seconds`
    bounds one attempt; without it that is the stage's soft limit, and what is left until the hard one is for asking
    again. `timeouts` apply where no stage is timing the work already, as the pipeline does. `at_once` bounds the calls
    under way, so that more may be got ready: a call that waits for its turn has been looked up, claimed and counted,
    and has reserved nothing yet. `on_spent` receives the accounts of a stage whenever they change, with the calls under
    way in them. With `lingering` a call that was sent may end after its caller was interrupted.

    Raises ValueError for settings that do not fit together, such as a cost limit for a model without a price.
    """

    def __init__(
        self,
        model: Model,
        *,
        limiter: CentralRateLimiterService,
        budget: TokenBudgetService | None = None,
        memo: CallMemo | None = None,
        timeouts: StageTimeoutService | None = None,
        run_id: str = "",
        on_signal: Listener | None = None,
        retries: int = 2,
        unserved_retries: int = 8,
        backoff: Backoff | None = None,
        attempt_seconds: float | None = None,
        random: Random | None = None,
        at_once: int | None = None,
        on_spent: Callable[[UsageRow], None] | None = None,
        lingering: LingeringCalls | None = None,
        patience: int | None = None,
    ) -> None:
        if patience is not None:
            warnings.warn("patience= is called unserved_retries= now", DeprecationWarning, stacklevel=2)
            unserved_retries = patience
        if retries < 0 or unserved_retries < 0:
            raise ValueError("retries and unserved_retries must not be negative")
        if attempt_seconds is not None and not attempt_seconds > 0:
            raise ValueError("attempt_seconds must be positive")
        if budget is not None and budget.cost_limit is not None and model.price is None:
            raise ValueError(
                f"a cost limit needs a price, and that of {model.name} is not known: limit its tokens instead"
            )
        self.model = model
        self._limiter = limiter
        self._budget = budget
        self._run = RunCalls(run_id, at_once=at_once, budget=budget, on_signal=on_signal)
        self._memo = memo
        self._timeouts = timeouts or StageTimeoutService()
        self._listener = on_signal
        self._retries = retries
        self._unserved_retries = unserved_retries
        self._backoff = backoff or Backoff()
        self._attempt_seconds = attempt_seconds
        self._random = random or Random()
        self._ledger = UsageLedger(on_change=on_spent)
        self._stopped_by: set[str] = set()
        self._opening = asyncio.Lock()
        self._is_open = False
        self._lingering = lingering

    @property
    def usage(self) -> UsageReport:
        """By stage and model: calls, tokens, cost, and what the memo saved."""
        return self._ledger.report()

    @property
    def stopped_by(self) -> frozenset[str]:
        """The codes of what kept calls from an answer, such as `budget_spent` or `circuit_open`."""
        return frozenset(self._stopped_by)

    async def ask(
        self, stage: str, ask: Ask, *, is_valid: Check | None = None, repair_tokens: int | None = None
    ) -> Reply:
        """The reply; it is remembered if it is whole and `is_valid` says that it can be used.

        With `repair_tokens` it is a question that may be followed by one repair with so much room for its reply: a
        budget that grows makes room for both, and for the tries that may fail.

        Raises `ModelError` after the last try, `CallRefused` where no call may be made, and `StageTimedOutError`.
        """
        if stage not in STAGES:
            raise ValueError(f"no such stage: {stage}; the stages are {', '.join(STAGES)}")
        made: list[Call] = []
        try:
            if self._memo is None:
                return await self._timed(stage, ask, made, repair_tokens)
            # Another process may be asking the same and wait at its limiter: that is no work of this stage.
            with paused():
                kept = self._memo.ask(
                    self.model.name, ask, lambda: self._timed(stage, ask, made, repair_tokens), is_valid=is_valid
                )
                remembered = await (kept if self._lingering is None else self._lingering.see_through(kept))
        except (ModelError, CallRefused) as error:
            self._stopped_by.add(error.code)
            raise
        except StageTimedOutError:
            self._stopped_by.add("stage_timed_out")
            raise
        finally:
            for call in made:
                self._limiter.give_place_back(call)
        reply = remembered.reply
        if remembered.was_kept:
            self._ledger.saved(stage, self.model.name, usage=reply.usage, price=self.model.price)
            emit(self._listener, MemoHit(stage=stage, model=self.model.name, tokens=reply.usage.total_tokens))
        return reply

    async def forget(self, ask: Ask) -> None:
        """Let the memo forget the reply to an ask. Raises StoreUnavailable if the memo's store cannot be asked."""
        if self._memo is not None:
            await self._memo.forget_call(self.model.name, ask)

    def outcome(self, *, entities: int, relations: int, is_fallback: bool = False) -> RunOutcome:
        """The name of how the run ended, with so much to show. Raises nothing."""
        return name_outcome(
            entities=entities, relations=relations, ended_early=bool(self._stopped_by), is_fallback=is_fallback
        )

    async def _timed(self, stage: str, ask: Ask, made: list[Call], repair_tokens: int | None) -> Reply:
        if time_left() is not None:
            return await self._tries(stage, ask, made, repair_tokens)
        return await self._timeouts.with_timeout(
            cast("StageName", stage), lambda: self._tries(stage, ask, made, repair_tokens)
        )

    async def _tries(self, stage: str, ask: Ask, made: list[Call], repair_tokens: int | None) -> Reply:
        """The reply of the first try that has one; that call, which keeps its place, is added to those made."""
        if not self._is_open:
            await self._open(self.model)
        plan = self._planned(stage, ask)
        if self._budget is not None and repair_tokens is not None:
            # A repair shows the reply again and says what is wrong with it; a try that failed may cost as much as any.
            repair = plan.tokens + AROUND_REPAIR + repair_tokens
            self._budget.provide(stage, (self._retries + 1) * (plan.tokens + repair))
        tries = Tries(
            retries=self._retries,
            unserved_retries=self._unserved_retries,
            backoff=self._backoff,
            random=self._random,
            answers=self._limiter.answers,
        )
        try:
            while True:
                call = Call(self._run, tokens=plan.tokens, cost=plan.cost, stage=stage, model=self.model.name)
                made.append(call)
                try:
                    return await self._try(plan, call)
                except ModelError as error:
                    self._limiter.give_place_back(made.pop())
                    self._limiter.failing.add(tries)
                    others_fail = len(self._limiter.failing) > 1
                    again = tries.after(error, answers=self._limiter.answers, others_fail=others_fail)
                    left = time_left()
                    if again is None or (again.is_work and left is not None and again.wait >= left):
                        raise
                    self._announce(stage, error, attempt=tries.count, wait=error.retry_after or again.wait)
                with working() if again.is_work else paused():
                    await asyncio.sleep(again.wait)
        finally:
            self._limiter.failing.discard(tries)

    async def _open(self, model: Model) -> None:
        async with self._opening:
            if not self._is_open and isinstance(model, Openable):
                await model.open()
            self._is_open = True

    def _planned(self, stage: str, ask: Ask) -> _Plan:
        input_tokens = count_input(ask, count=self.model.count_tokens)
        most = Usage(input_tokens, ask.max_output_tokens, reported=False)
        cost = most_cost_of(most.input_tokens, most.output_tokens, self.model.price) or Decimal(0)
        return _Plan(stage=stage, ask=ask, input_tokens=input_tokens, tokens=most.total_tokens, cost=cost)

    async def _try(self, plan: _Plan, call: Call) -> Reply:
        async with self._limiter.slot_for(call) as permit:
            sent = Usage(plan.input_tokens, 0, reported=False)
            begun = self._ledger.began(plan.stage, self.model.name, sent=sent, price=self.model.price)
            settle = partial(self._settle, begun, call, waited=permit.waited_seconds)
            try:
                with working(), sent_call():
                    reply = await self._answer(plan, sent)
            except ModelError as error:
                settle(error.usage, has_reply=False)
                if (judged := self._judged(error)) is not error:
                    raise judged from error
                raise
            except asyncio.CancelledError:
                # What was sent was read, as far as anybody knows.
                if hard_limit_passed():
                    permit.failed(ModelError("no reply within the stage's time", code="timeout", usage=sent))
                settle(sent, has_reply=False)
                raise
            # As a provider counts it: what went in, and what might have come out.
            permit.reconcile(max(reply.usage.total_tokens, reply.usage.input_tokens + plan.ask.max_output_tokens))
            settle(reply.usage, has_reply=True)
            return reply

    async def _answer(self, plan: _Plan, sent: Usage) -> Reply:
        """The reply of one attempt, which is given up before its stage is."""
        seconds = self._attempt_seconds or soft_seconds()
        scope = asyncio.timeout(seconds)
        try:
            async with scope:
                return await self.model.ask(plan.ask)
        except TimeoutError:
            if not scope.expired():
                raise
            message = f"{self.model.name}: no answer within {seconds:g} s; give it more time, or ask for less"
            raise ModelError(message, code="timeout", usage=sent) from None

    def _judged(self, error: ModelError) -> ModelError:
        """The error, by what is known of the server: an address that nobody ever answered at is wrong, and a model that
        has answered is there, whatever stands in front of it says.
        """
        if error.code == "network" and error.usage is None and not self._limiter.answers:
            return ModelError(str(error), code="unreachable")
        if error.code == "not_found" and self.model.name in self._limiter.known_models and self._limiter.answers:
            return ModelError(str(error), code="server")
        return error

    def _settle(self, begun: UsageRow, call: Call, usage: Usage | None, *, waited: float, has_reply: bool) -> None:
        price = self.model.price
        self._ledger.called(begun, usage=usage, price=price, waited=waited, has_reply=has_reply)
        if call.reservation is not None and usage is not None:
            call.reservation.settle(usage.total_tokens, cost=cost_of(usage, price) or Decimal(0))

    def _announce(self, stage: str, error: ModelError, *, attempt: int, wait: float) -> None:
        emit(
            self._listener,
            Retrying(stage=stage, attempt=attempt + 1, wait_ms=round(wait * 1000), code=error.code, message=str(error)),
        )
