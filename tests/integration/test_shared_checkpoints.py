"""Checkpoints in a file and in tables keep one contract; nodes with different homes go on from each other's."""

import asyncio
import hashlib
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TypeAlias

import psycopg
import pytest

from sameas import open_async_store
from sameas.extraction.runs.checkpoint_file import CheckpointFile
from sameas.extraction.runs.checkpoint_tables import CheckpointTables
from sameas.extraction.runs.library import RunNotFoundError
from sameas.extraction.runs.record import run_policy
from sameas.extraction.runs.service import ExtractionService, ServiceSettings
from tests.servers.postgres import PostgresServer
from tests.unit.extraction.runs.desk import DISTINCT, SMALL, CountingExtractor, extract

ROOT = Path(__file__).resolve().parents[2]
LEASE = 0.6

Kept: TypeAlias = CheckpointFile | CheckpointTables
Make: TypeAlias = Callable[..., Kept]


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database that only this test uses."""
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_url"))
    return f"sqlite:///{tmp_path}/shared.db"


@pytest.fixture(params=["file", "sqlite", "postgres"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    """Opens the checkpoints of this test, any number of times."""
    if request.param == "file":
        yield partial(CheckpointFile, tmp_path / "cache" / "_.db")
        return
    on_server = request.param == "postgres"
    url = request.getfixturevalue("postgres_url") if on_server else f"sqlite:///{tmp_path}/shared.db"
    opened: list[CheckpointTables] = []

    def make_one(**words: object) -> CheckpointTables:
        opened.append(CheckpointTables(url, **words))  # type: ignore[arg-type]
        return opened[-1]

    yield make_one
    for one in opened:
        one.close()


def run_sql(url: str, statement: str) -> list[tuple[object, ...]]:
    """Run a statement beside the program."""
    if url.startswith("sqlite"):
        connection = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
        try:
            return connection.execute(statement).fetchall()
        finally:
            connection.close()
    with psycopg.connect(url, autocommit=True) as server:
        cursor = server.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


def test_what_one_saved_another_finds_by_stage_and_digest(make: Make) -> None:
    make().save("grounding", digest("a"), b"result")
    make().save("grounding", digest("empty"), b"")
    other = make()
    assert other.load("grounding", digest("a")) == b"result"
    assert other.load("grounding", digest("empty")) == b""
    assert other.load("entity_extraction", digest("a")) is None
    assert other.load("grounding", digest("b")) is None


def test_one_that_is_of_no_use_is_replaced(make: Make) -> None:
    kept = make()
    kept.save("grounding", digest("a"), b"of another release")
    kept.save("grounding", digest("a"), b"result")
    assert kept.load("grounding", digest("a")) == b"result"


@pytest.mark.parametrize("name", ["../../etc/passwd", "", "A" * 64])
def test_only_digests_become_names(make: Make, name: str) -> None:
    with pytest.raises(ValueError, match="64 hex"):
        make().save("grounding", name, b"")


def test_the_least_recently_used_go_first(make: Make) -> None:
    now = 1_000_000.0
    kept = make(max_bytes=100_000, clock=lambda: now)
    names = [digest(str(number)) for number in range(60)]
    for name in names[:20]:
        now += 10_000
        kept.save("grounding", name, b"x" * 2_000)
    now += 10_000
    assert kept.load("grounding", names[0]) is not None
    for name in names[20:]:
        now += 10_000
        kept.save("grounding", name, b"x" * 2_000)
    # The first one was used after the twentieth was saved, and so outlives the nineteen between.
    order = [*names[1:20], names[0], *names[20:]]
    # Newest first: to read one is to use it, and may push out the oldest.
    gone = [name for name in reversed(order) if kept.load("grounding", name) is None][::-1]
    assert len(gone) > 9
    assert gone == order[: len(gone)]


def test_the_bound_holds_without_anybody_asking(make: Make) -> None:
    now = 1_000_000.0
    kept = make(max_bytes=50_000, clock=lambda: now)
    for number in range(400):
        now += 1
        kept.save("grounding", digest(str(number)), b"x" * 950)
    found = [number for number in range(400) if kept.load("grounding", digest(str(number)))]
    assert found == list(range(found[0], 400))
    assert 20 < len(found) <= 58


def test_what_is_larger_than_the_bound_is_not_kept_and_pushes_nothing_out(make: Make) -> None:
    kept = make(max_bytes=100_000)
    kept.save("grounding", digest("a"), b"result")
    for number in range(5):
        kept.save("grounding", digest(f"large {number}"), b"x" * 1_000_000)
    assert kept.load("grounding", digest("a")) == b"result"
    assert kept.load("grounding", digest("large 4")) is None


def test_a_row_almost_as_large_as_the_bound_is_there_after_it_was_saved(make: Make) -> None:
    now = 1_000_000.0
    kept = make(max_bytes=200_000, clock=lambda: now)
    # The pages of a file count too.
    size = 150_000 if isinstance(kept, CheckpointFile) else 190_000
    for number in range(5):
        now += 1
        kept.save("grounding", digest(f"{number}"), b"x" * size)
        assert kept.load("grounding", digest(f"{number}")) is not None


def test_many_writers_of_one_checkpoint_leave_one_whole_row(make: Make) -> None:
    kept = make()
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda _: kept.save("grounding", digest("a"), b"r" * 10_000), range(32)))
    assert kept.load("grounding", digest("a")) == b"r" * 10_000


def test_those_that_are_forgotten_are_gone_for_everybody_and_leave_no_trace(make: Make, tmp_path: Path) -> None:
    kept, other = make(), make()
    kept.save("grounding", digest("a"), b"canary-of-a" * 50)
    kept.save("grounding", digest("b"), b"result")
    assert other.load("grounding", digest("a")) is not None
    kept.forget([("grounding", digest("a")), ("grounding", digest("never saved"))])
    assert other.load("grounding", digest("a")) is None
    assert other.load("grounding", digest("b")) == b"result"
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and b"canary-of-a" in path.read_bytes()]
    kept.clear()
    assert other.load("grounding", digest("b")) is None


def test_tenants_are_apart_in_one_database(database: str) -> None:
    one, other = CheckpointTables(database, tenant="one"), CheckpointTables(database, tenant="other")
    one.save("grounding", digest("a"), b"result")
    assert other.load("grounding", digest("a")) is None
    other.clear()
    assert one.load("grounding", digest("a")) == b"result"
    one.close()
    other.close()


@pytest.mark.parametrize("harm", ["data = seal", "seal = data", "stage = 'grounding'", "used_at = -1, data = digest"])
def test_a_damaged_row_is_a_miss_and_can_be_saved_again(database: str, harm: str) -> None:
    kept = CheckpointTables(database)
    kept.save("entity_extraction", digest("a"), b"result")
    run_sql(database, f"UPDATE extraction_checkpoints SET {harm}")
    assert kept.load("entity_extraction", digest("a")) is None
    assert kept.load("grounding", digest("a")) is None
    kept.save("entity_extraction", digest("a"), b"result")
    assert kept.load("entity_extraction", digest("a")) == b"result"
    kept.close()


def test_a_database_that_is_away_costs_checkpoints_only(
    postgres_server: PostgresServer, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = CheckpointTables(postgres_url)
    kept.save("grounding", digest("a"), b"result")
    postgres_server.kill()
    assert kept.load("grounding", digest("a")) is None
    kept.save("grounding", digest("b"), b"result")
    assert not kept.note_checkpoint("key", "grounding", digest("b"))
    postgres_server.start()
    monkeypatch.setattr(kept, "_rests_until", 0.0)
    kept.save("grounding", digest("b"), b"result")
    assert kept.load("grounding", digest("b")) == b"result"
    kept.close()


@asynccontextmanager
async def node(home: Path, database: str) -> AsyncIterator[ExtractionService]:
    """A node with a home of its own; records and checkpoints are where all nodes see them."""
    home.mkdir(parents=True, exist_ok=True)
    settings = ServiceSettings(policy=run_policy(lease=LEASE), shared_checkpoints=True)
    store = open_async_store(database)
    service = ExtractionService(home=home, store=store, database=database, settings=settings)
    try:
        yield service
    finally:
        service.close()
        # Deletion asks the store from a thread, and that has connections of its own.
        store.backend.close()
        await store.close()


DYING_NODE = """
import asyncio, os, signal, sys
from pathlib import Path
from msgspec.structs import replace
from tests.integration.test_shared_checkpoints import node
from tests.unit.extraction.runs.desk import DISTINCT, SMALL, CountingExtractor, extract

def die_at_17(chunk):
    if chunk.index == 17:
        os.kill(os.getpid(), signal.SIGKILL)

async def work():
    extractor = CountingExtractor()
    extractor.before = die_at_17
    async with node(Path(sys.argv[1]), sys.argv[2]) as service:
        await extract(service, extractor, DISTINCT, settings=replace(SMALL, concurrency=1))

asyncio.run(work())
"""


@pytest.mark.anyio
async def test_after_kill_9_another_node_goes_on_and_a_third_deletes_it_everywhere(
    database: str, tmp_path: Path
) -> None:
    command = [sys.executable, "-c", DYING_NODE, str(tmp_path / "first"), database]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    died = await asyncio.to_thread(subprocess.run, command, cwd=ROOT, env=environment, check=False, timeout=120)
    assert died.returncode == -signal.SIGKILL

    extractor = CountingExtractor()
    async with node(tmp_path / "second", database) as second:
        done = await extract(second, extractor, DISTINCT, settings=SMALL)
    assert (done.metadata.status, done.replayed) == ("complete", False)
    assert len(extractor.asked) == done.metadata.chunks - 17
    assert done.metadata.chunks_from_checkpoints == 17
    assert not list(tmp_path.rglob("cache/checkpoints/*"))

    async with node(tmp_path / "third", database) as third:
        await asyncio.to_thread(third.remove, done.key.key)
        assert run_sql(database, "SELECT count(*) FROM extraction_checkpoints") == [(0,)]
        assert run_sql(database, "SELECT count(*) FROM extraction_uses") == [(0,)]
        with pytest.raises(RunNotFoundError):
            await asyncio.to_thread(third.remove, done.key.key)

    extractor = CountingExtractor()
    async with node(tmp_path / "fourth", database) as fourth:
        again = await extract(fourth, extractor, DISTINCT, settings=SMALL)
    assert len(extractor.asked) == again.metadata.chunks


def count_checkpoints(database: str) -> int:
    ((count,),) = run_sql(database, "SELECT count(*) FROM extraction_checkpoints")
    assert isinstance(count, int)
    return count


@pytest.mark.anyio
async def test_deleting_a_run_leaves_what_only_others_use(database: str, tmp_path: Path) -> None:
    half = DISTINCT[: DISTINCT.index("Anna20 ")]
    async with node(tmp_path / "first", database) as first:
        done = await extract(first, CountingExtractor(), half, settings=SMALL)
        before = count_checkpoints(database)
        await extract(first, CountingExtractor(), DISTINCT[len(half) :], settings=SMALL)
    after = count_checkpoints(database)
    assert 0 < before < after
    async with node(tmp_path / "second", database) as second:
        await asyncio.to_thread(second.remove, done.key.key)
    assert count_checkpoints(database) == after - before


def test_shared_checkpoints_without_a_database_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="needs a database"):
        ExtractionService(
            home=tmp_path,
            store=open_async_store("memory://"),
            settings=ServiceSettings(shared_checkpoints=True),
        )
