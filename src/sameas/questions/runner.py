"""Runs queries in processes that can be ended: one query at a time in each, a few processes that stay warm.

Rule: a query that takes too long costs its process, never this one. Blocking: asyncio code calls it in a thread. One
object serves all threads.
"""

import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from sameas.questions.answers import Answer
from sameas.questions.errors import QueryError, QueryLimitError
from sameas.questions.process import READY, Asked, QueryLimits, Told, receive, send

_WARM = 2
# Starting Python and opening a snapshot is not the query's fault.
_STARTUP_SECONDS = 20.0


class QueryRunner:
    """The processes of a program; at most `processes` queries run at a time."""

    def __init__(self, *, processes: int = _WARM) -> None:
        self._places = threading.BoundedSemaphore(max(1, processes))
        self._lock = threading.Lock()
        self._idle: list[_Process] = []
        self._closed = False

    def run(self, asked: Asked) -> Answer:
        """The answer to a query that was read; raises QueryError or QueryLimitError."""
        limits = asked.limits
        with self._process() as process:
            told = process.ask(asked)
        if told is None:
            raise QueryLimitError(
                f"the query takes longer than {limits.seconds:g} s; ask for less, such as with LIMIT", limit="time"
            )
        match told.error:
            case "":
                return Answer(kind=told.kind, body=told.body, rows=told.rows, seconds=told.seconds)  # type: ignore[arg-type]
            case "syntax":
                raise QueryError(f"this is not SPARQL 1.1: {told.body.decode()}")
            case "rows":
                raise QueryLimitError(f"there are more than {limits.rows} rows; add LIMIT and OFFSET", limit="rows")
            case "bytes":
                raise QueryLimitError(
                    f"the answer has more than {limits.result_bytes} bytes; add LIMIT, or ask for less", limit="bytes"
                )
            case "memory":
                raise QueryLimitError(_memory(limits), limit="memory")
            case _:
                raise QueryError(f"the query failed: {told.body.decode()}")

    def close(self) -> None:
        """End the processes that wait for queries."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for process in idle:
            process.end()

    @contextmanager
    def _process(self) -> "Iterator[_Process]":
        with self._places:
            with self._lock:
                process = self._idle.pop() if self._idle else None
            if process is None or not process.is_alive:
                process = _Process()
            try:
                yield process
            except BaseException:
                process.end()
                raise
            with self._lock:
                keep = process.is_alive and not self._closed
                if keep:
                    self._idle.append(process)
            if not keep:
                process.end()


class _Process:
    """One child and the pipes to it."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "sameas.questions.process"]
        # Our own module in our own Python; the query comes in as data.
        self._child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603
        self._wait_until_ready()

    @property
    def is_alive(self) -> bool:
        return self._child.poll() is None

    def ask(self, asked: Asked) -> Told | None:
        """What the child says; None where it takes too long, and then it was ended."""
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        ends_at = time.monotonic() + asked.limits.seconds
        try:
            send(self._child.stdin, asked)
            if not _readable(self._child.stdout.fileno(), ends_at):
                self.end()
                return None
            data = receive(_Whole(self._child.stdout.fileno(), ends_at))  # type: ignore[arg-type]
        except BrokenPipeError:
            data = None
        except TimeoutError:
            self.end()
            return None
        if data is None:
            # The allocator of the store ends the process where it gets no memory.
            self.end()
            raise QueryLimitError(_memory(asked.limits), limit="memory")
        return msgspec.msgpack.decode(data, type=Told)

    def _wait_until_ready(self) -> None:
        assert self._child.stdout is not None
        if not _readable(self._child.stdout.fileno(), time.monotonic() + _STARTUP_SECONDS) or not os.read(
            self._child.stdout.fileno(), len(READY)
        ):
            self.end()
            raise QueryError("the process that runs queries did not start; look at what it printed")

    def end(self) -> None:
        self._child.kill()
        for pipe in (self._child.stdin, self._child.stdout):
            if pipe is not None:
                pipe.close()
        self._child.wait()


class _Whole:
    """Reads exactly as much as is asked for, until a time."""

    def __init__(self, descriptor: int, ends_at: float) -> None:
        self._descriptor = descriptor
        self._ends_at = ends_at

    def read(self, size: int, /) -> bytes:
        pieces: list[bytes] = []
        while size > 0:
            if not _readable(self._descriptor, self._ends_at):
                raise TimeoutError
            piece = os.read(self._descriptor, min(size, 1 << 20))
            if not piece:
                break
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)


def _readable(descriptor: int, ends_at: float) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN | select.POLLHUP)
    return bool(poll.poll(max(0.0, ends_at - time.monotonic()) * 1000))


def _memory(limits: QueryLimits) -> str:
    return f"the query needs more than {limits.memory_bytes} bytes of memory, or its process was ended; ask for less"
