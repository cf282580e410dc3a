"""A circuit breaker: a server that fails again and again is left alone for a while, then tried with one call at a time.

Rule: every change of the circuit is a pure function in this file; a keeper holds the state, here or on Redis for
several nodes, and its clock is the one that counts. In the half-open state there is one probe at a time. A call that
began before the circuit changed says nothing about it any more.
"""

import itertools
import time
import uuid
from collections.abc import Callable
from typing import Literal, Protocol, TypeAlias

import msgspec

from sameas.llm.errors import CircuitOpen

Phase: TypeAlias = Literal["closed", "open", "half_open"]
Change: TypeAlias = Literal["opened", "closed"]


class CircuitSettings(msgspec.Struct, frozen=True, kw_only=True):
    """When to open, how long to stay open, when to close again: source document 001, part 1.3."""

    failures_to_open: int = 5
    recover_after: float = 120.0
    successes_to_close: int = 2

    def __post_init__(self) -> None:
        if self.failures_to_open < 1 or self.successes_to_close < 1 or not self.recover_after > 0:
            raise ValueError("a circuit needs at least one failure to open, one success to close, and time to recover")


class CircuitState(msgspec.Struct, frozen=True, kw_only=True):
    """What is known: failures in a row while closed, successes in a row while half-open, and the probe that is out."""

    failures: int = 0
    successes: int = 0
    opened_at: float | None = None
    probe: str = ""
    probe_until: float = 0.0
    # Whose failure was counted last: a keeper that lost a reply may ask for the same change twice.
    told_by: str = ""
    # Counts the changes between open and closed, so that late results are known for what they are.
    epoch: int = 0


class Keeper(Protocol):
    """Where the state is kept. `swap` changes it only if it is still what was read."""

    async def read(self) -> tuple[CircuitState, float]:
        """The state, and the time."""
        ...

    async def swap(self, old: CircuitState, new: CircuitState) -> bool: ...


class LocalKeeper:
    """The state in this process."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._state = CircuitState()

    async def read(self) -> tuple[CircuitState, float]:
        return self._state, self._clock()

    async def swap(self, old: CircuitState, new: CircuitState) -> bool:
        if self._state != old:
            return False
        self._state = new
        return True


class Ticket(msgspec.Struct, frozen=True):
    """Leave to make one call."""

    id: str
    epoch: int


def phase_of(state: CircuitState, now: float, settings: CircuitSettings) -> Phase:
    if state.opened_at is None:
        return "closed"
    return "open" if now < state.opened_at + settings.recover_after else "half_open"


def entered(state: CircuitState, now: float, settings: CircuitSettings, ticket: str) -> CircuitState:
    """The state with one more call under way, or `CircuitOpen`."""
    match phase_of(state, now, settings):
        case "closed":
            return state
        case "open":
            raise CircuitOpen(retry_after=(state.opened_at or 0.0) + settings.recover_after - now)
        case "half_open":
            if state.probe == ticket:
                return state
            if state.probe and now < state.probe_until:
                raise CircuitOpen(retry_after=state.probe_until - now, is_probing=True)
            # A probe that nobody ever heard of again must not keep the circuit open for ever.
            return msgspec.structs.replace(state, probe=ticket, probe_until=now + settings.recover_after)


def succeeded(state: CircuitState, settings: CircuitSettings, ticket: Ticket) -> CircuitState:
    if ticket.epoch != state.epoch:
        return state
    if state.opened_at is None:
        return msgspec.structs.replace(state, failures=0, told_by="")
    if ticket.id != state.probe:
        return state
    if state.successes + 1 >= settings.successes_to_close:
        return CircuitState(epoch=state.epoch + 1)
    return msgspec.structs.replace(state, successes=state.successes + 1, probe="")


def failed(state: CircuitState, now: float, settings: CircuitSettings, ticket: Ticket) -> CircuitState:
    if ticket.epoch != state.epoch or ticket.id == state.told_by:
        return state
    if state.opened_at is None:
        if state.failures + 1 < settings.failures_to_open:
            return msgspec.structs.replace(state, failures=state.failures + 1, told_by=ticket.id)
        return CircuitState(failures=state.failures + 1, opened_at=now, epoch=state.epoch + 1)
    if ticket.id != state.probe:
        return state
    return CircuitState(failures=state.failures + 1, opened_at=now, epoch=state.epoch + 1)


def left(state: CircuitState, ticket: Ticket) -> CircuitState:
    """After a call that tells nothing about the server: it was cancelled, or refused for what it asked."""
    if ticket.epoch == state.epoch and state.probe == ticket.id:
        return msgspec.structs.replace(state, probe="")
    return state


class CircuitBreaker:
    """A circuit over the state of a keeper. Hand each ticket back once: `succeeded`, `failed` or `left`."""

    def __init__(self, settings: CircuitSettings | None = None, *, keeper: Keeper | None = None) -> None:
        self.settings = settings or CircuitSettings()
        self._keeper = keeper or LocalKeeper()
        self._numbers = itertools.count(1)
        self._name = uuid.uuid4().hex

    @property
    def is_local(self) -> bool:
        """Whether its state is in this process, where nobody has to wait for it."""
        return type(self._keeper) is LocalKeeper

    async def phase(self) -> Phase:
        state, now = await self._keeper.read()
        return phase_of(state, now, self.settings)

    async def enter(self) -> Ticket:
        """Leave to make a call; raises `CircuitOpen`, with `is_probing` where another call is just finding out."""
        ticket = f"{self._name}-{next(self._numbers)}"
        _, after = await self._change(lambda state, now: entered(state, now, self.settings, ticket))
        return Ticket(ticket, after.epoch)

    async def succeeded(self, ticket: Ticket) -> Change | None:
        return _change(*await self._change(lambda state, _: succeeded(state, self.settings, ticket)))

    async def failed(self, ticket: Ticket) -> Change | None:
        return _change(*await self._change(lambda state, now: failed(state, now, self.settings, ticket)))

    async def left(self, ticket: Ticket) -> None:
        await self._change(lambda state, _: left(state, ticket))

    async def _change(self, change: Callable[[CircuitState, float], CircuitState]) -> tuple[CircuitState, CircuitState]:
        while True:
            state, now = await self._keeper.read()
            after = change(state, now)
            # Most calls change nothing, and then nothing is written.
            if after == state or await self._keeper.swap(state, after):
                return state, after


def _change(before: CircuitState, after: CircuitState) -> Change | None:
    if before.epoch == after.epoch:
        return None
    return "closed" if after.opened_at is None else "opened"
