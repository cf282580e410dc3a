"""What can go wrong in a database, told by the server's own codes, as errors of the stores."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import uniform

from sameas.once.errors import StoreError, StoreFull, StoreMisconfigured, StoreUnavailable

# A deadlock or a serialization failure may come again under the same load, but not for ever.
TRIES = 6


class RowLocked(StoreUnavailable):
    """Another transaction holds the row, and the time to wait for it is over."""

    def __init__(self, message: str | None = None, *, waited_for: int = 100_000) -> None:
        # Microseconds; also a fair guess of when to ask again.
        self.waited_for = waited_for
        super().__init__(message, retry_after=max(waited_for / 1e6, 0.1))


class Conflict(StoreUnavailable):
    """The database undid this statement in favour of another (a deadlock, a serialization failure)."""


class Disconnected(StoreUnavailable):
    """The connection to the database broke, so it is not known whether the statement was done."""


_TABLES = (
    "The tables of sameas are missing, are another program's, or are not open to this user: open the store once with "
    "create=True (the default) as a user that may make tables, and give sameas a database or schema of its own."
)

Translate = Callable[[BaseException], StoreError]

# PostgreSQL's own codes; the first two characters are the class.
_PG_CONFLICT = {"40001", "40P01"}
_PG_UNAVAILABLE = {"25006", "57014", "55006"}
_PG_DISCONNECTED = {"57P01", "57P02", "57P03", "57P05", "25P03", "25P04"}

# A connection that was refused has no code. Servers that do not speak English are taken for unavailable.
_PG_REFUSED = re.compile(
    r"(?:database|role|user) .*does not exist|no such (?:database|user)|authentication failed|no pg_hba\.conf entry"
    r"|no password supplied|invalid (?:URI|connection option|port number|integer value|sslmode)|Servname not supported",
)
# No right; and what is not there, or there already, in a schema that is another program's.
_PG_TABLES = {"42501", "42P01", "42P07", "42703", "42883", "42710", "3F000"}
# A statement's name is unknown, or taken by somebody else who used the session before.
_PG_UNNAMED = {"26000", "42P05"}

_MYSQL_CONFLICT = {1213, 1020}
_MYSQL_LOCKED = {1205, 3572}
_MYSQL_DISCONNECTED = {2002, 2003, 2006, 2013, 2014, 2055, 1927, 1053, 4031, 0}
_MYSQL_REFUSED = {1044, 1045, 1046, 1049, 1698}
_MYSQL_TABLES = {1050, 1054, 1142, 1143, 1146, 1227, 1370, 1356}
_MYSQL_UNAVAILABLE = {1040, 1203, 1226, 1290, 1836, 1969, 3024, 1317, 1021, 1114, 1180, 1159, 1161}

_MSSQL_CONFLICT = re.compile(r"deadlock|\b1205\b|\b3960\b", re.IGNORECASE)
_MSSQL_LOCKED = re.compile(r"lock request time ?out|\b1222\b", re.IGNORECASE)
_MSSQL_DRIVER = re.compile(r"failed to load the driver|driver could not be loaded|no default driver", re.IGNORECASE)
_MSSQL_REFUSED = re.compile(
    r"login failed|cannot open (?:database|server)|invalid authorization specification|invalid catalog name",
    re.IGNORECASE,
)
_MSSQL_TABLES = re.compile(
    r"invalid object name|invalid column name|already an object named|permission (?:was )?denied"
    r"|table or view not found|column not found",
    re.IGNORECASE,
)
_MSSQL_UNAVAILABLE = re.compile(
    r"time ?out expired|timed out|communication link|connection|\b(?:10928|10929|40197|40501|40613|49918|1105|9002)\b",
    re.IGNORECASE,
)


def pause_after(tries: int) -> float:
    """Seconds to wait before a statement is run again: those who met once should not meet again."""
    return uniform(0, 0.002 * float(2**tries))


def from_postgres(error: BaseException) -> StoreError:
    """What an error of any PostgreSQL driver means to callers."""
    code = getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)
    if _PG_REFUSED.search(str(error)) if code in (None, "08P01") else code.startswith("28") or code == "3D000":
        return StoreMisconfigured(
            f"PostgreSQL refuses the connection: {_first_line(error)}. Check host, user, password and database in the "
            "URL, and make the role and the database if they are not there yet."
        )
    if code is None:
        return Disconnected(f"PostgreSQL cannot be reached: {_first_line(error)}. Try again later.")
    if code in _PG_CONFLICT:
        return Conflict(f"PostgreSQL could not serialize the work: {_first_line(error)}. Try again.")
    if code == "55P03":
        return RowLocked("Another transaction holds the record.")
    if code in _PG_UNNAMED or (code == "08P01" and "prepared statement" in str(error)):
        return StoreMisconfigured(
            f"A pooler before PostgreSQL does not keep named statements ({_first_line(error)}): open the store with "
            "prepare_threshold=None, or leave it out."
        )
    if code in _PG_DISCONNECTED or code.startswith("08"):
        return Disconnected(f"PostgreSQL closed the connection: {_first_line(error)}. Try again later.")
    if code == "53100":
        return StoreFull(f"The disk of PostgreSQL is full: {_first_line(error)}.")
    if code in _PG_UNAVAILABLE or code.startswith("53"):
        return StoreUnavailable(f"PostgreSQL cannot answer now: {_first_line(error)}. Try again later.")
    if code in _PG_TABLES:
        return StoreMisconfigured(f"PostgreSQL refuses the statement: {_first_line(error)}. {_TABLES}")
    return StoreError(f"PostgreSQL refuses the statement: {_first_line(error)}")


def from_mysql(error: BaseException) -> StoreError:
    """What an error of any MySQL driver means to callers."""
    code = error.args[0] if error.args and isinstance(error.args[0], int) else getattr(error, "errno", None)
    if code is None or code in _MYSQL_DISCONNECTED:
        return Disconnected(f"The MySQL server cannot be reached: {_first_line(error)}. Try again later.")
    if code in _MYSQL_CONFLICT:
        return Conflict(f"The MySQL server undid the work: {_first_line(error)}. Try again.")
    if code in _MYSQL_LOCKED:
        return RowLocked("Another transaction holds the record.")
    if code in _MYSQL_UNAVAILABLE:
        return StoreUnavailable(f"The MySQL server cannot answer now: {_first_line(error)}. Try again later.")
    if code in _MYSQL_REFUSED:
        return StoreMisconfigured(
            f"The MySQL server refuses the connection: {_first_line(error)}. Check host, user, password and database "
            "in the URL, and make the user and the database if they are not there yet."
        )
    if code in _MYSQL_TABLES:
        return StoreMisconfigured(f"The MySQL server refuses the statement: {_first_line(error)}. {_TABLES}")
    return StoreError(f"The MySQL server refuses the statement: {_first_line(error)}")


def from_mssql(error: BaseException) -> StoreError:
    """What an error of any SQL Server driver means to callers."""
    text = str(error)
    if _MSSQL_CONFLICT.search(text):
        return Conflict(f"SQL Server undid the work: {_first_line(error)}. Try again.")
    if _MSSQL_LOCKED.search(text):
        return RowLocked("Another transaction holds the record.")
    # Before what is unavailable: the driver speaks of its connection in these cases, too.
    if _MSSQL_DRIVER.search(text):
        return StoreMisconfigured(f"The driver of SQL Server cannot be used on this machine: {_first_line(error)}.")
    if _MSSQL_REFUSED.search(text):
        return StoreMisconfigured(
            f"SQL Server refuses the connection: {_first_line(error)}. Check host, user, password and database in the "
            "URL, and make the user and the database if they are not there yet."
        )
    if _MSSQL_TABLES.search(text):
        return StoreMisconfigured(f"SQL Server refuses the statement: {_first_line(error)}. {_TABLES}")
    if _MSSQL_UNAVAILABLE.search(text):
        return StoreUnavailable(f"SQL Server cannot answer now: {_first_line(error)}. Try again later.")
    return StoreError(f"SQL Server refuses the statement: {_first_line(error)}")


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0].rstrip(". ") or type(error).__name__
