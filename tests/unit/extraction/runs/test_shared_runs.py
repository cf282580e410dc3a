"""Who wants a run: it goes on for those who stay, ends with the last, and cancelling reaches everybody."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from sameas.extraction.runs.shared_runs import RunCancelledError, SharedRuns


class Work:
    """Work that waits until it may end, and says how it ended."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.ended = ""
        self.closed = 0
        self.left = 0

    async def run(self) -> str:
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.ended = "cancelled"
            raise
        self.ended = "done"
        return "result"

    def close(self) -> None:
        self.closed += 1

    def leave(self) -> None:
        self.left += 1


def share(shared_runs: SharedRuns, work: Work, key: str = "k") -> asyncio.Task[str]:
    return asyncio.create_task(shared_runs.share(key, work.run, on_leave=work.leave, on_end=work.close))


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(test)


def test_a_caller_that_leaves_last_ends_the_run() -> None:
    async def test() -> None:
        shared_runs, work = SharedRuns(), Work()
        caller = share(shared_runs, work)
        await asyncio.sleep(0)
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        assert (work.ended, work.closed, work.left) == ("cancelled", 1, 1)
        assert not shared_runs.is_wanted("k")

    run(test())


def test_a_caller_that_leaves_others_behind_ends_nothing() -> None:
    async def test() -> None:
        shared_runs, first, second = SharedRuns(), Work(), Work()
        leaver, stayer = share(shared_runs, first), share(shared_runs, second)
        await asyncio.sleep(0)
        leaver.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaver
        assert first.ended == ""
        first.gate.set()
        second.gate.set()
        assert await stayer == "result"
        await asyncio.sleep(0)
        assert (first.ended, first.closed) == ("done", 1)

    run(test())


def test_what_a_leaver_left_behind_ends_with_the_last_who_wanted_it() -> None:
    async def test() -> None:
        shared_runs, first, second = SharedRuns(), Work(), Work()
        callers = [share(shared_runs, first), share(shared_runs, second)]
        await asyncio.sleep(0)
        for caller in callers:
            caller.cancel()
            with pytest.raises(asyncio.CancelledError):
                await caller
        assert (first.ended, second.ended) == ("cancelled", "cancelled")

    run(test())


def test_a_service_may_finish_what_nobody_waits_for() -> None:
    async def test() -> None:
        shared_runs, work = SharedRuns(finish_alone=True), Work()
        caller = share(shared_runs, work)
        await asyncio.sleep(0)
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        assert work.ended == ""
        work.gate.set()
        while not work.closed:
            await asyncio.sleep(0)
        assert work.ended == "done"

    run(test())


def test_cancelling_reaches_everybody_and_other_runs_go_on() -> None:
    async def test() -> None:
        shared_runs, work, other = SharedRuns(finish_alone=True), Work(), Work()
        callers = [share(shared_runs, work), share(shared_runs, work), share(shared_runs, other, "another")]
        await asyncio.sleep(0)
        assert shared_runs.cancel("k")
        for caller in callers[:2]:
            with pytest.raises(RunCancelledError):
                await caller
        other.gate.set()
        assert await callers[2] == "result"
        assert not shared_runs.cancel("k")

    run(test())


def test_an_error_is_the_callers() -> None:
    async def test() -> None:
        async def fails() -> None:
            raise ValueError("no")

        with pytest.raises(ValueError, match="no"):
            await SharedRuns().share("k", fails, on_leave=lambda: None, on_end=lambda: None)

    run(test())
