"""A language model that does as it is told: OpenAI's, Anthropic's and Google's interface on loopback.

    with ModelServer(by_text({"Acme": {"entities": []}})) as server:
        model = open_model(server.address("tiny"))    # or server.url for an SDK's base URL
        ...
        assert len(server.calls) == 1 and server.most_at_once <= 5

It is real HTTP over real sockets, in a thread of its own, and it records what it was asked: each call, how many were in
flight at once, how many came in any sixty seconds. What it answers is in `tests.servers.model_script`; OpenAI's
interface streams it where a request asks for that.
"""

import asyncio
import contextlib
import json
import socket
import struct
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self

from tests.servers.model_script import Call, Interface, Script, Step, replace, step_of
from tests.servers.model_wire import body_of, is_stream
from tests.servers.port import LOOPBACK

CALL_WITHIN_SECONDS = 10.0
POLL_SECONDS = 0.005
HEAD_BYTES = 1 << 16
# Linger for zero seconds: closing sends RST instead of FIN.
RESET_ON_CLOSE = struct.pack("ii", 1, 0)


class ModelServer:
    """A scripted model on a free port."""

    def __init__(self, script: Script = None, *, is_ollama: bool = False) -> None:
        self._script: Script = script
        # Whether it has Ollama's own interface too.
        self._is_ollama = is_ollama
        self._calls: list[Call] = []
        self._answered = 0
        self._in_flight = 0
        self._most_at_once = 0
        self._changed = threading.Condition()
        self._writers: dict[asyncio.StreamWriter, asyncio.Task[None]] = {}
        self._listener: asyncio.Server | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="model-server", daemon=True)
        self.port = 0

    @property
    def root(self) -> str:
        """Scheme, host and port."""
        return f"http://{LOOPBACK}:{self.port}"

    @property
    def url(self) -> str:
        """The base address of OpenAI's interface."""
        return f"{self.root}/v1"

    def address(self, name: str = "tiny") -> str:
        """What `open_model` and `--model` take."""
        return f"{self.url}#{name}"

    @property
    def calls(self) -> tuple[Call, ...]:
        """Every request so far, in the order in which they arrived."""
        with self._changed:
            return tuple(self._calls)

    @property
    def answered(self) -> int:
        """How many requests are over, however they ended."""
        with self._changed:
            return self._answered

    @property
    def most_at_once(self) -> int:
        """The most requests that were in flight at the same time."""
        with self._changed:
            return self._most_at_once

    def most_within(self, seconds: float = 60.0) -> int:
        """The most requests that arrived within any span of so many seconds."""
        times = [call.arrived_at for call in self.calls]
        return max((bisect_left(times, at + seconds) - number for number, at in enumerate(times)), default=0)

    def rescript(self, script: Script) -> None:
        """Do something else from the next request on; lists count from there."""
        with self._changed:
            self._script = script
            self._first = len(self._calls)

    _first = 0

    def wait_for_calls(self, count: int, *, within_seconds: float = CALL_WITHIN_SECONDS) -> None:
        """Return when so many requests have arrived."""
        self.wait_for(lambda calls: len(calls) >= count, within_seconds=within_seconds)

    def wait_for(self, seen: Callable[[Sequence[Call]], bool], *, within_seconds: float = CALL_WITHIN_SECONDS) -> None:
        """Return when the requests so far are what is waited for."""
        with self._changed:
            arrived = self._changed.wait_for(lambda: seen(self._calls), within_seconds)
        assert arrived, f"not what was waited for: {len(self._calls)} calls arrived within {within_seconds} s"

    def start(self) -> Self:
        self._thread.start()
        self._wait(self._listen())
        return self

    def close(self) -> None:
        """Reset what is open and end the thread."""
        if self._thread.is_alive():
            self._wait(self._shut())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(CALL_WITHIN_SECONDS)
        self._loop.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def _listen(self) -> None:
        self._listener = await asyncio.start_server(self._accept, LOOPBACK, 0, limit=HEAD_BYTES)
        self.port = self._listener.sockets[0].getsockname()[1]

    async def _shut(self) -> None:
        assert self._listener is not None
        self._listener.close()
        running = list(self._writers.items())
        for writer, task in running:
            task.cancel()
            writer.transport.abort()
        await asyncio.gather(*(task for _, task in running), return_exceptions=True)
        # One more turn, so that closed transports tell their loop before it ends.
        await asyncio.sleep(0)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._writers[writer] = task
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            while request := await _read(reader):
                if not await self._serve(request, writer):
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # The client left; what it asked for is recorded.
        except asyncio.CancelledError:
            pass  # The server is being closed.
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()
            del self._writers[writer]

    async def _serve(self, request: tuple[str, dict[str, str], bytes], writer: asyncio.StreamWriter) -> bool:
        """Answer one request; tells whether the connection can take another."""
        path, headers, body = request
        interface = _interface(path)
        if interface == "ollama" and not self._is_ollama:
            interface = None
        if interface is None:
            await _send(writer, Step(status=404), b'{"error":{"message":"no such path","type":"not_found"}}')
            return True
        with self._changed:
            call = Call(len(self._calls), interface, path, headers, json.loads(body), time.monotonic())
            self._calls.append(call)
            self._in_flight += 1
            self._most_at_once = max(self._most_at_once, self._in_flight)
            script, first = self._script, self._first
            self._changed.notify_all()
        try:
            step = await _next(script, call, call.number - first)
            if is_stream(call, step):
                step = replace(step, headers={"Content-Type": "text/event-stream", **step.headers})
            reply = body_of(call, step)
            await _hold(step, since=call.arrived_at)
            return await _send(writer, step, reply)
        finally:
            with self._changed:
                self._in_flight -= 1
                self._answered += 1
                self._changed.notify_all()

    def _wait(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(CALL_WITHIN_SECONDS)


def _interface(path: str) -> Interface | None:
    if path.endswith("/api/chat"):
        return "ollama"
    if path.endswith("/chat/completions"):
        return "openai"
    if path.partition("?")[0].endswith("/messages"):
        return "anthropic"
    return "google" if ":generateContent" in path else None


async def _next(script: Script, call: Call, number: int) -> Step:
    if callable(script):
        answer = script(call)
        return step_of(await answer if asyncio.iscoroutine(answer) else answer)
    if isinstance(script, Sequence) and not isinstance(script, str):
        return step_of(script[number] if number < len(script) else {})
    return Step() if script is None else step_of(script)


async def _hold(step: Step, *, since: float) -> None:
    # Polled, so that a gate that never opens does not keep a thread of this process.
    while step.gate is not None and not step.gate.is_set():
        await asyncio.sleep(POLL_SECONDS)
        since = time.monotonic()
    # The latency is all that a call takes: what making the reply took is part of it.
    if step.latency:
        await asyncio.sleep(step.latency - (time.monotonic() - since))


async def _read(reader: asyncio.StreamReader) -> tuple[str, dict[str, str], bytes] | None:
    """Path, headers and body of the next request; None when the client has no more."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise
        return None
    first, *lines = head.decode("latin-1").rstrip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return first.split(" ")[1], headers, body


async def _send(writer: asyncio.StreamWriter, step: Step, body: bytes) -> bool:
    sent = body if step.break_after is None else body[: int(len(body) * step.break_after)]
    is_honest = step.headers.get("Content-Length") == "as sent"
    headers: Mapping[str, str] = {
        "Content-Type": "application/json",
        **step.headers,
        "Content-Length": str(len(sent if is_honest else body)),
    }
    lines = [f"HTTP/1.1 {step.status} {_phrase(step.status)}", *(f"{name}: {text}" for name, text in headers.items())]
    writer.write("\r\n".join([*lines, "", ""]).encode("latin-1"))
    if step.drip:
        for number in range(len(sent)):
            writer.write(sent[number : number + 1])
            await writer.drain()
            await asyncio.sleep(step.drip)
    else:
        writer.write(sent)
    await writer.drain()
    if step.break_after is None or is_honest:
        return True
    if step.break_by == "reset":
        # What was sent must arrive before the reset overtakes it.
        await asyncio.sleep(POLL_SECONDS)
        linger = writer.get_extra_info("socket")
        linger.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
        writer.transport.abort()
    return False


def _phrase(status: int) -> str:
    return HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else "Scripted"
