"""Both engines behind one face, so that every test of an observer is run for threads and for tasks."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from time import sleep
from typing import Any

from sameas.once.async_engine import AsyncEngine
from sameas.once.codec import JSON, frame
from sameas.once.engine import Engine
from sameas.once.observe import Observer
from sameas.once.policy import Policy, micros
from sameas.once.record import Acquired, ClaimRequest, Lease, Outcome
from sameas.once.store import AsyncStore, Backend, Selection, Store
from sameas.stores.memory import MemoryBackend

Work = Callable[..., Any]


class Clock:
    """The store's time, moved by hand."""

    def __init__(self) -> None:
        self.now = 1_700_000_000_000_000

    def __call__(self) -> int:
        return self.now

    def forward(self, seconds: float) -> None:
        self.now += int(seconds * 1_000_000)


class SyncDrive:
    """An `Engine`."""

    name = "sync"

    def __init__(self, *observers: Observer, backend: Backend | None = None, policy: Policy | None = None) -> None:
        self.backend = backend or MemoryBackend()
        self.engine = Engine(Store(self.backend), observers=observers, policy=policy)

    def run(self, work: Work, **options: Any) -> Any:
        return self.engine.run(work, **options)

    def run_many(self, work: Work, payloads: Sequence[Any], **options: Any) -> Any:
        return self.engine.run_many(work, payloads, **options)

    def forget(self, scope: str, key: str, **options: Any) -> bool:
        return self.engine.forget(scope, key, **options)

    def forget_where(self, **which: str) -> int:
        return self.engine.store.forget_where(Selection(**which))

    def prune(self) -> int:
        return self.engine.prune()


class AsyncDrive:
    """An `AsyncEngine`, with an event loop per operation."""

    name = "async"

    def __init__(self, *observers: Observer, backend: Backend | None = None, policy: Policy | None = None) -> None:
        self.backend = backend or MemoryBackend()
        self.engine = AsyncEngine(AsyncStore(self.backend), observers=observers, policy=policy)

    def run(self, work: Work, **options: Any) -> Any:
        return asyncio.run(self.engine.run(work, **options))

    def run_many(self, work: Work, payloads: Sequence[Any], **options: Any) -> Any:
        return asyncio.run(self.engine.run_many(work, payloads, **options))

    def forget(self, scope: str, key: str, **options: Any) -> bool:
        return asyncio.run(self.engine.forget(scope, key, **options))

    def forget_where(self, **which: str) -> int:
        return asyncio.run(self.engine.store.forget_where(Selection(**which)))

    def prune(self) -> int:
        return asyncio.run(self.engine.prune())


DRIVES = (SyncDrive, AsyncDrive)


class Collected:
    """An observer that keeps what it is told."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    def on(self, event: Any) -> None:
        self.events.append(event)


def steal(backend: Backend, clock: Clock, identity: Any, *, lease_for: float) -> None:
    """Another worker takes the work over, after the lease, and finishes it."""
    clock.forward(lease_for + 1)
    store = Store(backend)
    request = ClaimRequest(identity, "", "thief", micros(60), micros(3600))
    claim = store.claim(request)
    assert isinstance(claim, Acquired)
    lease = Lease(identity, claim.fence, "thief")
    store.complete(lease, outcome=Outcome(frame(b'"theirs"'), JSON), retain_for=micros(3600))


def shared_by_two(drive: Any, work_result: Any = "done", **options: Any) -> None:
    """Two calls of one key at once: the second comes while the first works, and shares its result."""
    if isinstance(drive, AsyncDrive):
        asyncio.run(_share_in_tasks(drive, work_result, options))
    else:
        _share_in_threads(drive, work_result, options)


async def _share_in_tasks(drive: AsyncDrive, work_result: Any, options: dict[str, Any]) -> None:
    working, finish = asyncio.Event(), asyncio.Event()

    async def work(ctx: Any) -> Any:
        working.set()
        await finish.wait()
        return work_result

    leader = asyncio.create_task(drive.engine.run(work, **options))
    await working.wait()
    follower = asyncio.create_task(drive.engine.run(work, **options))
    while not _followers(drive):
        await asyncio.sleep(0)
    finish.set()
    assert list(await asyncio.gather(leader, follower)) == [work_result, work_result]


def _share_in_threads(drive: SyncDrive, work_result: Any, options: dict[str, Any]) -> None:
    working, finish = Event(), Event()

    def work(ctx: Any) -> Any:
        working.set()
        assert finish.wait(10)
        return work_result

    with ThreadPoolExecutor(2) as pool:
        leader = pool.submit(lambda: drive.engine.run(work, **options))
        assert working.wait(10)
        follower = pool.submit(lambda: drive.engine.run(work, **options))
        while not _followers(drive):
            sleep(0.001)
        finish.set()
        assert leader.result(10) == follower.result(10) == work_result


def _followers(drive: Any) -> int:
    return sum(
        len(in_flight.followers) for in_flight in drive.engine._call_builder.in_flight_calls._in_flight_calls.values()
    )
