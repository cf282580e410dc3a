"""Runs are listed, found by a part of their key, removed, repaired and kept within a size."""

import os
import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from sameas.extraction.runs.library import RunAmbiguousError, RunNotFoundError
from sameas.extraction.runs.metadata import RunMetadata
from sameas.extraction.runs.record import SCOPE
from sameas.extraction.runs.service import ExtractionService
from tests.unit.extraction.company import TEXT

from .desk import CountingExtractor, extract, make_service

pytestmark = pytest.mark.anyio


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now

    def pass_hours(self, hours: float) -> None:
        self.now += hours * 3600


def copy_of(folder: Path, key: str) -> None:
    """Another run with the same content under a key of one's choice."""
    other = folder.parent / key
    shutil.copytree(folder, other)
    metadata = RunMetadata.from_json((folder / "metadata.json").read_bytes())
    (other / "metadata.json").write_bytes(replace(metadata, idempotency_key=key).to_json())


async def test_the_newest_run_is_listed_first_and_filters_apply(tmp_path: Path) -> None:
    clock = Clock()
    service, extractor = make_service(tmp_path, clock=clock), CountingExtractor()
    keys = []
    for number in range(3):
        clock.pass_hours(1)
        keys.append((await extract(service, extractor, f"{TEXT} {number}")).key.key)
    clock.pass_hours(1)
    extractor.fails_on = {"Globex"}
    partial = await extract(service, extractor, f"{TEXT} once more")
    runs = service.runs
    assert [run.idempotency_key for run in runs.list()] == [partial.key.key, *reversed(keys)]
    assert [run.idempotency_key for run in runs.list(status="partial")] == [partial.key.key]
    assert [run.idempotency_key for run in runs.list(limit=1)] == [partial.key.key]
    assert len(runs.list(ontology="http://example.org/company")) == 4
    assert runs.list(ontology="http://example.org/other") == []


def test_no_folder_means_no_runs(tmp_path: Path) -> None:
    service = make_service(tmp_path)
    assert service.runs.list() == []
    with pytest.raises(RunNotFoundError):
        service.runs.find("0" * 8)


async def test_a_run_is_found_by_the_start_of_its_key(tmp_path: Path) -> None:
    service = make_service(tmp_path)
    done = await extract(service, CountingExtractor())
    key = done.key.key
    for typed in (key, key.removeprefix("sha256-"), key[:15], key[7:15], key[7:15].upper()):
        assert service.runs.find(typed).key == key
    assert [event.sequence_number for event in service.runs.events(key[7:20], after=3)][0] == 4


async def test_a_start_that_fits_none_or_several_is_told_clearly(tmp_path: Path) -> None:
    service = make_service(tmp_path)
    done = await extract(service, CountingExtractor())
    twins = ["sha256-abcdef01" + digit * 56 for digit in "12"]
    for twin in twins:
        copy_of(done.folder, twin)
    with pytest.raises(RunAmbiguousError, match="type more") as told:
        service.runs.find("abcdef01")
    assert list(told.value.keys) == twins
    assert all(twin in str(told.value) for twin in twins)
    assert service.runs.find("abcdef011").key == twins[0]
    with pytest.raises(RunNotFoundError, match="no run has a key that begins with 'eeeeeeee'"):
        service.runs.find("eeeeeeee")
    for typed in ("abc", "../../..", ""):
        with pytest.raises(ValueError, match="at least 8"):
            service.runs.find(typed)


async def test_a_removed_run_is_done_again(tmp_path: Path) -> None:
    service, extractor = make_service(tmp_path), CountingExtractor()
    done = await extract(service, extractor)
    service.runs.remove(done.key.key)
    assert not done.folder.exists()
    assert not list((tmp_path / "runs" / ".quarantine").iterdir())
    assert await service._engine.read(SCOPE, done.key.key, namespace="content") is None
    with pytest.raises(RunNotFoundError):
        service.runs.remove(done.key.key)
    assert not (await extract(service, extractor)).replayed


async def fill(service: ExtractionService, clock: Clock, count: int) -> list[str]:
    keys = []
    for number in range(count):
        clock.pass_hours(2)
        done = await extract(service, CountingExtractor(), f"{TEXT} {number}")
        service.runs.touch(done.key.key)
        keys.append(done.key.key)
    return keys


def age(service: ExtractionService, keys: list[str], clock: Clock) -> None:
    """Files carry this machine's time; give the folders the test's."""
    for hours, key in enumerate(reversed(keys), 2):
        then = clock.now - hours * 3600
        os.utime(service.runs.at(key).path, (then, then))


async def test_the_least_recently_used_results_go_first(tmp_path: Path) -> None:
    clock = Clock()
    service = make_service(tmp_path, clock=clock)
    keys = await fill(service, clock, 5)
    age(service, keys, clock)
    replay = await extract(service, CountingExtractor(), f"{TEXT} 0")
    assert replay.replayed
    size = service.runs.at(keys[0]).size()
    gone = service.runs.prune(max_bytes=int(size * 3.5))
    assert list(gone) == keys[1:3]
    assert {run.idempotency_key for run in service.runs.list()} == {keys[0], *keys[3:]}
    assert not (await extract(service, CountingExtractor(), f"{TEXT} 1")).replayed


async def test_the_bound_of_a_service_is_kept_by_itself(tmp_path: Path) -> None:
    service = make_service(tmp_path, bounds={"max_bytes": 200_000})
    for number in range(8):
        await extract(service, CountingExtractor(), f"{TEXT} {number}")
    runs = service.runs.list()
    assert 1 <= len(runs) < 8
    assert sum(service.runs.at(run.idempotency_key).size() for run in runs) <= 200_000


async def test_use_is_noted_at_most_once_an_hour(tmp_path: Path) -> None:
    clock = Clock()
    service = make_service(tmp_path, clock=clock)
    (key,) = await fill(service, clock, 1)
    age(service, [key], clock)
    path = service.runs.at(key).path
    await extract(service, CountingExtractor(), f"{TEXT} 0")
    noted = path.stat().st_mtime
    assert noted == clock.now
    clock.pass_hours(0.9)
    await extract(service, CountingExtractor(), f"{TEXT} 0")
    assert path.stat().st_mtime == noted
    clock.pass_hours(0.2)
    await extract(service, CountingExtractor(), f"{TEXT} 0")
    assert path.stat().st_mtime == clock.now


async def test_a_rescan_records_what_its_folder_proves(tmp_path: Path) -> None:
    service, extractor = make_service(tmp_path), CountingExtractor()
    done = await extract(service, extractor)
    await service._engine.forget(SCOPE, done.key.key, namespace="content")
    assert service.runs.rescan().recorded == (done.key.key,)
    assert service.runs.rescan().recorded == ()
    assert (await extract(service, extractor)).replayed


async def test_a_rescan_sets_damage_aside_and_ends_what_nobody_works_on(tmp_path: Path) -> None:
    service, extractor = make_service(tmp_path), CountingExtractor()
    torn = await extract(service, extractor)
    (torn.folder / "graph.ttl").write_bytes(b"")
    left = await extract(service, extractor, f"{TEXT} left")
    running = replace(left.metadata, status="running")
    (left.folder / "metadata.json").write_bytes(running.to_json())
    bare = torn.folder.parent / ("sha256-" + "1" * 64)
    bare.mkdir()
    (bare / "entities.json").write_bytes(b"[]")
    report = service.runs.rescan()
    assert set(report.quarantined) == {torn.key.key, bare.name}
    assert report.ended == (left.key.key,)
    assert service.runs.find(left.key.key).metadata.status == "partial"
    assert service.runs.clear_quarantine() == 2
    again = await extract(service, extractor)
    assert (again.replayed, again.metadata.status) == (False, "complete")


async def test_a_bound_smaller_than_one_result_spares_the_one_just_made(tmp_path: Path) -> None:
    service, extractor = make_service(tmp_path, bounds={"max_bytes": 1}), CountingExtractor()
    first = await extract(service, extractor)
    second = await extract(service, extractor, f"{TEXT} more")
    assert (first.folder.exists(), second.folder.exists()) == (False, True)


async def test_what_was_set_aside_counts_and_goes_with_age(tmp_path: Path) -> None:
    service, extractor = make_service(tmp_path), CountingExtractor()
    torn = await extract(service, extractor)
    (torn.folder / "graph.ttl").unlink()
    again = await extract(service, extractor)
    (aside,) = (tmp_path / "runs" / ".quarantine").iterdir()
    os.utime(aside, (0, 0))
    assert service.runs.prune(max_bytes=int(service.runs.at(again.key.key).size() * 1.2)) == ()
    assert not aside.exists()
    assert again.folder.exists()
