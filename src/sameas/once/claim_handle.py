"""Work that is done outside the engine: a call that has its claim, to be ended from wherever the work ends.

An HTTP response is complete before its handler returns, and its client may be gone before that. So the call's script is
driven to the work, and from there on when `finish` or `give_back` is called. One of them must be: until then the lease
is renewed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from sameas.once.call import Call
from sameas.once.context import WORKING, Context
from sameas.once.record import ProcessingRecord
from sameas.once.script import Script
from sameas.once.steps import Work

if TYPE_CHECKING:
    from sameas.once.async_engine import AsyncEngine
    from sameas.once.engine import Engine


def until_work(
    script: Script[ProcessingRecord], failure: BaseException | None = None
) -> Script[Work | ProcessingRecord]:
    """A call's script, from its begin or from work that failed, up to the work or to the answer if there is none."""
    try:
        command = next(script) if failure is None else script.throw(failure)
        while type(command) is not Work:
            try:
                reply = yield command
            except BaseException as error:
                command = script.throw(error)
            else:
                command = script.send(reply)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    return command


def work_done_by_the_holder(context: Context) -> Any:
    """Stands for work that is done outside."""
    raise AssertionError("the work of a held call is done by its holder")


class _Handle:
    """What both kinds have. `context` is what work is told about itself."""

    __slots__ = ("_call", "_engine", "_script", "context")

    def __init__(self, engine: Any, call: Call, script: Script[ProcessingRecord], context: Context) -> None:
        self.context = context
        self._engine = engine
        self._call = call
        self._script = script

    def enter(self) -> None:
        """Let `current_context` find this work, in this thread or task and what it starts."""
        WORKING.set((*WORKING.get(), self.context))

    def _after(self, failure: BaseException) -> Script[ProcessingRecord]:
        return cast(Script[ProcessingRecord], until_work(self._script, failure))


class ClaimHandle(_Handle):
    """A claim that is ours. `context` is what work is told about itself."""

    __slots__ = ()
    _engine: Engine

    def finish(self, result: Any) -> ProcessingRecord:
        """Hand the result in. The record is of what was accepted, which need not be ours."""
        return self._engine.end_held(self.context, self._call, self._script, result)

    def give_back(self, failure: BaseException) -> ProcessingRecord:
        """The work failed: as if it had raised `failure`, which is raised unless another's result was accepted."""
        return self._engine.end_held(self.context, self._call, self._after(failure))


class AsyncClaimHandle(_Handle):
    """`ClaimHandle`, for tasks."""

    __slots__ = ()
    _engine: AsyncEngine

    async def finish(self, result: Any) -> ProcessingRecord:
        """Hand the result in. The record is of what was accepted, which need not be ours."""
        return await self._engine.end_held(self.context, self._call, self._script, result)

    async def give_back(self, failure: BaseException) -> ProcessingRecord:
        """The work failed: as if it had raised `failure`, which is raised unless another's result was accepted."""
        return await self._engine.end_held(self.context, self._call, self._after(failure))
