"""Many callers at once: one run per key, and the same bytes for everybody."""

import asyncio
import multiprocessing
import os
import random
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from sameas import AsyncEngine, Engine, open_async_store, open_store

KEYS = [f"key-{number}" for number in range(1_000)]


def url(kind, folder):
    return "memory://" if kind == "memory" else f"sqlite:///{folder}/records.db"


def shuffled(seed):
    keys = list(KEYS)
    random.Random(seed).shuffle(keys)
    return keys


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_64_threads_on_1000_keys(kind, tmp_path):
    engine = Engine(open_store(url(kind, tmp_path)))
    runs = Counter()
    gate = threading.Barrier(64)

    def caller(seed):
        gate.wait()
        return {key: engine.run(lambda ctx, key=key: work(key), scope="s", key=key) for key in shuffled(seed)}

    def work(key):
        runs[key] += 1
        return {"key": key, "by": threading.get_ident(), "random": os.urandom(8).hex()}

    with ThreadPoolExecutor(64) as threads:
        answers = list(threads.map(caller, range(64)))
    assert runs == Counter(KEYS)
    assert all(answer == answers[0] for answer in answers)


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_64_tasks_on_1000_keys(kind, tmp_path):
    runs = Counter()

    async def main():
        engine = AsyncEngine(open_async_store(url(kind, tmp_path)))

        async def work(key):
            runs[key] += 1
            await asyncio.sleep(0)
            return {"key": key, "random": os.urandom(8).hex()}

        async def caller(seed):
            return {key: await engine.run(lambda ctx, key=key: work(key), scope="s", key=key) for key in shuffled(seed)}

        answers = await asyncio.gather(*(caller(seed) for seed in range(64)))
        await engine.close()
        return answers

    answers = asyncio.run(main())
    assert runs == Counter(KEYS)
    assert all(answer == answers[0] for answer in answers)


def race(folder, seed, gate, results):
    with (
        Engine(open_store(f"sqlite:///{folder}/records.db")) as engine,
        (folder / "runs").open("a", buffering=1) as log,
    ):

        def work(key):
            log.write(f"{key}\n")
            return {"pid": os.getpid(), "random": os.urandom(8).hex()}

        gate.wait()
        results.put({key: engine.run(lambda ctx, key=key: work(key), scope="s", key=key) for key in shuffled(seed)})


def test_16_processes_on_1000_keys(tmp_path):
    fork = multiprocessing.get_context("fork")
    gate, results = fork.Barrier(16), fork.Queue()
    processes = [fork.Process(target=race, args=(tmp_path, seed, gate, results)) for seed in range(16)]
    for process in processes:
        process.start()
    answers = [results.get(timeout=100) for _ in processes]
    for process in processes:
        process.join()
    assert Counter((tmp_path / "runs").read_text().split()) == Counter(KEYS)
    assert all(answer == answers[0] for answer in answers)
    assert len({answer["pid"] for answer in answers[0].values()}) > 1, "the work was shared out"


def test_many_keys_leave_nothing_behind():
    """The million of the issue is run by `./run bench engine`; a tenth of it here."""
    engine = Engine(open_store("memory://"))
    threads = threading.active_count()
    for number in range(100_000):
        engine.run(lambda ctx: None, scope="s", key=str(number), lease=600.0)
        if number % 10_000 == 0:
            engine.forget_where(scope="s")
    assert len(engine._call_builder.in_flight_calls) == 0
    assert engine._heartbeat._beats == {}
    assert engine.store.backend._listeners == {}
    assert threading.active_count() <= threads + 1


def test_many_keys_leave_no_tasks_behind():
    async def main():
        engine = AsyncEngine(open_async_store("memory://"))
        for number in range(20_000):
            await engine.run(lambda ctx: None, scope="s", key=str(number))
        assert len(asyncio.all_tasks()) == 1
        assert len(engine._call_builder.in_flight_calls) == 0
        assert all(not beats._beats and not beats._renewals for beats in engine._heartbeat._loops.values())

    asyncio.run(main())


def test_ten_thousand_waiters_on_one_key_are_all_served():
    async def main():
        engine = AsyncEngine(open_async_store("memory://"))
        runs = []
        go = asyncio.Event()

        async def work(ctx):
            runs.append(1)
            await go.wait()
            return "served"

        calls = [asyncio.create_task(engine.run(work, scope="s", key="k")) for _ in range(10_000)]
        await asyncio.sleep(0)
        while (
            sum(len(flight.followers) for flight in engine._call_builder.in_flight_calls._in_flight_calls.values())
            < 9_999
        ):
            await asyncio.sleep(0.01)
        go.set()
        assert set(await asyncio.gather(*calls)) == {"served"}
        assert runs == [1]

    began = time.monotonic()
    asyncio.run(main())
    assert time.monotonic() - began < 60
