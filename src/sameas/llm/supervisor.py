"""Asks a model on behalf of one run: memo, then budget, then limiter, then the stage's time, then the model.

Rule: what is remembered costs nothing; what is asked was reserved first and is settled with what it used, whether it
was answered, failed or cancelled. A failure that may pass is tried again after a jittered wait, inside the stage's
time and never in vain. The supervisor names how the run ended; it never decides what a result is worth.
"""

import asyncio
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from random import Random
from typing import cast

import msgspec

from sameas.llm.budget import Reservation, TokenBudgetService
from sameas.llm.errors import CallRefused
from sameas.llm.ledger import UsageLedger, UsageReport, UsageRow, cost_of
from sameas.llm.limiter import CentralRateLimiterService
from sameas.llm.memo import CallMemo, Check
from sameas.llm.models import Ask, Model, ModelError, Openable, Reply, Usage
from sameas.llm.outcomes import RunOutcome, name_outcome
from sameas.llm.signals import Listener, MemoHit, Retrying, tell
from sameas.llm.timeouts import (
    STAGES,
    StageName,
    StageTimedOutError,
    StageTimeoutService,
    hard_limit_passed,
    paused,
    time_left,
    working,
)
from sameas.llm.turns import Turn, Turns
from sameas.llm.usage import count_input

# Tokens of what is said to a model about a reply that cannot be used.
_AROUND_REPAIR = 300


class Backoff(msgspec.Struct, frozen=True, kw_only=True):
    """How long to wait before another try: doubling from the first, up to the longest, less up to half at random."""

    first: float = 1.0
    longest: float = 20.0

    def __post_init__(self) -> None:
        if not 0 < self.first <= self.longest:
            raise ValueError("a backoff needs 0 < first <= longest, in seconds")

    def wait(self, failures: int, random: Random) -> float:
        return min(self.longest, self.first * 2.0 ** min(failures - 1, 30)) * (0.5 + random.random() / 2)


class _Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a call may use at most."""

    stage: str
    ask: Ask
    input_tokens: int
    tokens: int
    cost: Decimal


class RequestSupervisor:
    """The calls of one run.

    `retries` is how often a failed call is made again; calls that the server refused only for being too many
    (`rate_limited`) have `patience` of their own, because the limiter makes them wait. `timeouts` apply where no stage
    is timing the work already, as the pipeline does. `at_once` bounds the calls under way, so that more may be got
    ready: who waits for its turn has its ask looked up, claimed and counted, and has reserved nothing yet. `on_spent`
    is told the accounts of a stage whenever they change, with the calls under way in them.
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
        patience: int = 8,
        backoff: Backoff | None = None,
        random: Random | None = None,
        at_once: int | None = None,
        on_spent: Callable[[UsageRow], None] | None = None,
    ) -> None:
        if retries < 0 or patience < 0:
            raise ValueError("retries and patience must not be negative")
        if budget is not None and budget.cost_limit is not None and model.price is None:
            raise ValueError(
                f"a cost limit needs a price, and that of {model.name} is not known: limit its tokens instead"
            )
        self.model = model
        self._limiter = limiter
        self._budget = budget
        self._memo = memo
        self._timeouts = timeouts or StageTimeoutService()
        self._run_id = run_id
        self._listener = on_signal
        self._retries = retries
        self._patience = patience
        self._backoff = backoff or Backoff()
        self._random = random or Random()
        self._ledger = UsageLedger(on_change=on_spent)
        self._stopped_by: set[str] = set()
        self._locked_out: ModelError | None = None
        self._opening = asyncio.Lock()
        self._is_open = False
        self._turns = Turns(at_once)

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
        turn = Turn(self._turns)
        try:
            if self._memo is None:
                return await self._timed(stage, ask, turn, repair_tokens)
            # Another process may be asking the same and wait at its limiter: that is no work of this stage.
            with paused():
                remembered = await self._memo.ask(
                    self.model.name, ask, lambda: self._timed(stage, ask, turn, repair_tokens), is_valid=is_valid
                )
        except (ModelError, CallRefused) as error:
            self._stopped_by.add(error.code)
            raise
        except StageTimedOutError:
            self._stopped_by.add("stage_timed_out")
            raise
        finally:
            turn.give_back()
        reply = remembered.reply
        if remembered.was_kept:
            self._ledger.saved(stage, self.model.name, usage=reply.usage, price=self.model.price)
            tell(self._listener, MemoHit(stage=stage, model=self.model.name, tokens=reply.usage.total_tokens))
        return reply

    async def forget(self, ask: Ask) -> None:
        """Let the memo forget the reply to an ask."""
        if self._memo is not None:
            await self._memo.forget_call(self.model.name, ask)

    def outcome(self, *, entities: int, relations: int, is_fallback: bool = False) -> RunOutcome:
        """The name of how the run ended, with so much to show."""
        return name_outcome(
            entities=entities, relations=relations, ended_early=bool(self._stopped_by), is_fallback=is_fallback
        )

    async def _timed(self, stage: str, ask: Ask, turn: Turn, repair_tokens: int | None) -> Reply:
        if time_left() is not None:
            return await self._tries(stage, ask, turn, repair_tokens)
        return await self._timeouts.with_timeout(
            cast("StageName", stage), lambda: self._tries(stage, ask, turn, repair_tokens)
        )

    async def _tries(self, stage: str, ask: Ask, turn: Turn, repair_tokens: int | None) -> Reply:
        if not self._is_open:
            await self._open(self.model)
        plan = self._planned(stage, ask)
        if self._budget is not None and repair_tokens is not None:
            # A repair shows the reply again and says what is wrong with it.
            repair = plan.tokens + _AROUND_REPAIR + repair_tokens
            self._budget.provide(stage, plan.tokens + self._retries * plan.input_tokens + repair)
        failures = refusals = 0
        while True:
            try:
                async with turn.taken():
                    self._refuse_if_locked_out()
                    return await self._try(plan)
            except ModelError as error:
                if error.code == "rate_limited":
                    refusals += 1
                else:
                    failures += 1
                # What the server asked for is waited for at the limiter, together with everybody else.
                at_limiter = error.code == "rate_limited" or bool(error.retry_after)
                wait = 0.0 if at_limiter else self._backoff.wait(failures, self._random)
                left = time_left()
                is_last = failures > self._retries or refusals > self._patience
                if not error.is_retryable or is_last or (left is not None and wait >= left):
                    raise
                self._announce(stage, error, attempt=failures + refusals, wait=error.retry_after or wait)
            with working():
                await asyncio.sleep(wait)

    async def _open(self, model: Model) -> None:
        async with self._opening:
            if not self._is_open and isinstance(model, Openable):
                await model.open()
            self._is_open = True

    def _refuse_if_locked_out(self) -> None:
        if self._locked_out is not None:
            raise ModelError(str(self._locked_out), code="auth")

    def _planned(self, stage: str, ask: Ask) -> _Plan:
        input_tokens = count_input(ask, count=self.model.count_tokens)
        most = Usage(input_tokens, ask.max_output_tokens, reported=False)
        cost = cost_of(most, self.model.price) or Decimal(0)
        return _Plan(stage=stage, ask=ask, input_tokens=input_tokens, tokens=most.total_tokens, cost=cost)

    async def _try(self, plan: _Plan) -> Reply:
        reservation = None if self._budget is None else await self._reserved(self._budget, plan)
        try:
            async with self._limiter.slot(self._run_id, plan.tokens, on_signal=self._listener) as permit:
                sent = Usage(plan.input_tokens, 0, reported=False)
                begun = self._ledger.began(plan.stage, self.model.name, sent=sent, price=self.model.price)
                settle = partial(self._settle, begun, reservation, waited=permit.waited_seconds)
                try:
                    with working():
                        reply = await self.model.ask(plan.ask)
                except ModelError as error:
                    # Whoever waits for a turn would be refused for the same reason.
                    if error.code == "auth":
                        self._locked_out = error
                    settle(error.usage, has_reply=False)
                    raise
                except asyncio.CancelledError:
                    # What was sent was read, as far as anybody knows.
                    if hard_limit_passed():
                        permit.failed(ModelError("no reply within the stage's time", code="timeout", usage=sent))
                    settle(sent, has_reply=False)
                    raise
                permit.reconcile(reply.usage.total_tokens)
                settle(reply.usage, has_reply=True)
                return reply
        finally:
            if reservation is not None:
                # Nothing if it was settled; else the call was never made.
                reservation.release()

    async def _reserved(self, budget: TokenBudgetService, plan: _Plan) -> Reservation:
        # Nobody is refused for what calls under way have only set aside.
        stage, tokens, cost = plan.stage, plan.tokens, plan.cost
        while not budget.can_afford(stage, tokens, cost=cost) and budget.may_afford_later(stage, tokens, cost=cost):
            with paused():
                await budget.next_settled()
        return budget.reserve(stage, tokens, cost=cost)

    def _settle(
        self, begun: UsageRow, reservation: Reservation | None, usage: Usage | None, *, waited: float, has_reply: bool
    ) -> None:
        price = self.model.price
        self._ledger.called(begun, usage=usage, price=price, waited=waited, has_reply=has_reply)
        if reservation is not None and usage is not None:
            reservation.settle(usage.total_tokens, cost=cost_of(usage, price) or Decimal(0))

    def _announce(self, stage: str, error: ModelError, *, attempt: int, wait: float) -> None:
        tell(
            self._listener,
            Retrying(stage=stage, attempt=attempt + 1, wait_ms=round(wait * 1000), code=error.code, message=str(error)),
        )
