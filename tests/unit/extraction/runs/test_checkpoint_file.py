"""Checkpoints on disk: found by content, a miss when damaged, within their bound."""

import hashlib
import multiprocessing
import os
import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from sameas.extraction.checkpoint_file import CheckpointFile


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "_.db"


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        yield connection
    finally:
        connection.close()


def test_what_was_saved_is_found_by_another_process(path: Path) -> None:
    CheckpointFile(path).save("grounding", digest("a"), b"result")
    CheckpointFile(path).save("grounding", digest("empty"), b"")
    assert CheckpointFile(path).load("grounding", digest("a")) == b"result"
    assert CheckpointFile(path).load("grounding", digest("empty")) == b""


def test_what_was_saved_outlives_a_process_that_is_killed(path: Path) -> None:
    def save_and_die() -> None:
        CheckpointFile(path).save("grounding", digest("a"), b"result")
        os.kill(os.getpid(), 9)

    child = multiprocessing.get_context("fork").Process(target=save_and_die)
    child.start()
    child.join(20)
    assert child.exitcode == -9
    assert CheckpointFile(path).load("grounding", digest("a")) == b"result"


def test_a_forked_child_and_its_parent_both_go_on(path: Path) -> None:
    kept = CheckpointFile(path)
    kept.save("grounding", digest("a"), b"result")

    def work() -> None:
        assert kept.load("grounding", digest("a")) == b"result"
        kept.save("grounding", digest("child"), b"of the child")

    child = multiprocessing.get_context("fork").Process(target=work)
    child.start()
    kept.save("grounding", digest("parent"), b"of the parent")
    child.join(20)
    assert child.exitcode == 0
    assert kept.load("grounding", digest("child")) == b"of the child"
    assert kept.load("grounding", digest("parent")) == b"of the parent"


def test_stages_are_apart(path: Path) -> None:
    kept = CheckpointFile(path)
    kept.save("grounding", digest("a"), b"result")
    assert kept.load("entity_extraction", digest("a")) is None


@pytest.mark.parametrize("harm", [b"", b"sameas", b"x" * 20_000])
def test_a_file_that_is_no_database_is_begun_anew(path: Path, harm: bytes) -> None:
    CheckpointFile(path).save("grounding", digest("a"), b"result")
    path.write_bytes(harm)
    kept = CheckpointFile(path)
    assert kept.load("grounding", digest("a")) is None
    kept.save("grounding", digest("a"), b"result")
    assert kept.load("grounding", digest("a")) == b"result"


def test_no_flipped_bit_gives_another_result(path: Path) -> None:
    CheckpointFile(path).save("grounding", digest("a"), b"result")
    good = path.read_bytes()
    told = set()
    for place in range(0, len(good), 7):
        path.write_bytes(good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
        told.add(CheckpointFile(path).load("grounding", digest("a")))
        path.with_name(f"{path.name}-wal").unlink(missing_ok=True)
    assert told <= {None, b"result"}


@pytest.mark.parametrize(
    "harm", ["data = x'00'", "data = 'result'", "seal = x''", "digest = zeroblob(32)", "stage = 'grounding'"]
)
def test_a_damaged_row_is_a_miss_and_can_be_saved_again(path: Path, harm: str) -> None:
    kept = CheckpointFile(path)
    kept.save("entity_extraction", digest("a"), b"result")
    with opened(path) as connection:
        connection.execute(f"UPDATE checkpoints SET {harm}")
    assert kept.load("entity_extraction", digest("a")) is None
    assert kept.load("grounding", digest("a")) is None
    kept.save("entity_extraction", digest("a"), b"result")
    assert kept.load("entity_extraction", digest("a")) == b"result"


def test_the_least_recently_used_go_first(path: Path) -> None:
    now = 1_000_000.0
    kept = CheckpointFile(path, max_bytes=100_000, clock=lambda: now)
    names = [digest(str(number)) for number in range(60)]
    for name in names[:20]:
        now += 10_000
        kept.save("grounding", name, b"x" * 2_000)
    now += 10_000
    assert kept.load("grounding", names[0]) is not None
    for name in names[20:]:
        now += 10_000
        kept.save("grounding", name, b"x" * 2_000)
    with opened(path) as connection:
        left = {row[0].hex() for row in connection.execute("SELECT digest FROM checkpoints")}
    # The first one was used after the twentieth was saved, and so outlives the nineteen between.
    order = [*names[1:20], names[0], *names[20:]]
    gone = [name for name in order if name not in left]
    assert len(gone) > 19
    assert gone == order[: len(gone)]


def test_the_bound_holds_without_anybody_asking(path: Path) -> None:
    kept = CheckpointFile(path, max_bytes=200_000)
    for number in range(2_000):
        kept.save("grounding", digest(str(number)), b"x" * 950)
    assert path.stat().st_size <= 220_000
    found = [number for number in range(2_000) if kept.load("grounding", digest(str(number)))]
    assert found == list(range(found[0], 2_000))
    assert len(found) > 100


def test_many_writers_of_one_checkpoint_leave_one_whole_row(path: Path) -> None:
    kept = CheckpointFile(path)
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda _: kept.save("grounding", digest("a"), b"r" * 10_000), range(64)))
    with opened(path) as connection:
        assert connection.execute("SELECT count(*) FROM checkpoints").fetchone() == (1,)
    assert kept.load("grounding", digest("a")) == b"r" * 10_000


def test_one_that_is_of_no_use_is_replaced(path: Path) -> None:
    kept = CheckpointFile(path)
    kept.save("grounding", digest("a"), b"of another release")
    kept.save("grounding", digest("a"), b"result")
    assert kept.load("grounding", digest("a")) == b"result"


def test_a_folder_that_cannot_be_written_costs_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    kept = CheckpointFile(tmp_path / "file" / "_.db")
    kept.save("grounding", digest("a"), b"result")
    assert kept.load("grounding", digest("a")) is None


def test_who_holds_the_file_costs_a_checkpoint_and_little_time(path: Path) -> None:
    kept = CheckpointFile(path)
    kept.save("grounding", digest("a"), b"result")
    with opened(path) as connection:
        connection.execute("BEGIN IMMEDIATE")
        began = time.monotonic()
        kept.save("grounding", digest("b"), b"result")
        assert time.monotonic() - began < 5
        assert kept.load("grounding", digest("a")) == b"result"
        connection.execute("ROLLBACK")
    assert kept.load("grounding", digest("b")) is None
    kept.save("grounding", digest("b"), b"result")
    assert kept.load("grounding", digest("b")) == b"result"


def test_a_full_disk_costs_a_checkpoint_only(path: Path) -> None:
    kept = CheckpointFile(path)
    kept.save("grounding", digest("a"), b"result")
    assert kept._do("PRAGMA max_page_count = 10") is not None
    kept.save("grounding", digest("b"), b"x" * 100_000)
    assert kept.load("grounding", digest("b")) is None
    assert kept.load("grounding", digest("a")) == b"result"


@pytest.mark.parametrize("name", ["../../etc/passwd", "", "A" * 64])
def test_only_digests_become_names(path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="64 hex"):
        CheckpointFile(path).save("grounding", name, b"")
