"""How a run went, from its journal: its stages with their times, what happened on the way, what caches saved.

Rule: what was found is counted and not listed; of what is listed there is a bound. A journal is read line by line and
may be as long as it likes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec

from sameas.extraction.events.events import ErrorReport, Summary
from sameas.extraction.runs.metadata import RunMetadata
from sameas.llm.ledger import UsageRow, added

LISTED = 500
_COUNTED_ONLY = frozenset({"entity_found", "relation_found", "stage_progress", "chunk_started", "chunk_completed"})


class StageSpan(msgspec.Struct, kw_only=True, rename="camel"):
    """A stage of one attempt: when it began, how long it took, and what of it came from checkpoints. Times are in
    milliseconds since 1970.
    """

    stage: str
    attempt: int
    started_at: int
    duration_ms: int | None = None
    items: int = 0
    chunks: int = 0
    chunks_from_checkpoints: int = 0
    partial: bool = False


class Happening(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One event of the run, in words."""

    number: int
    timestamp: int
    type: str
    said: str


class Saved(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What did not have to be done again."""

    chunks: int = 0
    chunks_from_checkpoints: int = 0
    model_calls: int = 0
    tokens: int = 0
    cost: Decimal | None = Decimal(0)


class Timeline(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How a run went. `usage` has a row for each stage and model, `total` is their sum."""

    idempotency_key: str
    stages: tuple[StageSpan, ...] = ()
    events: tuple[Happening, ...] = ()
    left_out: int = 0
    counts: Mapping[str, int] = {}
    usage: tuple[UsageRow, ...] = ()
    total: UsageRow
    saved: Saved


class _Line(msgspec.Struct, frozen=True, rename="camel"):
    """What of any event a timeline needs."""

    type: str
    timestamp: int
    sequence_number: int | None = None
    stage: str = ""
    duration_ms: int = 0
    item_count: int = 0
    items: int | None = None
    cached: bool = False
    partial: bool = False
    total_chunks: int | None = None
    total_characters: int | None = None
    wait_ms: int = 0
    reason: str = ""
    message: str = ""
    limit: Any = None
    timeout_ms: int = 0
    chunk_index: int | None = None
    source: str = ""
    error: ErrorReport | None = None
    summary: Summary | None = None


_decode = msgspec.json.Decoder(_Line).decode


def read_timeline(metadata: RunMetadata, journal: Path) -> Timeline:
    """The timeline of a run; blocking."""
    reading = _Reading()
    if journal.exists():
        with journal.open("rb") as lines:
            for line in lines:
                # The last one may be torn while somebody writes it.
                if line.endswith(b"\n"):
                    reading.add(_decode(line))
    total = added(metadata.usage, stage="total", model="all")
    return Timeline(
        idempotency_key=metadata.idempotency_key,
        stages=tuple(reading.stages),
        events=tuple(reading.events),
        left_out=reading.left_out,
        counts=dict(reading.counts),
        usage=metadata.usage,
        total=total,
        saved=Saved(
            chunks=metadata.chunks,
            chunks_from_checkpoints=metadata.chunks_from_checkpoints,
            model_calls=total.memo_hits,
            tokens=total.saved_tokens,
            cost=total.saved_cost,
        ),
    )


class _Reading:
    def __init__(self) -> None:
        self.stages: list[StageSpan] = []
        self.events: list[Happening] = []
        self.counts: Counter[str] = Counter()
        self.left_out = 0
        self._attempt = 0
        self._open: dict[str, StageSpan] = {}

    def add(self, line: _Line) -> None:
        self.counts[line.type] += 1
        match line.type:
            case "extraction_started":
                self._attempt += 1
                self._open.clear()
            case "stage_started":
                begun = StageSpan(stage=line.stage, attempt=max(1, self._attempt), started_at=line.timestamp)
                self._open[line.stage] = begun
                self.stages.append(begun)
            case "stage_completed" if (span := self._open.pop(line.stage, None)) is not None:
                span.duration_ms, span.items, span.partial = line.duration_ms, line.item_count, line.partial
            case "chunk_completed" if (span := self._open.get(line.stage)) is not None:
                span.chunks += 1
                span.chunks_from_checkpoints += line.cached
            case _:
                pass
        if line.type in _COUNTED_ONLY:
            return
        if len(self.events) >= LISTED:
            self.left_out += 1
            return
        happening = Happening(
            number=line.sequence_number or 0, timestamp=line.timestamp, type=line.type, said=_said(line)
        )
        self.events.append(happening)


def _said(line: _Line) -> str:
    match line.type:
        case "extraction_started":
            parts = ((line.total_characters, "character"), (line.total_chunks, "chunk"))
            return ", ".join(_counted(count, what) for count, what in parts if count is not None)
        case "stage_started":
            return _named(line.stage)
        case "stage_completed":
            items = _counted(line.item_count, "item")
            return f"{_named(line.stage)}: {items} in {line.duration_ms:,} ms" + (", in part" * line.partial)
        case "rate_limited":
            return f"waits {line.wait_ms:,} ms for the limit of {line.reason}"
        case "timeout_warning":
            chunk = "" if line.chunk_index is None else f", chunk {line.chunk_index}"
            return f"{_named(line.stage)}{chunk}: {line.limit} limit of {line.timeout_ms:,} ms"
        case "cache_hit":
            return f"from {line.source.replace('_', ' ')}" + ("" if line.items is None else f", {line.items:,} items")
        case "extraction_completed" if line.summary is not None:
            one = line.summary
            found = _counted(one.entity_count, "entity", "entities"), _counted(one.relation_count, "relation")
            return f"{', '.join(found)}, {one.rejected_count:,} refused"
        case _ if line.error is not None:
            return f"{line.error.code}: {line.error.message}"
        case _:
            return line.message or line.reason


def _named(stage: str) -> str:
    return stage.replace("_", " ")


def _counted(count: int, one: str, many: str = "") -> str:
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"
