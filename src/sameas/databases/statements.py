"""The SQL of one part of the house: a file of named statements, one line of purpose each, values written `:name`.

SQLite and PostgreSQL share every statement but the schema, whose numbered steps are named `schema_sqlite_1`,
`schema_postgres_1` and so on. Steps only add: the release before runs on the tables of the release after.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files

import msgspec

_NAME = re.compile(r"^-- name: (\w+)\n-- purpose: .+\n", re.MULTILINE)


class Statements(msgspec.Struct, frozen=True):
    """The statements of a part, by name."""

    part: str
    named: Mapping[str, str]

    @staticmethod
    @lru_cache
    def of(package: str, file: str) -> "Statements":
        """The statements of `sql/{file}.sql` in a package."""
        text = files(package).joinpath("sql", f"{file}.sql").read_text("utf-8")
        _, *parts = _NAME.split(text)
        return Statements(file, dict(zip(parts[::2], (sql.strip() for sql in parts[1::2]), strict=True)))

    def __getitem__(self, name: str) -> str:
        return self.named[name]

    def schema(self, dialect: str) -> list[str]:
        """The steps that make the tables, in order."""
        prefix = f"schema_{dialect}_"
        numbers = sorted(int(name.removeprefix(prefix)) for name in self.named if name.startswith(prefix))
        if not numbers or numbers != list(range(1, len(numbers) + 1)):
            raise ValueError(f"the schema of {self.part} for {dialect} has the steps {numbers}; they must be 1, 2, ...")
        return [self.named[f"{prefix}{number}"] for number in numbers]
