"""The one place that opens stores and databases, from URLs; everybody else is handed one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from sameas.once.errors import StoreMisconfigured
from sameas.once.store import AsyncStore, Backend, Store

if TYPE_CHECKING:
    from sameas.databases import Database, Statements


def open_store(url: str, **options: Any) -> Store:
    """A store for threads. See `open_backend` for the URLs."""
    return Store(open_backend(url, **options))


def open_async_store(url: str, **options: Any) -> AsyncStore:
    """A store for tasks. See `open_backend` for the URLs."""
    return AsyncStore(open_backend(url, **options))


def open_backend(url: str, **options: Any) -> Backend:
    """What a URL stands for: `memory://`, `sqlite:///file.db` (four slashes for an absolute path), `redis://`,
    `rediss://`, `redis+cluster://`, `postgresql+psycopg://`, `mysql+pymysql://`, `mssql+mssqlpython://`.

    A driver is imported when its first URL is opened.
    """
    match urlsplit(url).scheme.partition("+")[0]:
        case "memory":
            from sameas.stores.memory import MemoryBackend

            return MemoryBackend(**options)
        case "sqlite":
            from sameas.stores.sql import SqlBackend
            from sameas.stores.sqlite import SqlitePerformer

            return SqlBackend(SqlitePerformer(_sqlite_path(url), **options), dialect="sqlite")
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
    path = unquote(url.removeprefix("sqlite://").removeprefix("/"))
    if not path or path == ":memory:":
        raise ValueError("SQLite needs a file, such as sqlite:///sameas.db; for records in memory use memory://")
    return path
