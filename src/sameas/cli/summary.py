"""What `extract` says on stderr when it is done: a line for each document, and the notes of all."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from sameas.cli.errors import ExitCode
from sameas.cli.tables import print_table
from sameas.extraction.events import ChunkCompleted, Event
from sameas.extraction.service import Extraction

if TYPE_CHECKING:
    from sameas.ontology.validate import ShapeReport


class Reuse:
    """Counts the chunks of a run that were worked on before."""

    def __init__(self) -> None:
        self.chunks = 0

    def count(self, event: Event) -> None:
        if isinstance(event, ChunkCompleted) and event.cached and event.stage == "entity_extraction":
            self.chunks += 1


class Row(msgspec.Struct, frozen=True):
    """What the summary says of a document."""

    name: str
    code: ExitCode
    seconds: float
    extraction: Extraction | None = None
    reused: int = 0
    """Chunks whose entities came from an earlier run."""

    @property
    def status(self) -> str:
        if self.extraction is None:
            return "failed"
        if self.extraction.shared:
            return "shared"
        return "replayed" if self.extraction.replayed else self.extraction.metadata.status


def print_report(report: ShapeReport, name: str) -> None:
    """What shapes object to in a graph."""
    for result in report.results:
        value = f" {result.value}" if result.value else ""
        print(f"{name}: {result.severity}: {result.focus} {result.path}{value}: {result.message}", file=sys.stderr)


def print_summary(rows: Sequence[Row]) -> None:
    """Print the table; a replay does without Rich, which would take longer than all the rest."""
    cells = []
    for row in rows:
        done = row.extraction
        counts = ["", "", "", ""]
        if done is not None:
            reused = f" ({row.reused} reused)" if row.reused else ""
            counts = [
                str(done.metadata.entity_count),
                str(done.metadata.relation_count),
                str(done.metadata.rejected_count),
                f"{done.metadata.chunks}{reused}",
            ]
        key = str(done.key)[:19] if done is not None else ""
        cells.append([row.name, row.status, *counts, f"{row.seconds:.2f}", key])
    head = ("document", "status", "entities", "relations", "rejected", "chunks", "seconds", "key")
    print_table(head, cells, to=sys.stderr, plain=all(row.status in ("replayed", "failed") for row in rows))
    for note in sorted({note for row in rows if row.extraction is not None for note in row.extraction.metadata.notes}):
        print(f"note: {note}", file=sys.stderr)
