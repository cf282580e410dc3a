"""Records in MariaDB, MySQL or MS SQL Server, over SQLAlchemy's engines and pools.

Statements are handed to the driver as they are written. On MySQL, threads use PyMySQL and tasks asyncmy, unless the URL
names another (aiomysql 0.3 cannot send bytes with PyMySQL 1.2). For SQL Server there is no driver for tasks here, so
its statements go to threads.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from ssl import SSLError
from time import sleep
from typing import Any, TypeVar
from weakref import WeakKeyDictionary, finalize

import sqlalchemy
from sqlalchemy.engine import URL, Connection, Engine, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from sameas.once.errors import StoreClosed, StoreError, StoreMisconfigured, StoreUnavailable
from sameas.once.forks import renew_after_fork
from sameas.once.script import run
from sameas.stores.faults import TRIES, Conflict, Disconnected, RowLocked, from_mssql, from_mysql, pause_after
from sameas.stores.mssql import MsSqlBackend
from sameas.stores.mysql import MySqlBackend
from sameas.stores.rows import Row
from sameas.stores.sql import SqlBackend, Statement, is_current, migrate
from sameas.stores.statements import bound
from sameas.stores.transaction import AsyncEnlisted, Enlisted, aenlisted, enlisted

A = TypeVar("A")
R = TypeVar("R")

_FOR_TASKS = {"asyncmy", "aiomysql"}
# "Already there": a table, a column, an index.
_MADE_BEFORE = {1050, 1060, 1061}
# What drivers raise besides errors of their own, for an option that they do not know or a file that is not there.
_UNUSABLE = (TypeError, ValueError, LookupError, RuntimeError, FileNotFoundError, PermissionError, SSLError)


class SqlAlchemyPerformer:
    """Runs statements on an engine's pooled connections, each its own transaction; conflicts are run again."""

    def __init__(
        self,
        url: str | URL,
        *,
        pool_size: int = 10,
        timeout: float = 5.0,
        lock_timeout: float = 2.0,
        strict: bool = True,
        skew: int = 0,
    ) -> None:
        if pool_size < 1 or timeout <= 0 or not 0 < lock_timeout <= timeout:
            raise ValueError("pool_size and timeout must be positive, and lock_timeout not beyond the timeout")
        self._url = make_url(url)
        self.dialect = "mssql" if self._url.get_backend_name() == "mssql" else "mysql"
        # Microseconds that the server's clock is taken to be ahead: how tests let time pass.
        self.skew = skew
        self.lock_wait = round(lock_timeout * 1_000)
        # One object for all who reach this database in this process.
        self.place: object = sys.intern(self._url.render_as_string(hide_password=False))
        self._translate = from_mssql if self.dialect == "mssql" else from_mysql
        self._strict = strict
        self._size = pool_size
        self._timeout = timeout
        self._closed = False
        self._threads: ThreadPoolExecutor | None = None
        self._inherited: list[Any] = []
        self._renew()
        renew_after_fork(self)

    def after_fork(self) -> None:
        # Not even closed: a parent's connection must not be touched by its child.
        self._inherited.append((self._engine, dict(self._engines), self._threads))
        self._renew()

    def _renew(self) -> None:
        self._threads = None
        self._engine = self._open()
        self._engines: WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncEngine] = WeakKeyDictionary()

    def perform(self, statement: Statement) -> list[Row]:
        self._refuse_closed()
        for tries in range(1, TRIES + 1):
            reused = False
            try:
                with self._engine.connect() as connection:
                    reused = _mark(connection)
                    return self._execute(connection, statement)
            except SQLAlchemyError as error:
                self._after(error, reused=reused, tries=tries)
            sleep(pause_after(tries))
        raise AssertionError("the last try raises")

    async def aperform(self, statement: Statement) -> list[Row]:
        self._refuse_closed()
        if self.dialect == "mssql":
            return await self._in_thread(self.perform, statement)
        for tries in range(1, TRIES + 1):
            reused = False
            try:
                # A driver for tasks has no time-out of its own.
                async with asyncio.timeout(self._timeout * 2), self._loop_engine().connect() as connection:
                    reused = _mark(connection.sync_connection)
                    return await connection.run_sync(self._execute, statement)
            except TimeoutError as error:
                raise Disconnected("The MySQL server did not answer in time. Try again later.") from error
            except SQLAlchemyError as error:
                self._after(error, reused=reused, tries=tries)
            await asyncio.sleep(pause_after(tries))
        raise AssertionError("the last try raises")

    def perform_many(self, statements: Sequence[Statement]) -> list[Any]:
        replies: list[Any] = []
        for statement in statements:
            try:
                replies.append(self.perform(statement))
            except StoreError as error:
                replies.append(error)
        return replies

    async def aperform_many(self, statements: Sequence[Statement]) -> list[Any]:
        replies: list[Any] = [None] * len(statements)
        of_one_record: dict[object, list[int]] = {}
        for number, statement in enumerate(statements):
            of_one_record.setdefault(statement.values.get("digest", number), []).append(number)

        async def perform_in_order(numbers: list[int]) -> None:
            for number in numbers:
                try:
                    replies[number] = await self.aperform(statements[number])
                except Exception as error:
                    replies[number] = error

        # Whoever asks first for a record is answered first; different records do not wait for each other.
        await asyncio.gather(*map(perform_in_order, of_one_record.values()))
        return replies

    @contextmanager
    def join(self, connection: Any) -> Iterator[Enlisted]:
        """The caller's SQLAlchemy Connection or Session."""
        with enlisted(connection, dialect=self.dialect, extras=self.extras) as performer:
            yield performer

    @asynccontextmanager
    async def ajoin(self, connection: Any) -> AsyncIterator[AsyncEnlisted]:
        """The caller's SQLAlchemy AsyncConnection or AsyncSession."""
        async with aenlisted(connection, dialect=self.dialect, extras=self.extras) as performer:
            yield performer

    def migrate(self) -> None:
        """Make or upgrade the tables; safe from many processes at once."""
        if run(is_current(self.dialect), self.perform):
            return
        try:
            with self._engine.connect() as connection:
                if self.dialect == "mssql":
                    connection = connection.execution_options(isolation_level="READ COMMITTED")
                    with connection.begin():
                        run(migrate(self.dialect), lambda statement: self._execute(connection, statement))
                else:
                    run(migrate(self.dialect), lambda statement: self._make(connection, statement))
        except SQLAlchemyError as error:
            raise self._fault(error) from error

    def close(self) -> None:
        self._closed = True
        self._engine.dispose()
        for engine in list(self._engines.values()):
            engine.sync_engine.dispose(close=False)
        if self._threads is not None:
            self._threads.shutdown()

    async def aclose(self) -> None:
        engine = self._engines.pop(asyncio.get_running_loop(), None)
        if engine is not None:
            await engine.dispose()
        self.close()

    def _refuse_closed(self) -> None:
        # A pool that was disposed of would begin anew.
        if self._closed:
            raise StoreClosed

    @property
    def is_mariadb(self) -> bool:
        """Whether the server is MariaDB, which has more ways to wait for a row than MySQL; known once it was asked."""
        engines = (self._engine, *(engine.sync_engine for engine in list(self._engines.values())))
        return any(getattr(engine.dialect, "is_mariadb", False) for engine in engines)

    @property
    def extras(self) -> dict[str, Any]:
        """The values that are the performer's own."""
        return {"skew": self.skew, "lock_wait": self.lock_wait}

    def _execute(self, connection: Connection, statement: Statement) -> list[Row]:
        values = statement.values
        values["skew"] = self.skew
        sql, parameters = bound(statement.sql, values, connection.dialect.paramstyle)
        result = connection.exec_driver_sql(sql, parameters)
        if result.returns_rows:
            return [tuple(row) for row in result.fetchall()]
        return [(result.rowcount, result.lastrowid if self.dialect == "mysql" else None)]

    def _make(self, connection: Connection, statement: Statement) -> list[Row]:
        """A step of a migration, which another process may be making at the same moment."""
        try:
            return self._execute(connection, statement)
        except DBAPIError as error:
            if error.orig is not None and error.orig.args and error.orig.args[0] in _MADE_BEFORE:
                return []
            raise

    def _open(self) -> Engine:
        url = self._url
        if url.get_driver_name() in _FOR_TASKS:
            url = url.set(drivername="mysql+pymysql")
        engine = sqlalchemy.create_engine(url, **self._pooling(), connect_args=self._connecting(waits=True))
        self._admit_to(engine)
        return engine

    def _loop_engine(self) -> AsyncEngine:
        loop = asyncio.get_running_loop()
        engine = self._engines.get(loop)
        if engine is None:
            url = self._url
            if url.get_driver_name() not in _FOR_TASKS:
                url = url.set(drivername="mysql+asyncmy")
            engine = create_async_engine(url, **self._pooling(), connect_args=self._connecting(waits=False))
            self._admit_to(engine.sync_engine)
            self._engines[loop] = engine
            finalize(loop, engine.sync_engine.dispose, close=False)
        return engine

    def _admit_to(self, engine: Engine) -> None:
        """Have each new connection looked at: whether the server waits for its disk can change while it runs."""
        sqlalchemy.event.listen(engine, "do_connect", _connect)
        if self._strict and self.dialect == "mysql":
            sqlalchemy.event.listen(engine, "connect", _refuse_lazy_commits)

    def _pooling(self) -> dict[str, Any]:
        return {
            "isolation_level": "AUTOCOMMIT",
            "pool_size": self._size,
            "max_overflow": 0,
            "pool_timeout": self._timeout,
            "pool_use_lifo": True,
            # Every statement is its own transaction: there is nothing to undo.
            "pool_reset_on_return": None,
            "skip_autocommit_rollback": True,
            # Keys and results do not belong into an error's text.
            "hide_parameters": True,
        }

    def _connecting(self, *, waits: bool) -> dict[str, Any]:
        if self.dialect == "mssql":
            return {"timeout": max(round(self._timeout), 1)}
        seconds = max(round(self._timeout), 1)
        # Strict, so that nothing is ever cut short silently.
        settings = f"SET SESSION innodb_lock_wait_timeout = {max(self.lock_wait // 1_000, 1)}, sql_mode = 'TRADITIONAL'"
        words: dict[str, Any] = {"connect_timeout": seconds, "init_command": settings, "charset": "utf8mb4"}
        return words | {"read_timeout": seconds, "write_timeout": seconds} if waits else words

    def _after(self, error: SQLAlchemyError, *, reused: bool, tries: int) -> None:
        """Raise what the error means, unless the statement may be run again."""
        fault = self._fault(error)
        if isinstance(fault, Conflict) and tries < TRIES:
            return
        # The server was restarted while the connection was idle. Every statement may be run twice: a repeated claim or
        # write of the same attempt is told what the first one did.
        if reused and tries == 1 and isinstance(error, DBAPIError) and error.connection_invalidated:
            return
        raise fault from error

    def _fault(self, error: SQLAlchemyError) -> StoreError:
        if isinstance(error, sqlalchemy.exc.TimeoutError):
            return StoreUnavailable(
                f"All {self._size} connections are busy; try again later, or open the store with a larger pool_size."
            )
        orig = error.orig if isinstance(error, DBAPIError) else None
        fault = self._translate(orig or error)
        if isinstance(fault, RowLocked):
            fault.waited_for = self.lock_wait * 1_000
        return fault

    async def _in_thread(self, function: Callable[[A], R], argument: A) -> R:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self._size, "sameas-mssql")
        return await asyncio.get_running_loop().run_in_executor(self._threads, function, argument)


def open_backend(
    url: str,
    *,
    pool_size: int = 10,
    timeout: float = 5.0,
    lock_timeout: float = 2.0,
    strict: bool = True,
    skew: int = 0,
    create: bool = True,
) -> SqlBackend:
    """Records in the database of `mysql+pymysql://user@host/database` or `mssql+mssqlpython://user@host/database`.

    No call waits longer than `timeout` seconds for a connection or an answer, nor longer than `lock_timeout` for a row
    that a transaction holds. `create=False` leaves the tables to somebody with more rights. `strict` refuses a MariaDB
    or MySQL that does not flush every commit to its disk.
    """
    try:
        performer = SqlAlchemyPerformer(
            url, pool_size=pool_size, timeout=timeout, lock_timeout=lock_timeout, strict=strict, skew=skew
        )
    except (ArgumentError, ValueError) as error:
        raise StoreMisconfigured(f"The URL of the store cannot be used: {error}. Check its driver and port.") from error
    if create:
        try:
            performer.migrate()
        except BaseException:
            performer.close()
            raise
    backend = MsSqlBackend if performer.dialect == "mssql" else MySqlBackend
    return backend(performer, dialect=performer.dialect)


def _connect(dialect: Any, _: Any, arguments: Any, options: Any) -> Any:
    """A new connection of the driver, which finds out only here what a URL asks of it."""
    # Microsoft's driver keeps this one apart from its other errors.
    unreadable = getattr(dialect.loaded_dbapi, "ConnectionStringParseError", TypeError)
    try:
        return dialect.connect(*arguments, **options)
    except (unreadable, *_UNUSABLE) as error:
        raise StoreMisconfigured(f"The driver cannot connect with the URL of the store: {error}.") from error


def _refuse_lazy_commits(connection: Any, _: Any) -> None:
    cursor = connection.cursor()
    try:
        cursor.execute("SELECT @@GLOBAL.innodb_flush_log_at_trx_commit")
        (setting,) = cursor.fetchone()
    finally:
        cursor.close()
    # MariaDB's 3 is its 1 with a sync more.
    if setting not in (1, 3):
        raise StoreMisconfigured(
            f"This server does not flush every commit to its disk (innodb_flush_log_at_trx_commit is {setting}), so a "
            "crash can lose finished work, which would be done again: set it to 1. Open the store with strict=False to "
            "use it all the same."
        )


def _mark(connection: Connection | None) -> bool:
    """Whether this connection served before."""
    assert connection is not None
    info = connection.info
    reused = "sameas_used" in info
    info["sameas_used"] = True
    return reused
