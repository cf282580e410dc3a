"""What a node may do by itself while the store does not answer in which nodes share an account.

Rule: nothing here reads a clock or asks anybody. Every call of the node is counted here too, whoever let it through. A
node is told which part of the limits is its own; the parts of all nodes are never more than the whole. From the moment
the store did not answer it lets nobody through for a window and a quarter, so that what others were allowed has left
the window by then, and what was on its way has arrived; after that as much as its part allows. What it let through it
hands in when the store is back. Without a part, as when other nodes have not been told yet that theirs are smaller,
nobody is let through.
"""

from collections import deque

import msgspec

from sameas.llm.account import AccountState, Ending, Granted, RateLimits, Wait
from sameas.llm.circuit import Change, CircuitSettings

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
    """The calls of one node, and what it may do alone."""

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
