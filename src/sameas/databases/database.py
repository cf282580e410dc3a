"""What a database of plain tables is: transactions in which named statements are run.

Rule: every statement runs inside a transaction that is committed as a whole or not at all; a fault is a StoreError that
says whether to try again. Blocking: asyncio code calls it in a thread. One object serves all threads and survives a
fork.

`Statements` are the SQL of one part of the house: a file of named statements, one line of purpose each, values written
`:name`. SQLite and PostgreSQL share every statement but the schema, whose numbered steps are named `schema_sqlite_1`,
`schema_postgres_1` and so on. Steps only add: the release before runs on the tables of the release after.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol, TypeAlias

import msgspec

from sameas.once.errors import StoreError
from sameas.stores.statements import numbered, read_statements

Row: TypeAlias = tuple[Any, ...]

_OLD_NAME = {
    "sqlite": "SELECT 1 FROM pragma_table_info('sameas_schema') WHERE name = 'part'",
    "postgres": "SELECT 1 FROM information_schema.columns WHERE table_schema = current_schema() "
    "AND table_name = 'sameas_schema' AND column_name = 'part'",
}
_VERSIONS = "CREATE TABLE IF NOT EXISTS sameas_parts (part TEXT PRIMARY KEY, version INTEGER NOT NULL)"
_MADE = """INSERT INTO sameas_parts (part, version) VALUES (:part, :version)
ON CONFLICT (part) DO UPDATE SET version = excluded.version"""


NOT_A_TEXT = "a text has half a character (a lone surrogate) in it, which no encoding can write. Give it without"


class RowRefused(StoreError):
    """A constraint of the table refuses the row: it is there already, or a value is not allowed."""


class Work(Protocol):
    """A transaction of a driver: runs SQL text, tells rows and how many were changed."""

    def execute(self, sql: str, values: dict[str, Any]) -> tuple[list[Row], int]: ...

    def execute_many(self, sql: str, values: Sequence[dict[str, Any]]) -> None: ...

    def stream(self, sql: str, values: dict[str, Any]) -> Iterator[Row]: ...

    def script(self, sql: str) -> None: ...


class Driver(Protocol):
    """One kind of database."""

    dialect: str

    def transaction(self, *, writes: bool, durable: bool) -> AbstractContextManager[Work]: ...

    def read(self, sql: str, values: dict[str, Any]) -> list[Row]:
        """The rows of one statement that changes nothing, in as few round trips as there can be."""
        ...

    def lock_schema(self, work: Work) -> None:
        """Let one process at a time change the tables, until the transaction ends."""

    def truncate_log(self) -> None:
        """Leave nothing of what was deleted in files beside the tables."""

    def close(self) -> None: ...


class Session:
    """The statements of one transaction."""

    def __init__(self, work: Work, statements: Statements) -> None:
        self._work = work
        self._statements = statements
        self.changed = 0

    def run(self, name: str, /, **values: Any) -> list[Row]:
        """Run a named statement; `changed` tells how many rows it changed."""
        rows, self.changed = self._work.execute(self._statements[name], values)
        return rows

    def run_many(self, name: str, rows: Sequence[dict[str, Any]], /) -> None:
        """Run a named statement once for each set of values."""
        if rows:
            self._work.execute_many(self._statements[name], rows)

    def stream(self, name: str, /, **values: Any) -> Iterator[Row]:
        """The rows of a named statement as they come, a few in memory at a time; to be read inside the transaction."""
        return self._work.stream(self._statements[name], values)

    def one(self, name: str, /, **values: Any) -> Row | None:
        """The first row, or None."""
        rows = self.run(name, **values)
        return rows[0] if rows else None


class Statements(msgspec.Struct, frozen=True):
    """The statements of a part, by name."""

    part: str
    named: Mapping[str, str]

    @staticmethod
    def of(package: str, file: str) -> Statements:
        """The statements of `sql/{file}.sql` in a package."""
        return Statements(file, read_statements(package, file))

    def __getitem__(self, name: str) -> str:
        return self.named[name]

    def schema(self, dialect: str) -> list[str]:
        """The steps that make the tables, in order."""
        return numbered(self.named, f"schema_{dialect}_")


class Database:
    """The tables of one part of the house; they are made when it is opened."""

    def __init__(self, driver: Driver, statements: Statements) -> None:
        self._driver = driver
        self._statements = statements
        self._migrate()

    @property
    def dialect(self) -> str:
        return self._driver.dialect

    @contextmanager
    def transaction(self, *, durable: bool = True) -> Iterator[Session]:
        """Write, all or nothing. Without `durable` a power cut may undo it, a killed process may not."""
        with self._driver.transaction(writes=True, durable=durable) as work:
            yield Session(work, self._statements)

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """Read, without waiting for writers."""
        with self._driver.transaction(writes=False, durable=False) as work:
            yield Session(work, self._statements)

    def read(self, name: str, /, **values: Any) -> list[Row]:
        """The rows of one named statement that changes nothing."""
        return self._driver.read(self._statements[name], values)

    def truncate_log(self) -> None:
        """After a deletion that must leave no trace: empty the log that SQLite keeps beside its file."""
        self._driver.truncate_log()

    def close(self) -> None:
        self._driver.close()

    def _migrate(self) -> None:
        steps = self._statements.schema(self._driver.dialect)
        part = {"part": self._statements.part}
        with self._driver.transaction(writes=True, durable=True) as work:
            self._driver.lock_schema(work)
            # The table was called as that of the records, and then the two could not share a database.
            if work.execute(_OLD_NAME[self._driver.dialect], {})[0]:
                work.script("ALTER TABLE sameas_schema RENAME TO sameas_parts")
            work.script(_VERSIONS)
            rows, _ = work.execute("SELECT version FROM sameas_parts WHERE part = :part", part)
            made = rows[0][0] if rows else 0
            for number, step in enumerate(steps[made:], made + 1):
                work.script(step)
                work.execute(_MADE, {**part, "version": number})
