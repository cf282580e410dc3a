"""Numbered migrations as a script: each is made once, whichever of many processes comes first.

Where tables can be made inside a transaction, the caller runs this in one, under a lock that ends with it. MySQL ends a
transaction at every change of a table and has only session locks, so there every step may be made twice: what is there
already is left alone. Migrations only add: the release before runs on the tables of the release after.
"""

from __future__ import annotations

from sameas.once.script import Script
from sameas.stores.rows import Row
from sameas.stores.sql import Statement
from sameas.stores.statements import migrations, statements


def is_current(dialect: str) -> Script[bool]:
    """Whether every migration that this release knows was made."""
    sql = statements(dialect)
    rows: list[Row] = yield Statement(sql["versions_there"], {}, reads=True)
    if not rows or rows[0][0] is None:
        return False
    rows = yield Statement(sql["version_last"], {}, reads=True)
    return int(rows[0][0]) >= len(migrations(dialect))


def migrate(dialect: str) -> Script[None]:
    """Make what is missing."""
    sql = statements(dialect)
    if "lock_schema" in sql:
        yield Statement(sql["lock_schema"], {})
    yield Statement(sql["versions_table"], {})
    rows: list[Row] = yield Statement(sql["version_last"], {}, reads=True)
    for number, migration in enumerate(migrations(dialect), 1):
        if number > int(rows[0][0]):
            # A function's body has semicolons of its own; PostgreSQL takes the whole migration in one go.
            for step in [migration] if dialect == "postgres" else migration.split(";\n"):
                yield Statement(step, {})
            yield Statement(sql["version_made"], {"version": number})
