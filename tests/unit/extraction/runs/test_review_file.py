"""Decisions on the disk: one file for a document, whole lines, gone with the last run."""

import threading
from pathlib import Path

import pytest

from sameas.extraction.runs.folder import keep_ontology, read_ontology
from sameas.extraction.runs.review import Decision, EntityRef, ReviewRefusedError, Wish
from tests.unit.extraction.company import TEXT

from .desk import ONTOLOGY, CountingExtractor, extract, make_service

pytestmark = pytest.mark.anyio
WISH = Wish(action="retype", entity=EntityRef(name="Ann"), types=("x",))


async def make(tmp_path: Path):
    service = make_service(tmp_path)
    done = await extract(service, CountingExtractor())
    return service, service.runs.find(done.key.key)


async def test_a_run_knows_its_text_and_its_ontology(tmp_path: Path) -> None:
    _, run = await make(tmp_path)
    assert run.text() == TEXT.strip()
    assert run.ontology() == ONTOLOGY
    (run.folder / "text.txt").write_text("forged")
    assert run.text() is None
    (run.folder / "text.txt").unlink()
    assert run.text() is None


async def test_an_ontology_of_another_release_is_not_read(tmp_path: Path) -> None:
    keep_ontology(tmp_path, ONTOLOGY)
    (path,) = (tmp_path / ".ontologies").iterdir()
    for data in (b"another layout", path.read_bytes()[:40]):
        path.write_bytes(data)
        assert read_ontology(tmp_path, ONTOLOGY.version) is None


async def test_decisions_of_several_writers_are_whole_and_in_order(tmp_path: Path) -> None:
    _, run = await make(tmp_path)
    seen: list[int] = []

    def write() -> None:
        for _ in range(10):
            run.review().add(WISH, by="local", now=0.0, check=lambda before: seen.append(len(before)))

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == list(range(40))
    assert len({one.id for one in run.review().read()}) == 40
    assert len(run.review().read(up_to=3)) == 3


async def test_what_a_killed_writer_left_is_not_believed_and_a_refusal_keeps_nothing(tmp_path: Path) -> None:
    _, run = await make(tmp_path)
    run.review().add(WISH, by="local", now=0.0, check=lambda _: None)
    (path,) = (tmp_path / "runs" / ".reviews").iterdir()
    with path.open("ab") as file:
        file.write(b'{"id": "half')
    assert len(run.review().read()) == 1

    def refuse(_: object) -> None:
        raise ReviewRefusedError("no")

    with pytest.raises(ReviewRefusedError):
        run.review().add(WISH, by="local", now=0.0, check=refuse)
    run.review().add(WISH, by="ann", now=0.0, check=lambda _: None)
    assert [one.by for one in run.review().read()] == ["local", "ann"]
    assert all(isinstance(one, Decision) for one in run.review().read())


async def test_decisions_go_with_the_last_run_that_they_were_made_on(tmp_path: Path) -> None:
    service, run = await make(tmp_path)
    run.review().add(WISH, by="local", now=0.0, check=lambda _: None)
    service.remove(run.key)
    assert [*(tmp_path / "runs" / ".reviews").iterdir()] == []


async def test_an_ontology_goes_with_the_last_run_of_its_version(tmp_path: Path) -> None:
    service, run = await make(tmp_path)
    service.runs.clear_ontologies()
    assert run.ontology() == ONTOLOGY
    service.remove(run.key)
    service.runs.clear_ontologies()
    assert [*(tmp_path / "runs" / ".ontologies").iterdir()] == []
