"""What `extract` says on stderr when it is done: a line for each document, and the notes of all."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from sameas.cli.errors import ExitCode
from sameas.cli.tables import print_table, short_key
from sameas.extraction.events.events import ChunkCompleted, Event
from sameas.extraction.runs.service import Extraction

if TYPE_CHECKING:
    from sameas.ontology.validate import ShapeReport


_TWO = 2
_NO_RELATION = (
    "names were found and no relation between them; `sameas ontology suggest TEXTS --ontology FILE` proposes labels "
    "and examples from these texts"
)


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


def print_reasons(rows: Sequence[Row]) -> None:
    """Why runs that others did are not whole; what a run says while it goes on is heard by those who did it."""
    for row in rows:
        if row.extraction is not None and row.extraction.metadata.status != "complete":
            for message in sorted({error.message for error in row.extraction.metadata.errors}):
                print(f"{row.name}: {message}", file=sys.stderr)


def print_summary(rows: Sequence[Row]) -> None:
    """Print the table and what there is to note."""
    cells = []
    for row in rows:
        done = row.extraction
        counts = ["", "", "", ""]
        if done is not None:
            reused = f" ({row.reused} reused)" if row.reused else ""
            counts = [
                str(len(done.found.entities)),
                str(len(done.found.relations)),
                str(done.metadata.rejected_count),
                f"{done.metadata.chunks}{reused}",
            ]
        key = short_key(str(done.key)) if done is not None else ""
        cells.append([row.name, row.status, *counts, f"{row.seconds:.2f}", key])
    head = ("document", "status", "entities", "relations", "rejected", "chunks", "seconds", "key")
    print_table(head, cells, to=sys.stderr, whole=("status", "key"))
    for note in sorted({note for row in rows if row.extraction is not None for note in row.extraction.found.notes}):
        print(f"note: {note}", file=sys.stderr)
    graphs = [row.extraction.found for row in rows if row.extraction is not None]
    if any(len(graph.entities) >= _TWO for graph in graphs) and not any(len(graph.relations) for graph in graphs):
        print(f"note: {_NO_RELATION}", file=sys.stderr)
