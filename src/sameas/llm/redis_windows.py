"""Limits that several nodes share: the windows, the calls under way and the circuit of an account, on Redis.

Rule: the server's clock counts. Each step is one script on one key, and one that is sent twice, because a reply was
lost, counts once. The call of a node that died goes when its lease ends. Nodes take turns: one that waited for a
second goes before those that came later. A server that loses its memory forgets at most a minute.
"""

import asyncio
import itertools
import logging
import uuid
from functools import lru_cache
from importlib.resources import files
from random import Random
from typing import Any, Final

import msgspec

from sameas.llm.circuit import CircuitState
from sameas.llm.signals import LimitReason
from sameas.llm.windows import WINDOW_SECONDS, Admission, Granted, RateLimits, Wait
from sameas.once.errors import StoreError
from sameas.stores.redis import RedisBackend
from sameas.stores.redis_commands import Lua, Source, scripts_of

PREFIX: Final = "sameas:limits:"
LEASE_SECONDS: Final = 30.0
# A window has so many buckets; each call counts for up to one bucket longer than the window.
BUCKETS: Final = 240

# What ends on another node is found by looking: soon for a slot, which calls of a second or two give back.
_LOOK_FOR_SLOT = 0.1
_LOOK_FOR_TURN = 0.5
_SECOND: Final = 1_000_000
_A_DAY_MS: Final = 86_400_000
_REASONS: Final[dict[bytes, LimitReason]] = {
    b"held": "requests",
    b"turn": "requests",
    b"concurrent": "concurrent",
    b"requests": "requests",
    b"tokens": "tokens",
}

_log = logging.getLogger("sameas.llm")


@lru_cache
def _scripts() -> dict[str, Source]:
    return scripts_of(files("sameas.llm").joinpath("limits.lua").read_text("utf-8"))


class RedisWindows:
    """The windows of an account, shared by every node that names it. One object serves one limiter."""

    def __init__(
        self,
        backend: RedisBackend,
        limits: RateLimits | None = None,
        *,
        account: str,
        lease: float = LEASE_SECONDS,
        window: float = WINDOW_SECONDS,
        random: Random | None = None,
    ) -> None:
        if not account or not lease > 0 or not window > 0:
            raise ValueError("shared limits need the name of an account, a lease and a window above 0")
        self._backend = backend
        self._limits = limits or RateLimits()
        self._key = f"{PREFIX}{account}".encode()
        self._lease = round(lease * _SECOND)
        self._window = round(window * _SECOND)
        self._node = uuid.uuid4().hex
        self._numbers = itertools.count(1)
        self._random = random or Random()
        self._held: set[str] = set()
        self._renewal: asyncio.Task[None] | None = None

    @property
    def limits(self) -> RateLimits:
        return self._limits

    @property
    def in_flight(self) -> int:
        """How many calls of this node are under way."""
        return len(self._held)

    async def admit(self, tokens: int) -> Admission:
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
        )
        if reply[0] == 0:
            self._held.add(call)
            self._renew_while_held()
            return Granted(id=call, tokens=tokens, place=reply[1])
        _, micros, why = reply
        look = _LOOK_FOR_SLOT if why == b"concurrent" else _LOOK_FOR_TURN
        return Wait(
            seconds=micros / _SECOND if micros else None,
            reason=_REASONS[why],
            asked_by_server=why == b"held",
            # Apart from each other, so that nodes do not ask in step.
            look_again=look * (0.5 + self._random.random() / 2),
        )

    async def settle(self, grant: Granted, tokens: int) -> None:
        await self._finish(grant, requests=0, tokens=tokens - grant.tokens)

    async def withdraw(self, grant: Granted) -> None:
        await self._finish(grant, requests=1, tokens=-grant.tokens)

    async def hold(self, seconds: float) -> None:
        await self._run("hold", round(seconds * _SECOND), self._window, self._lease)

    async def _finish(self, grant: Granted, *, requests: int, tokens: int) -> None:
        self._held.discard(grant.id)
        if not self._held and self._renewal is not None:
            self._renewal.cancel()
            self._renewal = None
        await self._run("finish", grant.id, requests, tokens, self._window, self._lease)

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
        return await self._backend.aperform(Lua(_scripts()[script], self._key, args))


class RedisKeeper:
    """The circuit of an account, shared by every node that names it."""

    def __init__(self, backend: RedisBackend, *, account: str) -> None:
        self._backend = backend
        self._key = f"{PREFIX}{account}:circuit".encode()
        self._decoder = msgspec.json.Decoder(CircuitState)

    async def read(self) -> tuple[CircuitState, float]:
        skew = self._backend.skew_micros
        kept, micros = await self._backend.aperform(Lua(_scripts()["look"], self._key, (skew,) if skew else ()))
        return self._decoder.decode(kept) if kept else CircuitState(), micros / _SECOND

    async def swap(self, old: CircuitState, new: CircuitState) -> bool:
        args = (_encoded(old), _encoded(new), _A_DAY_MS)
        swapped: int = await self._backend.aperform(Lua(_scripts()["swap"], self._key, args))
        return swapped == 1


def _encoded(state: CircuitState) -> bytes:
    return b"" if state == CircuitState() else msgspec.json.encode(state)
