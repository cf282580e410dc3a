"""`./run bench waiters`: how soon those who wait for somebody else's work are served once it is done, on Redis.

The clock starts when the work returns, so the time includes handing the result in. First 10,000 tasks of one process
wait for one key, then 100 tasks in each of eight processes. The work runs once, or it is an error.
"""

import asyncio
import multiprocessing
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event
from statistics import median, quantiles

from sameas.connections import open_async_store
from sameas.identity.key import record_digest
from sameas.once.async_engine import AsyncEngine
from sameas.once.context import Context
from tests.servers.redis import RedisServer
from tests.servers.round_trips import RedisRequests

SCOPE = "waiters"
ROUNDS = 5
IN_ONE_PROCESS = 10_000
PROCESSES = 8
IN_EACH_PROCESS = 100
ONE_PROCESS_WITHIN_SECONDS = 0.300
PROCESSES_WITHIN_SECONDS = 0.050
# Until everybody certainly waits; no part of what is measured.
GATHER_SECONDS = 0.5
# Long beyond anything measured, so that a process that hangs is an error and not a bench that never ends.
ANSWER_WITHIN_SECONDS = 60.0


Work = Callable[[Context], Coroutine[None, None, str]]


class WaitersFailedError(RuntimeError):
    """The work did not run once, or somebody was not served: the times would mean nothing."""


@dataclass(frozen=True)
class Served:
    """The rounds of one arrangement: seconds from the return of the work until 99 % were served, and until all were."""

    name: str
    p99: float
    last: float
    within: float
    requests: float

    @property
    def reached(self) -> bool:
        return self.p99 <= self.within


@dataclass(frozen=True)
class Crowd:
    """What the waiters of one process saw, by a clock that all processes share."""

    returned_at: list[float]
    served_at: list[float]


def waiters(url: str, *, rounds: int = ROUNDS) -> list[Served]:
    """Both arrangements on one Redis."""
    return [in_one_process(url, rounds=rounds), in_processes(url, rounds=rounds)]


def in_one_process(url: str, *, rounds: int, count: int = IN_ONE_PROCESS) -> Served:
    crowds, requests = [], []
    with asyncio.Runner() as runner:
        engine = AsyncEngine(open_async_store(url))
        try:
            runner.run(_warm(engine, "one-process"))
            for number in range(rounds):
                key = f"one-process-{number}"
                with RedisRequests(url) as seen:
                    crowds.append(runner.run(_gathered(engine, key, count)))
                requests.append(_requests_for(key, seen))
        finally:
            runner.run(engine.close())
    if set(requests) != {2}:
        raise WaitersFailedError(f"one claim and one complete were expected, not {requests} requests")
    return _served(f"{count:,} waiters in one process", crowds, ONE_PROCESS_WITHIN_SECONDS, count, requests)


def in_processes(url: str, *, rounds: int, count: int = IN_EACH_PROCESS) -> Served:
    crowds, requests = [], []
    with _processes(url, count) as (pipes, go):
        for number in range(rounds):
            key = f"processes-{number}"
            go.clear()
            with RedisRequests(url) as seen:
                for pipe in pipes:
                    pipe.send(key)
                for pipe in pipes:
                    _received(pipe)
                time.sleep(GATHER_SECONDS)
                go.set()
                told = [_received(pipe) for pipe in pipes]
            crowds.append(
                Crowd(
                    [at for crowd in told for at in crowd.returned_at],
                    [at for crowd in told for at in crowd.served_at],
                )
            )
            requests.append(_requests_for(key, seen))
    name = f"{PROCESSES} processes with {count} waiters each"
    return _served(name, crowds, PROCESSES_WITHIN_SECONDS, PROCESSES * count, requests)


@contextmanager
def _processes(url: str, count: int) -> Iterator[tuple[list[Connection], Event]]:
    """Processes that are warm: connected, and past their first call."""
    context = multiprocessing.get_context("spawn")
    go = context.Event()
    pipes, members = [], []
    try:
        for number in range(PROCESSES):
            ours, theirs = context.Pipe()
            member = context.Process(target=_member, args=(url, number, count, theirs, go), daemon=True)
            member.start()
            theirs.close()
            pipes.append(ours)
            members.append(member)
        for pipe in pipes:
            _received(pipe)
        yield pipes, go
    finally:
        for pipe in pipes:
            pipe.close()
        for member in members:
            member.join(timeout=ANSWER_WITHIN_SECONDS)
            if member.is_alive():
                member.kill()


def _member(url: str, number: int, count: int, pipe: Connection, go: Event) -> None:
    """One process: for each key it is sent, it says that its waiters have begun, then what they saw."""
    with asyncio.Runner() as runner:
        engine = AsyncEngine(open_async_store(url))
        runner.run(_warm(engine, f"member-{number}"))
        pipe.send("ready")
        try:
            while True:
                key = pipe.recv()
                pipe.send(runner.run(_crowd(engine, key, count, pipe, go)))
        except EOFError:
            runner.run(engine.close())


async def _crowd(engine: AsyncEngine, key: str, count: int, pipe: Connection, go: Event) -> Crowd:
    returned_at: list[float] = []

    async def work(_: Context) -> str:
        await asyncio.to_thread(go.wait, ANSWER_WITHIN_SECONDS)
        returned_at.append(time.monotonic())
        return key

    tasks = [asyncio.create_task(_wait(engine, key, work)) for _ in range(count)]
    await asyncio.sleep(0)
    pipe.send("begun")
    return Crowd(returned_at, await asyncio.gather(*tasks))


async def _gathered(engine: AsyncEngine, key: str, count: int) -> Crowd:
    returned_at: list[float] = []

    async def work(_: Context) -> str:
        await asyncio.sleep(GATHER_SECONDS)
        # Not before all tasks have run up to their wait, however slow the machine is.
        await all_begun.wait()
        returned_at.append(time.monotonic())
        return key

    begun = 0
    all_begun = asyncio.Event()

    async def waiter() -> float:
        nonlocal begun
        begun += 1
        if begun == count:
            all_begun.set()
        return await _wait(engine, key, work)

    tasks = [asyncio.create_task(waiter()) for _ in range(count)]
    return Crowd(returned_at, await asyncio.gather(*tasks))


async def _wait(engine: AsyncEngine, key: str, work: Work) -> float:
    answer: str = await engine.run(work, scope=SCOPE, key=key)
    served_at = time.monotonic()
    if answer != key:
        raise WaitersFailedError(f"{answer!r} was served for {key!r}")
    return served_at


async def _warm(engine: AsyncEngine, key: str) -> None:
    async def work(_: Context) -> str:
        await asyncio.sleep(0.01)
        return key

    await asyncio.gather(*(_wait(engine, key, work) for _ in range(3)))


def _received(pipe: Connection) -> Crowd:
    if not pipe.poll(ANSWER_WITHIN_SECONDS):
        raise WaitersFailedError(f"a process did not answer within {ANSWER_WITHIN_SECONDS:.0f} s")
    told: Crowd = pipe.recv()
    return told


def _requests_for(key: str, seen: RedisRequests) -> int:
    digest = record_digest("", SCOPE, key).hex()
    # A subscription names the record too, and is no request for it.
    return sum(digest in request.text for request in seen.requests if "SUBSCRIBE" not in request.name)


def _served(name: str, crowds: list[Crowd], within: float, count: int, requests: list[int]) -> Served:
    late, last = [], []
    for crowd in crowds:
        if len(crowd.returned_at) != 1 or len(crowd.served_at) != count:
            raise WaitersFailedError(f"{len(crowd.returned_at)} runs, {len(crowd.served_at)} of {count} served")
        times = [at - crowd.returned_at[0] for at in crowd.served_at]
        late.append(quantiles(times, n=100, method="inclusive")[98])
        last.append(max(times))
    return Served(name, median(late), median(last), within, median(requests))


def main(*arguments: str) -> None:
    with RedisServer(appendonly="everysec") as server:
        for served in waiters(server.url):
            verdict = "yes" if served.reached else "MISSED"
            print(
                f"{served.name}: one run, {served.requests:g} requests for the record, 99 % served within "
                f"{served.p99 * 1e3:.1f} ms, all within {served.last * 1e3:.1f} ms "
                f"(99 % within {served.within * 1e3:.0f} ms: {verdict})"
            )


if __name__ == "__main__":
    main()
