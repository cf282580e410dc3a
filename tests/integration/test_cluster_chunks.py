"""A long document whose chunks are done by several workers: real processes, a scripted model that counts its calls."""

import threading
from collections import Counter
from contextlib import ExitStack

import psutil
import psycopg
import pytest

from sameas import Engine, open_store
from sameas.extraction.runs.help import SCOPE as PARTS
from sameas.extraction.runs.record import SCOPE as RUNS
from sameas.objects import open_objects
from sameas.once.record import State
from sameas.once.store import Query
from tests.integration.model_path import ORACLE, sentence
from tests.integration.test_cluster import WITHIN, accepted, until
from tests.servers.model_script import held
from tests.servers.program import program_or_skip
from tests.storm.cluster_storm import Machines, marker

# One thing at a time, so that the second worker alone is free to help.
_ONE_EACH = {"SAMEAS_MAX_RUNS": "1", "SAMEAS_CONCURRENCY": "2", "SAMEAS_CHUNKS_PER_TASK": "6"}
CHUNKS = 12


@pytest.fixture(scope="module")
def machines():
    with ExitStack() as stack:
        stack.enter_context(program_or_skip())
        yield Machines(stack, workers=2, broker="rabbitmq", settings=_ONE_EACH)


def owner_of(machines, key):
    """The worker that works on a run."""
    with Engine(open_store(machines.redis.url)) as engine:
        record = engine.read(RUNS, key, tenant="", namespace="content")
    if record is None or record.state is not State.HELD:
        return None
    pid = int(record.about.owner.rpartition(":")[2])
    return next(
        (one for one in machines.workers if pid in {each.pid for each in _tree(one.pid)}),
        None,
    )


def _tree(pid):
    first = psutil.Process(pid)
    return [first, *first.children(recursive=True)]


def parts_of(machines):
    with Engine(open_store(machines.redis.url)) as engine:
        return {one.identity.key: one.state for one in engine.store.find(Query(scope=PARTS)).records}


def person(call):
    return int(marker(call)[1])


def paragraphs(first):
    """A document of which no other test has a chunk."""
    return "\n\n".join(map(sentence, range(first, first + CHUNKS)))


def counted(machines, before):
    return Counter(map(marker, machines.model.calls[before:]))


def metadata_of(machines, key):
    run = machines.nodes[1].ask("GET", f"/api/v1/runs/{key}")[1]
    return run if run.get("status") == "complete" else None


def test_chunks_of_one_document_are_done_by_two_workers_and_each_call_is_made_once(machines, monkeypatch):
    gate = threading.Event()
    # The run itself does not get beyond its own half before the helper has done the other.
    machines.model.rescript(lambda call: held(gate, ORACLE(call)) if person(call) < CHUNKS // 2 else ORACLE(call))
    before = len(machines.model.calls)
    key = accepted(machines.nodes[0], paragraphs(0))
    until(lambda: parts_of(machines).get(f"{key}:1/2") == "done")
    gate.set()
    run = until(lambda: metadata_of(machines, key))
    calls = counted(machines, before)
    assert len(calls) == 2 * CHUNKS
    assert set(calls.values()) == {1}
    # Half of what both stages keep was there when the run came to it.
    assert (run["chunks"], run["chunksFromCheckpoints"]) == (CHUNKS, CHUNKS)
    # What the helper spent is counted as the run's.
    assert sum(row["calls"] for row in run["usage"]) == 2 * CHUNKS
    assert run["entityCount"] == 2 * CHUNKS
    assert not [name for name in objects_of(machines, key, monkeypatch) if "helpers" in name]


def test_a_helper_that_is_killed_costs_nothing_but_what_it_had_in_flight(machines):
    gate = threading.Event()
    answered = []

    def mostly(call):
        # The helper comes from the end: its first two calls are answered, and all others wait.
        if person(call) >= 20 + CHUNKS // 2 and len(answered) < 2:
            answered.append(marker(call))
            return ORACLE(call)
        return held(gate, ORACLE(call))

    machines.model.rescript(mostly)
    before = len(machines.model.calls)
    key = accepted(machines.nodes[0], paragraphs(20))
    until(lambda: len(answered) == 2 and any(one not in answered for one in _second_half(machines, before)))
    owner = until(lambda: owner_of(machines, key))
    (helper,) = [one for one in machines.workers if one is not owner]
    in_flight = set(_second_half(machines, before)) - set(answered)
    helper.kill()
    gate.set()
    machines.model.rescript(ORACLE)
    run = until(lambda: metadata_of(machines, key), within=2 * WITHIN)
    calls = counted(machines, before)
    assert run["entityCount"] == 2 * CHUNKS
    assert len(calls) == 2 * CHUNKS
    assert {one for one, count in calls.items() if count > 1} <= in_flight
    assert all(calls[one] == 1 for one in answered)
    helper.start()


def _second_half(machines, before):
    return [marker(call) for call in machines.model.calls[before:] if person(call) >= 20 + CHUNKS // 2]


def test_who_helps_a_run_that_is_deleted_leaves_nothing_of_it(machines, monkeypatch):
    gate = threading.Event()
    machines.model.rescript(lambda call: held(gate, ORACLE(call)))
    before = len(machines.model.calls)
    key = accepted(machines.nodes[0], paragraphs(40))
    until(lambda: parts_of(machines).get(f"{key}:1/2") == "held")
    machines.model.wait_for_calls(before + 3, within_seconds=WITHIN)
    assert machines.nodes[1].ask("DELETE", f"/api/v1/runs/{key}")[0] == 204
    gate.set()
    until(lambda: parts_of(machines).get(f"{key}:1/2") != "held")
    until(lambda: not _uses(machines, key))
    until(lambda: not objects_of(machines, key, monkeypatch))


def _uses(machines, key):
    with psycopg.connect(machines.postgres.url.replace("+psycopg", "")) as connection:
        return connection.execute("SELECT 1 FROM extraction_uses WHERE idempotency_key = %s", (key,)).fetchall()


def objects_of(machines, key, monkeypatch):
    for name, value in machines.s3.credentials.items():
        monkeypatch.setenv(name, value)
    return [one.name for one in open_objects(machines.s3.url).list("") if key in one.name]
