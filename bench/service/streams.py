"""Runs that only tell, written by a process, and many who listen to them over plain sockets."""

import asyncio
import multiprocessing
import re
import time
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from sameas.extraction.events.bus import Bus
from sameas.extraction.events.events import EntityFound, ExtractionCompleted, ExtractionStarted, Summary
from sameas.extraction.events.journal import FileJournal
from sameas.extraction.runs.metadata import ExtractorName, RunMetadata, instant

_PROCESSES = multiprocessing.get_context("spawn")
_TIMESTAMP = re.compile(rb'"timestamp":(\d+)')
_EVERY = 0.05


def key_of(number: int) -> str:
    return f"sha256-{number:064x}"


def begin_runs(home: Path, count: int, first: int) -> None:
    """Folders of runs under way."""
    for number in range(first, first + count):
        folder = home / "runs" / key_of(number)
        folder.mkdir(parents=True)
        _write(folder, number, status="running")
        (folder / "events.jsonl").touch()


def telling(home: Path, count: int, first: int, *, per_second: int, seconds: float):
    """A process in which these runs tell what they find, and end."""
    process = _PROCESSES.Process(target=_tell, args=(home, count, first, per_second, seconds))
    process.start()
    return process


def _tell(home: Path, count: int, first: int, per_second: int, seconds: float) -> None:
    buses = []
    for number in range(first, first + count):
        folder = home / "runs" / key_of(number)
        bus = Bus(key_of(number), journal=FileJournal(folder / "events.jsonl"))
        bus.emit(ExtractionStarted)
        buses.append(bus)
    entity = {
        "id": "anna-stone-0a1b2c3d4e5f6071",
        "name": "Anna Stone",
        "types": ["https://example.org/company#Person"],
    }
    began, told = time.perf_counter(), 0
    while (now := time.perf_counter() - began) < seconds:
        for _ in range(int(now * per_second) - told):
            for bus in buses:
                bus.emit(EntityFound, entity=entity, confidence=0.9)
            told += 1
        time.sleep(_EVERY / 5)
    for number, bus in enumerate(buses, first):
        bus.emit(ExtractionCompleted, summary=Summary(entity_count=told, relation_count=0, duration_ms=1))
        bus.close()
        _write(home / "runs" / key_of(number), number, status="complete")


def _write(folder: Path, number: int, *, status) -> None:
    metadata = RunMetadata(
        idempotency_key=key_of(number),
        status=status,
        ontology_id="urn:bench",
        ontology_version="1",
        started_at=instant(time.time()),
        extractor=ExtractorName("bench", "1"),
        settings={},
        base="urn:sameas:",
        text_hash="0" * 64,
        extraction_params_hash="0" * 64,
    )
    (folder / "metadata.json").write_bytes(msgspec.json.encode(metadata))


@dataclass
class Heard:
    """What all listeners of a round saw."""

    delays: list[float] = field(default_factory=list)
    final_delays: list[float] = field(default_factory=list)
    events: int = 0


class Listener(asyncio.Protocol):
    """One stream; it looks at the first time in each block of bytes, which is the oldest."""

    def __init__(self, port: int, key: str, heard: Heard, over: asyncio.Future) -> None:
        self._request = f"GET /api/v1/runs/{key}/events HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
        self._heard = heard
        self._over = over

    def connection_made(self, transport) -> None:
        self._transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        now = time.time()
        self._heard.events += data.count(b"\nevent: ")
        if found := _TIMESTAMP.search(data):
            self._heard.delays.append(now - int(found[1]) / 1000)
        if b"extraction_completed" in data:
            last = _TIMESTAMP.findall(data)[-1]
            self._heard.final_delays.append(now - int(last) / 1000)
            if not self._over.done():
                self._over.set_result(None)
            self._transport.close()

    def connection_lost(self, error) -> None:
        if not self._over.done():
            self._over.set_result(None)


async def listen(port: int, keys: list[str]) -> Heard:
    """One listener for each key given, until the runs have ended."""
    loop = asyncio.get_running_loop()
    heard, over = Heard(), []
    for key in keys:
        over.append(loop.create_future())
        await loop.create_connection(
            lambda key=key, ended=over[-1]: Listener(port, key, heard, ended), "127.0.0.1", port
        )
    await asyncio.gather(*over)
    return heard


async def read_slowly(port: int, key: str, stop: asyncio.Event) -> None:
    """A listener that takes a byte a second."""
    import socket

    slow = socket.socket()
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    slow.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(slow, ("127.0.0.1", port))
    await loop.sock_sendall(slow, f"GET /api/v1/runs/{key}/events HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    while not stop.is_set():
        await loop.sock_recv(slow, 1)
        try:
            await asyncio.wait_for(stop.wait(), 1.0)
        except TimeoutError:
            continue
    slow.close()
