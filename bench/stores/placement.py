"""Where clients and server run while they take turns; afterwards they are as they were before.

A request and its answer between two cores cost more than twice of what they cost on one, and the scheduler decides
anew for each process and moment; left to itself it makes a floor and a contestant of another process incomparable. On
one core the floor is at its quickest.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, get_args

Placement = Literal["one-core", "two-cores", "free"]
PLACEMENTS: tuple[Placement, ...] = get_args(Placement)

DESCRIBED = {
    "one-core": "clients and server share one core",
    "two-cores": "clients have one core and the server another",
    "free": "the scheduler places clients and server as it likes",
}


@contextmanager
def placed(placement: Placement, *, server: int, clients: tuple[int, ...] = ()) -> Iterator[None]:
    """This process and other clients on one core, the server on the same or another; so is what they start."""
    if placement == "free" or sys.platform != "linux":
        yield
        return
    before = {process: os.sched_getaffinity(process) for process in (0, server, *clients)}
    ours = max(before[0])
    others = min(before[0]) if placement == "two-cores" else ours
    try:
        for process in before:
            os.sched_setaffinity(process, {others if process == server else ours})
        yield
    finally:
        for process, cores in before.items():
            os.sched_setaffinity(process, cores)


def described(placement: Placement) -> str:
    """What is true of this machine, for the page."""
    if sys.platform != "linux":
        return DESCRIBED["free"]
    if placement == "two-cores" and len(os.sched_getaffinity(0)) == 1:
        return DESCRIBED["one-core"]
    return DESCRIBED[placement]
