"""What `extract` says when it is done: a line for each document, the notes of all, and what a model cost; and what one
would cost.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

import msgspec

from sameas.cli.errors import ExitCode
from sameas.cli.tables import print_table, short_key
from sameas.extraction.events.events import ChunkCompleted, Event
from sameas.extraction.runs.service import Extraction

if TYPE_CHECKING:
    from sameas.extraction.pipeline.estimate import Estimate, StageEstimate
    from sameas.llm.ledger import UsageRow
    from sameas.ontology.validate import ShapeReport
    from sameas.settings import Settings


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


# Beyond this a list of gaps says no more than their number; metadata.json has them all.
_GAPS_SHOWN = 5


_AGAIN = "run the command again to do what is missing"
# What the same command would only meet again.
_ADVICE = {
    "budget_spent": "raise --max-tokens or --max-cost: they hold for all attempts at a document together",
    "request_too_large": "raise --tokens-per-minute, if the account allows it: a single call needs more than that",
    "bad_request": "check what the model's server says of its name, its schema and the length of the text",
    "model_refused": "try another model: this one would not answer",
}


def what_helps(codes: Iterable[str]) -> str:
    """What to do about chunks that are missing for these reasons."""
    return "; ".join(dict.fromkeys(_ADVICE.get(code, _AGAIN) for code in codes))


def prices_line(settings: Settings) -> str:
    """How old the prices behind a sum are."""
    from pathlib import Path

    from sameas.llm.prices import load_prices

    table = load_prices(Path(settings.prices) if settings.prices else None)
    return f"costs are by the prices of {table.as_of}"


def print_spending(rows: Sequence[Row], *, settings: Settings) -> None:
    """Tokens and cost by stage and model, what the caches saved, and which chunks are missing."""
    for row in rows:
        if row.extraction is None:
            continue
        metadata = row.extraction.metadata
        was_there = row.extraction.replayed or row.extraction.shared
        for used in metadata.usage:
            print(f"{row.name}: {_used(used, replayed=was_there)}", file=sys.stderr)
        for gap in metadata.missing[:_GAPS_SHOWN]:
            print(
                f"{row.name}: missing: characters {gap.start} to {gap.end}, {gap.stage.replace('_', ' ')}: {gap.code}",
                file=sys.stderr,
            )
        more = len(metadata.missing) - _GAPS_SHOWN
        if more > 0:
            print(f"{row.name}: missing: {more} more, listed in metadata.json", file=sys.stderr)
        if metadata.missing:
            print(f"{row.name}: {what_helps(gap.code for gap in metadata.missing)}", file=sys.stderr)
    if any(used.cost for row in rows if row.extraction is not None for used in row.extraction.metadata.usage):
        print(prices_line(settings), file=sys.stderr)


def _used(used: UsageRow, *, replayed: bool) -> str:
    stage = used.stage.replace("_", " ")
    if replayed:
        return f"{stage}, {used.model}: {used.tokens:,} tokens{_money(used.cost)} not spent again"
    line = (
        f"{stage}, {used.model}: {used.calls} calls, {used.input_tokens:,} tokens in, "
        f"{used.output_tokens:,} out{_money(used.cost)}"
    )
    line += f", {used.cached_tokens:,} of those in from the provider's cache" if used.cached_tokens else ""
    line += f", {used.failed} without a reply" if used.failed else ""
    if used.memo_hits:
        line += f"; {used.memo_hits} calls remembered, {used.saved_tokens:,} tokens{_money(used.saved_cost)} saved"
    return line


def print_estimates(estimates: Sequence[tuple[str, Estimate]], *, settings: Settings) -> None:
    """A line for each stage of a document, or for each of several documents and each stage of all, and the most."""
    # Whoever made the estimates has loaded it; a replay has not.
    from sameas.extraction.pipeline.estimate import Estimate

    together = estimates[0] if len(estimates) == 1 else ("all", Estimate.together([one for _, one in estimates]))
    rows = [] if len(estimates) == 1 else [(name, "", estimate.total) for name, estimate in estimates]
    name, whole = together
    rows += [(name, _stage_of(stage, whole), stage) for stage in (*whole.stages, whole.total)]
    cells = [
        [
            document,
            stage,
            str(row.calls),
            str(row.known),
            f"{row.input_tokens:,}",
            f"{row.output_tokens:,}",
            f"{row.most_input_tokens + row.most_output_tokens:,}",
        ]
        for document, stage, row in rows
    ]
    head = ("document", "stage", "calls", "remembered", "tokens in", "out", "at most")
    print_table(head, cells, to=sys.stdout)
    total = whole.total
    most = f"{total.most_input_tokens + total.most_output_tokens:,} tokens"
    if whole.cost is None or whole.most_cost is None:
        unknown = dict.fromkeys(stage.model for stage in whole.stages if stage.cost is None)
        print(f"{name}: at most {most}, repairs and retries included; the price of {', '.join(unknown)} is not known")
    else:
        print(
            f"{name}: about ${whole.cost:.4f}, at most ${whole.most_cost:.4f} and {most}, repairs and retries included"
        )
    if len(estimates) > 1:
        print("--max-tokens and --max-cost are limits for each document")
    if whole.most_cost:
        print(prices_line(settings))


def _stage_of(stage: StageEstimate, estimate: Estimate) -> str:
    """Its name, with its model where there are several."""
    several = len({one.model for one in estimate.stages}) > 1
    return stage.stage.replace("_", " ") + (f" ({stage.model})" if several and stage.model else "")


def _money(cost: Decimal | None) -> str:
    return "" if cost is None else f" (${cost:.4f})"
