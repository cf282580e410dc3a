"""Checkpoints on disk: found by content, a miss when damaged, within their bound."""

import hashlib
import multiprocessing
import os
import signal
import sqlite3
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from sameas.extraction.runs.checkpoint_file import CheckpointFile


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


def test_who_holds_the_file_costs_a_checkpoint_and_little_time(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = CheckpointFile(path)
    kept.save("grounding", digest("a"), b"result")
    with opened(path) as connection:
        connection.execute("BEGIN IMMEDIATE")
        began = time.monotonic()
        for _ in range(200):
            kept.save("grounding", digest("b"), b"result")
        assert time.monotonic() - began < 10
        assert kept.load("grounding", digest("a")) == b"result"
        connection.execute("ROLLBACK")
    assert kept.load("grounding", digest("b")) is None
    monkeypatch.setattr(kept, "_rests_until", 0.0)
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


def test_a_row_whose_time_is_damaged_is_no_fault(path: Path) -> None:
    kept = CheckpointFile(path)
    for harm in ("'yesterday'", "x'00ff'", "1e300", "-1"):
        kept.save("grounding", digest("a"), b"result")
        with opened(path) as connection:
            connection.execute(f"UPDATE checkpoints SET used_at = {harm}")
        assert kept.load("grounding", digest("a")) == b"result"
        with opened(path) as connection:
            (kind,) = connection.execute("SELECT typeof(used_at) FROM checkpoints").fetchone()
        assert kind == "integer"


@pytest.mark.parametrize("text", [b"CREATE TABLE checkpoints", b"sqlite_autoindex_checkpoints_1"])
def test_a_damaged_table_that_cannot_even_be_told_is_begun_anew(path: Path, text: bytes) -> None:
    CheckpointFile(path).save("grounding", digest("a"), b"result")
    good = path.read_bytes()
    at = good.index(text)
    for place in range(at, at + len(text)):
        path.write_bytes(good[:place] + b"\xff" + good[place + 1 :])
        kept = CheckpointFile(path)
        assert kept.load("grounding", digest("a")) in (None, b"result")
        kept.save("grounding", digest("b"), b"another")
        kept.save("grounding", digest("b"), b"another")
        assert kept.load("grounding", digest("b")) == b"another"


def test_a_file_with_another_table_is_begun_anew(path: Path) -> None:
    path.parent.mkdir()
    with opened(path) as connection:
        connection.execute("CREATE TABLE checkpoints (of TEXT, another TEXT, release TEXT)")
    kept = CheckpointFile(path)
    assert kept.load("grounding", digest("a")) is None
    kept.save("grounding", digest("a"), b"result")
    assert kept.load("grounding", digest("a")) == b"result"


def test_processes_that_save_only_a_few_keep_the_bound(path: Path) -> None:
    for number in range(300):
        kept = CheckpointFile(path, max_bytes=100_000)
        for part in range(3):
            kept.save("grounding", digest(f"{number} {part}"), b"x" * 1_000)
    assert path.stat().st_size <= 130_000
    assert kept.load("grounding", digest("299 0")) is not None


def test_large_rows_push_out_as_much_as_comes_with_them(path: Path) -> None:
    kept = CheckpointFile(path, max_bytes=300_000)
    for number in range(1_500):
        kept.save("grounding", digest(f"small {number}"), b"x")
    for number in range(100):
        kept.save("grounding", digest(f"large {number}"), b"x" * 20_000)
    assert path.stat().st_size <= 600_000
    found = [number for number in range(100) if kept.load("grounding", digest(f"large {number}"))]
    assert found == list(range(found[0], 100))
    assert len(found) > 8


def test_what_is_larger_than_the_bound_is_not_kept_and_pushes_nothing_out(path: Path) -> None:
    kept = CheckpointFile(path, max_bytes=100_000)
    kept.save("grounding", digest("a"), b"result")
    for number in range(20):
        kept.save("grounding", digest(f"large {number}"), b"x" * 1_000_000)
    assert kept.load("grounding", digest("a")) == b"result"
    assert kept.load("grounding", digest("large 19")) is None
    assert sum(file.stat().st_size for file in path.parent.iterdir()) <= 200_000


def test_a_row_almost_as_large_as_the_bound_is_there_after_it_was_saved(path: Path) -> None:
    kept = CheckpointFile(path, max_bytes=200_000)
    for number in range(10):
        kept.save("grounding", digest(f"{number}"), b"x" * 150_000)
        assert kept.load("grounding", digest(f"{number}")) is not None
    assert path.stat().st_size <= 600_000


def test_what_sqlite_will_not_take_costs_no_other_row(path: Path) -> None:
    kept = CheckpointFile(path)
    kept.save("grounding", digest("a"), b"result")
    assert kept._connection is not None
    kept._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 1_000)
    kept.save("grounding", digest("b"), b"x" * 5_000)
    assert kept.load("grounding", digest("b")) is None
    assert kept.load("grounding", digest("a")) == b"result"


def test_a_file_that_was_taken_away_is_made_again(path: Path) -> None:
    kept = CheckpointFile(path)
    kept.save("grounding", digest("a"), b"result")
    for file in list(path.parent.iterdir()):
        file.unlink()
    path.parent.rmdir()
    for number in range(20):
        kept.save("grounding", digest(str(number)), b"result")
    assert CheckpointFile(path).load("grounding", digest("19")) == b"result"


def test_who_finds_damage_late_leaves_the_new_file_alone(path: Path) -> None:
    first, second = CheckpointFile(path), CheckpointFile(path)
    first.save("grounding", digest("a"), b"result")
    assert second.load("grounding", digest("a")) == b"result"
    first._begin_anew()
    first.save("grounding", digest("b"), b"another")
    second._begin_anew()
    assert CheckpointFile(path).load("grounding", digest("b")) == b"another"
    assert second.load("grounding", digest("b")) == b"another"


def test_what_a_child_writes_outlives_its_parent_s_end(path: Path) -> None:
    kept = CheckpointFile(path)
    kept.save("grounding", digest("a"), b"result")
    context = multiprocessing.get_context("fork")
    begun, go_on = context.Event(), context.Event()

    def work() -> None:
        kept.save("grounding", digest("before"), b"of the child")
        begun.set()
        assert go_on.wait(20)
        kept.save("grounding", digest("after"), b"of the child")

    child = context.Process(target=work)
    child.start()
    assert begun.wait(20)
    if kept._connection is not None:
        kept._connection.close()
    CheckpointFile(path).save("grounding", digest("b"), b"another")
    go_on.set()
    child.join(20)
    assert child.exitcode == 0
    found = CheckpointFile(path)
    assert found.load("grounding", digest("before")) == b"of the child"
    assert found.load("grounding", digest("after")) == b"of the child"


def test_a_child_forked_in_the_middle_of_another_thread_s_save_can_save(path: Path) -> None:
    kept = CheckpointFile(path)
    kept.save("grounding", digest("a"), b"result")
    assert kept._connection is not None
    inside, forked = threading.Event(), threading.Event()

    def stay_a_while() -> int:
        # SQLite calls it first when the file is locked for writing. Who forks may wait for this thread, and then nobody
        # sets the event.
        if not inside.is_set():
            inside.set()
            forked.wait(0.2)
        return 0

    def work() -> None:
        signal.alarm(20)
        kept.save("grounding", digest("child"), b"of the child")
        assert kept.load("grounding", digest("child")) == b"of the child"

    kept._connection.set_progress_handler(stay_a_while, 1)
    thread = threading.Thread(target=kept.save, args=("grounding", digest("thread"), b"of the thread"))
    thread.start()
    assert inside.wait(20)
    child = multiprocessing.get_context("fork").Process(target=work)
    child.start()
    forked.set()
    child.join(30)
    thread.join(30)
    assert child.exitcode == 0
    assert CheckpointFile(path).load("grounding", digest("thread")) == b"of the thread"
    assert CheckpointFile(path).load("grounding", digest("child")) == b"of the child"
