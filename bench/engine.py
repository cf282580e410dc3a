"""`./run bench engine`: the engine on embedded stores, against what one would write by hand without its promise; in
memory by processor time, on SQLite by wall time.
"""

import asyncio
import gc
import itertools
import json
import sqlite3
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

from bench.measure import acompare, compare
from bench.stores.ours import ORDER
from sameas import AsyncEngine, Engine, open_async_store, open_store
from sameas.identity.key import content_key, record_digest

RESULT = {"status": "charged", "amount": 2498, "id": "ch_1"}
GROWN = 1_000_000


def main() -> None:
    import_time()
    memory()
    asyncio.run(async_memory())
    sqlite()
    growth()
    million()


class DictionaryFloor:
    """A dictionary with per-key locks: no leases, no waiting across processes, no bytes."""

    def __init__(self) -> None:
        self.results: dict[bytes, object] = {}
        self.locks: dict[bytes, threading.Lock] = {}
        self.guard = threading.Lock()

    def run(self, work, digest):
        if digest in self.results:
            return self.results[digest]
        with self.guard:
            lock = self.locks.setdefault(digest, threading.Lock())
        with lock:
            if digest not in self.results:
                self.results[digest] = work()
            self.locks.pop(digest, None)
        return self.results[digest]


class AsyncDictionaryFloor:
    """The same with asyncio's locks."""

    def __init__(self) -> None:
        self.results: dict[bytes, object] = {}
        self.locks: dict[bytes, asyncio.Lock] = {}

    async def run(self, work, digest):
        if digest in self.results:
            return self.results[digest]
        async with self.locks.setdefault(digest, asyncio.Lock()):
            if digest not in self.results:
                self.results[digest] = await work()
            self.locks.pop(digest, None)
        return self.results[digest]


def of_content(order) -> bytes:
    return record_digest("", "charge", content_key(order), "content")


def orders():
    return ({**ORDER, "id": f"o-{number}"} for number in itertools.count())


def work(ctx=None):
    return RESULT


async def awork(ctx=None):
    return RESULT


def memory() -> None:
    floor, engine = DictionaryFloor(), Engine(open_store("memory://"))
    for _ in range(2):
        floor.run(work, of_content(ORDER))
        engine.run(work, scope="charge", payload=ORDER)
        floor.run(work, record_digest("", "charge", "k"))
        engine.run(work, scope="charge", key="k")
    print(
        compare(
            "memory, sync, replay, key of the content",
            lambda: floor.run(work, of_content(ORDER)),
            lambda: engine.run(work, scope="charge", payload=ORDER),
            number=3_000,
            target=0.40,
            clock=process_time,
        )
    )
    theirs, ours = orders(), orders()
    print(
        compare(
            "memory, sync, fresh, key of the content",
            lambda: floor.run(work, of_content(next(theirs))),
            lambda: engine.run(work, scope="charge", payload=next(ours)),
            number=3_000,
            target=0.40,
            clock=process_time,
        )
    )
    print(
        compare(
            "memory, sync, replay, explicit key",
            lambda: floor.run(work, record_digest("", "charge", "k")),
            lambda: engine.run(work, scope="charge", key="k"),
            number=5_000,
            clock=process_time,
        )
    )


async def async_memory() -> None:
    floor, engine = AsyncDictionaryFloor(), AsyncEngine(open_async_store("memory://"))
    await floor.run(awork, of_content(ORDER))
    await engine.run(awork, scope="charge", payload=ORDER)
    print(
        await acompare(
            "memory, async, replay, key of the content",
            lambda: floor.run(awork, of_content(ORDER)),
            lambda: engine.run(awork, scope="charge", payload=ORDER),
            number=3_000,
            target=0.40,
            clock=process_time,
        )
    )
    theirs, ours = orders(), orders()
    print(
        await acompare(
            "memory, async, fresh, key of the content",
            lambda: floor.run(awork, of_content(next(theirs))),
            lambda: engine.run(awork, scope="charge", payload=next(ours)),
            number=3_000,
            target=0.40,
            clock=process_time,
        )
    )


class SqliteFloor:
    """INSERT, then UPDATE; SELECT by primary key. As durable as ours: WAL and a sync for every commit."""

    def __init__(self, path: Path) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None)
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.execute("PRAGMA synchronous = FULL")
        self.connection.execute("CREATE TABLE results (key BLOB PRIMARY KEY, result BLOB) WITHOUT ROWID")

    def fresh(self, digest):
        self.connection.execute("INSERT INTO results (key) VALUES (?)", (digest,))
        self.connection.execute("UPDATE results SET result = ? WHERE key = ?", (json.dumps(work()), digest))

    def fresh_with_one_sync(self, digest):
        self.connection.execute("PRAGMA synchronous = NORMAL")
        self.connection.execute("INSERT INTO results (key) VALUES (?)", (digest,))
        self.connection.execute("PRAGMA synchronous = FULL")
        self.connection.execute("UPDATE results SET result = ? WHERE key = ?", (json.dumps(work()), digest))

    def replay(self, digest):
        return json.loads(self.connection.execute("SELECT result FROM results WHERE key = ?", (digest,)).fetchone()[0])


def sqlite() -> None:
    with tempfile.TemporaryDirectory() as folder:
        floor = SqliteFloor(Path(folder, "floor.db"))
        engine = Engine(open_store(f"sqlite:///{folder}/sameas.db"))
        theirs, ours = itertools.count(), itertools.count()
        print(
            compare(
                "SQLite, fresh",
                lambda: floor.fresh(record_digest("", "charge", str(next(theirs)))),
                lambda: engine.run(work, scope="charge", key=str(next(ours))),
                # Long enough for both to meet their checkpoints in every round.
                number=600,
                target=0.60,
            )
        )
        print(
            compare(
                "SQLite, fresh, floor that syncs once, as we do",
                lambda: floor.fresh_with_one_sync(record_digest("", "charge", str(next(theirs)))),
                lambda: engine.run(work, scope="charge", key=str(next(ours))),
                number=600,
            )
        )
        print(
            compare(
                "SQLite, replay",
                lambda: floor.replay(record_digest("", "charge", "1")),
                lambda: engine.run(work, scope="charge", key="1"),
                number=2_000,
                target=0.35,
            )
        )


def growth() -> None:
    """The cost of a replay among few records and among a million."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/sameas.db"
        small = _filled(url.replace("sameas.db", "small.db"), 1_000)
        large = _filled(url, GROWN)
        keys = itertools.cycle(range(1_000))
        spread = itertools.cycle(range(0, GROWN, GROWN // 1_000))
        result = compare(
            f"SQLite, replay: floor is 1,000 records, ours {GROWN:,}",
            lambda: small.run(work, scope="s", key=str(next(keys))),
            lambda: large.run(work, scope="s", key=str(next(spread))),
            number=1_000,
        )
        print(f"{result}  (at most 1.5x: {'yes' if result.ours <= 1.5 * result.floor else 'MISSED'})")


def _filled(url: str, count: int) -> Engine:
    """An engine whose file holds so many finished records, put there by one statement."""
    engine = Engine(open_store(url))
    engine.run(work, scope="s", key="0")
    connection = sqlite3.connect(url.removeprefix("sqlite:///"))
    connection.create_function("digest", 1, lambda key: record_digest("", "s", str(key)))
    columns = [name for _, name, *_ in connection.execute("PRAGMA table_info(sameas_records)")]
    changed = {"digest": "digest(n)", "key": "CAST(n AS TEXT)", "id": "lower(hex(randomblob(16)))"}
    copied = ", ".join(changed.get(name, name) for name in columns)
    connection.execute(
        f"""WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {count - 1})
        INSERT INTO sameas_records ({", ".join(columns)}) SELECT {copied} FROM numbers, sameas_records"""
    )
    connection.commit()
    connection.close()
    return engine


def million() -> None:
    """A million distinct keys leave no locks, waiters or threads behind."""
    engine = Engine(open_store("memory://"))
    gc.collect()
    before = len(gc.get_objects())
    began = perf_counter()
    for number in range(GROWN):
        engine.run(work, scope="s", key=str(number))
        if number % 50_000 == 0:
            engine.forget_where(scope="s")
    seconds = perf_counter() - began
    engine.forget_where(scope="s")
    gc.collect()
    print(
        f"{GROWN:,} keys through one engine in {seconds:.1f} s: flights {len(engine._call_builder.in_flight_calls)}, "
        f"heartbeats {len(engine._heartbeat._beats)}, threads {threading.active_count()}, "
        f"objects {len(gc.get_objects()) - before:+}"
    )


def import_time() -> None:
    def seconds(code: str) -> float:
        began = perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        return perf_counter() - began

    bare = median(seconds("pass") for _ in range(7))
    ours = median(seconds("import sameas") for _ in range(7))
    print(f"import sameas: {(ours - bare) * 1e3:.0f} ms beyond Python's own {bare * 1e3:.0f} ms  (at most 150)")


if __name__ == "__main__":
    main()
