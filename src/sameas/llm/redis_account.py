"""An account that several nodes share on Redis: limits, calls under way, pauses, pace and circuit.

Rule: `limits.lua` decides, by the server's clock. Each step is one script on one key, and one that is sent twice,
because a reply was lost, counts once. The call of a node that died goes when its lease ends. Nodes take turns: one that
waited for a second goes before those that came later. A server that loses its memory forgets at most a minute, and
that the circuit was open.
"""

import asyncio
import itertools
import logging
import uuid
from functools import lru_cache
from importlib.resources import files
from random import Random
from typing import Any, Final

from sameas.llm.account import PROBE_POLL, WINDOW_SECONDS, Ending, Granted, RateLimits, Wait
from sameas.llm.circuit import Change, CircuitSettings, Phase
from sameas.llm.signals import LimitReason
from sameas.once.errors import StoreError
from sameas.stores.redis import RedisBackend
from sameas.stores.redis_commands import Lua, Source, scripts_of

# With a number, because nodes of an older version count otherwise.
PREFIX: Final = "sameas:limits:3:"
LEASE_SECONDS: Final = 30.0
# A window has so many buckets; a call that ended counts for up to one bucket longer than the window.
BUCKETS: Final = 240

# What ends on another node is found by looking: soon for a slot, which calls of a second or two give back.
_LOOK_FOR_SLOT = 0.1
_LOOK_FOR_TURN = 0.5
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
        self._held: set[str] = set()
        self._renewal: asyncio.Task[None] | None = None

    @property
    def limits(self) -> RateLimits:
        return self._limits

    @property
    def circuit(self) -> CircuitSettings:
        return self._circuit

    @property
    def in_flight(self) -> int:
        """How many calls of this node are under way."""
        return len(self._held)

    async def admit(self, tokens: int) -> Granted | Wait:
        call = f"{self._node}-{next(self._numbers)}"
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
        )
        if reply[0] == 0:
            self._held.add(call)
            self._renew_while_held()
            return Granted(id=call, tokens=tokens)
        _, micros, why, down_for = reply
        return Wait(
            seconds=micros / _SECOND if micros else None,
            reason=_REASONS[why],
            asked_by_server=why == b"held",
            look_again=self._look_again(why, micros / _SECOND),
            down_for=down_for / _SECOND if why == b"server" else None,
        )

    async def finish(self, grant: Granted, ending: Ending) -> Change | None:
        self._held.discard(grant.id)
        if not self._held and self._renewal is not None:
            self._renewal.cancel()
            self._renewal = None
        changed: int = await self._run(
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
        )
        return _CHANGES[changed]

    async def phase(self) -> Phase:
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

    def _renew_while_held(self) -> None:
        if self._renewal is None or self._renewal.done():
            self._renewal = asyncio.get_running_loop().create_task(self._renew())

    async def _renew(self) -> None:
        while self._held:
            await asyncio.sleep(self._lease / _SECOND / 3)
            try:
                await self._perform("renew", (self._window, self._lease, self._backend.skew_micros, *self._held))
            except StoreError:
                # The next try may still be in time.
                _log.warning("calls under way could not be renewed on Redis", exc_info=True)

    async def _run(self, script: str, *args: str | int) -> Any:
        skew = self._backend.skew_micros
        return await self._perform(script, (*args, skew) if skew else args)

    async def _perform(self, script: str, args: tuple[str | int, ...]) -> Any:
        words = tuple(str(arg).encode() for arg in args)
        return await self._backend.aperform(Lua(_scripts()[script], self._key, words))
