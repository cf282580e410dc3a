"""Checkpoints on disk: found by content, a miss when damaged, within their bound."""

import errno
import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sameas.extraction.file_checkpoints import FileCheckpoints


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_what_was_saved_is_found_by_another_process(tmp_path: Path) -> None:
    FileCheckpoints(tmp_path).save("grounding", digest("a"), b"result")
    FileCheckpoints(tmp_path).save("grounding", digest("empty"), b"")
    assert FileCheckpoints(tmp_path).load("grounding", digest("a")) == b"result"
    assert FileCheckpoints(tmp_path).load("grounding", digest("empty")) == b""


def test_stages_are_apart(tmp_path: Path) -> None:
    kept = FileCheckpoints(tmp_path)
    kept.save("grounding", digest("a"), b"result")
    assert kept.load("entity_extraction", digest("a")) is None


@pytest.mark.parametrize("harm", [b"", b"sameas", b"x" * 200])
def test_a_damaged_one_is_a_miss_and_can_be_saved_again(tmp_path: Path, harm: bytes) -> None:
    kept = FileCheckpoints(tmp_path)
    kept.save("grounding", digest("a"), b"result")
    (path,) = files(tmp_path)
    path.write_bytes(harm)
    assert kept.load("grounding", digest("a")) is None
    kept.save("grounding", digest("a"), b"result")
    assert kept.load("grounding", digest("a")) == b"result"


def test_every_flipped_bit_is_noticed(tmp_path: Path) -> None:
    kept = FileCheckpoints(tmp_path)
    kept.save("grounding", digest("a"), b"result")
    (path,) = files(tmp_path)
    good = path.read_bytes()
    for place in range(len(good)):
        path.write_bytes(good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
        assert kept.load("grounding", digest("a")) is None


def test_the_least_recently_used_go_first(tmp_path: Path) -> None:
    now = 1_000_000.0
    kept = FileCheckpoints(tmp_path, max_bytes=10_000, clock=lambda: now)
    names = [digest(str(number)) for number in range(12)]

    def save(name: str) -> None:
        nonlocal now
        now += 10_000
        kept.save("grounding", name, b"x" * 950)
        (path,) = tmp_path.rglob(name)
        os.utime(path, (now, now))

    for name in names[:8]:
        save(name)
    now += 10_000
    assert kept.load("grounding", names[0]) is not None
    for name in names[8:]:
        save(name)
    kept.prune()
    gone = [name for name in names if kept.load("grounding", name) is None]
    assert gone
    assert gone == names[1 : 1 + len(gone)]
    assert sum(path.stat().st_size for path in files(tmp_path)) <= 10_000


def test_the_bound_holds_without_anybody_asking(tmp_path: Path) -> None:
    kept = FileCheckpoints(tmp_path, max_bytes=100_000)
    for number in range(300):
        kept.save("grounding", digest(str(number)), b"x" * 950)
    assert sum(path.stat().st_size for path in files(tmp_path)) <= 115_000


def test_many_writers_of_one_checkpoint_leave_one_whole_file(tmp_path: Path) -> None:
    kept = FileCheckpoints(tmp_path)
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda _: kept.save("grounding", digest("a"), b"r" * 10_000), range(64)))
    assert len(files(tmp_path)) == 1
    assert kept.load("grounding", digest("a")) == b"r" * 10_000


def test_one_that_is_of_no_use_is_replaced(tmp_path: Path) -> None:
    kept = FileCheckpoints(tmp_path)
    kept.save("grounding", digest("a"), b"of another release")
    kept.save("grounding", digest("a"), b"result")
    assert kept.load("grounding", digest("a")) == b"result"


def test_a_damaged_one_that_cannot_be_removed_is_a_miss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = FileCheckpoints(tmp_path)
    kept.save("grounding", digest("a"), b"result")
    (path,) = files(tmp_path)
    path.write_bytes(b"torn")

    def refused(*args: object, **options: object) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "unlink", refused)
    assert kept.load("grounding", digest("a")) is None
    kept.save("grounding", digest("a"), b"result")


def test_a_folder_that_cannot_be_written_costs_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    kept = FileCheckpoints(tmp_path / "file")
    kept.save("grounding", digest("a"), b"result")
    assert kept.load("grounding", digest("a")) is None


def test_a_disk_that_took_only_a_part_has_nothing_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = FileCheckpoints(tmp_path)
    kept.save("grounding", digest("other"), b"")

    def full(place: int, content: bytes) -> int:
        raise OSError(errno.ENOSPC, "no room")

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        kept.save("grounding", digest("a"), b"result")
    assert len(files(tmp_path)) == 1
    kept.save("grounding", digest("a"), b"result")
    assert kept.load("grounding", digest("a")) == b"result"


@pytest.mark.parametrize("name", ["../../etc/passwd", "", "A" * 64])
def test_only_digests_become_names(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="64 hex"):
        FileCheckpoints(tmp_path).save("grounding", name, b"")
