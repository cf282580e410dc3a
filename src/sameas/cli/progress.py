"""How a run's events look on stderr: a bar on a terminal, plain lines elsewhere, nothing when quiet.

Rich is loaded when the first stage starts, so that a replay, which has none, never pays for it.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Protocol, TextIO

from sameas.extraction.events import (
    ChunkCompleted,
    EntityFound,
    ErrorRecoverable,
    Event,
    RelationFound,
    StageCompleted,
    StageStarted,
    TimeoutWarning,
)

if TYPE_CHECKING:
    from rich.progress import Progress as RichBar
    from rich.progress import TaskID

_NOUNS = {
    "chunking": "chunks",
    "property_scoping": "terms in focus",
    "entity_extraction": "mentions",
    "entity_resolution": "entities",
    "relation_extraction": "claims",
    "grounding": "grounded",
    "serialization": "files",
}


class Progress(Protocol):
    """Shows events until it is closed."""

    def show(self, event: Event) -> None: ...

    def note(self, text: str) -> None: ...

    def close(self) -> None: ...


class NoProgress:
    """For `--quiet`."""

    def show(self, event: Event) -> None:
        pass

    def note(self, text: str) -> None:
        pass

    def close(self) -> None:
        pass


class PlainProgress:
    """A line for each stage that ends, and for each warning."""

    def __init__(self, document: str, *, stream: TextIO) -> None:
        self._document = document
        self._stream = stream
        self._reused: dict[str, int] = {}

    def show(self, event: Event) -> None:
        match event:
            case ChunkCompleted() if event.cached:
                self._reused[event.stage] = self._reused.get(event.stage, 0) + 1
            case StageCompleted():
                line = f"{_words(event.stage)}: {event.item_count} {_NOUNS.get(event.stage, 'items')}"
                reused = self._reused.get(event.stage, 0)
                line += f", {reused} chunks reused" if reused else ""
                line += ", ended early" if event.partial else ""
                self._line(f"{line} ({event.duration_ms / 1000:.2f} s)")
            case _ if (text := _warning(event)) is not None:
                self._line(text)
            case _:
                pass

    def note(self, text: str) -> None:
        self._line(text)
        self._stream.flush()

    def close(self) -> None:
        self._stream.flush()

    def _line(self, text: str) -> None:
        print(f"{self._document}: {text}", file=self._stream)


class BarProgress:
    """One bar for the run with the stage's name and live counts."""

    def __init__(self, document: str) -> None:
        self._document = document
        self._bar: RichBar | None = None
        self._task: TaskID | None = None
        self._stage = ""
        self._entities = 0
        self._relations = 0

    def show(self, event: Event) -> None:
        match event:
            case StageStarted():
                self._stage = _words(event.stage)
            case EntityFound():
                self._entities += 1
            case RelationFound():
                self._relations += 1
            case _ if (text := _warning(event)) is not None:
                self.note(text)
            case _:
                pass
        if self._stage:
            bar = self._open()
            assert self._task is not None
            bar.update(
                self._task,
                completed=event.progress,
                stage=self._stage,
                counts=f"{self._entities} names, {self._relations} relations",
            )

    def note(self, text: str) -> None:
        self._open().console.print(f"{self._document}: {text}", style="yellow", markup=False, highlight=False)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()

    def _open(self) -> RichBar:
        if self._bar is None:
            from rich.console import Console
            from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
            from rich.progress import Progress as RichBar

            self._bar = RichBar(
                TextColumn("{task.description}", markup=False),
                BarColumn(bar_width=24),
                TextColumn("{task.fields[stage]}", markup=False),
                TextColumn("{task.fields[counts]}", markup=False, style="cyan"),
                TimeElapsedColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._task = self._bar.add_task(self._document, total=1.0, stage="", counts="")
            self._bar.start()
        return self._bar


def open_progress(document: str, *, quiet: bool) -> Progress:
    """What fits the place that stderr goes to."""
    if quiet:
        return NoProgress()
    return BarProgress(document) if sys.stderr.isatty() else PlainProgress(document, stream=sys.stderr)


def _words(stage: str) -> str:
    return stage.replace("_", " ")


def _warning(event: Event) -> str | None:
    match event:
        case TimeoutWarning():
            where = f", chunk {event.chunk_index}" if event.chunk_index is not None else ""
            return f"{_words(event.stage)}{where}: {event.limit} limit of {event.timeout_ms / 1000:g} s passed"
        case ErrorRecoverable():
            return f"{_words(event.stage or 'run')}: {event.error.message}"
        case _:
            return None
