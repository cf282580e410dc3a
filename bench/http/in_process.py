"""Requests as ASGI messages, without a server: what the middleware itself costs. Every fresh request has a key and a
body of its own; a replay repeats one.

Wall time counts whoever else is on the machine. Processor time is that of this process and of Redis together: what wall
time would be on one core with nobody else there.
"""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import count
from time import clock_gettime, perf_counter, process_time

import uvloop

from bench.http.apps import BARE, FLOOR, NAMES, OURS, TIER, application
from bench.http.asking import request
from bench.stores.turns import WARMING, Contestant, Effort, Figure, contest

FRESH_AT_LEAST, REPLAY_AT_LEAST, TIER_AT_LEAST = 0.85, 0.80, 0.60

NUMBERS = count()
Clock = Callable[[], float]


def clocks(redis_pid: int) -> dict[str, Clock]:
    """By name; the clock of another process is Linux's own (clock_getcpuclockid)."""
    theirs = (~redis_pid << 3) | 2
    return {"wall": perf_counter, "processor": lambda: process_time() + clock_gettime(theirs)}


def figures(url: str, effort: Effort, *, redis_pid: int) -> dict[str, list[Figure]]:
    """The tables by their titles."""
    tables = {}
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        apps = {name: application(name, url) for name in NAMES}
        for clock, now in clocks(redis_pid).items():
            for kind, floor, goals in (
                ("fresh", FLOOR, {OURS: FRESH_AT_LEAST}),
                ("replay", FLOOR, {OURS: REPLAY_AT_LEAST}),
                ("replay from the local tier", BARE, {TIER: TIER_AT_LEAST}),
            ):
                names = (BARE, TIER) if floor == BARE else (BARE, FLOOR, OURS)
                contestants = [
                    Contestant(
                        name,
                        _turn(runner, _calls(apps[name], kind), now),
                        "" if name == floor else floor,
                        goals.get(name),
                    )
                    for name in names
                ]
                tables[f"In process, {kind}, {clock} time"] = contest(contestants, effort)
    return tables


def _calls(app, kind: str) -> Callable[[], Awaitable[None]]:
    if kind == "fresh":
        return lambda: request(app, next(NUMBERS))
    number = next(NUMBERS)
    return lambda: request(app, number)


def _turn(runner: asyncio.Runner, call: Callable[[], Awaitable[None]], now: Clock) -> Callable[[int], float]:
    async def turn(calls: int) -> float:
        for _ in range(WARMING):
            await call()
        began = now()
        for _ in range(calls):
            await call()
        return now() - began

    return lambda calls: runner.run(turn(calls))
