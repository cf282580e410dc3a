"""How a run's events look on stderr: a bar on a terminal, plain lines elsewhere, nothing when quiet.

Rich is loaded when the first stage starts, so that a replay, which has none, never pays for it.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Protocol, TextIO

from sameas.extraction.events.events import (
    ChunkCompleted,
    EntityFound,
    ErrorRecoverable,
    Event,
    RateLimited,
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


# Shorter waits are nothing to speak of.
_NOTICED_MS = 1_000
_WAITS = {
    "requests": "as many requests were made as the account allows in a minute (--requests-per-minute)",
    "tokens": "as many tokens were asked for as the account allows in a minute (--tokens-per-minute)",
    "concurrent": "as many calls are under way as there may be at once (--concurrency)",
    "server": "the model's server failed several times in a row, and is left alone for a while",
    "asked": "the model's server said that there were too many requests, or asked for a pause",
}


# With these a line of the bar fits 80 columns.
_BAR, _NAME = 10, 16

_OF_THE_DOCUMENT = frozenset({"budget_spent", "circuit_open"})


class Progress(Protocol):
    """Shows the events of documents until it is closed."""

    def show(self, document: str, event: Event) -> None: ...

    def note(self, document: str, text: str) -> None: ...

    def fail(self, document: str, text: str) -> None:
        """Tell why a document gave nothing, also when quiet."""

    def finish(self, document: str, status: str, seconds: float) -> None:
        """Count a document that came to its end."""

    def close(self) -> None: ...


class NoProgress:
    """For `--quiet`: nothing but what went wrong."""

    def show(self, document: str, event: Event) -> None:
        pass

    def note(self, document: str, text: str) -> None:
        pass

    def fail(self, document: str, text: str) -> None:
        print(f"{document}: {text}", file=sys.stderr)

    def finish(self, document: str, status: str, seconds: float) -> None:
        pass

    def close(self) -> None:
        pass


class PlainProgress:
    """A line for each warning, and for each stage that ends; of several documents, for each that ends."""

    def __init__(self, documents: int, *, stream: TextIO) -> None:
        self._documents = documents
        self._stream = stream
        self._ended = 0
        self._reused: dict[str, int] = {}
        self._warnings = Warnings()

    def show(self, document: str, event: Event) -> None:
        if (text := self._warnings.text(document, event)) is not None:
            self._line(document, text)
        elif self._documents > 1:
            return
        elif isinstance(event, ChunkCompleted) and event.cached:
            self._reused[event.stage] = self._reused.get(event.stage, 0) + 1
        elif isinstance(event, StageCompleted):
            line = f"{_words(event.stage)}: {event.item_count} {_NOUNS.get(event.stage, 'items')}"
            reused = self._reused.get(event.stage, 0)
            line += f", {reused} chunks reused" if reused else ""
            line += ", ended early" if event.partial else ""
            self._line(document, f"{line} ({event.duration_ms / 1000:.2f} s)")

    def note(self, document: str, text: str) -> None:
        self._line(document, text)
        self._stream.flush()

    def fail(self, document: str, text: str) -> None:
        self.note(document, text)

    def finish(self, document: str, status: str, seconds: float) -> None:
        self._ended += 1
        if self._documents > 1:
            self.note(f"{self._ended} of {self._documents}", f"{document}: {status} ({seconds:.2f} s)")

    def close(self) -> None:
        self._stream.flush()

    def _line(self, about: str, text: str) -> None:
        print(f"{about}: {text}", file=self._stream)


class BarProgress:
    """One bar for all documents, with live counts and the name and stage of the one that was heard last."""

    def __init__(self, documents: int) -> None:
        self._documents = documents
        self._ended = 0
        self._under_way: dict[str, float] = {}
        self._bar: RichBar | None = None
        self._task: TaskID | None = None
        self._stage = ""
        self._entities = 0
        self._relations = 0
        self._warnings = Warnings()

    def show(self, document: str, event: Event) -> None:
        match event:
            case StageStarted():
                self._stage = _words(event.stage)
            case EntityFound():
                self._entities += 1
            case RelationFound():
                self._relations += 1
            case _ if (text := self._warnings.text(document, event)) is not None:
                self.note(document, text)
            case _:
                pass
        self._under_way[document] = event.progress
        if self._stage:
            self._update(document)

    def note(self, document: str, text: str) -> None:
        self._open().console.print(f"{document}: {text}", style="yellow", markup=False, highlight=False)

    def fail(self, document: str, text: str) -> None:
        self.note(document, text)

    def finish(self, document: str, status: str, seconds: float) -> None:
        self._ended += 1
        self._under_way.pop(document, None)
        # A single replay is over before a bar could be drawn.
        if self._documents > 1:
            self._update(document)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()

    def _update(self, document: str) -> None:
        bar = self._open()
        assert self._task is not None
        bar.update(
            self._task,
            completed=self._ended + sum(self._under_way.values()),
            description=_short(document) if self._documents == 1 else f"{self._ended} of {self._documents}",
            stage=self._stage if self._documents == 1 else _short(document),
            counts=f"{self._entities} names, {self._relations} relations",
        )

    def _open(self) -> RichBar:
        if self._bar is None:
            from rich.console import Console
            from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
            from rich.progress import Progress as RichBar

            self._bar = RichBar(
                TextColumn("{task.description}", markup=False),
                BarColumn(bar_width=_BAR),
                TextColumn("{task.fields[stage]}", markup=False),
                TextColumn("{task.fields[counts]}", markup=False, style="cyan"),
                TimeElapsedColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._task = self._bar.add_task("", total=self._documents, stage="", counts="")
            self._bar.start()
        return self._bar


def open_progress(documents: int, *, quiet: bool) -> Progress:
    """What fits the place that stderr goes to."""
    if quiet:
        return NoProgress()
    return BarProgress(documents) if sys.stderr.isatty() else PlainProgress(documents, stream=sys.stderr)


def _short(name: str) -> str:
    """A name without its middle, where that is needed."""
    half = (_NAME - 1) // 2
    return name if len(name) <= _NAME else f"{name[:half]}\N{HORIZONTAL ELLIPSIS}{name[half - _NAME + 1 :]}"


def _words(stage: str) -> str:
    return stage.replace("_", " ")


class Warnings:
    """What a person is told of runs beside their stages: each thing once for a document, and why all of them wait."""

    def __init__(self) -> None:
        self._shown: set[tuple[str, ...]] = set()

    def text(self, document: str, event: Event) -> str | None:
        """The words for an event; None where there is nothing to say, or nothing new."""
        match event:
            case TimeoutWarning():
                where = f", chunk {event.chunk_index}" if event.chunk_index is not None else ""
                return f"{_words(event.stage)}{where}: {event.limit} limit of {event.timeout_ms / 1000:g} s passed"
            case ErrorRecoverable():
                stage = event.stage or "run"
                # What befalls one chunk befalls others, and a limit of the document all stages: the summary counts.
                where = "" if event.error.code in _OF_THE_DOCUMENT else stage
                return self._once(f"{_words(stage)}: {event.error.message}", document, where, event.error.code)
            case RateLimited() if not 0 < event.wait_ms < _NOTICED_MS:
                seconds = f" for about {event.wait_ms / 1000:.0f} s" if event.wait_ms else ""
                reason = "asked" if event.asked_by_server else event.reason
                return self._once(f"waiting{seconds}: {_WAITS[reason]}", "waiting", reason)
            case _:
                return None

    def _once(self, text: str, *what: str) -> str | None:
        if what in self._shown:
            return None
        self._shown.add(what)
        return text
