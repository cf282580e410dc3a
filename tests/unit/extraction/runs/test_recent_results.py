"""A result that was read is given again while its files are as they were, and never after they changed."""

import os
import time
from pathlib import Path
from typing import Any

import pytest

from sameas.extraction.runs.caches import RecentResults
from sameas.extraction.runs.folder import RunDamagedError, RunFolder
from sameas.extraction.runs.record import RunSummary

from .desk import CountingExtractor, extract, make_service

pytestmark = pytest.mark.anyio


def later() -> int:
    """A clock that is a second ahead, so that what was just written has been there for a while."""
    return time.time_ns() + 1_000_000_000


async def finished(home: Path, **options: Any) -> tuple[RunFolder, str]:
    done = await extract(make_service(home), CountingExtractor(), **options)
    return RunFolder(done.folder.parent, done.key.key), RunSummary.of(done.metadata).digest


async def test_what_was_read_is_given_again_and_is_the_same_object(tmp_path: Path) -> None:
    folder, digest = await finished(tmp_path)
    recent = RecentResults(now_ns=later)
    assert recent.find(folder, digest=digest) is None
    read = recent.read(folder, digest=digest)
    assert read.graph.entities
    assert recent.find(folder, digest=digest) is read


@pytest.mark.parametrize("name", ["entities.json", "relations.json", "rejected.json", "graph.ttl", "metadata.json"])
async def test_a_file_that_changed_by_one_byte_is_read_again(name: str, tmp_path: Path) -> None:
    folder, digest = await finished(tmp_path)
    recent = RecentResults(now_ns=later)
    recent.read(folder, digest=digest)
    path = folder.path / name
    before, about = path.read_bytes(), path.stat()
    path.write_bytes(before[:-1] + b"?")
    # Whoever changes a file can put its time back, but not the time of that.
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))
    assert recent.find(folder, digest=digest) is None
    with pytest.raises(RunDamagedError):
        recent.read(folder, digest=digest)


async def test_a_missing_file_is_no_result(tmp_path: Path) -> None:
    folder, digest = await finished(tmp_path)
    recent = RecentResults(now_ns=later)
    recent.read(folder, digest=digest)
    (folder.path / "relations.json").unlink()
    assert recent.find(folder, digest=digest) is None


async def test_a_result_that_the_record_does_not_accept_is_not_given(tmp_path: Path) -> None:
    folder, digest = await finished(tmp_path)
    recent = RecentResults(now_ns=later)
    recent.read(folder, digest=digest)
    assert recent.find(folder, digest="0" * 64) is None


async def test_what_was_written_a_moment_ago_is_not_kept(tmp_path: Path) -> None:
    folder, digest = await finished(tmp_path)
    written = max(path.stat().st_ctime_ns for path in folder.path.iterdir())
    recent = RecentResults(now_ns=lambda: written)
    recent.read(folder, digest=digest)
    assert recent.find(folder, digest=digest) is None


async def test_beyond_its_bytes_the_least_recently_used_goes(tmp_path: Path) -> None:
    runs = [await finished(tmp_path, base=f"urn:number-{number}:") for number in range(3)]
    one = sum(file.size for name, file in runs[0][0].metadata().files.items() if name != "events.jsonl")
    recent = RecentResults(max_bytes=2 * one, now_ns=later)
    (first, known), (second, also), (third, too) = runs
    recent.read(first, digest=known)
    recent.read(second, digest=also)
    assert recent.find(first, digest=known) is not None
    recent.read(third, digest=too)
    assert recent.find(second, digest=also) is None
    assert recent.find(first, digest=known) is not None
    assert recent.find(third, digest=too) is not None


async def test_a_result_larger_than_the_bound_is_read_each_time(tmp_path: Path) -> None:
    folder, digest = await finished(tmp_path)
    recent = RecentResults(max_bytes=10, now_ns=later)
    assert recent.read(folder, digest=digest).graph.entities
    assert recent.find(folder, digest=digest) is None
