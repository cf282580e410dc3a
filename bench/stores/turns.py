"""Contestants that take turns: each round is many short turns, so that a busy moment of the machine meets all alike.

A contestant's figure of a round is the median of its turns, which a moment that went to another process does not move;
its figure is the median over the rounds. Its share of the floor is the median of the shares of each round:
floor and contestant of one round met the same machine.
"""

import asyncio
import gc
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from random import Random
from statistics import median
from time import perf_counter

# The processor's caches are another's when a turn begins: the first calls are not counted.
WARMING = 5

# Does so many calls, after those that warm it, and answers the seconds they took.
Turn = Callable[[int], float]


@dataclass(frozen=True)
class Contestant:
    """Who takes turns; `floor` names the contestant to compare with, `at_least` the share of its speed to reach."""

    name: str
    turn: Turn
    floor: str = ""
    at_least: float | None = None


@dataclass(frozen=True)
class Effort:
    """How much is measured: rounds of turns of calls."""

    rounds: int
    turns: int
    calls: int


@dataclass(frozen=True)
class Figure:
    """What one contestant took: seconds per call, and the share of the floor's speed; the floor has none."""

    name: str
    seconds: float
    share: float | None
    at_least: float | None
    round_trips: float | None = None


def sync_turn(call: Callable[[], object]) -> Turn:
    """Turns of a function."""

    def turn(calls: int) -> float:
        for _ in range(WARMING):
            call()
        began = perf_counter()
        for _ in range(calls):
            call()
        return perf_counter() - began

    return turn


def async_turn(runner: asyncio.Runner, call: Callable[[], Awaitable[object]]) -> Turn:
    """Turns of a coroutine function on one event loop, which stands still between them."""

    async def turn(calls: int) -> float:
        for _ in range(WARMING):
            await call()
        began = perf_counter()
        for _ in range(calls):
            await call()
        return perf_counter() - began

    return lambda calls: runner.run(turn(calls))


def contest(contestants: Sequence[Contestant], effort: Effort) -> list[Figure]:
    """Let them take turns and tell what each took."""
    # In another order each time: nobody always comes after the slowest, or after a change of the process.
    orders = Random(len(contestants))
    rounds: dict[str, list[float]] = {contestant.name: [] for contestant in contestants}
    for _ in range(effort.rounds):
        gc.collect()
        taken: dict[str, list[float]] = {name: [] for name in rounds}
        for _ in range(effort.turns):
            for contestant in orders.sample(contestants, len(contestants)):
                taken[contestant.name].append(contestant.turn(effort.calls))
        for name, seconds in taken.items():
            rounds[name].append(median(seconds) / effort.calls)
    return [_figure(contestant, rounds) for contestant in contestants]


def _figure(contestant: Contestant, rounds: dict[str, list[float]]) -> Figure:
    times = rounds[contestant.name]
    share = None
    if contestant.floor:
        floors = rounds[contestant.floor]
        share = median(floor / time for floor, time in zip(floors, times, strict=True))
    return Figure(contestant.name, median(times), share, contestant.at_least)
