"""The one place that opens stores and databases, from URLs; everybody else is handed one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack, cast
from urllib.parse import unquote, urlsplit

from sameas.once.errors import StoreMisconfigured
from sameas.once.store import AsyncStore, Backend, Store

if TYPE_CHECKING:
    from sameas.databases import Database, Statements


class StoreOptions(TypedDict, total=False):
    """What may be said about a store beside its URL; each kind of store takes those that are its own.

    clock: memory and SQLite; a function of no arguments that gives microseconds since 1970.
    busy_timeout: SQLite; seconds to wait for another writer, 10 by default.
    synchronous: SQLite; `FULL` (the default) keeps what was accepted through a power cut.
    strict: servers; refuse one whose settings would lose records. True by default.
    timeout: servers; seconds for one try of a call.
    wait: Redis; how many replicas must have a result before it counts, 0 by default.
    prefix: Redis; what every key begins with.
    max_connections: Redis; of one process.
    skew_micros: Redis; added to the server's clock, for tests.
    pool_size: SQL servers; connections of one process, 10 by default.
    lock_timeout: SQL servers; seconds to wait for a row that a transaction holds, 2 by default.
    create: SQL servers; make the tables if they are missing. True by default.
    skew: SQL servers; microseconds added to the server's clock, for tests.
    listen_url: PostgreSQL; where to listen for wake-ups if the URL is that of a pooler.
    prepare_threshold: PostgreSQL; how often a statement is sent before it gets a name.
    """

    clock: Callable[[], int]
    busy_timeout: float
    synchronous: Literal["EXTRA", "FULL", "NORMAL", "OFF"]
    strict: bool
    timeout: float
    wait: int
    prefix: str
    max_connections: int
    skew_micros: int
    pool_size: int
    lock_timeout: float
    create: bool
    skew: int
    listen_url: str | None
    prepare_threshold: int | Literal["auto"] | None


def open_store(url: str, **options: Unpack[StoreOptions]) -> Store:
    """A store for threads: `memory://`, `sqlite:///file.db`, `redis://`, `postgresql+psycopg://`, ...

    Options are those of `StoreOptions`; which kind takes which is said there. Raises ValueError for a URL of no store,
    TypeError for an option that this kind does not have, and StoreMisconfigured if a package is missing or the server
    would not keep the promise.
    """
    return Store(open_backend(url, **options))


def open_async_store(url: str, **options: Unpack[StoreOptions]) -> AsyncStore:
    """A store for tasks; URLs, options and errors are those of `open_store`."""
    return AsyncStore(open_backend(url, **options))


def open_backend(url: str, **given: Unpack[StoreOptions]) -> Backend:
    """What a URL stands for: `memory://`, `sqlite:///file.db` (four slashes for an absolute path), `redis://`,
    `rediss://`, `redis+cluster://`, `postgresql+psycopg://`, `mysql+pymysql://`, `mssql+mssqlpython://`.

    A driver is imported when its first URL is opened. Options and errors are those of `open_store`.
    """
    # Which of them a kind has, it says itself.
    options = cast(dict[str, Any], given)
    match urlsplit(url).scheme.partition("+")[0]:
        case "memory":
            from sameas.stores.memory import MemoryBackend

            return MemoryBackend(**options)
        case "sqlite":
            from sameas.stores.sqlite import SqliteBackend, SqlitePerformer

            return SqliteBackend(SqlitePerformer(_sqlite_path(url), **options), dialect="sqlite")
        case "redis" | "rediss":
            with _needing("redis"):
                from sameas.stores import redis

            return redis.open_backend(url, **options)
        case "postgresql" | "postgres":
            with _needing("postgres"):
                from sameas.stores import postgres

            return postgres.open_backend(url, **options)
        case "mysql" | "mariadb" | "mssql" as kind:
            with _needing("mssql" if kind == "mssql" else "mysql"):
                from sameas.stores import sqlalchemy

                return sqlalchemy.open_backend(url, **options)
        case _:
            raise ValueError(
                f"{url.partition('://')[0]!r} is no kind of store: use memory://, sqlite:///file.db, redis://, "
                "rediss://, redis+cluster://, postgresql+psycopg://, mysql+pymysql:// or mssql+mssqlpython://"
            )


def open_database(url: str, statements: Statements) -> Database:
    """Tables for these statements: `sqlite:///file.db` or `postgresql+psycopg://...`."""
    match urlsplit(url).scheme.partition("+")[0]:
        case "sqlite":
            from sameas.databases import Database
            from sameas.databases.sqlite import SqliteDriver

            return Database(SqliteDriver(_sqlite_path(url)), statements)
        case "postgresql" | "postgres":
            from sameas.databases import Database

            with _needing("postgres"):
                from sameas.databases.postgres import PostgresDriver

            return Database(PostgresDriver(url), statements)
        case scheme:
            raise ValueError(
                f"{scheme!r} is no database for tables: use SQLite, such as sqlite:///sameas.db, or PostgreSQL, such "
                "as postgresql+psycopg://localhost/sameas"
            )


@contextmanager
def _needing(extra: str) -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        raise StoreMisconfigured(f"this store needs another package: pip install 'sameas[{extra}]'") from error


def _sqlite_path(url: str) -> str:
    if not url.startswith("sqlite://"):
        raise ValueError(f"{url!r} is no URL of SQLite: write sqlite:///file.db, four slashes for an absolute path")
    if "?" in url:
        raise ValueError("a URL of SQLite has no options: give them to open_store, and write %3F for a ? in a name")
    path = unquote(url.removeprefix("sqlite://").removeprefix("/"))
    if not path or path == ":memory:":
        raise ValueError("SQLite needs a file, such as sqlite:///sameas.db; for records in memory use memory://")
    if "\0" in path:
        raise ValueError("the path of a SQLite file must not hold a zero byte")
    return path
