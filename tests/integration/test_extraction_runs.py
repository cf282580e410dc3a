"""Extraction over real processes: equal bytes everywhere, one run for many, and a kill costs only what was open."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sameas.extraction.events.journal import read_journal
from sameas.extraction.runs.metadata import RunMetadata
from tests.unit.extraction.runs.desk import (
    DISTINCT,
    SMALL,
    CountingExtractor,
    extract,
    make_service,
    same_files,
)

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).resolve().parents[2]
LEASE = 0.6

WORKER = """
import asyncio, json, os, signal, sys, time
from pathlib import Path
from msgspec.structs import replace
from sameas.extraction.runs.attempt import RunAttempt
from sameas.extraction.runs.folder import RunFolder
from tests.unit.extraction.runs.desk import DISTINCT, SMALL, CountingExtractor, extract, make_service

home, point, pause, concurrency, lease = sys.argv[1:]
extractor = CountingExtractor()

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def before(chunk):
    with open(f"{home}/asked-{os.getpid()}", "a") as asked:
        asked.write(f"{chunk.index}\\n")
    time.sleep(float(pause))
    while point.startswith("until ") and len(list(Path(home).glob("came-*"))) < int(point.split()[1]):
        time.sleep(0.01)
    if point.startswith("chunk ") and chunk.index == int(point.split()[1]):
        die()

extractor.before = before

def dying(owner, name):
    method = getattr(owner, name)
    def wrapped(self, *arguments, **named):
        answer = method(self, *arguments, **named)
        die()
        return answer
    setattr(owner, name, wrapped)

if point == "after artefacts":
    dying(RunFolder, "write_artefacts")
if point == "after metadata":
    dying(RunAttempt, "finish")

events = []
Path(home, f"came-{os.getpid()}").touch()
done = asyncio.run(extract(
    make_service(Path(home), lease=float(lease)), extractor, DISTINCT, on_event=events.append,
    settings=replace(SMALL, concurrency=int(concurrency)),
))
print(json.dumps({
    "replayed": done.replayed, "shared": done.shared, "digest": done.metadata.digest(),
    "folder": str(done.folder), "events": [event.sequence_number for event in events],
    "chunks": done.metadata.chunks,
}))
"""


def start(
    home: Path,
    *,
    point: str = "",
    pause: float = 0,
    concurrency: int = 1,
    seed: str = "0",
    lease: float = 30.0,
) -> subprocess.Popen:
    home.mkdir(parents=True, exist_ok=True)
    arguments = [str(home), point, str(pause), str(concurrency), str(lease)]
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": seed, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        text=True,
    )


def asked(home: Path) -> list[int]:
    return [int(line) for path in home.glob("asked-*") for line in path.read_text().split()]


def test_results_are_byte_equal_over_hash_seeds_and_concurrency(tmp_path: Path) -> None:
    digests = set()
    for seed, concurrency in (("0", 1), ("0", 8), ("1", 8), ("4242", 1)):
        worker = start(tmp_path / f"{seed}-{concurrency}", concurrency=concurrency, seed=seed)
        folder = Path(json.loads(worker.communicate()[0])["folder"])
        names = ("entities.json", "relations.json", "graph.ttl", "rejected.json")
        assert len(json.loads((folder / "relations.json").read_bytes())) > 40
        digests.add(tuple(hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names))
    assert len(digests) == 1


def test_two_processes_at_once_make_one_run(tmp_path: Path) -> None:
    # Loading takes the others longer than the whole run, on a machine that has much to do.
    first = start(tmp_path, point="until 3", pause=0.03)
    while not asked(tmp_path) and first.poll() is None:
        time.sleep(0.01)
    others = [start(tmp_path) for _ in range(2)]
    leader, *answers = [json.loads(worker.communicate()[0]) for worker in (first, *others)]
    assert not leader["replayed"]
    assert sorted(asked(tmp_path)) == list(range(leader["chunks"]))
    for answer in answers:
        assert (answer["replayed"], answer["shared"], answer["digest"]) == (True, True, leader["digest"])
        # The run's own events, from its first, and then the hit, which has no number.
        assert answer["events"] == [*leader["events"], None]


async def test_after_kill_9_the_next_run_goes_on_from_the_checkpoints(tmp_path: Path) -> None:
    worker = start(tmp_path, point="chunk 17", lease=LEASE)
    worker.communicate()
    assert worker.returncode == -signal.SIGKILL
    (folder,) = (tmp_path / "runs").glob("sha256-*")
    left = RunMetadata.from_json((folder / "metadata.json").read_bytes())
    assert left.status == "running"
    before = list(read_journal(folder / "events.jsonl"))
    with (folder / "events.jsonl").open("ab") as journal:
        journal.write(b'{"type":"chunk_sta')

    extractor = CountingExtractor()
    done = await extract(make_service(tmp_path, lease=LEASE), extractor, DISTINCT, settings=SMALL)
    assert (done.metadata.status, done.metadata.attempt, done.replayed) == ("complete", 2, False)
    assert len(extractor.asked) == done.metadata.chunks - 17
    events = list(read_journal(folder / "events.jsonl"))
    assert events[: len(before)] == before
    assert [event.sequence_number for event in events] == list(range(1, len(events) + 1))
    assert done.metadata.first_event == len(before) + 1
    fresh = await extract(make_service(tmp_path / "fresh"), CountingExtractor(), DISTINCT, settings=SMALL)
    assert same_files(fresh.folder, done.folder)


async def test_killed_before_the_result_was_listed_it_is_put_together_again(tmp_path: Path) -> None:
    worker = start(tmp_path, point="after artefacts", lease=LEASE)
    worker.communicate()
    assert worker.returncode == -signal.SIGKILL
    extractor = CountingExtractor()
    done = await extract(make_service(tmp_path, lease=LEASE), extractor, DISTINCT, settings=SMALL)
    assert (done.replayed, extractor.asked) == (False, [])
    assert done.metadata.chunks_from_checkpoints == 2 * done.metadata.chunks


async def test_killed_before_the_record_was_completed_the_result_is_adopted(tmp_path: Path) -> None:
    worker = start(tmp_path, point="after metadata", lease=LEASE)
    worker.communicate()
    assert worker.returncode == -signal.SIGKILL
    (folder,) = (tmp_path / "runs").glob("sha256-*")
    left = RunMetadata.from_json((folder / "metadata.json").read_bytes())
    assert left.status == "complete"
    service, extractor = make_service(tmp_path, lease=LEASE), CountingExtractor()
    done = await extract(service, extractor, DISTINCT, settings=SMALL)
    assert (done.replayed, done.metadata, extractor.asked) == (True, left, [])
    assert (await extract(service, extractor, DISTINCT, settings=SMALL)).metadata == left
