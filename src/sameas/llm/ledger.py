"""What a run's calls used, by stage and model, over all attempts at it, what the memo saved, and the name of how the
run ended.
"""

from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Literal, TypeAlias

import msgspec

from sameas.llm.models import Usage
from sameas.llm.prices import Price

RunOutcome: TypeAlias = Literal["COMPLETE", "PARTIAL_ENTITY_ONLY", "PARTIAL_EARLY_EXIT", "FALLBACK_CACHE", "EMPTY"]


class UsageRow(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One stage with one model. `failed` calls had no reply; `saved` is what the memo's answers cost when they were
    new.
    """

    stage: str
    model: str
    calls: int = 0
    failed: int = 0
    unreported: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost: Decimal | None = Decimal(0)
    waited_ms: int = 0
    memo_hits: int = 0
    saved_tokens: int = 0
    saved_cost: Decimal | None = Decimal(0)

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


class UsageReport(msgspec.Struct, frozen=True, rename="camel"):
    """The rows, by stage and model in order, and their sum."""

    rows: tuple[UsageRow, ...]

    @property
    def total(self) -> UsageRow:
        return added(self.rows, stage="total", model="all")


def added(rows: Iterable[UsageRow], *, stage: str, model: str) -> UsageRow:
    """The sum of rows; its cost is unknown where one of theirs is."""
    calls = failed = unreported = input_tokens = output_tokens = waited_ms = memo_hits = saved_tokens = 0
    cached_tokens = 0
    cost: Decimal | None = Decimal(0)
    saved_cost: Decimal | None = Decimal(0)
    for row in rows:
        calls += row.calls
        failed += row.failed
        unreported += row.unreported
        input_tokens += row.input_tokens
        output_tokens += row.output_tokens
        cached_tokens += row.cached_tokens
        cost = _sum(cost, row.cost)
        waited_ms += row.waited_ms
        memo_hits += row.memo_hits
        saved_tokens += row.saved_tokens
        saved_cost = _sum(saved_cost, row.saved_cost)
    return UsageRow(
        stage=stage,
        model=model,
        calls=calls,
        failed=failed,
        unreported=unreported,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cached_tokens=cached_tokens,
        cost=cost,
        waited_ms=waited_ms,
        memo_hits=memo_hits,
        saved_tokens=saved_tokens,
        saved_cost=saved_cost,
    )


class UsageLedger:
    """Collects what the calls of one run used."""

    def __init__(self, *, on_change: Callable[[UsageRow], None] | None = None) -> None:
        self._rows: dict[tuple[str, str], UsageRow] = {}
        self._sent: dict[tuple[str, str], list[UsageRow]] = {}
        self._on_change = on_change

    def began(self, stage: str, model: str, *, sent: Usage, price: Price | None) -> UsageRow:
        """A call is under way; show what this gives to `called`."""
        row = UsageRow(
            stage=stage,
            model=model,
            calls=1,
            failed=1,
            unreported=1,
            input_tokens=sent.input_tokens,
            cost=cost_of(sent, price),
        )
        self._sent.setdefault((stage, model), []).append(row)
        self._emit(stage, model)
        return row

    def called(
        self,
        begun: UsageRow,
        *,
        usage: Usage | None,
        price: Price | None,
        waited: float,
        has_reply: bool,
    ) -> None:
        """A call has ended; `usage` is None where a failed one used nothing."""
        stage, model = begun.stage, begun.model
        self._sent[stage, model].remove(begun)
        spent = usage or Usage(0, 0, reported=True)
        self._add(
            UsageRow(
                stage=stage,
                model=model,
                calls=1,
                failed=int(not has_reply),
                unreported=int(not spent.reported),
                input_tokens=spent.input_tokens,
                output_tokens=spent.output_tokens,
                cached_tokens=spent.cached_tokens,
                cost=cost_of(spent, price),
                waited_ms=round(waited * 1000),
            )
        )

    def saved(self, stage: str, model: str, *, usage: Usage, price: Price | None) -> None:
        """A call was not made: the memo had its answer."""
        self._add(
            UsageRow(
                stage=stage,
                model=model,
                memo_hits=1,
                saved_tokens=usage.total_tokens,
                saved_cost=cost_of(usage, price),
            )
        )

    def report(self) -> UsageReport:
        return UsageReport(tuple(row for _, row in sorted(self._rows.items())))

    def _add(self, row: UsageRow) -> None:
        key = row.stage, row.model
        kept = self._rows.get(key)
        self._rows[key] = row if kept is None else added((kept, row), stage=row.stage, model=row.model)
        self._emit(*key)

    def _emit(self, stage: str, model: str) -> None:
        if self._on_change is not None:
            kept = self._rows.get((stage, model))
            rows = [*([] if kept is None else [kept]), *self._sent.get((stage, model), ())]
            self._on_change(added(rows, stage=stage, model=model))


def name_outcome(*, entities: int, relations: int, ended_early: bool, is_fallback: bool = False) -> RunOutcome:
    """The outcome of a request that has so much to show."""
    if is_fallback:
        return "FALLBACK_CACHE"
    if not ended_early:
        return "COMPLETE"
    if not entities:
        return "EMPTY"
    return "PARTIAL_EARLY_EXIT" if relations else "PARTIAL_ENTITY_ONLY"


def cost_of(usage: Usage, price: Price | None) -> Decimal | None:
    """What the tokens cost; None where the price is not known and something was used."""
    if price is None:
        return None if usage.total_tokens else Decimal(0)
    return price.cost(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cached_tokens=usage.cached_tokens,
        cache_write_tokens=usage.cache_write_tokens,
    )


def most_cost_of(input_tokens: int, output_tokens: int, price: Price | None) -> Decimal | None:
    """What so many tokens cost at most; None where the price is not known and something may be used."""
    if price is None:
        return None if input_tokens + output_tokens else Decimal(0)
    return price.most(input_tokens=input_tokens, output_tokens=output_tokens)


def _sum(one: Decimal | None, other: Decimal | None) -> Decimal | None:
    return None if one is None or other is None else one + other


class SpendingMeter:
    """Reads what a run has spent; nothing until an extractor that spends is at work."""

    def __init__(
        self, before: tuple[UsageRow, ...] = (), *, on_spent: Callable[[UsageRow], None] | None = None
    ) -> None:
        self.before = before
        """What earlier attempts at the run have spent."""
        self.on_spent = on_spent
        self._read: Callable[[], tuple[UsageRow, ...]] | None = None

    def attach(self, read: Callable[[], tuple[UsageRow, ...]]) -> None:
        self._read = read

    def read(self) -> tuple[UsageRow, ...]:
        return () if self._read is None else self._read()


def joined(*several: Iterable[UsageRow]) -> tuple[UsageRow, ...]:
    """One row for each stage and model, over several attempts."""
    rows: dict[tuple[str, str], list[UsageRow]] = {}
    for one in (one for usage in several for one in usage):
        rows.setdefault((one.stage, one.model), []).append(one)
    return tuple(added(parts, stage=stage, model=model) for (stage, model), parts in sorted(rows.items()))
