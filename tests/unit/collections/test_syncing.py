"""Filling from files and keeping in step with a folder."""

import asyncio
from pathlib import Path

import pytest

from sameas.collections import Collections, local_caller, open_tables
from sameas.collections.additions import Filler
from sameas.collections.sync import FolderError, plan_sync, sync
from sameas.connections import open_async_store
from sameas.extraction.extractors.deferred import deferred_lexicon
from sameas.extraction.runs.service import ExtractionService
from sameas.once.async_engine import AsyncEngine
from sameas.ontology.load import load_ontology

ONTOLOGY = Path(__file__).resolve().parents[3] / "src" / "sameas" / "example" / "company.ttl"
TEXT = "Anna Stone works for Acme Ltd."


@pytest.fixture
def home(tmp_path):
    (tmp_path / "inbox" / "deep").mkdir(parents=True)
    return tmp_path


@pytest.fixture
def press(home):
    collections = Collections(open_tables(f"sqlite:///{home / 'collections.db'}"))
    yield collections.create("press", ontology=load_ontology(ONTOLOGY), caller=local_caller())
    collections.close()


def keep_in_step(press, home, **options):
    async def work():
        async with open_async_store(f"sqlite:///{home / 'sameas.db'}") as store:
            service = ExtractionService(home=home, store=store)
            filler = Filler(press, service, extractor=deferred_lexicon(press.ontology))
            return await sync(press, home / "inbox", filler=filler, engine=AsyncEngine(store), **options)

    return asyncio.run(work())


def test_sync_adds_what_is_new_redoes_what_changed_and_takes_out_what_is_gone(press, home):
    inbox = home / "inbox"
    (inbox / "a.txt").write_text(TEXT)
    (inbox / "deep" / "b.txt").write_text(TEXT)
    (inbox / "c.md").write_text("Bob Miller works for Globex Inc.")
    (inbox / ".hidden.txt").write_text(TEXT)
    (inbox / "picture.png").write_bytes(b"\x89PNG")
    first = keep_in_step(press, home)
    assert (first.added, first.removed, first.failed) == (3, 0, 0)
    assert press.info().documents == 2
    again = keep_in_step(press, home)
    assert (again.unchanged, again.added, again.changed) == (3, 0, 0)
    revision = press.info().revision
    (inbox / "a.txt").write_text("Anna Stone works for Initech.")
    (inbox / "c.md").unlink()
    done = keep_in_step(press, home)
    assert (done.changed, done.removed, done.unchanged) == (1, 1, 1)
    assert press.info().revision == revision + 2
    assert not any(one.name == "Bob Miller" for one in press.entities())
    assert press.check() == []


def test_what_failed_is_tried_again_only_when_asked_or_changed(press, home):
    (home / "inbox" / "a.txt").write_bytes(b"\xff\xfe\xff")
    (home / "inbox" / "b.txt").write_text(TEXT)
    done = keep_in_step(press, home)
    assert (done.added, done.failed) == (1, 1)
    assert "UTF" in done.errors["inbox/a.txt"]
    assert keep_in_step(press, home).errors == {}
    assert list(keep_in_step(press, home, retry_failed=True).errors) == ["inbox/a.txt"]
    (home / "inbox" / "a.txt").write_text("Carl Young works for Acme Ltd.")
    assert keep_in_step(press, home).failed == 0
    assert press.sync_state().failed == 0


def test_a_folder_that_vanished_or_is_empty_all_at_once_takes_nothing_out(press, home):
    file = home / "inbox" / "a.txt"
    file.write_text(TEXT)
    keep_in_step(press, home)
    file.unlink()
    with pytest.raises(FolderError, match="allow-empty"):
        keep_in_step(press, home)
    with pytest.raises(FolderError, match="not a folder"):
        plan_sync(press, home / "nowhere")
    assert press.info().documents == 1
    assert keep_in_step(press, home, allow_empty=True).removed == 1


def test_what_two_documents_say_alike_was_extracted_once_and_each_place_is_known(press, home):
    (home / "inbox" / "a.txt").write_text(TEXT)
    (home / "inbox" / "b.txt").write_text(f"  {TEXT}\r\n")
    keep_in_step(press, home)
    assert len(list((home / "runs").glob("sha256-*"))) == 1
    (statement,) = press.statements()
    (place,) = statement.evidence
    assert TEXT[place.start : place.end] == place.text
    assert place.document_name == "inbox/a.txt"
