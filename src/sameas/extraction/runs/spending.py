"""`spending.jsonl` of a run under way: what it has spent so far, a line at each change, so that a kill loses nothing.

Rule: a line is all that was spent on a stage with a model, over all attempts, and counts a call that is under way as
sent and not answered; the last line of each counts. The file goes when the run ends, because metadata.json has it all
then. It is not forced to the disk: after a power cut the metadata's last word stands.
"""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from sameas.llm.ledger import UsageRow
from sameas.once.appended_lines import AppendedLines

SPENDING = "spending.jsonl"

_row = msgspec.json.Decoder(UsageRow)


class SpendingFile:
    """The accounts of a run beside its journal. Only one process writes."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / SPENDING
        self._last: dict[tuple[str, str], UsageRow] = {}
        self._lines: AppendedLines | None = None

    def read(self, known: Iterable[UsageRow]) -> tuple[UsageRow, ...]:
        """What was spent: what the metadata knows, with what was noted after it."""
        rows = {(row.stage, row.model): row for row in known}
        try:
            lines = self._path.read_bytes().split(b"\n")
        except FileNotFoundError:
            lines = []
        for line in lines:
            try:
                row = _row.decode(line)
            except (msgspec.DecodeError, msgspec.ValidationError):
                # A line of a process that was killed may be torn, and the one before it counts.
                continue
            rows[row.stage, row.model] = row
        return tuple(row for _, row in sorted(rows.items()))

    def note(self, row: UsageRow) -> None:
        """All that was spent on the stage and the model of this row."""
        self._last[row.stage, row.model] = row
        if self._lines is None:
            self._lines = AppendedLines(self._path)
        self._lines.append(msgspec.json.encode(row))

    def begin(self) -> None:
        """Keep no more than the last line of each, in a file that nobody else has open."""
        self.close()
        if not self._last:
            self._path.unlink(missing_ok=True)
            return
        fresh = self._path.with_name(f".{SPENDING}-fresh.writing")
        fresh.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in self._last.values()))
        fresh.replace(self._path)

    def end(self) -> None:
        """The run is over, and its metadata has it all."""
        self.close()
        self._path.unlink(missing_ok=True)

    def close(self) -> None:
        if self._lines is not None:
            self._lines.close()
            self._lines = None
