"""Work that takes long has threads of its own, tenants take turns at them, and its answers lie in files."""

import asyncio
import threading

import pytest

from sameas.server.http.route import Asked, file_reply
from sameas.server.runs.slow_work import SlowWork

pytestmark = pytest.mark.anyio


class Caller:
    """As much of a request as slow work looks at."""

    class ctx:  # noqa: N801 - it stands for an attribute
        tenant_id = "one"


class Held:
    """Work that goes on until it is let go."""

    def __init__(self):
        self.begun = threading.Semaphore(0)
        self.go_on = threading.Event()

    def __call__(self):
        self.begun.release()
        assert self.go_on.wait(30)


@pytest.fixture
def work():
    work = SlowWork("test", at_once=4, divided=True)
    yield work
    work.close()


async def test_a_tenant_has_a_turn_while_another_has_asked_for_more_than_there_are_threads(work):
    held = Held()
    flood = [asyncio.ensure_future(work.do("many", held)) for _ in range(20)]
    assert await asyncio.to_thread(held.begun.acquire, timeout=30)
    assert await work.do("one", lambda: "answered") == "answered"
    # Threads that serve everybody are not its own.
    assert await asyncio.to_thread(lambda: "read") == "read"
    assert not any(task.done() for task in flood)
    held.go_on.set()
    await asyncio.gather(*flood)


async def test_short_work_does_not_wait_for_long(work):
    held = Held()
    long = [asyncio.ensure_future(work.do("one", held, is_long=True)) for _ in range(8)]
    assert await asyncio.to_thread(held.begun.acquire, timeout=30)
    assert await work.do("two", lambda: "answered") == "answered"
    held.go_on.set()
    await asyncio.gather(*long)


def _asked(work):
    class Service:
        slow_work = work

    return Asked(Service(), Caller(), None)


async def _sent(reply, send):
    await reply({"type": "http", "method": "GET"}, None, send)


async def test_an_answer_is_sent_a_block_at_a_time_and_its_file_goes_with_it(work):
    whole, messages = b"0123456789" * 100_000, []

    async def send(message):
        messages.append(message)

    reply = await file_reply(_asked(work), lambda file: file.write(whole), media_type="text/csv")
    await _sent(reply, send)
    assert dict(messages[0]["headers"])[b"content-length"] == b"1000000"
    bodies = [message["body"] for message in messages[1:]]
    assert b"".join(bodies) == whole
    assert max(map(len, bodies)) <= 1 << 18
    assert reply._file.closed


async def test_a_client_that_does_not_read_holds_neither_a_turn_nor_a_thread(work):
    reading = asyncio.Event()

    async def send(message):
        await reading.wait()

    replies = [
        await file_reply(_asked(work), lambda file: file.write(b"x" * (2 << 20)), media_type="text/csv")
        for _ in range(40)
    ]
    sending = [asyncio.ensure_future(_sent(reply, send)) for reply in replies]
    await asyncio.sleep(0)
    assert await asyncio.to_thread(lambda: "read") == "read"
    assert await work.do("one", lambda: "answered") == "answered"
    reading.set()
    await asyncio.gather(*sending)


async def test_what_cannot_be_written_is_no_answer_that_breaks_off(work):
    files = []

    def write(file):
        files.append(file)
        file.write(b"a half")
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        await file_reply(_asked(work), write, media_type="text/csv")
    assert files[0].closed
