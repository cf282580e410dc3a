"""The safe roll-out: every request is run as before, and what would have been replayed is compared with what happened.

Nothing of an answer changes, nothing is refused, and a store that fails is a verdict and no error. Records are kept as
they would be, so that the day of switching to `enforce` starts with what is known.

| verdict | what `enforce` would have done |
|---|---|
| fresh | run it |
| replay-equal, replay-different | replayed; the answer just given was the same, or was not |
| in-progress | waited, or refused with 409 |
| refused | refused; `status` and `code` say with what |
"""

from __future__ import annotations

import logging
import sys
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Literal

from msgspec import Struct

from sameas.once.call import ProcessingRecord
from sameas.once.errors import SameasError
from sameas.once.held import AsyncHeld
from sameas.web.capture import Disconnected, Message, Spool
from sameas.web.problem import Problem
from sameas.web.responder import NotKept, Responder
from sameas.web.response import Kept

_LOG = logging.getLogger("sameas")

REMEMBERED: Final = 1_000
# What changes from answer to answer without meaning anything.
_VOLATILE: Final = frozenset({b"content-length", b"etag", b"last-modified", b"expires"})

Verdict = Literal["fresh", "replay-equal", "replay-different", "in-progress", "refused"]


class Shadowed(Struct, frozen=True):
    """One request under shadow. It names neither key nor caller. `differs` are parts of the answer."""

    scope: str
    verdict: Verdict
    status: int = 0
    code: str = ""
    differs: tuple[str, ...] = ()


class ShadowLedger:
    """What shadow mode has seen: counts per scope and verdict, the latest requests, and a log line for each that
    would have gone another way."""

    def __init__(self, tell: Callable[[Shadowed], None] | None = None) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()
        self.latest: deque[Shadowed] = deque(maxlen=REMEMBERED)
        self._tell = tell

    def add(self, shadowed: Shadowed) -> None:
        self.counts[shadowed.scope, shadowed.verdict] += 1
        self.latest.append(shadowed)
        if shadowed.verdict not in ("fresh", "replay-equal"):
            _LOG.warning(
                "shadow: %s of %s (%s)", shadowed.verdict, shadowed.scope, shadowed.code or ", ".join(shadowed.differs)
            )
        if self._tell is not None:
            self._tell(shadowed)


class SilentHandler(Exception):
    """A handler ended without an answer."""


class ShadowResponder(Responder):
    """A request that is run whatever the record says."""

    __slots__ = ("_began",)

    async def respond(self, keys: tuple[bytes, ...]) -> None:
        self._began: ProcessingRecord | AsyncHeld | Problem
        try:
            key = self._key(keys)
            ctx = None if self._home.authenticator is None else await self._authenticate(key)
            # A body over the limit is read to its end as well: the handler is to have it.
            self._began = await self._begin(key, ctx, {**self._rule.options, "on_busy": "refuse"}, limit=sys.maxsize)
        except Problem as problem:
            self._began = problem
        except Disconnected:
            return
        held = self._began if isinstance(self._began, AsyncHeld) else None
        if self._body is not None:
            self._left = self._body.chunks()
        try:
            await self._home.app(self._scope, self._give, self._watch)
        except BaseException as error:
            if held is not None and not self._settled:
                self._settled = True
                await held.give_back(error)
            raise
        finally:
            for spool in (self._body, self._recorded):
                if spool is not None:
                    spool.close()
        if held is not None and not self._settled:
            self._settled = True
            with suppress(SilentHandler):
                await held.give_back(SilentHandler())

    async def _give(self) -> Message:
        """The body that was read, then whatever the client does."""
        if self._body is None or self._read:
            return await self._receive()
        return await super()._give()

    async def _watch(self, message: Message) -> None:
        """Sent on at once, and recorded."""
        kind = message["type"]
        last = False
        if kind == "http.response.start":
            self._status = message["status"]
            self._headers = [(bytes(name).lower(), bytes(value)) for name, value in message.get("headers", ())]
            self._recorded = Spool()
        elif kind == "http.response.body" and self._recorded is not None:
            self._record(message.get("body", b""))
            last = not message.get("more_body")
        await self._send(message)
        if last and not self._settled:
            self._settled = True
            await self._judge()

    async def _judge(self) -> None:
        self._home.shadow.add(await self._verdict())

    async def _verdict(self) -> Shadowed:
        name, began = self._rule.scope_name, self._began
        kept = self._kept(self._recorded or Spool())
        if isinstance(began, Problem):
            verdict: Verdict = "in-progress" if began.code == "in-progress" else "refused"
            return Shadowed(name, verdict, began.status, began.code)
        if isinstance(began, ProcessingRecord):
            differs = _differences(began.result, kept)
            return Shadowed(name, "replay-different" if differs else "replay-equal", began.result.status, "", differs)
        try:
            if self._policy.keeps(self._status):
                await began.finish(kept)
            else:
                await began.give_back(NotKept())
        except NotKept:
            pass
        except SameasError as error:
            return Shadowed(name, "refused", 0, type(error).__name__)
        return Shadowed(name, "fresh", self._status)


def _differences(then: Kept, now: Kept) -> tuple[str, ...]:
    differs = []
    if then.status != now.status:
        differs.append("status")
    if (then.body, then.part, then.size) != (now.body, now.part, now.size):
        differs.append("body")
    old = {pair for pair in then.headers if pair[0] not in _VOLATILE}
    new = {pair for pair in now.headers if pair[0] not in _VOLATILE}
    differs += sorted({name.decode("latin-1") for name, _ in old ^ new})
    return tuple(differs)
