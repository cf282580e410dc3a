"""An event loop whose clock jumps to the next timer, so that a test of time-outs takes no time."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _JumpingSelector(selectors.DefaultSelector):  # type: ignore[misc, valid-type]
    jumped = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready: list[tuple[selectors.SelectorKey, int]] = super().select(0)
        if not ready and timeout:
            self.jumped += timeout
        return ready


class _JumpingLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.jumped


def run_jumping(work: Coroutine[Any, Any, T]) -> T:
    """The result of the work on a loop whose time is never waited for."""
    with asyncio.Runner(loop_factory=_JumpingLoop) as runner:
        return runner.run(work)
