"""What is shown of a run's events."""

import io
import sys
from typing import Any

import pytest
from rich.console import Console

from sameas.cli.progress import BarProgress, NoProgress, PlainProgress, open_progress
from sameas.extraction.events.events import (
    ChunkCompleted,
    EntityFound,
    ErrorRecoverable,
    ErrorReport,
    RateLimited,
    RelationFound,
    StageCompleted,
    StageStarted,
    TimeoutWarning,
)

COMMON: dict[str, Any] = {"event_id": "e", "request_id": "k", "timestamp": 0, "progress": 0.5}
CHUNK = ChunkCompleted(**COMMON, stage="entity_extraction", chunk_index=0, item_count=3, duration_ms=1, cached=True)
DONE = StageCompleted(**COMMON, stage="entity_extraction", duration_ms=1500, item_count=12, partial=True)
WARNING = TimeoutWarning(**COMMON, stage="grounding", limit="soft", timeout_ms=20000, chunk_index=3)
ERROR = ErrorRecoverable(**COMMON, error=ErrorReport(code="x", message="no answer", recoverable=True))


def test_plain_lines_tell_counts_reuse_and_warnings():
    stream = io.StringIO()
    progress = PlainProgress(1, stream=stream)
    for event in (CHUNK, DONE, WARNING, ERROR):
        progress.show("a[b].txt", event)
    progress.close()
    assert stream.getvalue().splitlines() == [
        "a[b].txt: entity extraction: 12 mentions, 1 chunks reused, ended early (1.50 s)",
        "a[b].txt: grounding, chunk 3: soft limit of 20 s passed",
        "a[b].txt: run: no answer",
    ]


def test_why_a_call_waits_is_said_once_and_who_wanted_it():
    stream = io.StringIO()
    progress = PlainProgress(1, stream=stream)
    for asked in (False, True, True, False):
        progress.show("a.txt", RateLimited(**COMMON, wait_ms=2000, reason="requests", asked_by_server=asked))
    ours, theirs = stream.getvalue().splitlines()
    assert "as the account allows in a minute (--requests-per-minute)" in ours
    assert "the model's server said that there were too many requests" in theirs


def test_the_bar_shows_the_stage_and_live_counts(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr("rich.console.Console", lambda stderr: Console(file=stream, force_terminal=True, width=120))
    progress = BarProgress(1)
    progress.show("a[b].txt", StageStarted(**COMMON, stage="relation_extraction"))
    progress.show("a[b].txt", EntityFound(**COMMON, entity={}, confidence=1.0))
    progress.show("a[b].txt", RelationFound(**COMMON, relation={}, confidence=1.0))
    progress.show("a[b].txt", WARNING)
    progress.close()
    shown = stream.getvalue()
    assert "a[b].txt" in shown
    assert "relation extraction" in shown
    assert "1 names, 1 relations" in shown
    assert "soft limit of 20 s passed" in shown


def test_a_bar_that_saw_no_stage_never_opens(monkeypatch):
    progress = BarProgress(1)
    progress.show("a[b].txt", CHUNK)
    progress.close()
    assert progress._bar is None


@pytest.mark.parametrize(
    ("terminal", "quiet", "kind"), [(True, False, BarProgress), (False, False, PlainProgress), (True, True, NoProgress)]
)
def test_the_place_decides_the_form(terminal, quiet, kind, monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: terminal, raising=False)
    monkeypatch.setattr(sys, "stderr", stream)
    progress = open_progress(1, quiet=quiet)
    assert isinstance(progress, kind)
    if kind is NoProgress:
        progress.show("a[b].txt", DONE)
        progress.close()
        assert stream.getvalue() == ""


def test_of_several_documents_each_that_ends_is_counted():
    stream = io.StringIO()
    progress = PlainProgress(200, stream=stream)
    progress.show("a.txt", DONE)
    progress.show("b.txt", WARNING)
    progress.finish("b.txt", "partial", 2.5)
    progress.finish("a.txt", "complete", 1.0)
    progress.close()
    assert stream.getvalue().splitlines() == [
        "b.txt: grounding, chunk 3: soft limit of 20 s passed",
        "1 of 200: b.txt: partial (2.50 s)",
        "2 of 200: a.txt: complete (1.00 s)",
    ]


def test_one_bar_counts_all_documents(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr("rich.console.Console", lambda stderr: Console(file=stream, force_terminal=True, width=120))
    progress = BarProgress(200)
    progress.show("a.txt", StageStarted(**COMMON, stage="relation_extraction"))
    progress.finish("a.txt", "complete", 1.0)
    progress.finish("b.txt", "replayed", 0.1)
    progress.close()
    assert "2 of 200" in stream.getvalue()


@pytest.mark.parametrize("documents", [1, 200])
def test_the_bar_fits_eighty_columns_whatever_a_document_is_called(monkeypatch, documents):
    stream = io.StringIO()
    monkeypatch.setattr("rich.console.Console", lambda stderr: Console(file=stream, force_terminal=True, width=80))
    progress = BarProgress(documents)
    name = "a-very-long-name-of-a-document-about-companies.txt"
    progress.show(name, StageStarted(**COMMON, stage="relation_extraction"))
    for _ in range(1000):
        progress.show(name, EntityFound(**COMMON, entity={}, confidence=1.0))
    progress.finish(name, "complete", 0.1)
    progress.close()
    shown = stream.getvalue()
    assert "1000 names, 0 relations" in shown
    assert "a-very-" in shown
    assert "ies.txt" in shown
    assert documents == 1 or "1 of 200" in shown


def test_what_failed_is_told_even_when_quiet(capsys):
    NoProgress().fail("a.txt", "sameas: no such file")
    assert capsys.readouterr().err == "a.txt: sameas: no such file\n"
