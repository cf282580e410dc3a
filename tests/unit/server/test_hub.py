"""The hub: exact streams from journals, bounded queues, and nobody slowed by another."""

import asyncio
from contextlib import aclosing, asynccontextmanager

import msgspec
import pytest

from sameas.extraction.events.bus import Backpressure, Bus
from sameas.extraction.events.events import EntityFound, ExtractionCompleted, ExtractionStarted, StageStarted, Summary
from sameas.extraction.events.journal import FileJournal
from sameas.server.streams.hub import Hub, Subscriber
from sameas.server.streams.lines import Tail, line_of_event

pytestmark = pytest.mark.anyio
KEY = "sha256-" + "a" * 64
DONE = Summary(entity_count=0, relation_count=0, duration_ms=1)


class Run:
    """A run whose events a test makes, and whether it has ended."""

    def __init__(self, folder):
        self.path = folder / "events.jsonl"
        self.bus = Bus(KEY, journal=FileJournal(self.path))
        self.standing = "going"
        self.failed = None

    def found(self, count):
        for number in range(count):
            self.bus.emit(EntityFound, entity={"name": str(number)}, confidence=1.0)

    def end(self):
        self.bus.emit(ExtractionCompleted, summary=DONE)
        self.standing = "ended"


@pytest.fixture
def run(tmp_path):
    one = Run(tmp_path)
    yield one
    one.bus.close()


@asynccontextmanager
async def hub_of(run, *, settings=None):
    async def is_alive(space, key):
        return run.standing != "dead"

    hub = Hub(
        standing=lambda space, key, number: "lost" if run.standing == "dead" else run.standing,
        failure=lambda space, key: run.failed,
        is_alive=is_alive,
        settings=settings,
        lease=0.01,
    )
    hub.start()
    try:
        yield hub
    finally:
        await hub.close()


async def listen(hub, run, *, after=0):
    lines = []
    async with aclosing(hub.listen("", KEY, run.path, after=after)) as batches:
        async for batch in batches:
            lines += batch
    return lines


async def test_a_late_listener_gets_the_run_from_its_beginning(run):
    run.bus.emit(ExtractionStarted)
    run.found(3000)
    run.end()
    async with hub_of(run) as hub:
        lines = await listen(hub, run)
    assert [line.number for line in lines] == list(range(1, 3003))
    assert lines[-1].type == "extraction_completed"


async def test_a_listener_that_comes_in_the_middle_gets_past_and_present_without_a_gap_or_repeat(run):
    run.bus.emit(ExtractionStarted)
    run.found(400)
    async with hub_of(run) as hub:
        first = asyncio.create_task(listen(hub, run))
        while not hub.subscribers:
            await asyncio.sleep(0)
        for _ in range(20):
            run.found(10)
            await asyncio.sleep(0.005)
        second = asyncio.create_task(listen(hub, run, after=150))
        for _ in range(20):
            run.found(10)
            await asyncio.sleep(0.005)
        run.end()
        heard = await asyncio.wait_for(asyncio.gather(first, second), 20)
    assert [line.number for line in heard[0]] == list(range(1, 803))
    assert [line.number for line in heard[1]] == list(range(151, 803))


async def test_a_journal_that_was_replaced_goes_on_at_the_same_number(run):
    run.found(5)
    tail = Tail(run.path)
    assert len(tail.read()) == 5
    copy = run.path.with_name("copy")
    copy.write_bytes(run.path.read_bytes())
    copy.replace(run.path)
    run.bus.close()
    successor = FileJournal(run.path)
    successor.append(_event(6))
    successor.close()
    assert [line.number for line in tail.read()] == [6]


async def test_half_a_line_is_not_an_event_yet(run):
    run.found(1)
    tail = Tail(run.path)
    assert len(tail.read()) == 1
    whole = _event(2).to_json() + b"\n"
    with run.path.open("ab") as file:
        file.write(whole[:20])
        file.flush()
        assert tail.read() == []
        file.write(whole[20:])
    assert [line.number for line in tail.read()] == [2]


async def test_every_listener_is_given_the_very_same_bytes(run):
    run.bus.emit(ExtractionStarted)
    async with hub_of(run) as hub:
        listeners = [asyncio.create_task(listen(hub, run)) for _ in range(5)]
        while hub.subscribers < 5:
            await asyncio.sleep(0)
        run.found(10)
        run.end()
        heard = await asyncio.wait_for(asyncio.gather(*listeners), 20)
    for lines in zip(*(one[1:] for one in heard), strict=True):
        assert len({id(line.frame) for line in lines}) == 1


async def test_a_listener_that_falls_behind_misses_discoveries_and_is_told_how_many():
    subscriber = Subscriber(KEY, after=0, settings=Backpressure(queue_size=100))
    started = line_of_event(_stage(1))
    subscriber.offer([line_of_event(_event(number)) for number in range(2, 1002)])
    subscriber.offer([started._replace(number=1002), line_of_event(_completed(1003))])
    subscriber.end()
    lines = [line async for batch in subscriber.batches() for line in batch]
    numbered = [line.number for line in lines if line.number]
    assert numbered == sorted(numbered)
    assert numbered[-2:] == [1002, 1003]
    assert len(numbered) <= 102
    warning = msgspec.json.decode(lines[-2].data)
    assert (warning["type"], warning["dropped"]) == ("backpressure_warning", 1002 - len(numbered))
    assert "sequenceNumber" not in warning


async def test_lifecycle_and_stage_events_are_never_dropped():
    subscriber = Subscriber(KEY, after=0, settings=Backpressure(queue_size=10))
    lines = [line_of_event(_stage(number)) for number in range(1, 51)]
    for line in lines:
        subscriber.offer([line])
        subscriber.offer([line_of_event(_event(line.number))])
    subscriber.end()
    heard = [line async for batch in subscriber.batches() for line in batch]
    assert [line.number for line in heard if line.type == "stage_started"] == list(range(1, 51))


async def test_a_listener_that_never_reads_slows_nobody_and_holds_a_bounded_queue(run):
    settings = Backpressure(queue_size=50)
    run.bus.emit(ExtractionStarted)
    async with hub_of(run, settings=settings) as hub:
        stuck = hub.listen("", KEY, run.path)
        await anext(stuck)
        stalled = asyncio.create_task(anext(stuck))
        while hub.subscribers < 1:
            await asyncio.sleep(0)
        reader = asyncio.create_task(listen(hub, run))
        for _ in range(40):
            run.found(10)
            await asyncio.sleep(0.005)
        run.end()
        heard = await asyncio.wait_for(reader, 20)
        assert heard[-1].type == "extraction_completed"
        # It took one batch and no more; what is kept for it stays within the bound.
        await stalled
        (channel,) = hub._channels.values()
        assert {len(one._queue) for one in channel.subscribers} <= set(range(53))
        await stuck.aclose()


async def test_a_run_that_could_not_begin_ends_its_stream_with_a_failure(run):
    run.path.unlink(missing_ok=True)
    run.standing, run.failed = "ended", "StoreUnavailable: not now"
    async with hub_of(run) as hub:
        (line,) = await asyncio.wait_for(listen(hub, run), 20)
    said = msgspec.json.decode(line.data)
    assert (said["type"], said["error"]["message"]) == ("extraction_failed", "StoreUnavailable: not now")


async def test_a_run_that_nobody_works_on_ends_its_stream_without_a_last_event(run):
    run.bus.emit(ExtractionStarted)
    run.standing = "dead"
    async with hub_of(run) as hub:
        lines = await asyncio.wait_for(listen(hub, run), 20)
    assert [line.type for line in lines] == ["extraction_started"]


async def test_a_stopping_service_ends_every_stream(run):
    run.bus.emit(ExtractionStarted)
    async with hub_of(run) as hub:
        listening = asyncio.create_task(listen(hub, run))
        while not hub.subscribers:
            await asyncio.sleep(0)
        await hub.close()
        assert [line.type for line in await asyncio.wait_for(listening, 20)] == ["extraction_started"]


def _event(number):
    return EntityFound(
        event_id="1", request_id=KEY, timestamp=0, sequence_number=number, progress=0.0, entity={}, confidence=1.0
    )


def _stage(number):
    return StageStarted(
        event_id="1", request_id=KEY, timestamp=0, sequence_number=number, progress=0.0, stage="chunking"
    )


def _completed(number):
    return ExtractionCompleted(
        event_id="1", request_id=KEY, timestamp=0, sequence_number=number, progress=1.0, summary=DONE
    )


async def test_a_damaged_journal_ends_its_own_stream_and_no_other(run, tmp_path):
    run.bus.emit(ExtractionStarted)
    folder = tmp_path / "other"
    folder.mkdir()
    other = Run(folder)
    other.bus.emit(ExtractionStarted)
    async with hub_of(run) as hub:
        whole = asyncio.create_task(listen(hub, other))
        broken = asyncio.create_task(_listen_as(hub, "another", run))
        while hub.subscribers < 2:
            await asyncio.sleep(0)
        with run.path.open("ab") as journal:
            journal.write(b"\x00\x00 no event\n")
        lines = await broken
        assert (lines[-1].type, b"journal_damaged" in lines[-1].data) == ("extraction_failed", True)
        # Whoever comes later is told the same, past events first.
        again = await listen(hub, run)
        assert [line.number for line in again] == [1, 0] or [line.number for line in again] == [0]
        other.end()
        run.standing = "ended"
        assert (await whole)[-1].type == "extraction_completed"
    other.bus.close()


async def _listen_as(hub, space, run):
    return [line async for batch in hub.listen(space, KEY, run.path) for line in batch]


async def test_a_trouble_with_one_run_leaves_the_streams_of_others_alone(run):
    run.bus.emit(ExtractionStarted)
    async with hub_of(run) as hub:
        usual = hub._standing

        def standing(space, key, number):
            if space == "troubled":
                raise OSError("its folder cannot be read")
            return usual(space, key, number)

        hub._standing = standing
        listening = asyncio.create_task(listen(hub, run))
        assert [line.number for line in await _listen_as(hub, "troubled", run)] == [1]
        run.end()
        assert (await listening)[-1].type == "extraction_completed"


async def test_the_count_of_what_was_missed_comes_before_the_last_event(run):
    subscriber = Subscriber(KEY, after=0, settings=Backpressure(queue_size=20))
    run.found(100)
    run.end()
    subscriber.offer(Tail(run.path).read())
    subscriber.end()
    (batch,) = [batch async for batch in subscriber.batches()]
    assert [line.type for line in batch[-2:]] == ["backpressure_warning", "extraction_completed"]


async def test_a_burst_is_no_reason_to_leave_anything_out_for_one_who_reads_at_once(run):
    run.bus.emit(ExtractionStarted)
    async with hub_of(run) as hub:
        listening = asyncio.create_task(listen(hub, run))
        while not hub.subscribers:
            await asyncio.sleep(0)
        # All of it between two looks.
        run.found(3000)
        run.end()
        lines = await listening
    assert [line.number for line in lines] == list(range(1, 3003))
