"""What a run has spent on models so far, while it goes on, and over several attempts."""

from collections.abc import Callable, Iterable

from sameas.llm.ledger import UsageRow, added


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
