"""How long one chunk's work in a stage may take: a soft limit that warns and a hard one that ends it.

Rule: only work counts. Whoever waits for permission to work (a rate limiter) wraps the wait in `paused()`,
and the clock stands still meanwhile; else fifty calls a minute would make every long text partial. Of several at
once in one stage, those who work say so with `working()`, and the clock runs for them. It is the event loop's own.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from contextvars import Context, ContextVar, copy_context
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, TypeVar, cast, get_args

import msgspec

from sameas.identity.errors import SameasError

T = TypeVar("T")

StageName: TypeAlias = Literal[
    "chunking",
    "property_scoping",
    "entity_extraction",
    "entity_resolution",
    "relation_extraction",
    "grounding",
    "serialization",
]
STAGES: tuple[StageName, ...] = get_args(StageName)


# The loop may call a little early, by as much as its clock can tell.
_EARLY = 1e-6
# The source document's limits are for one document's graph; a much larger one gets as much more time.
ITEMS_PER_LIMIT = 10_000
_BETWEEN_ATTEMPTS_MS = 5_000


class StageTimeout(msgspec.Struct, frozen=True, rename="camel"):
    """Soft and hard limit in milliseconds. Raises ValueError unless 0 < soft <= hard. Its call raises nothing."""

    soft_ms: int
    hard_ms: int

    def __post_init__(self) -> None:
        if not 0 < self.soft_ms <= self.hard_ms:
            raise ValueError("a stage time-out needs 0 < soft <= hard, in milliseconds")

    def for_items(self, items: int) -> "StageTimeout":
        """The limits for a stage that works on everything at once: they grow with what there is to do."""
        times = max(1, -(-items // ITEMS_PER_LIMIT))
        return StageTimeout(self.soft_ms * times, self.hard_ms * times)


# Source document 001, part 1.3; the two stages it does not name take the limits of the nearest kind.
STAGE_TIMEOUTS: Mapping[StageName, StageTimeout] = MappingProxyType(
    {
        "chunking": StageTimeout(3_000, 5_000),
        "property_scoping": StageTimeout(3_000, 5_000),
        "entity_extraction": StageTimeout(45_000, 60_000),
        "entity_resolution": StageTimeout(20_000, 30_000),
        "relation_extraction": StageTimeout(45_000, 60_000),
        "grounding": StageTimeout(20_000, 30_000),
        "serialization": StageTimeout(7_000, 10_000),
    }
)


def timeouts_for(attempt_seconds: float) -> dict[StageName, StageTimeout]:
    """The limits of all stages where one attempt at a model's answer may take so long: a second one fits in."""
    asked = StageTimeout(round(1_500 * attempt_seconds), round(2_000 * attempt_seconds) + _BETWEEN_ATTEMPTS_MS)
    asks: tuple[StageName, ...] = ("entity_extraction", "relation_extraction", "grounding")
    return {**STAGE_TIMEOUTS, **dict.fromkeys(asks, asked)}


class StageTimedOutError(SameasError):
    """The hard limit of a stage passed."""

    def __init__(self, stage: StageName, *, timeout_ms: int) -> None:
        super().__init__(f"stage {stage} ended after {timeout_ms} ms of work on one chunk; raise its hard limit")
        self.stage = stage
        self.timeout_ms = timeout_ms


class Stopwatch:
    """The working time of one piece of work; `soft_passed` tells it to do less."""

    def __init__(self, limits: StageTimeout, *, on_soft: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._limits = limits
        self._on_soft = on_soft
        self._task: asyncio.Task[Any] | None = None
        self._worked = 0.0
        self._since: float | None = None
        self._pauses = 0
        self._works = 0
        self._timer: asyncio.TimerHandle | None = None
        self._context = copy_context()
        self.soft_passed = False
        self.hard_passed = False

    def start(self, task: asyncio.Task[Any]) -> None:
        self._task = task
        self._go_or_stand()

    def stop(self) -> None:
        self._task = None
        self._go_or_stand()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def change(self, *, pauses: int = 0, works: int = 0) -> None:
        """So many more wait, so many more work: the clock stands while some wait and none works."""
        self._pauses += pauses
        self._works += works
        self._go_or_stand()

    def _go_or_stand(self) -> None:
        goes = self._task is not None and (self._pauses == 0 or self._works > 0)
        if goes and self._since is None:
            self._since = self._loop.time()
            if self._timer is None:
                self._set_timer()
        elif not goes and self._since is not None:
            # The timer stays: a call stands and goes several times, and few last until a limit.
            self._worked += self._loop.time() - self._since
            self._since = None

    @property
    def soft_seconds(self) -> float:
        return self._limits.soft_ms / 1000

    def left(self) -> float:
        """Seconds of work until the hard limit."""
        return max(0.0, self._limits.hard_ms / 1000 - self._time())

    def _time(self) -> float:
        running = 0.0 if self._since is None else self._loop.time() - self._since
        return self._worked + running

    def _set_timer(self) -> None:
        limit = self._limits.hard_ms if self.soft_passed else self._limits.soft_ms
        due_at = self._loop.time() + limit / 1000 - self._time()
        # A timer that was cancelled stays with the loop for a while, and its context with it.
        self._timer = self._loop.call_at(due_at, self._look, context=Context())

    def _look(self) -> None:
        """See whether a limit has passed; a clock that stands is looked at when it goes on."""
        self._timer = None
        if self._since is None or self.hard_passed:
            return
        worked = self._time() + _EARLY
        passes_soft = not self.soft_passed and worked >= self._limits.soft_ms / 1000
        self.soft_passed |= passes_soft
        if worked < self._limits.hard_ms / 1000:
            self._set_timer()
        else:
            self.hard_passed = True
            if self._task is not None:
                self._task.cancel()
        if passes_soft:
            self._context.run(self._on_soft)


_current: ContextVar[Stopwatch | None] = ContextVar("sameas_stage_stopwatch", default=None)


def soft_limit_passed() -> bool:
    """Whether the work that asks has passed its soft limit and should narrow its scope."""
    stopwatch = _current.get()
    return stopwatch is not None and stopwatch.soft_passed


def hard_limit_passed() -> bool:
    """Whether the work that asks is being ended because its time is up, and not because somebody left."""
    stopwatch = _current.get()
    return stopwatch is not None and stopwatch.hard_passed


def time_left() -> float | None:
    """Seconds that the work that asks may still take; None outside of a stage."""
    stopwatch = _current.get()
    return None if stopwatch is None else stopwatch.left()


def soft_seconds() -> float | None:
    """The soft limit of the work that asks; None outside of a stage."""
    stopwatch = _current.get()
    return None if stopwatch is None else stopwatch.soft_seconds


def paused() -> AbstractContextManager[None]:
    """Time inside does not count as work of the stage that asks."""
    return _Changed(pauses=1)


def working() -> AbstractContextManager[None]:
    """Time inside counts, also inside a pause and while something beside it waits."""
    return _Changed(works=1)


class _Changed(AbstractContextManager[None]):
    __slots__ = ("_pauses", "_stopwatch", "_works")

    def __init__(self, *, pauses: int = 0, works: int = 0) -> None:
        self._stopwatch = _current.get()
        self._pauses = pauses
        self._works = works

    def __enter__(self) -> None:
        if self._stopwatch is not None:
            self._stopwatch.change(pauses=self._pauses, works=self._works)

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if self._stopwatch is not None:
            self._stopwatch.change(pauses=-self._pauses, works=-self._works)


async def within(
    stage: StageName, work: Callable[[], Awaitable[T]], *, limits: StageTimeout, on_soft: Callable[[], None]
) -> T:
    """The result of the work, or `StageTimedOutError` after its hard limit; `on_soft` is called once at
    the soft one.
    """
    task = asyncio.current_task()
    if task is None:
        raise RuntimeError("the work of a stage needs a task that its hard limit can end: begin it with create_task")
    stopwatch = Stopwatch(limits, on_soft=on_soft)
    cancels = task.cancelling()
    token = _current.set(stopwatch)
    stopwatch.start(task)
    try:
        return await work()
    except asyncio.CancelledError:
        # Who is cancelled from outside as well is to know that, and nothing of limits.
        if stopwatch.hard_passed and task.cancelling() == cancels + 1:
            raise StageTimedOutError(stage, timeout_ms=limits.hard_ms) from None
        raise
    finally:
        stopwatch.stop()
        _current.reset(token)
        if stopwatch.hard_passed:
            task.uncancel()


class StageTimeoutService:
    """The limits of every stage, and work done within them: the defaults, less what was set otherwise. Raises
    ValueError for the name of a stage that is none."""

    def __init__(self, timeouts: Mapping[StageName, StageTimeout] | None = None) -> None:
        unknown = sorted(set(timeouts or ()) - set(STAGES))
        if unknown:
            raise ValueError(f"no such stage: {', '.join(unknown)}; the stages are {', '.join(STAGES)}")
        self._timeouts: dict[StageName, StageTimeout] = {**STAGE_TIMEOUTS, **(timeouts or {})}

    def limits_of(self, stage: str) -> StageTimeout:
        """The limits of a stage; a name that is none has those of chunking, as source document 001, part 1.3, says.
        Raises nothing."""
        return self._timeouts.get(cast("StageName", stage), self._timeouts["chunking"])

    async def with_timeout(
        self, stage: StageName, work: Callable[[], Awaitable[T]], *, on_soft: Callable[[], None] | None = None
    ) -> T:
        """The result of the work; `on_soft` is called once at the soft limit, and the hard one raises
        `StageTimedOutError`.
        """
        return await within(stage, work, limits=self.limits_of(stage), on_soft=on_soft or _ignore)


def _ignore() -> None:
    """Nobody wants to know."""
