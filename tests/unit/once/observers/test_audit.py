"""The audit trail, as a list and as a file that several processes write."""

import asyncio
import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from threading import Thread

import pytest

from sameas.identity.key import record_digest
from sameas.once.errors import StoredFailure
from sameas.once.observe import Settled
from sameas.once.observers.audit import AuditEntry, AuditObserver, JsonLinesSink, acting
from sameas.once.policy import Policy
from sameas.once.record import LOST, Accepted, Identity, Lease
from sameas.once.store import AsyncStore
from sameas.stores.memory import MemoryBackend
from tests.unit.once.observers.drives import AsyncDrive, Clock, shared_by_two, steal

NOW = datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)


def digest(key, tenant=""):
    return record_digest(tenant, "charge", key).hex()


class Trail:
    """A sink in memory."""

    def __init__(self) -> None:
        self.entries: list[AuditEntry] = []
        self.observer = AuditObserver(self, clock=lambda: NOW)

    def write(self, entry: AuditEntry) -> None:
        self.entries.append(entry)

    @property
    def events(self) -> list[str]:
        return [entry.event for entry in self.entries]


def test_work_is_claimed_and_completed_and_then_replayed(drive_type) -> None:
    trail = Trail()
    drive = drive_type(trail.observer)
    for _ in range(2):
        drive.run(lambda ctx: "done", scope="charge", key="order-1", tenant="acme")
    (record,) = drive.backend._records.values()
    ordered = digest("order-1", tenant="acme")
    assert trail.events == ["claimed", "completed", "replayed"]
    for entry in trail.entries:
        assert (entry.time, entry.tenant, entry.scope, entry.record) == (NOW, "acme", "charge", ordered)
        assert (entry.attempt, entry.fence) == (1, record.fence)
        assert (entry.actor, entry.reason) == (None, None)


def test_those_who_share_are_in_the_trail(drive_type) -> None:
    trail = Trail()
    shared_by_two(drive_type(trail.observer), scope="charge", key="order-1")
    assert sorted(trail.events) == ["claimed", "completed", "replayed"]
    assert len({entry.fence for entry in trail.entries}) == 1


def test_a_batch_is_in_the_trail(drive_type) -> None:
    trail = Trail()
    drive = drive_type(trail.observer)
    drive.run(lambda ctx: "done", scope="charge", key="a", payload=1)
    trail.entries.clear()
    drive.run_many(lambda ctx, payload: payload, [1, 1], keys=["a", "b"], scope="charge")
    assert sorted((entry.event, entry.record) for entry in trail.entries) == [
        ("claimed", digest("b")),
        ("completed", digest("b")),
        ("replayed", digest("a")),
    ]
    assert all(entry.fence for entry in trail.entries)


def test_work_that_fails_is_released(drive_type) -> None:
    def work(ctx):
        raise ValueError("declined")

    trail = Trail()
    with pytest.raises(ValueError):
        drive_type(trail.observer).run(work, scope="charge", key="order-1")
    assert trail.events == ["claimed", "released"]
    assert trail.entries[1].fence == trail.entries[0].fence


def test_a_failure_that_is_kept_is_failed_and_then_replayed(drive_type) -> None:
    def work(ctx):
        raise ValueError("declined")

    trail = Trail()
    drive = drive_type(trail.observer, policy=Policy(keep_errors=(ValueError,)))
    for kind in (ValueError, StoredFailure):
        with pytest.raises(kind):
            drive.run(work, scope="charge", key="order-1")
    assert trail.events == ["claimed", "failed", "replayed"]
    assert {(entry.attempt, entry.fence) for entry in trail.entries} == {(1, trail.entries[0].fence)}


def test_what_a_replaced_worker_hands_in_is_lost(drive_type) -> None:
    clock = Clock()
    trail = Trail()
    drive = drive_type(trail.observer, backend=MemoryBackend(clock))

    def work(ctx):
        steal(drive.backend, clock, ctx.identity, lease_for=30)
        return "mine"

    assert drive.run(work, scope="charge", key="order-1", lease=30) == "theirs"
    claimed, lost, replayed = trail.entries
    assert (lost.event, lost.operation, lost.fence, lost.attempt) == ("lost", "complete", claimed.fence, 1)
    # Its caller got the successor's result, whose fence this process was never told.
    assert (replayed.event, replayed.attempt, replayed.fence) == ("replayed", 2, None)


def test_renewals_are_not_in_the_trail() -> None:
    trail = Trail()
    identity = Identity(b"digest", "acme", "charge", "order-1")
    for answer in (Accepted(1, 2), LOST):
        trail.observer.on(Settled("renew", identity, answer, 0.001))
    assert not trail.entries


def test_what_people_forget_is_written_with_who_and_why(drive_type) -> None:
    trail = Trail()
    drive = drive_type(trail.observer)
    for key in ("a", "b"):
        drive.run(lambda ctx: "done", scope="charge", key=key, tenant="acme", tags=["wrong"])
    trail.entries.clear()
    with acting("operator-7", "wrong price list"):
        assert drive.forget("charge", "a", tenant="acme")
        assert not drive.forget("charge", "a", tenant="acme")
        assert drive.forget_where(tag="wrong") == 1
        assert drive.forget_where(tag="wrong") == 0
    one, many = trail.entries
    assert (one.event, one.tenant, one.scope) == ("forgotten", "acme", "charge")
    assert one.record == digest("a", tenant="acme")
    assert (many.event, many.tag, many.count, many.record) == ("forgotten", "wrong", 1, None)
    assert {(entry.actor, entry.reason) for entry in trail.entries} == {("operator-7", "wrong price list")}


def test_a_claim_that_people_release_is_written_with_who_and_why(drive_type) -> None:
    trail = Trail()
    drive = drive_type(trail.observer)

    def work(ctx):
        (record,) = drive.backend._records.values()
        lease = Lease(record.identity, record.fence, record.attempt_id)
        with acting("operator-7", "stuck"):
            if isinstance(drive, AsyncDrive):
                return release(lease)
            drive.engine.store.release(lease)
        return "done"

    async def release(lease):
        with acting("operator-7", "stuck"):
            store: AsyncStore = drive.engine.store
            await store.release(lease)
        return "done"

    with pytest.raises(Exception, match="lost its lease"):
        drive.run(work, scope="charge", key="order-1")
    released = next(entry for entry in trail.entries if entry.event == "released")
    assert (released.actor, released.reason) == ("operator-7", "stuck")
    assert trail.entries[-1].actor is None


def test_pruning_is_written_with_its_count(drive_type) -> None:
    clock = Clock()
    trail = Trail()
    drive = drive_type(trail.observer, backend=MemoryBackend(clock))
    for key in ("a", "b"):
        drive.run(lambda ctx: "done", scope="charge", key=key, retention=60)
    trail.entries.clear()
    clock.forward(61)
    drive.prune()
    drive.prune()
    assert [(entry.event, entry.count) for entry in trail.entries] == [("pruned", 2)]


def test_acting_ends_with_its_block_and_may_be_nested() -> None:
    trail = Trail()
    drive = AsyncDrive(trail.observer)

    def forget_new(key: str) -> None:
        drive.run(lambda ctx: "done", scope="charge", key=key)
        drive.forget("charge", key)

    with acting("outer"):
        with acting("inner", "because"):
            forget_new("a")
        forget_new("b")
    forget_new("c")
    forgotten = [(e.record, e.actor, e.reason) for e in trail.entries if e.event == "forgotten"]
    assert forgotten == [(digest("a"), "inner", "because"), (digest("b"), "outer", None), (digest("c"), None, None)]


def test_acting_without_a_name_is_refused() -> None:
    with pytest.raises(ValueError, match="who"), acting(""):
        pass


def test_payload_and_result_are_not_in_the_file(drive_type, tmp_path) -> None:
    path = tmp_path / "audit.jsonl"
    with JsonLinesSink(path) as sink:
        drive = drive_type(AuditObserver(sink))
        drive.run(lambda ctx: {"iban": "DE89"}, scope="charge", key="order\n1", payload={"pin": "hunter2"})
    lines = path.read_text().splitlines()
    assert [json.loads(line)["event"] for line in lines] == ["claimed", "completed"]
    first = json.loads(lines[0])
    assert set(first) == {"time", "event", "tenant", "scope", "record", "attempt", "fence"}
    assert first["record"] == digest("order\n1")
    assert datetime.fromisoformat(first["time"]).tzinfo is not None
    assert "DE89" not in path.read_text()
    assert "hunter2" not in path.read_text()


def test_lines_are_only_ever_added(tmp_path) -> None:
    path = tmp_path / "audit.jsonl"
    for number in range(3):
        with JsonLinesSink(path, fsync=True) as sink:
            sink.write(AuditEntry(time=NOW, event="pruned", count=number))
    assert [json.loads(line)["count"] for line in path.read_text().splitlines()] == [0, 1, 2]
    assert path.stat().st_mode & 0o077 == 0


def test_a_closed_file_is_refused_and_does_not_write_elsewhere(tmp_path) -> None:
    sink = JsonLinesSink(tmp_path / "audit.jsonl")
    sink.close()
    sink.close()
    with pytest.raises(ValueError, match="was closed"):
        sink.write(AuditEntry(time=NOW, event="pruned", count=1))


def test_a_torn_line_does_not_spoil_the_next(tmp_path, monkeypatch) -> None:
    path = tmp_path / "audit.jsonl"
    real = os.write
    with JsonLinesSink(path) as sink:
        with monkeypatch.context() as full:
            full.setattr(os, "write", lambda file, line: real(file, line[:10]))
            with pytest.raises(OSError, match="disk full"):
                sink.write(AuditEntry(time=NOW, event="pruned", count=1))
        sink.write(AuditEntry(time=NOW, event="pruned", count=2))
        sink.write(AuditEntry(time=NOW, event="pruned", count=3))
    whole = path.read_text().splitlines()[1:]
    assert [json.loads(line)["count"] for line in whole] == [2, 3]


def test_lines_of_threads_and_processes_are_whole(tmp_path) -> None:
    path = tmp_path / "audit.jsonl"
    code = """
import sys
from datetime import UTC, datetime
from sameas.once.observers.audit import AuditEntry, JsonLinesSink
with JsonLinesSink(sys.argv[1]) as sink:
    for number in range(300):
        sink.write(AuditEntry(time=datetime.now(UTC), event="claimed", record=sys.argv[2] * 3000, fence=number))
"""
    others = [subprocess.Popen([sys.executable, "-c", code, str(path), letter]) for letter in "xy"]
    with JsonLinesSink(path) as sink:

        def write(letter: str) -> None:
            for number in range(300):
                sink.write(AuditEntry(time=NOW, event="claimed", record=letter * 3000, fence=number))

        threads = [Thread(target=write, args=(letter,)) for letter in "ab"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [other.wait(60) for other in others] == [0, 0]
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    found: dict[str, list[int]] = {}
    for entry in entries:
        assert set(entry["record"]) == {entry["record"][0]}
        found.setdefault(entry["record"][0], []).append(entry["fence"])
    assert found == {letter: list(range(300)) for letter in "abxy"}


def test_a_sink_that_fails_breaks_no_call(drive_type, caplog) -> None:
    class Full:
        def write(self, entry: AuditEntry) -> None:
            raise OSError("No space left on device")

    drive = drive_type(AuditObserver(Full()))
    assert drive.run(lambda ctx: "done", scope="charge", key="order-1") == "done"
    assert "No space left" in caplog.text


def test_acting_follows_into_tasks() -> None:
    trail = Trail()
    drive = AsyncDrive(trail.observer)

    async def forget() -> None:
        await drive.engine.run(lambda ctx: "done", scope="charge", key="a")
        with acting("operator-7"):
            task = asyncio.create_task(drive.engine.forget("charge", "a"))
        await task

    asyncio.run(forget())
    assert trail.entries[-1].actor == "operator-7"
