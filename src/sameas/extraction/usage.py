"""What a run spent on models and what the memo of calls saved, by stage and model."""

from collections.abc import Callable, Iterable
from decimal import Decimal

import msgspec


class StageUsage(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The calls of one stage to one model. Costs are in US dollars, None where the price is not known."""

    stage: str
    model: str
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: Decimal | None = None
    memo_hits: int = 0
    saved_tokens: int = 0
    saved_cost: Decimal | None = None

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


class Meter:
    """Reads what a run has spent so far; nothing until an extractor that spends is at work."""

    def __init__(self) -> None:
        self._read: Callable[[], tuple[StageUsage, ...]] | None = None

    def attach(self, read: Callable[[], tuple[StageUsage, ...]]) -> None:
        self._read = read

    def read(self) -> tuple[StageUsage, ...]:
        return () if self._read is None else self._read()


def together(*several: Iterable[StageUsage]) -> tuple[StageUsage, ...]:
    """One line for each stage and model, over several attempts."""
    lines: dict[tuple[str, str], list[StageUsage]] = {}
    for one in (one for usage in several for one in usage):
        lines.setdefault((one.stage, one.model), []).append(one)
    return tuple(
        msgspec.structs.replace(whole(parts), stage=stage, model=model) for (stage, model), parts in lines.items()
    )


def whole(usage: Iterable[StageUsage]) -> StageUsage:
    """The sum of all; a cost that is not known for one is not known for all."""
    parts = tuple(usage)
    return StageUsage(
        stage="total",
        model=", ".join(sorted({one.model for one in parts})),
        calls=sum(one.calls for one in parts),
        input_tokens=sum(one.input_tokens for one in parts),
        output_tokens=sum(one.output_tokens for one in parts),
        cost=_sum(one.cost for one in parts),
        memo_hits=sum(one.memo_hits for one in parts),
        saved_tokens=sum(one.saved_tokens for one in parts),
        saved_cost=_sum(one.saved_cost for one in parts),
    )


def _sum(costs: Iterable[Decimal | None]) -> Decimal | None:
    known = list(costs)
    return None if not known or None in known else sum((one for one in known if one is not None), Decimal(0))
