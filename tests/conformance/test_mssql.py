"""The store on MS SQL Server keeps the contract, for threads and for tasks.

It needs a server of one's own: SAMEAS_TEST_MSSQL_URL, such as mssql+mssqlpython://sa:...@host/tempdb. Without one this
is not run, in CI neither; the statements are checked by Microsoft's compiler in any case.
"""

import os

import pytest
import sqlalchemy

from sameas.once.store import AsyncStore, Store
from sameas.stores.sqlalchemy import open_backend
from sameas.testing import Capabilities, StoreConformance

URL = os.environ.get("SAMEAS_TEST_MSSQL_URL", "")

pytestmark = pytest.mark.skipif(not URL, reason="not run: SAMEAS_TEST_MSSQL_URL names no server")


class TestMsSql(StoreConformance):
    capabilities = Capabilities(movable_clock=True)

    def open(self):
        self.backend = open_backend(URL, pool_size=4)
        engine = sqlalchemy.create_engine(URL)
        with engine.begin() as connection:
            connection.exec_driver_sql("DELETE FROM [dbo].[IdempotencyKeys]")
        engine.dispose()
        return self.driven_by(self.backend)

    def driven_by(self, backend):
        return Store(backend)

    def advance(self, seconds):
        self.backend.performer.skew += round(seconds * 1_000_000)


class TestAsyncMsSql(TestMsSql):
    def driven_by(self, backend):
        return AsyncStore(backend)
