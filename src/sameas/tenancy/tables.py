"""The tables of tenants, cases and keys, in SQLite or PostgreSQL; statements are in `sql/tenancy.sql`."""

from __future__ import annotations

from datetime import UTC, datetime

from sameas.connections import open_database
from sameas.databases import Database, Statements
from sameas.identity.canonical import instant


def open_tables(url: str) -> Database:
    """The database of tenants; its tables are made where they are not there."""
    return open_database(url, Statements.of("sameas.tenancy", "tenancy"))


def utc_now() -> datetime:
    return datetime.now(UTC)


def stamp(moment: datetime) -> str:
    """A time as the tables have it: UTC, so that earlier sorts before later."""
    if moment.tzinfo is None:
        raise ValueError("a time needs its zone")
    return instant(moment)
