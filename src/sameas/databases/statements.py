"""The SQL of one part of the house: a file of named statements, one line of purpose each, values written `:name`.

SQLite and PostgreSQL share every statement but the schema, whose numbered steps are named `schema_sqlite_1`,
`schema_postgres_1` and so on. Steps only add: the release before runs on the tables of the release after.
"""

from collections.abc import Mapping

import msgspec

from sameas.stores.statements import numbered, read_statements


class Statements(msgspec.Struct, frozen=True):
    """The statements of a part, by name."""

    part: str
    named: Mapping[str, str]

    @staticmethod
    def of(package: str, file: str) -> "Statements":
        """The statements of `sql/{file}.sql` in a package."""
        return Statements(file, read_statements(package, file))

    def __getitem__(self, name: str) -> str:
        return self.named[name]

    def schema(self, dialect: str) -> list[str]:
        """The steps that make the tables, in order."""
        return numbered(self.named, f"schema_{dialect}_")
