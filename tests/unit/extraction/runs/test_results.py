"""With a database, results, handles and the audit log are in step with the folders."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol

import psycopg
import pytest
from psycopg.types.string import TextLoader

from sameas.extraction.events.events import Event
from sameas.extraction.runs.record import SCOPE
from sameas.extraction.runs.service import ExtractionService
from sameas.once.errors import StoreError
from tests.unit.extraction.company import TEXT

from .desk import ONTOLOGY, CountingExtractor, extract, make_service

pytestmark = pytest.mark.anyio


class Book(Protocol):
    """A database of results, and a look into it from outside."""

    def service(self, home: Path, **options: Any) -> ExtractionService: ...

    def rows(self, sql: str) -> list[tuple[Any, ...]]: ...


class SqliteBook:
    def __init__(self, path: Path) -> None:
        self._path = path

    def service(self, home: Path, **options: Any) -> ExtractionService:
        return make_service(home, database=f"sqlite:///{self._path}", **options)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self._path)) as connection:
            return connection.execute(sql).fetchall()


class PostgresBook:
    def __init__(self, url: str) -> None:
        self._url = url
        self._opened: list[ExtractionService] = []

    def service(self, home: Path, **options: Any) -> ExtractionService:
        self._opened.append(make_service(home, database=self._url, **options))
        return self._opened[-1]

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self._url.replace("+psycopg", ""), autocommit=True) as connection:
            connection.adapters.register_loader("json", TextLoader)
            cursor = connection.execute(sql)
            return cursor.fetchall() if cursor.description else []

    def close(self) -> None:
        for service in self._opened:
            service.close()


@pytest.fixture(params=["sqlite", "postgres"])
def book(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    if request.param == "sqlite":
        yield SqliteBook(tmp_path / "results.db")
        return
    opened = PostgresBook(request.getfixturevalue("postgres_url"))
    yield opened
    opened.close()


def audit(book: Book) -> list[str]:
    return [event for (event,) in book.rows("SELECT event_type FROM extraction_audit_log ORDER BY id")]


async def test_a_run_fills_the_four_tables(tmp_path: Path, book: Book) -> None:
    service, extractor = book.service(tmp_path, tenant="acme"), CountingExtractor()
    done = await extract(service, extractor, audit={"trace_id": "t-1"})
    await extract(service, extractor)
    columns = "tenant_id, idempotency_key, text_hash, extraction_params_hash, entities, metadata, audit_meta"
    assert book.rows(f"SELECT {columns} FROM extraction_results") == [
        (
            "acme",
            done.key.key,
            done.key.components.text_hash,
            done.key.components.extraction_params_hash,
            (done.folder / "entities.json").read_text(),
            (done.folder / "metadata.json").read_text(),
            '{"trace_id":"t-1"}',
        )
    ]
    assert book.rows("SELECT tenant_id, status, error FROM execution_handles") == [("acme", "completed", None)]
    assert audit(book) == ["cache_miss", "extraction_started", "extraction_completed", "cache_hit"]
    assert book.rows("SELECT id, version FROM ontologies") == [(ONTOLOGY.iri, ONTOLOGY.version)]


async def test_a_result_is_found_in_the_database_when_its_folder_is_gone(tmp_path: Path, book: Book) -> None:
    service, extractor = book.service(tmp_path), CountingExtractor()
    done = await extract(service, extractor)
    kept = {path.name: path.read_bytes() for path in done.folder.iterdir()}
    shutil.rmtree(done.folder)
    extractor.asked = []
    again = await extract(service, extractor)
    assert again.replayed
    assert again.graph == done.graph
    for name in ("entities.json", "relations.json", "rejected.json", "graph.ttl"):
        assert (again.folder / name).read_bytes() == kept[name]
    shutil.rmtree(done.folder)
    assert service.runs.find(done.key.key[:16]).graph() == done.graph
    shutil.rmtree(done.folder)
    await service._engine.forget(SCOPE, done.key.key, namespace="content")
    third = await extract(service, extractor)
    assert third.replayed
    assert extractor.asked == []


async def test_a_damaged_folder_is_put_back_from_the_database(tmp_path: Path, book: Book) -> None:
    service, extractor = book.service(tmp_path), CountingExtractor()
    done = await extract(service, extractor)
    (done.folder / "graph.ttl").write_bytes(b"")
    extractor.asked = []
    told: list[Event] = []
    again = await extract(service, extractor, on_event=told.append)
    assert (again.graph, extractor.asked) == (done.graph, [])
    assert [event.type for event in told] == ["error_recoverable", "cache_hit"]
    assert [path.name for path in (tmp_path / "runs" / ".quarantine").iterdir()] == [f"{done.key.key}-1"]
    assert (await extract(service, extractor)).replayed


async def test_failed_and_partial_runs_are_failed_handles(tmp_path: Path, book: Book) -> None:
    service, extractor = book.service(tmp_path), CountingExtractor()
    extractor.breaks = True
    with pytest.raises(RuntimeError):
        await extract(service, extractor)
    ((status, error),) = book.rows("SELECT status, error FROM execution_handles")
    assert status == "failed"
    assert "the extractor is broken" in error
    assert book.rows("SELECT * FROM extraction_results") == []
    extractor.breaks, extractor.fails_on = False, {"Alice"}
    assert (await extract(service, extractor)).metadata.status == "partial"
    assert book.rows("SELECT status FROM execution_handles") == [("failed",)]
    extractor.fails_on = set()
    await extract(service, extractor)
    assert book.rows("SELECT status, error FROM execution_handles") == [("completed", None)]


async def test_an_updated_ontology_deletes_its_results_and_says_so(tmp_path: Path, book: Book) -> None:
    service, extractor = book.service(tmp_path), CountingExtractor()
    other = book.service(tmp_path, tenant="other")
    await extract(service, extractor)
    await extract(other, extractor)
    await service.invalidate_ontology(ONTOLOGY.iri, ONTOLOGY.version, "sha256:new")
    assert book.rows("SELECT tenant_id FROM extraction_results") == [("other",)]
    ((about,),) = book.rows("SELECT metadata FROM extraction_audit_log WHERE event_type = 'ontology_updated'")
    assert '"entriesInvalidated":1' in about
    assert not (await extract(service, extractor)).replayed
    assert (await extract(other, extractor)).replayed


async def test_a_removed_run_leaves_only_its_audit(tmp_path: Path, book: Book) -> None:
    service = book.service(tmp_path)
    done = await extract(service, CountingExtractor())
    service.runs.remove(done.key.key)
    assert book.rows("SELECT * FROM extraction_results") == []
    assert book.rows("SELECT * FROM execution_handles") == []
    assert audit(book)[-1] == "result_removed"


async def test_expired_results_are_not_given_and_go(tmp_path: Path, book: Book) -> None:
    now = 1_800_000_000.0
    service = book.service(tmp_path, clock=lambda: now)
    done = await extract(service, CountingExtractor())
    now += 8 * 86_400
    assert service._tables is not None
    assert service._tables.load(done.key.key) is None
    await extract(service, CountingExtractor(), f"{TEXT} more")
    assert len(book.rows("SELECT 1 FROM extraction_results")) == 1


async def test_a_rescan_saves_what_the_database_does_not_have(tmp_path: Path, book: Book) -> None:
    done = await extract(make_service(tmp_path), CountingExtractor())
    service = book.service(tmp_path)
    assert service.runs.rescan().saved == (done.key.key,)
    assert service._tables is not None
    kept = service._tables.load(done.key.key)
    assert kept is not None
    assert kept.metadata == done.metadata


async def test_a_database_that_cannot_be_written_refuses_and_keeps_no_claim(tmp_path: Path, book: Book) -> None:
    service, extractor = book.service(tmp_path), CountingExtractor()
    book.rows("ALTER TABLE extraction_results RENAME TO elsewhere")
    with pytest.raises(StoreError, match="extraction_results"):
        await extract(service, extractor)
    book.rows("ALTER TABLE elsewhere RENAME TO extraction_results")
    assert (await extract(service, extractor)).metadata.status == "complete"


async def test_a_replay_is_served_though_its_use_cannot_be_noted(tmp_path: Path, book: Book) -> None:
    service, extractor = book.service(tmp_path), CountingExtractor()
    await extract(service, extractor)
    book.rows("DROP TABLE extraction_audit_log")
    assert (await extract(service, extractor)).replayed
