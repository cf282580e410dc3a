"""An account that several nodes share on Redis: limits, calls under way, pauses, pace and circuit.

Rule: `limits.lua` decides, by the server's clock. Each step is one script on one key, and one that is sent twice,
because a reply was lost, counts once. The call of a node that died goes when its lease ends. Nodes take turns: one that
waited for a second goes before those that came later. While the server is away, a node goes on by itself with the part
of the limits that it was told to be its own (`own_share.py`), and reports what it spent before it asks again. A server
that loses its memory lets nobody through for a window, and forgets that the circuit was open.
"""

import asyncio
import itertools
import logging
import time
import uuid
from collections.abc import Callable
from functools import lru_cache
from importlib.resources import files
from random import Random
from typing import Any, Final

from sameas.llm.account import PROBE_POLL, WINDOW_SECONDS, Ending, Granted, RateLimits, Wait
from sameas.llm.circuit import Change, CircuitSettings, Phase
from sameas.llm.own_share import OwnShare, Spent
from sameas.llm.signals import LimitReason
from sameas.once.errors import StoreError
from sameas.stores.redis import RedisBackend
from sameas.stores.redis_commands import Lua, Source, scripts_of

# With a number, because nodes of an older version count otherwise.
PREFIX: Final = "sameas:limits:4:"
LEASE_SECONDS: Final = 30.0
# A window has so many buckets; a call that ended counts for up to one bucket longer than the window.
BUCKETS: Final = 240

# What ends on another node is found by looking: soon for a slot, which calls of a second or two give back.
_LOOK_FOR_SLOT = 0.1
_LOOK_FOR_TURN = 0.5
# A node that has just heard from the server tells it what was spent.
_LOOK_WHILE_RETURNING = 0.05
_LOOK_FOR_SERVER = 0.5
_MUST_REPORT: Final = 2
_SECOND: Final = 1_000_000
_REASONS: Final[dict[bytes, LimitReason]] = {
    b"held": "requests",
    b"turn": "requests",
    b"probe": "concurrent",
    b"server": "server",
    b"concurrent": "concurrent",
    b"requests": "requests",
    b"tokens": "tokens",
}
_PHASES: Final[tuple[Phase, ...]] = ("closed", "open", "half_open")
_CHANGES: Final[tuple[Change | None, ...]] = (None, "opened", "closed")

_log = logging.getLogger("sameas.llm")


@lru_cache
def _scripts() -> dict[str, Source]:
    return scripts_of(files("sameas.llm").joinpath("limits.lua").read_text("utf-8"))


class RedisAccount:
    """An account that every node shares which names it. One object serves one limiter."""

    def __init__(
        self,
        backend: RedisBackend,
        limits: RateLimits | None = None,
        *,
        account: str,
        circuit: CircuitSettings | None = None,
        lease: float = LEASE_SECONDS,
        window: float = WINDOW_SECONDS,
        random: Random | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not account or not lease > 0 or not window > 0:
            raise ValueError("shared limits need the name of an account, a lease and a window above 0")
        self._backend = backend
        self._limits = limits or RateLimits()
        self._circuit = circuit or CircuitSettings()
        self._key = f"{PREFIX}{account}".encode()
        self._lease = round(lease * _SECOND)
        self._window = round(window * _SECOND)
        self._recover_after = round(self._circuit.recover_after * _SECOND)
        self._node = uuid.uuid4().hex
        self._numbers = itertools.count(1)
        self._random = random or Random()
        self._clock = clock
        self._own = OwnShare(self._limits, circuit=self._circuit, window=window)
        self._together = 0
        self._is_returning = False
        # Whether somebody was told to wait, and nobody was let through since: they ask again.
        self._is_waited_for = False
        self._beating: asyncio.Task[None] | None = None
        self._coming_back: asyncio.Task[None] | None = None

    @property
    def limits(self) -> RateLimits:
        return self._limits

    @property
    def circuit(self) -> CircuitSettings:
        return self._circuit

    @property
    def in_flight(self) -> int:
        """How many calls of this node are under way."""
        return len(self._own.state.calls)

    @property
    def is_alone(self) -> bool:
        """Whether the server is away and this node goes on with its own part of the limits."""
        return self._own.is_alone

    async def admit(self, tokens: int) -> Granted | Wait:
        call = f"{self._node}-{next(self._numbers)}"
        if not self._own.is_alone:
            try:
                answer = await self._ask(call, tokens)
            except StoreError:
                self._lost()
                if not self._own.is_alone:
                    raise
            else:
                return answer
        self._look_whether_back()
        if self._is_returning:
            return Wait(seconds=None, reason="requests", look_again=_LOOK_WHILE_RETURNING)
        answer = self._own.admit(call, tokens, self._clock())
        if isinstance(answer, Granted):
            self._beat_while_under_way()
        return answer

    async def finish(self, grant: Granted, ending: Ending) -> Change | None:
        changed = self._own.finish(grant, ending, self._clock())
        is_idle = not self._own.state.calls and not self._is_waited_for
        if not self._own.state.calls and self._beating is not None:
            self._beating.cancel()
            self._beating = None
        if self._own.is_alone:
            # The server counts what it let through until a window after its lease.
            return changed
        if is_idle:
            # Who has nothing under way keeps no part from those who do.
            self._set_parts(0, 0)
        try:
            number: int = await self._run(
                "finish",
                grant.id,
                ending.verdict,
                ending.tokens,
                round(ending.pause * _SECOND),
                repr(ending.stretch),
                self._window,
                BUCKETS,
                self._lease,
                self._circuit.failures_to_open,
                self._circuit.successes_to_close,
                round(self._circuit.together_within * _SECOND),
                self._node if is_idle else "",
            )
        except StoreError:
            self._lost()
            raise
        return _CHANGES[number]

    async def phase(self) -> Phase:
        if self._own.is_alone:
            return self._own.state.circuit.phase(self._clock())
        phase: int = await self._run("phase", self._recover_after)
        return _PHASES[phase]

    def _look_again(self, why: bytes, seconds: float) -> float:
        """When to ask whether another node has changed something."""
        match why:
            case b"probe":
                return PROBE_POLL
            case b"server":
                return max(PROBE_POLL, seconds / 10)
            case _:
                # Apart from each other, so that nodes do not ask in step.
                look = _LOOK_FOR_SLOT if why == b"concurrent" else _LOOK_FOR_TURN
                return look * (0.5 + self._random.random() / 2)

    async def _ask(self, call: str, tokens: int) -> Granted | Wait:
        """What the server says."""
        limits = self._limits
        reply = await self._run(
            "admit",
            call,
            self._node,
            tokens,
            limits.requests_per_minute,
            limits.tokens_per_minute,
            limits.max_concurrent,
            self._window,
            BUCKETS,
            self._lease,
            self._recover_after,
            self._own.parts,
            self._together,
        )
        if reply[0] == _MUST_REPORT:
            await self._report(self._own.spent(self._clock()))
            return await self._ask(call, tokens)
        self._set_parts(*reply[-2:])
        self._is_waited_for = reply[0] != 0
        now = self._clock()
        if reply[0] == 0:
            grant = Granted(id=call, tokens=tokens)
            self._own.took(grant, now)
            self._beat_while_under_way()
            return grant
        _, micros, why, down_for, *_ = reply
        if why in (b"server", b"held"):
            self._own.state.pause(now + micros / _SECOND)
        return Wait(
            seconds=micros / _SECOND if micros else None,
            reason=_REASONS[why],
            asked_by_server=why == b"held",
            look_again=self._look_again(why, micros / _SECOND),
            down_for=down_for / _SECOND if why == b"server" else None,
        )

    def _set_parts(self, parts: int, together: int) -> None:
        self._own.set_parts(parts)
        self._together = together

    def _lost(self) -> None:
        was_alone = self._own.is_alone
        self._own.lost(self._clock())
        is_alone = self._own.is_alone
        if is_alone and not was_alone:
            _log.warning("limits are shared on a Redis that does not answer: this node goes on with its own part")
        if is_alone:
            self._look_whether_back()

    def _look_whether_back(self) -> None:
        if not _is_running(self._coming_back):
            self._is_returning = False
            self._coming_back = asyncio.get_running_loop().create_task(self._come_back())

    async def _come_back(self) -> None:
        """Report when the server answers. Calls are let through until it does, and none while the report is made."""
        while self._own.is_alone:
            try:
                await self._run("phase", self._recover_after)
                self._is_returning = True
                await self._report(self._own.spent(self._clock()))
                self._own.back()
            except StoreError:
                await asyncio.sleep(_LOOK_FOR_SERVER)
            finally:
                self._is_returning = False

    async def _report(self, spent: Spent) -> None:
        under_way = [word for call in spent.under_way for word in call]
        reply = await self._perform(
            "report",
            (
                self._node,
                self._own.parts,
                self._together,
                spent.requests,
                spent.tokens,
                self._window,
                BUCKETS,
                self._lease,
                self._backend.skew_micros,
                *under_way,
            ),
        )
        self._set_parts(*reply[-2:])
        # The part is kept for this node until it shows that it was heard.
        await self._perform("beat", self._beat_words())

    def _beat_while_under_way(self) -> None:
        if not _is_running(self._beating):
            self._beating = asyncio.get_running_loop().create_task(self._beat_on())

    async def _beat_on(self) -> None:
        while self._own.state.calls:
            await asyncio.sleep(min(self._lease / 3, self._window / 6) / _SECOND)
            if self._own.is_alone:
                continue
            try:
                reply = await self._perform("beat", self._beat_words())
                if reply[0] == _MUST_REPORT:
                    await self._report(self._own.spent(self._clock()))
                else:
                    self._set_parts(*reply[-2:])
            except StoreError:
                # The next try may still be in time.
                _log.warning("calls under way could not be renewed on Redis", exc_info=True)
                self._lost()

    def _beat_words(self) -> tuple[str | int, ...]:
        words = (self._node, self._own.parts, self._together, self._window, self._lease, self._backend.skew_micros)
        return (*words, *self._own.state.calls)

    async def _run(self, script: str, *args: str | int) -> Any:
        skew = self._backend.skew_micros
        return await self._perform(script, (*args, skew) if skew else args)

    async def _perform(self, script: str, args: tuple[str | int, ...]) -> Any:
        words = tuple(str(arg).encode() for arg in args)
        return await self._backend.aperform(Lua(_scripts()[script], self._key, words))


def _is_running(task: asyncio.Task[None] | None) -> bool:
    """Whether a task goes on in this loop."""
    return task is not None and not task.done() and task.get_loop() is asyncio.get_running_loop()
