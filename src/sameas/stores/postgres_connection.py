"""One statement over an open connection of psycopg, spoken to through its own wrapper of libpq.

psycopg opens the connection, turns values and rows into bytes and back, and reads the protocol; what its cursors do
around each statement takes as long as the server. A wire sends a statement that it knows by its name, values and rows
in binary, with no transaction around it; every wait is bounded. A wire is one caller's at a time. One whose caller
went away before the reply has a connection in the middle of something, which the pool does not take back.
"""

from __future__ import annotations

import asyncio
import select
from collections.abc import Sequence
from time import monotonic
from typing import Any, Final, Protocol

import psycopg
from psycopg import AsyncConnection, Connection
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import error_from_result
from psycopg.generators import execute
from psycopg.pq import ExecStatus, Format
from psycopg.pq.abc import PGresult
from psycopg.waiting import Ready, Wait

Row = Sequence[Any]

# Statements that a connection remembers; listings put theirs together from conditions, and there is no end of them.
_REMEMBERED: Final = 64
_AUTO: Final = [PyFormat.AUTO]
# Looking up a member of an enumeration takes longer than what is done with it.
_ROWS, _NO_ROWS = int(ExecStatus.TUPLES_OK), int(ExecStatus.COMMAND_OK)
_BINARY, _WAIT_R, _READY_R, _READY_W, _READY_RW = Format.BINARY, Wait.R, Ready.R, Ready.W, Ready.RW


class AnswerTimedOut(psycopg.OperationalError):
    """The server did not answer in time; what it is doing is not known."""


class Loader(Protocol):
    """The part of psycopg's Transformer that reads rows."""

    def set_pgresult(self, result: PGresult, *, set_loaders: bool) -> None: ...
    def load_rows(self, row0: int, row1: int, make_row: type[tuple[Any, ...]]) -> list[Row]: ...


class Plan:
    """A statement with the types of its values: how often it was asked, and its name once the server knows it."""

    __slots__ = ("loader", "loads", "name", "text", "types", "uses")

    def __init__(self, sql: str, types: tuple[int, ...], loader: Loader) -> None:
        self.text = sql.encode()
        self.types = types
        self.loader = loader
        self.loads = False
        self.uses = 0
        self.name: bytes | None = None


class Dialogue:
    """What is said on one connection, before and after each wait."""

    def __init__(self, connection: Connection[Any] | AsyncConnection[Any]) -> None:
        self._connection = connection
        self.pgconn = connection.pgconn
        self._dumper = Transformer(connection)
        self._plans: dict[tuple[str, tuple[int, ...]], Plan] = {}
        self._named = 0

    def plan(self, sql: str, values: Sequence[Any]) -> tuple[Plan, Sequence[Any]]:
        """A statement, and its values as bytes."""
        dumper = self._dumper
        dumped = dumper.dump_sequence(values, _AUTO * len(values))
        types = dumper.types or ()
        plan = self._plans.get((sql, types))
        if plan is None:
            if len(self._plans) >= 2 * _REMEMBERED:
                self._plans = {key: each for key, each in self._plans.items() if each.name is not None}
            plan = self._plans[sql, types] = Plan(sql, types, Transformer(self._connection))
        return plan, dumped

    def may_name(self, plan: Plan) -> bool:
        """Whether a statement was asked often enough to be given a name."""
        plan.uses += 1
        threshold = self._connection.prepare_threshold
        return threshold is not None and plan.uses > threshold and self._named < _REMEMBERED

    def send_name(self, plan: Plan) -> bytes:
        """Tell the server the statement under a name, which holds once the server has answered."""
        name = b"sameas_%d" % self._named
        self._named += 1
        self.pgconn.send_prepare(name, plan.text, plan.types)
        return name

    def send(self, plan: Plan, dumped: Sequence[Any]) -> None:
        """Send the values, with the name of the statement or all of it."""
        if plan.name is None:
            self.pgconn.send_query_params(plan.text, dumped, plan.types, self._dumper.formats, _BINARY)
        else:
            self.pgconn.send_query_prepared(plan.name, dumped, self._dumper.formats, _BINARY)

    def rows(self, plan: Plan, results: list[PGresult]) -> list[Row]:
        """The rows that came; a statement without rows answers one, the number that it changed."""
        result = results[0]
        if len(results) > 1 or result.status != _ROWS:
            self.check(results)
            if result.status == _NO_ROWS:
                return [(result.command_tuples,)]
        # The columns of a statement that the server knows by name stay what they are.
        plan.loader.set_pgresult(result, set_loaders=not plan.loads)
        plan.loads = plan.name is not None
        return plan.loader.load_rows(0, result.ntuples, tuple)

    def check(self, results: list[PGresult]) -> None:
        """Raise what the server refused; an error may also come after the rows, from the commit."""
        for result in results:
            if result.status not in (_ROWS, _NO_ROWS):
                raise error_from_result(result, encoding=self._connection.info.encoding)


class PostgresConnection:
    """A connection for threads, and all that is needed to talk over it."""

    def __init__(self, connection: Connection[Any], *, answer_within: float) -> None:
        self._dialogue = Dialogue(connection)
        self._answer_within = answer_within
        self._socket = connection.pgconn.socket
        self._poll = select.poll()
        self._poll.register(self._socket, select.POLLIN)

    def ask(self, sql: str, values: Sequence[Any]) -> list[Row]:
        """One statement and its rows."""
        dialogue = self._dialogue
        plan, dumped = dialogue.plan(sql, values)
        if plan.name is None and dialogue.may_name(plan):
            name = dialogue.send_name(plan)
            dialogue.check(self._wait())
            plan.name = name
        dialogue.send(plan, dumped)
        return dialogue.rows(plan, self._wait())

    def _wait(self) -> list[PGresult]:
        answer = execute(self._dialogue.pgconn)
        until = monotonic() + self._answer_within
        left = self._answer_within
        try:
            wait = next(answer)
            while True:
                ready = self._poll.poll(left * 1_000) if wait is _WAIT_R else self._poll_both(left)
                if not ready:
                    raise AnswerTimedOut(f"no answer within {self._answer_within} seconds")
                wait = answer.send(_READY_R if ready[0][1] == select.POLLIN else _ready(ready[0][1]))
                left = max(until - monotonic(), 0)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]

    def _poll_both(self, seconds: float) -> list[tuple[int, int]]:
        """Wait until more can be sent or read."""
        self._poll.modify(self._socket, select.POLLIN | select.POLLOUT)
        try:
            return self._poll.poll(seconds * 1_000)
        finally:
            self._poll.modify(self._socket, select.POLLIN)


class AsyncPostgresConnection:
    """`PostgresConnection`, for the tasks of one event loop."""

    def __init__(self, connection: AsyncConnection[Any], *, answer_within: float) -> None:
        self._dialogue = Dialogue(connection)
        self._answer_within = answer_within
        self._socket = connection.pgconn.socket
        self._loop = asyncio.get_running_loop()
        self._waiter: asyncio.Future[int] | None = None

    async def ask(self, sql: str, values: Sequence[Any]) -> list[Row]:
        """One statement and its rows."""
        dialogue = self._dialogue
        plan, dumped = dialogue.plan(sql, values)
        if plan.name is None and dialogue.may_name(plan):
            name = dialogue.send_name(plan)
            dialogue.check(await self._wait())
            plan.name = name
        dialogue.send(plan, dumped)
        return dialogue.rows(plan, await self._wait())

    async def _wait(self) -> list[PGresult]:
        answer = execute(self._dialogue.pgconn)
        timer = self._loop.call_later(self._answer_within, self._time_out)
        try:
            wait = next(answer)
            while True:
                wait = answer.send(_ready(await self._event(wait)))
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        finally:
            timer.cancel()

    async def _event(self, wait: Wait) -> int:
        # The loop is told anew each time: it must not know a connection that is closed while nobody waits.
        loop = self._loop
        waiter: asyncio.Future[int] = loop.create_future()
        self._waiter = waiter
        loop.add_reader(self._socket, self._arrived, select.POLLIN)
        if wait is not _WAIT_R:
            loop.add_writer(self._socket, self._arrived, select.POLLOUT)
        try:
            return await waiter
        finally:
            self._waiter = None
            loop.remove_reader(self._socket)
            if wait is not _WAIT_R:
                loop.remove_writer(self._socket)

    def _arrived(self, event: int) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(event)

    def _time_out(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(AnswerTimedOut(f"no answer within {self._answer_within} seconds"))


def _ready(events: int) -> Ready:
    """What a socket is ready for; one that was closed can be read, and says so then."""
    if events == select.POLLIN:
        return _READY_R
    if events == select.POLLOUT:
        return _READY_W
    return _READY_RW if events & select.POLLOUT else _READY_R
