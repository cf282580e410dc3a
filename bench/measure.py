"""Measuring on a noisy machine: contestants take turns, the median of the rounds counts, and what counts is the ratio.

Wall time counts whoever else is on the machine. What waits for nothing outside of its process can be measured by
processor time, which is what wall time would be with nobody else there.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter

Clock = Callable[[], float]


@dataclass(frozen=True)
class Result:
    """Seconds per call: the medians of the floor and of sameas, and the share of the floor's speed that is reached."""

    name: str
    floor: float
    ours: float
    target: float | None

    @property
    def share(self) -> float:
        return self.floor / self.ours

    def __str__(self) -> str:
        verdict = ""
        if self.target is not None:
            verdict = f"  (at least {self.target:.0%}: {'yes' if self.share >= self.target else 'MISSED'})"
        return f"{self.name:<44} floor {self.floor * 1e6:9.2f} us  sameas {self.ours * 1e6:9.2f} us  {self.share:6.0%}{verdict}"


def compare(
    name: str,
    floor: Callable[[], object],
    ours: Callable[[], object],
    *,
    number: int,
    rounds: int = 9,
    target: float | None = None,
    clock: Clock = perf_counter,
) -> Result:
    """Each round runs both, `number` calls each."""
    floors, mine = [], []
    for _ in range(rounds):
        floors.append(_timed(floor, number, clock))
        mine.append(_timed(ours, number, clock))
    return Result(name, median(floors), median(mine), target)


async def acompare(
    name: str,
    floor: Callable[[], Awaitable[object]],
    ours: Callable[[], Awaitable[object]],
    *,
    number: int,
    rounds: int = 9,
    target: float | None = None,
    clock: Clock = perf_counter,
) -> Result:
    """`compare`, for tasks."""
    floors, mine = [], []
    for _ in range(rounds):
        for function, times in ((floor, floors), (ours, mine)):
            began = clock()
            for _ in range(number):
                await function()
            times.append((clock() - began) / number)
    return Result(name, median(floors), median(mine), target)


def _timed(function: Callable[[], object], number: int, clock: Clock) -> float:
    began = clock()
    for _ in range(number):
        function()
    return (clock() - began) / number
