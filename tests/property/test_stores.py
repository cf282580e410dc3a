"""Random lives of records agree with the protocol, in every embedded store."""

import tempfile
from pathlib import Path

from sameas.once.store import AsyncStore, Store
from sameas.stores.memory import MemoryBackend
from sameas.stores.sqlite import SqliteBackend, SqlitePerformer
from sameas.testing.machine import machine_for

FOLDER = tempfile.TemporaryDirectory()


def sqlite(clock):
    path = Path(tempfile.mkdtemp(dir=FOLDER.name), "records.db")
    return SqliteBackend(SqlitePerformer(path, clock=clock, synchronous="OFF"), dialect="sqlite")


TestMemory = machine_for(lambda clock: Store(MemoryBackend(clock)), examples=100).TestCase
TestAsyncMemory = machine_for(lambda clock: AsyncStore(MemoryBackend(clock))).TestCase
TestSqlite = machine_for(lambda clock: Store(sqlite(clock)), examples=60).TestCase
TestAsyncSqlite = machine_for(lambda clock: AsyncStore(sqlite(clock)), examples=20).TestCase
