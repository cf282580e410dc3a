"""An account that several nodes share on Redis: limits, calls under way, pauses, pace and circuit.

Rule: `limits.lua` decides, by the server's clock. Each step is one script on one key, and one that is sent twice,
because a reply was lost, counts once. The call of a node that died goes when its lease ends. Nodes take turns: one that
waited for a second goes before those that came later. While the server is away, a node goes on by itself with the part
of the limits that it was told to be its own, and reports what it spent before it asks again. A server
that loses its memory lets nobody through for a window, and forgets that the circuit was open.
"""

import asyncio
import itertools
import logging
import time
import uuid
from collections import deque
from collections.abc import Callable
from functools import lru_cache
from importlib.resources import files
from random import Random
from typing import Any, Final

import msgspec

from sameas.llm.account import PROBE_POLL, WINDOW_SECONDS, AccountState, Ending, Granted, RateLimits, Wait
from sameas.llm.circuit import Change, CircuitSettings, Phase
from sameas.llm.signals import LimitReason
from sameas.once.errors import StoreError
from sameas.stores.redis import RedisBackend
from sameas.stores.redis_commands import Lua, Source, scripts_of

# In windows.
HELD_BACK = 1.25
# How soon to look whether the store is back.
_LOOK = 0.5


class Spent(msgspec.Struct, frozen=True):
    """What the store does not know: calls that ended within a window, their tokens, and all calls under way."""

    requests: int
    tokens: int
    under_way: tuple[tuple[str, int], ...]


def part_of(limits: RateLimits, parts: int) -> RateLimits | None:
    """One part in so many; None if there is none, or nothing could be done with it."""
    if parts < 1:
        return None
    requests, tokens = limits.requests_per_minute // parts, limits.tokens_per_minute // parts
    calls = limits.max_concurrent // parts
    if min(requests, tokens, calls) < 1:
        return None
    return RateLimits(requests_per_minute=requests, tokens_per_minute=tokens, max_concurrent=calls)


class OwnShare:
    """The calls of one node, and what it may do by itself while the store does not answer.

    Nothing here reads a clock or asks anybody. Every call of the node is counted here too, whoever let it through. The
    parts of all nodes are never more than the whole. From the moment the store did not answer a node lets nobody
    through for a window and a quarter, so that what others were allowed has left the window by then, and what was on
    its way has arrived; after that as much as its part allows. What it let through it hands in when the store is back.
    Without a part, as when other nodes have not been told yet that theirs are smaller, nobody is let through.
    """

    def __init__(self, limits: RateLimits, *, circuit: CircuitSettings, window: float) -> None:
        self.state = AccountState(limits, circuit=circuit, window=window)
        self.parts = 0
        """The node's own is one part in so many; 0 if it has none."""
        self._limits = limits
        self._circuit = circuit
        self._window = window
        self._alone_at: float | None = None
        # Calls that the store did not let through, and when those ended that it was not told of.
        self._own: set[str] = set()
        self._ended: deque[tuple[float, int]] = deque()

    @property
    def is_alone(self) -> bool:
        return self._alone_at is not None

    def part(self) -> RateLimits | None:
        return part_of(self._limits, self.parts)

    def set_parts(self, parts: int) -> None:
        """The store has answered."""
        self.parts = parts

    def lost(self, now: float) -> None:
        """The store did not answer; a second time changes nothing."""
        part = self.part()
        if self._alone_at is None and part is not None:
            self._alone_at = now + HELD_BACK * self._window
            self.state.limits = part
            # All nodes together give the server as many chances as one would.
            failures = max(1, self._circuit.failures_to_open // self.parts)
            self.state.circuit.settings = msgspec.structs.replace(self._circuit, failures_to_open=failures)

    def back(self) -> None:
        """The store knows what was spent, and decides again."""
        self._alone_at = None
        self._own.clear()
        self._ended.clear()
        self.state.limits = self._limits
        self.state.circuit.settings = self._circuit

    def admit(self, id_: str, tokens: int, now: float) -> Granted | Wait:
        """Count a call, or say how long it must wait; only for a node that is alone."""
        assert self._alone_at is not None
        if now < self._alone_at:
            return Wait(seconds=self._alone_at - now, reason="requests", look_again=_LOOK)
        answer = self.state.admit(tokens, now, id_)
        if isinstance(answer, Wait):
            return msgspec.structs.replace(answer, look_again=_LOOK)
        self._own.add(answer.id)
        return answer

    def let_through(self, id_: str) -> bool:
        """Whether the store knows nothing of a call."""
        return id_ in self._own

    def took(self, grant: Granted, now: float) -> None:
        """The store has let a call through."""
        self.state.take(grant.id, grant.tokens, now)

    def finish(self, grant: Granted, ending: Ending, now: float) -> Change | None:
        if grant.id in self._own:
            self._own.discard(grant.id)
            if ending.verdict != "withdrawn":
                self._ended.append((now, ending.tokens))
        return self.state.finish(grant, ending, now)

    def spent(self, now: float) -> Spent:
        """What to hand in."""
        while self._ended and self._ended[0][0] + self._window <= now:
            self._ended.popleft()
        calls = tuple((id_, call.tokens) for id_, call in self.state.calls.items())
        return Spent(len(self._ended), sum(tokens for _, tokens in self._ended), calls)


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
        # Calls that the server was asked for, and has not answered.
        self._asking = 0
        self._beating: asyncio.Task[None] | None = None
        self._coming_back: asyncio.Task[None] | None = None
        # Calls that have ended, as the server does not know, and when.
        self._untold: dict[str, tuple[Ending, float]] = {}
        self._telling: asyncio.Task[None] | None = None

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

    @property
    def has_part(self) -> bool:
        """Whether this node could go on if the server went away now."""
        return self._own.part() is not None

    async def admit(self, tokens: int) -> Granted | Wait:
        call = f"{self._node}-{next(self._numbers)}"
        if not self._own.is_alone:
            self._asking += 1
            try:
                answer = await self._ask(call, tokens)
            except StoreError:
                self._lost()
                if not self._own.is_alone:
                    raise
            else:
                return answer
            finally:
                self._asking -= 1
        self._look_whether_back()
        if self._is_returning:
            return Wait(seconds=None, reason="requests", look_again=_LOOK_WHILE_RETURNING)
        answer = self._own.admit(call, tokens, self._clock())
        if isinstance(answer, Granted):
            self._beat_while_under_way()
        return answer

    async def finish(self, grant: Granted, ending: Ending) -> Change | None:
        is_own = self._own.let_through(grant.id)
        changed = self._own.finish(grant, ending, self._clock())
        is_idle = not self._own.state.calls and not self._is_waited_for and not self._asking
        if not self._own.state.calls and self._beating is not None:
            self._beating.cancel()
            self._beating = None
        if self._own.is_alone:
            if not is_own:
                self._tell_later(grant, ending)
            return changed
        if is_idle:
            # Who has nothing under way and asks for nothing keeps no part from those who do.
            self._set_parts(0, 0)
        try:
            number = await self._end(grant.id, ending, node=self._node if is_idle else "")
        except StoreError:
            self._lost()
            self._tell_later(grant, ending)
            raise
        return _CHANGES[number]

    async def _end(self, id_: str, ending: Ending, *, node: str = "") -> int:
        number: int = await self._run(
            "finish",
            id_,
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
            node,
        )
        return number

    def _tell_later(self, grant: Granted, ending: Ending) -> None:
        """The server holds the slot of a call that has ended: it is told as soon as it answers. What came of the call
        says nothing about the provider by then.
        """
        told = Ending(verdict="withdrawn" if ending.verdict == "withdrawn" else "untold", tokens=ending.tokens)
        self._untold[grant.id] = (told, self._clock())
        if not _is_running(self._telling):
            self._telling = asyncio.get_running_loop().create_task(self._tell())

    async def _tell(self) -> None:
        while self._untold:
            await asyncio.sleep(_LOOK_FOR_SERVER)
            if self._own.is_alone:
                # What it spent by itself is reported first.
                continue
            for id_, (ending, ended_at) in tuple(self._untold.items()):
                # After its lease the server has ended the call itself.
                if self._clock() < ended_at + self._lease / _SECOND:
                    try:
                        await self._end(id_, ending)
                    except StoreError:
                        break
                del self._untold[id_]

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
