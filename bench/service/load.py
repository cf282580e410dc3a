"""Requests over plain sockets: a client that costs little, so that the server is what is measured."""

import asyncio
import time


class Connection:
    """One connection that asks the same again and again."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> None:
        self._reader = reader
        self._writer = writer
        self._request = request

    @classmethod
    async def open(cls, port: int, request: bytes) -> "Connection":
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        return cls(reader, writer, request)

    async def ask(self) -> bytes:
        self._writer.write(self._request)
        head = await self._reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(head.decode())
        lowered = head.lower()
        place = lowered.index(b"content-length:") + 15
        length = int(lowered[place : lowered.index(b"\r\n", place)])
        return await self._reader.readexactly(length)

    def close(self) -> None:
        self._writer.close()


def request_of(body: bytes) -> bytes:
    return (
        b"POST /api/v1/extract HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n" % len(body)
    ) + body


async def rate(port: int, request: bytes, *, connections: int, seconds: float) -> float:
    """Requests a second that the server answers when it is never idle."""
    opened = [await Connection.open(port, request) for _ in range(connections)]
    ends_at = time.perf_counter() + seconds
    count = 0

    async def go(one: Connection) -> None:
        nonlocal count
        while time.perf_counter() < ends_at:
            await one.ask()
            count += 1

    began = time.perf_counter()
    await asyncio.gather(*(go(one) for one in opened))
    took = time.perf_counter() - began
    for one in opened:
        one.close()
    return count / took


async def delays(port: int, request: bytes, *, per_second: float, connections: int, seconds: float) -> list[float]:
    """Seconds from the moment a request was due until its answer, at a given load."""
    free: asyncio.Queue[Connection] = asyncio.Queue()
    for _ in range(connections):
        free.put_nowait(await Connection.open(port, request))
    found: list[float] = []

    async def one(due: float) -> None:
        connection = await free.get()
        await connection.ask()
        found.append(time.perf_counter() - due)
        free.put_nowait(connection)

    began = time.perf_counter()
    tasks = []
    for number in range(int(per_second * seconds)):
        due = began + number / per_second
        if (wait := due - time.perf_counter()) > 0:
            await asyncio.sleep(wait)
        tasks.append(asyncio.create_task(one(due)))
    await asyncio.gather(*tasks)
    while not free.empty():
        free.get_nowait().close()
    return found
