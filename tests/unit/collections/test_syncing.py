"""Filling from files and keeping in step with a folder."""

import asyncio
import os
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sameas.collections import Collections, local_caller, open_tables
from sameas.collections.additions import Filler, Unwatched
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


def keep_in_step(press, home, *, watch=None, **options):
    async def work():
        async with open_async_store(f"sqlite:///{home / 'sameas.db'}") as store:
            service = ExtractionService(home=home, store=store)
            extractor = deferred_lexicon(press.ontology)
            filler = Filler(press, service, extractor=extractor, at_once=1, watch=watch)
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


class _Remover(Unwatched):
    """Removes files while the first document is being read."""

    def __init__(self, *files):
        self._files = files

    def show(self, document, event):
        for file in self._files:
            file.unlink(missing_ok=True)


def test_a_file_that_vanishes_while_a_folder_is_read_is_told_and_gone(press, home):
    inbox = home / "inbox"
    for name in ("b.txt", "c.txt"):
        (inbox / name).write_text(f"{TEXT} {name}")
    keep_in_step(press, home)
    for name in ("a.txt", "b.txt", "d.txt"):
        (inbox / name).write_text(f"Bob Miller works for Globex Inc. {name}")
    # Of b.txt a text is there already, of d.txt none.
    done = keep_in_step(press, home, watch=_Remover(inbox / "b.txt", inbox / "d.txt"))
    assert (done.added, done.vanished, done.removed, done.failed, done.unchanged) == (1, 2, 1, 0, 1)
    assert sorted(done.errors) == ["inbox/b.txt", "inbox/d.txt"]
    assert [one.names[0].name for one in press.documents()] == ["inbox/a.txt", "inbox/c.txt"]
    assert press.sync_state().failed == 0
    assert keep_in_step(press, home).unchanged == 2
    assert press.check() == []


def test_a_folder_that_vanishes_while_it_is_read_takes_nothing_out(press, home):
    inbox = home / "inbox"
    (inbox / "a.txt").write_text(TEXT)
    (inbox / "b.txt").write_text(TEXT)
    keep_in_step(press, home)
    (inbox / "a.txt").write_text("Bob Miller works for Globex Inc.")
    (inbox / "b.txt").write_text("Bob Miller works for Initech.")

    class Mover(Unwatched):
        def show(self, document, event):
            if inbox.is_dir():
                inbox.rename(home / "elsewhere")

    with pytest.raises(FolderError, match="went away"):
        keep_in_step(press, home, watch=Mover())
    assert press.has_name("inbox/b.txt")


@pytest.mark.parametrize("name", [b"torn\xff.txt", b"deep\xff/a.txt"])
def test_a_file_whose_name_is_no_text_is_kept_in_step_too(press, home, name):
    file = Path(os.fsdecode(os.path.join(os.fsencode(home / "inbox"), name)))  # noqa: PTH118
    file.parent.mkdir(exist_ok=True)
    file.write_text(TEXT)
    assert keep_in_step(press, home).added == 1
    (document,) = press.documents()
    assert document.names[0].name == f"inbox/{name.decode(errors='surrogateescape')}".replace("\udcff", "\\udcff")
    assert keep_in_step(press, home).unchanged == 1
    file.unlink()
    assert keep_in_step(press, home, allow_empty=True).removed == 1


def test_what_could_not_be_read_is_forgotten_with_its_file(press, home):
    (home / "inbox" / "a.txt").write_bytes(b"\xff\xfe\xff")
    (home / "inbox" / "b.txt").write_text(TEXT)
    assert keep_in_step(press, home).failed == 1
    (home / "inbox" / "a.txt").unlink()
    assert keep_in_step(press, home).removed == 0
    assert not press.has_source("inbox/a.txt")


def test_files_and_folders_may_come_and_go_while_a_folder_is_looked_through(press, home):
    inbox, stop = home / "inbox", threading.Event()
    (inbox / "stays.txt").write_text(TEXT)

    def come_and_go():
        while not stop.is_set():
            for number in range(50):
                folder = inbox / "deep" / str(number)
                folder.mkdir()
                (folder / "a.txt").write_text(TEXT)
            for number in range(50):
                shutil.rmtree(inbox / "deep" / str(number))

    with ThreadPoolExecutor(1) as others:
        working = others.submit(come_and_go)
        try:
            for _ in range(100):
                names = [one.source.name for one in plan_sync(press, inbox).to_add]
                assert "inbox/stays.txt" in names
        finally:
            stop.set()
        working.result()
