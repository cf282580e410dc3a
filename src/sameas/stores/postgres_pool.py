"""Connections to PostgreSQL, kept for reuse: at most so many, each wait for one and each wait on one bounded.

Nothing is set up on a session, so that a connection through a transaction pooler is as good as a direct one. A forked
child opens its own connections; each event loop has its own.

A new connection is asked first whether commits reach the disk, and who really answers. A pooler shows itself: the
process that a session is told to belong to is not the one that answers. One in transaction mode gives every statement
to another session, so that nothing may be left behind on one: no named statement, no LISTEN.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from threading import Condition
from time import monotonic
from typing import Any, Final, Literal, TypeVar, cast

import psycopg
from psycopg import AsyncConnection, AsyncRawCursor, Connection, RawCursor
from psycopg.abc import PQGen
from psycopg.adapt import AdaptersMap
from psycopg.pq import ConnStatus, TransactionStatus
from psycopg.types.numeric import Int8BinaryDumper
from psycopg.types.string import StrBinaryDumper

from sameas.once.errors import StoreClosed, StoreMisconfigured, StoreUnavailable
from sameas.stores.faults import from_postgres
from sameas.stores.postgres_connection import AnswerTimedOut, AsyncPostgresConnection, PostgresConnection

RV = TypeVar("RV")

# How often a statement is asked before the server is told its name; "auto" names none through a pooler.
PrepareThreshold = int | None | Literal["auto"]

QUESTION: Final = "SELECT pg_backend_pid(), current_setting('fsync')"
_DIRECT_THRESHOLD: Final = 5
# A busy pooler may give a session to somebody else between two looks.
_LOOKS: Final = 5
_ANSWER_WITHIN: Final = 5
# A plain number: comparing an enumeration member costs more than all the rest of giving a connection back.
_IDLE = int(TransactionStatus.IDLE)


class Options:
    """How connections are opened."""

    def __init__(
        self, conninfo: str, *, timeout: float, prepare_threshold: PrepareThreshold, strict: bool = False
    ) -> None:
        self.conninfo = conninfo
        self.timeout = timeout
        self.admission = Admission(prepare_threshold=prepare_threshold, strict=strict)
        self.words: dict[str, Any] = {
            "autocommit": True,
            "prepare_threshold": self.admission.prepare_threshold,
            "connect_timeout": max(round(timeout), 1),
            "context": _adapters(),
        }


def _adapters() -> AdaptersMap:
    # One type for all integers and one for all text: a statement is then prepared once, not once per size of value.
    adapters = AdaptersMap(psycopg.adapters)
    adapters.register_dumper(int, Int8BinaryDumper)
    adapters.register_dumper(str, StrBinaryDumper)
    return adapters


def _bounded(gen: PQGen[RV], seconds: float) -> PQGen[RV]:
    """What the driver does on a connection, for at most so long; it is asked at every interval without an answer."""
    deadline = monotonic() + seconds
    try:
        waits_for = next(gen)
        while True:
            ready = yield waits_for
            if not ready and monotonic() >= deadline:
                raise AnswerTimedOut(f"no answer within {seconds} seconds")
            waits_for = gen.send(ready)
    except StopIteration as end:
        return cast(RV, end.value)


class Session(Connection[Any]):
    """A connection whose every wait ends."""

    answer_within = 5.0
    reused = False

    def wait(self, gen: PQGen[RV], *args: Any, **words: Any) -> RV:
        return super().wait(_bounded(gen, self.answer_within), *args, **words)


class AsyncSession(AsyncConnection[Any]):
    """`Session`, for tasks."""

    answer_within = 5.0
    reused = False

    async def wait(self, gen: PQGen[RV], *args: Any, **words: Any) -> RV:
        return await super().wait(_bounded(gen, self.answer_within), *args, **words)


class Cursor(RawCursor[Any]):
    """A cursor of psycopg, with the quick way for a statement that is a transaction of its own."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.ask = PostgresConnection(session, answer_within=session.answer_within).ask


class AsyncCursor(AsyncRawCursor[Any]):
    """`Cursor`, for tasks."""

    def __init__(self, session: AsyncSession) -> None:
        super().__init__(session)
        self.ask = AsyncPostgresConnection(session, answer_within=session.answer_within).ask


Taken = tuple[Session, Cursor]
AsyncTaken = tuple[AsyncSession, AsyncCursor]


class Pool:
    """Connections for threads, the one used last first. A place without a connection yet is None."""

    def __init__(self, options: Options, *, size: int) -> None:
        self._options = options
        self._size = size
        self._idle: deque[Taken | None] = deque([None] * size)
        self._waiting = 0
        self._returned = Condition()
        self.closed = False

    def take(self) -> Taken:
        """A connection and its cursor; StoreUnavailable if all are busy for too long, or none can be opened."""
        try:
            taken = self._idle.pop()
        except IndexError:
            taken = self._wait()
        if taken is not None:
            return taken
        try:
            return self._open()
        except BaseException:
            self._put_empty()
            raise

    def give_back(self, taken: Taken) -> None:
        session = taken[0]
        if self.closed or session.pgconn.transaction_status != _IDLE:
            session.close()
            self._put_empty()
        else:
            session.reused = True
            self._idle.append(taken)
            if self._waiting:
                self._tell_one()

    def clear(self) -> None:
        """Close what is idle: the server has gone away, or the store is closed."""
        for _ in range(self._size):
            try:
                taken = self._idle.pop()
            except IndexError:
                return
            if taken is not None:
                taken[0].close()
            self._idle.appendleft(None)

    def _put_empty(self) -> None:
        self._idle.appendleft(None)
        if self._waiting:
            self._tell_one()

    def _tell_one(self) -> None:
        with self._returned:
            self._returned.notify()

    def _wait(self) -> Taken | None:
        deadline = monotonic() + self._options.timeout
        with self._returned:
            self._waiting += 1
            try:
                # Looked at again after the counter is up, a connection that came back meanwhile is not missed.
                while True:
                    with contextlib.suppress(IndexError):
                        return self._idle.pop()
                    left = deadline - monotonic()
                    if left <= 0:
                        raise _exhausted(self._size)
                    self._returned.wait(left)
            finally:
                self._waiting -= 1

    def _open(self) -> Taken:
        if self.closed:
            raise StoreClosed
        options = self._options
        try:
            session = Session.connect(options.conninfo, **options.words)
            session.answer_within = options.timeout
            try:
                options.admission.admit(session, session.execute(QUESTION, prepare=False).fetchone())
            except BaseException:
                session.pgconn.finish()
                raise
        except psycopg.Error as error:
            raise from_postgres(error) from error
        return session, Cursor(session)


class AsyncPool:
    """Connections for the tasks of one event loop."""

    def __init__(self, options: Options, *, size: int) -> None:
        self._options = options
        self._size = size
        self._free = asyncio.Semaphore(size)
        self._idle: deque[AsyncTaken] = deque()
        self.closed = False

    async def take(self) -> AsyncTaken:
        """A connection and its cursor; StoreUnavailable if all are busy for too long, or none can be opened."""
        if self._free.locked():
            try:
                async with asyncio.timeout(self._options.timeout):
                    await self._free.acquire()
            except TimeoutError:
                raise _exhausted(self._size) from None
        else:
            await self._free.acquire()
        try:
            return self._idle.pop()
        except IndexError:
            pass
        try:
            return await self._open()
        except BaseException:
            self._free.release()
            raise

    async def give_back(self, taken: AsyncTaken) -> None:
        session = taken[0]
        if self.closed or session.pgconn.transaction_status != _IDLE:
            # Not `close`: it would wait for a server that may have stopped answering.
            session.pgconn.finish()
        else:
            session.reused = True
            self._idle.append(taken)
        self._free.release()

    def clear(self) -> None:
        """Close what is idle, from any thread: the loop may be gone."""
        with contextlib.suppress(IndexError):
            while True:
                session, _ = self._idle.pop()
                session.pgconn.finish()

    async def _open(self) -> AsyncTaken:
        if self.closed:
            raise StoreClosed
        options = self._options
        try:
            session = await AsyncSession.connect(options.conninfo, **options.words)
            session.answer_within = options.timeout
            try:
                answer = await session.execute(QUESTION, prepare=False)
                options.admission.admit(session, await answer.fetchone())
            except BaseException:
                session.pgconn.finish()
                raise
        except psycopg.Error as error:
            raise from_postgres(error) from error
        return session, AsyncCursor(session)


def is_broken(session: Session | AsyncSession) -> bool:
    """Whether the server is gone, or in the middle of something that nobody waits for any more."""
    return session.pgconn.status != ConnStatus.OK or session.pgconn.transaction_status == TransactionStatus.ACTIVE


def _exhausted(size: int) -> StoreUnavailable:
    return StoreUnavailable(
        f"All {size} connections to PostgreSQL are busy; try again later, or open the store with a larger pool_size."
    )


class Admission:
    """What is asked of each new connection of a store."""

    def __init__(self, *, prepare_threshold: PrepareThreshold, strict: bool) -> None:
        self.names_only_directly = prepare_threshold == "auto"
        self.prepare_threshold = _DIRECT_THRESHOLD if prepare_threshold == "auto" else prepare_threshold
        self._strict = strict

    def admit(self, session: Any, answer: Any) -> None:
        """Take a connection with its answer to the question, or refuse the server."""
        process, fsync = answer
        if self._strict and fsync == "off":
            raise StoreMisconfigured(
                "This PostgreSQL does not wait for the disk (fsync is off), so a power cut can lose finished work or "
                "damage the whole database: set fsync to on. Open the store with strict=False to use it all the same."
            )
        if self.names_only_directly and process != session.pgconn.backend_pid:
            session.prepare_threshold = None


def refuse_pooled_listening(conninfo: str) -> None:
    """Raise if nobody would hear a NOTIFY at this address: a pooler there gives sessions from hand to hand."""
    with _connected(conninfo) as listener:
        for _ in range(_LOOKS):
            process = _process(listener)
            if process == listener.pgconn.backend_pid:
                return
            with _connected(conninfo) as other, other.transaction():
                # In a transaction it has a session to itself: never the listener's, unless that is given away.
                if _process(other) == process:
                    raise StoreMisconfigured(
                        "listen_url leads to a pooler in transaction mode, where no wake-up is heard: give it the "
                        "address of the PostgreSQL server itself, or leave it out, and waiters poll."
                    )


def _connected(conninfo: str) -> psycopg.Connection[Any]:
    return psycopg.connect(conninfo, autocommit=True, connect_timeout=_ANSWER_WITHIN, prepare_threshold=None)


def _process(connection: psycopg.Connection[Any]) -> int:
    row = connection.execute("SELECT pg_backend_pid()").fetchone()
    assert row is not None
    return int(row[0])
