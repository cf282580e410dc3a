"""What a server's errors mean to callers: SQL Server's, as Microsoft's own driver tells them."""

import pytest
from mssql_python import exceptions

from sameas.once.errors import StoreError, StoreMisconfigured, StoreUnavailable
from sameas.stores.faults import Conflict, RowLocked, from_mssql


@pytest.mark.parametrize(
    ("state", "said", "kind", "remedy"),
    [
        ("28000", "Login failed for user 'nobody'.", StoreMisconfigured, "user, password"),
        ("42000", 'Cannot open database "x" requested by the login. The login failed.', StoreMisconfigured, "make the"),
        ("42S02", "Invalid object name 'dbo.IdempotencyKeys'.", StoreMisconfigured, "create=True"),
        ("42S22", "Invalid column name 'Fence'.", StoreMisconfigured, "create=True"),
        ("42000", "CREATE TABLE permission denied in database 'x'.", StoreMisconfigured, "create=True"),
        (
            "42000",
            "The INSERT permission was denied on the object 'IdempotencyKeys'.",
            StoreMisconfigured,
            "create=True",
        ),
        ("IM003", "libodbc: file not found", StoreMisconfigured, "driver of SQL Server"),
        ("HYT00", "Login timeout expired", StoreUnavailable, "later"),
        ("08001", "TCP Provider: Error code 0x2749", StoreUnavailable, "later"),
        ("08S01", "Communication link failure", StoreUnavailable, "later"),
        ("40001", "Transaction (Process ID 51) was deadlocked on lock resources.", Conflict, "again"),
        ("HY000", "Lock request time out period exceeded.", RowLocked, "Another transaction"),
        ("22003", "Arithmetic overflow error converting bigint.", StoreError, "refuses the statement"),
    ],
)
def test_an_error_of_sql_server_says_what_to_do(state, said, kind, remedy):
    error = exceptions.sqlstate_to_exception(state, f"[Microsoft][ODBC Driver 18 for SQL Server][SQL Server]{said}")
    fault = from_mssql(error)
    assert type(fault) is kind
    assert remedy in str(fault)


def test_a_driver_that_is_not_installed_whole_is_not_waited_for():
    error = exceptions.OperationalError("Connection operation failed", "Failed to load the driver. Please read on.")
    assert type(from_mssql(error)) is StoreMisconfigured
