"""Faults: after each of them `check` finds nothing wrong, and a rerun does only what is missing."""

import os
import random
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bench.collections.holding import found, new_collection, put
from bench.collections.judging import partition
from sameas.collections import Collections, local_caller, open_tables
from sameas.connections import open_store
from sameas.once.errors import StoreError
from sameas.once.record import Lease, State
from sameas.once.store import Query
from tests.integration.collection_process import documents

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"}
STORY = ROOT / "src" / "sameas" / "example" / "company.ttl"


def _same_as_from_scratch(collection, folder):
    present = {one.names[0].name: one.digest for one in collection.documents(limit=500)}
    from sameas.collections import text_digest

    folder.mkdir()
    scratch = new_collection(folder)
    for one in documents():
        for version in range(3):
            if present.get(one.name) == text_digest(f"{one.name} {version}"):
                put(scratch, one, version=version)
    assert partition(found(collection)) == partition(found(scratch))


def test_kill_9_at_random_leaves_the_collection_as_before_or_after(tmp_path):
    collection = new_collection(tmp_path)
    draw, changes = random.Random(1), 0
    while changes < 200:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.integration.collection_process", str(tmp_path)],
            stdout=subprocess.PIPE,
            env=ENVIRONMENT,
            cwd=ROOT,
            text=True,
        )
        assert process.stdout.readline() == "ready\n"
        for _ in range(draw.randint(1, 25)):
            changes += bool(process.stdout.readline())
        process.kill()
        process.communicate()
        assert collection.check() == []
    _same_as_from_scratch(collection, tmp_path / "scratch")


def _erase_in_a_process(folder, named, statements):
    command = [sys.executable, "-m", "tests.integration.collection_process", str(folder), named, str(statements)]
    return subprocess.run(command, env=ENVIRONMENT, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)


def _contents(collection):
    return sorted(map(repr, collection.statements())), sorted(one.name for one in collection.entities(limit=500))


def test_kill_9_while_a_thing_is_erased_leaves_the_collection_as_before_or_after(tmp_path):
    whole = tmp_path / "whole"
    whole.mkdir()
    collection = new_collection(whole)
    for one in documents():
        put(collection, one)
    before = _contents(collection)
    named = next(one.name for one in collection.entities(limit=500) if one.documents > 3)
    collection.database.truncate_log()
    collection.database.close()
    copies = [shutil.copytree(whole, tmp_path / str(number)) for number in range(9)]
    done = _erase_in_a_process(whole, named, -1)
    assert done.returncode == 0, done.stderr
    total = int(done.stdout)
    after = _contents(_opened(whole))
    assert named not in after[1]
    assert before != after
    # From the first statement of the erasure to the last before its commit.
    for number, folder in enumerate(copies):
        killed = _erase_in_a_process(folder, named, number * (total - 1) // (len(copies) - 1))
        assert killed.returncode == -signal.SIGKILL
        left = _opened(folder)
        assert left.check() == []
        assert _contents(left) == before
        left.database.close()
        # It can be done again, to the same end.
        assert _erase_in_a_process(folder, named, -1).returncode == 0
        left = _opened(folder)
        assert _contents(left) == after
        assert left.check() == []
        left.database.close()
        text = b"".join(file.read_bytes() for file in folder.iterdir())
        assert named.encode() not in text


def _opened(folder):
    tables = open_tables(f"sqlite:///{folder / 'collections.db'}")
    return Collections(tables).open("bench", caller=local_caller())


def test_runs_are_gone_before_what_names_them_is(tmp_path):
    collection = new_collection(tmp_path)
    for one in documents():
        put(collection, one)
    named = next(one.name for one in collection.entities(limit=500) if one.documents > 3)

    def fail(erased):
        assert erased.documents > 3
        raise OSError("a run cannot be deleted")

    before = _contents(collection)
    with pytest.raises(OSError, match="cannot be deleted"):
        collection.erase(named, before=fail)
    assert _contents(collection) == before


def test_a_full_disk_changes_nothing_and_what_is_missing_is_done_later(tmp_path):
    collection = new_collection(tmp_path)
    written = documents()
    put(collection, written[0])
    before = collection.info()
    # As on a full disk: no file of this process may grow any more.
    size = max(file.stat().st_size for file in tmp_path.iterdir())
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, old[1]))
    try:
        with pytest.raises(StoreError):
            for one in written[1:]:
                put(collection, one)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
        signal.signal(signal.SIGXFSZ, ignored)
    assert collection.check() == []
    assert collection.info().documents >= before.documents
    for one in written:
        put(collection, one)
    assert collection.check() == []
    _same_as_from_scratch(collection, tmp_path / "scratch")


def _sameas(home, *arguments):
    return [sys.executable, "-m", "sameas", *arguments], {**ENVIRONMENT, "SAMEAS_HOME": str(home)}


def _end_leases(home):
    """What the killed process held is free at once, as it would be when its lease is over."""
    with open_store(f"sqlite:///{home / 'sameas.db'}") as store:
        for record in store.find(Query(state=State.HELD)).records:
            store.release(Lease(record.identity, record.fence, record.attempt_id))


def test_two_processes_that_sync_one_collection_do_the_work_once(tmp_path):
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    for number in range(6):
        (inbox / f"{number}.txt").write_text(f"Anna{number} Stone works for Acme{number} Ltd.")
    command, environment = _sameas(tmp_path, "collection", "create", "press", "-o", str(STORY))
    subprocess.run(command, env=environment, check=True, capture_output=True)
    command, environment = _sameas(tmp_path, "sync", "press", str(inbox), "--extractor", "lexicon", "--json", "-q")
    both = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) for _ in range(2)]
    import json

    told = [json.loads(process.communicate(timeout=60)[0])["summary"] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert sorted((one["added"], one["unchanged"]) for one in told) == [(0, 6), (6, 0)]
    command, environment = _sameas(tmp_path, "collection", "check", "press")
    assert subprocess.run(command, env=environment, check=False).returncode == 0


def test_a_killed_sync_is_taken_up_and_only_what_is_missing_is_done(tmp_path):
    import json

    inbox = tmp_path / "inbox"
    inbox.mkdir()
    for number in range(12):
        (inbox / f"{number:02}.txt").write_text(f"Anna{number} Stone works for Acme{number} Ltd.")
    command, environment = _sameas(tmp_path, "collection", "create", "press", "-o", str(STORY))
    subprocess.run(command, env=environment, check=True, capture_output=True)
    command, environment = _sameas(
        tmp_path, "add", "press", *map(str, sorted(inbox.iterdir())), "--extractor", "lexicon"
    )
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    for _ in range(3):
        process.stderr.readline()
    process.kill()
    process.communicate()
    command, environment = _sameas(tmp_path, "collection", "check", "press")
    assert subprocess.run(command, env=environment, check=False).returncode == 0
    _end_leases(tmp_path)
    command, environment = _sameas(
        tmp_path, "add", "press", *map(str, sorted(inbox.iterdir())), "--extractor", "lexicon", "--json", "-q"
    )
    told = json.loads(subprocess.run(command, env=environment, check=True, capture_output=True).stdout)
    assert told["summary"]["added"] < 12
    assert told["collection"]["documents"] == 12


def test_postgres_gives_the_same_and_a_server_that_goes_away_changes_nothing(tmp_path, postgres_url, postgres_server):
    written = documents()
    (tmp_path / "sqlite").mkdir()
    one, other = new_collection(tmp_path, url=postgres_url), new_collection(tmp_path / "sqlite")
    for document in written:
        put(one, document)
        put(other, document)
    one.remove_name(written[3].name)
    other.remove_name(written[3].name)
    assert one.check() == []
    assert partition(found(one)) == partition(found(other))
    assert [(pair.probability, pair.a.id, pair.b.id) for pair in one.pairs()] == [
        (pair.probability, pair.a.id, pair.b.id) for pair in other.pairs()
    ]
    assert one.contradictions() == other.contradictions()
    import io

    exports = []
    for collection in (one, other):
        target = io.BytesIO()
        collection.export(target, to="jsonl")
        exports.append([line for line in target.getvalue().splitlines() if b'"statement"' in line])
    assert exports[0] == exports[1]
    a, b = (entity.id for entity in other.entities(limit=2))
    apart = []
    for collection in (one, other):
        collection.decide("different", a, b)
        with collection.reading() as reader:
            apart.append(reader.told_apart)
    assert apart[0] == apart[1] == {a: (b,), b: (a,)}
    before = one.info()
    postgres_server.kill()
    with pytest.raises(StoreError):
        put(one, written[3])
    postgres_server.start()
    assert one.info() == before
    put(one, written[3])
    assert one.check() == []
    one.database.close()
