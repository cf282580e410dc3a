"""The caller's own transaction: business rows beside the record, and a look at whether they agree afterwards."""

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy

from sameas import Engine
from tests.storm.checker import Verdict
from tests.storm.worker import SCOPE

TABLE = "CREATE TABLE IF NOT EXISTS storm_rows (name VARCHAR(80), result VARCHAR(80))"
INSERT = sqlalchemy.text("INSERT INTO storm_rows VALUES (:name, :result)")
SELECT = sqlalchemy.text("SELECT name, result FROM storm_rows")


class SqliteRows:
    """Rows in the SQLite file of the store, through sqlite3 itself."""

    def __init__(self, path: str) -> None:
        self._path = path
        with sqlite3.connect(path) as connection:
            connection.execute(TABLE)

    @contextmanager
    def __call__(self) -> Iterator[tuple[Any, Callable[[str, str], Any]]]:
        connection = sqlite3.connect(self._path, timeout=5)
        try:
            with connection:
                yield (
                    connection,
                    lambda name, result: connection.execute("INSERT INTO storm_rows VALUES (?, ?)", (name, result)),
                )
        finally:
            connection.close()

    def rows(self) -> list[tuple[str, str]]:
        with sqlite3.connect(self._path) as connection:
            return connection.execute("SELECT name, result FROM storm_rows").fetchall()


class SqlalchemyRows:
    """Rows in any database, through a SQLAlchemy connection that each worker opens for itself."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._engine: sqlalchemy.Engine | None = None
        engine = sqlalchemy.create_engine(url)
        with engine.begin() as connection:
            connection.execute(sqlalchemy.text(TABLE))
        engine.dispose()

    @contextmanager
    def __call__(self) -> Iterator[tuple[Any, Callable[[str, str], Any]]]:
        if self._engine is None:
            self._engine = sqlalchemy.create_engine(self._url)
        with self._engine.begin() as connection:
            yield connection, lambda name, result: connection.execute(INSERT, {"name": name, "result": result})

    def rows(self) -> list[tuple[str, str]]:
        engine = sqlalchemy.create_engine(self._url)
        with engine.connect() as connection:
            found = [(name, result) for name, result in connection.execute(SELECT)]
        engine.dispose()
        return found


def check_rows(rows: list[tuple[str, str]], engine: Engine, verdict: Verdict) -> None:
    """One row for every record, one record for every row, and the same result in both."""
    counts = Counter(name for name, _ in rows)
    verdict.duplicate_rows += [f"{name}: {count} rows" for name, count in counts.items() if count > 1]
    for name, result in rows:
        record = engine.record(lambda context: "no record", scope=SCOPE, key=name)
        if not record.was_replay or record.result != result:
            verdict.orphaned_rows.append(f"{name}: row {result}, record {record.result}")
