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
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct

from sameas.identity.scope import current_principal, current_scope
from sameas.once.claim_handle import AsyncClaimHandle
from sameas.once.context import WORKING, Context
from sameas.once.errors import SameasError
from sameas.once.record import ProcessingRecord
from sameas.web.capture import Disconnected, GivenBody, Message, NoRoom, Receive
from sameas.web.frameworks import ENTRANCE, Entrance
from sameas.web.problem import Problem, Send
from sameas.web.recording import NotHttp, NotKept, Recording
from sameas.web.request_claim import RequestClaim, RequestContext
from sameas.web.response import KeptResponse
from sameas.web.table import Rule

if TYPE_CHECKING:
    from sameas.web.asgi import IdempotencyMiddleware

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
    would have gone another way.

    Raises what `tell` raises.
    """

    def __init__(self, tell: Callable[[Shadowed], None] | None = None) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()
        self.latest: deque[Shadowed] = deque(maxlen=REMEMBERED)
        self._tell = tell

    def add(self, shadowed: Shadowed) -> None:
        """Count a request, and tell of it."""
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


async def shadow(
    home: IdempotencyMiddleware,
    rule: Rule,
    scope: dict[str, Any],
    receive: Receive,
    send: Send,
    keys: tuple[bytes, ...],
) -> None:
    """Run a request whatever the record says, and tell the ledger what `enforce` would have done."""
    request_claim = RequestClaim(home, rule, scope)
    request_context = RequestContext(None, partial(home.unproved, scope))
    unheld: Message | None = None
    began: ProcessingRecord | AsyncClaimHandle | Problem
    try:
        try:
            request_claim.read_key(keys)
            request_context = await request_claim.request_context()
            began = await request_claim.begin(receive, request_context, {**rule.options, "on_busy": "refuse"})
        except Problem as problem:
            began = problem
        except Disconnected:
            return
        except NoRoom as error:
            began, unheld = Problem(503, "no-room", str(error)), error.message
        except Exception as error:
            _LOG.warning("shadow: a request could not be looked up: %s", type(error).__name__)
            began = Problem(500, type(error).__name__, "")
        body = GivenBody(request_claim.body, after=receive, unheld=unheld)
        in_scope, in_name = current_scope.set(request_context.scope), current_principal.set(request_context.principal)
        try:
            context = began.context if isinstance(began, AsyncClaimHandle) else request_claim.unclaimed()
            await Shadowing(home, rule, request_context, began, context).run(scope, body, send)
        finally:
            current_scope.reset(in_scope)
            current_principal.reset(in_name)
    finally:
        request_claim.body.close()


class Shadowing:
    """One handler that runs as before, and its answer, watched."""

    __slots__ = (
        "_began",
        "_context",
        "_entrance",
        "_home",
        "_hop",
        "_recording",
        "_rule",
        "_scope",
        "_send",
        "_settled",
    )

    def __init__(
        self,
        home: IdempotencyMiddleware,
        rule: Rule,
        request_context: RequestContext,
        began: ProcessingRecord | AsyncClaimHandle | Problem,
        context: Context,
    ) -> None:
        self._home = home
        self._rule = rule
        self._hop = request_context
        self._began = began
        self._context = context
        self._entrance = Entrance() if rule.is_watched else None
        self._recording = Recording(most=rule.policy.keep_limit)
        self._settled = False

    async def run(self, scope: dict[str, Any], body: GivenBody, send: Send) -> None:
        self._scope, self._send = scope, send
        held = self._began if isinstance(self._began, AsyncClaimHandle) else None
        before, outer = WORKING.get(), ENTRANCE.set(self._entrance)
        WORKING.set((*before, self._context))
        try:
            await self._home.app(scope, body.receive, self._watch)
        except BaseException as error:
            if held is not None and not self._settled:
                self._settled = True
                with suppress(type(error)):
                    await held.give_back(error)
            raise
        finally:
            WORKING.set(before)
            ENTRANCE.reset(outer)
            self._recording.close()
        if held is not None and not self._settled:
            self._settled = True
            with suppress(SilentHandler):
                await held.give_back(SilentHandler())

    async def _watch(self, message: Message) -> None:
        """Sent on at once, and recorded."""
        kind = message["type"]
        if not self._settled:
            try:
                if kind == "http.response.start":
                    self._recording.open(message)
                elif kind == "http.response.body":
                    self._recording.write(message.get("body", b""))
            except NotHttp:
                # The server will say so itself.
                pass
        await self._send(message)
        if kind == "http.response.body" and not message.get("more_body") and not self._settled:
            self._settled = True
            self._home.shadow.add(await self._verdict())

    async def _verdict(self) -> Shadowed:
        name, began = self._rule.scope_name, self._began
        if isinstance(began, Problem):
            verdict: Verdict = "in-progress" if began.code == "in-progress" else "refused"
            return Shadowed(name, verdict, began.status, began.code)
        if isinstance(began, ProcessingRecord) and began.not_kept:
            return Shadowed(name, "refused", 409, "answer-not-kept")
        if isinstance(began, ProcessingRecord):
            differs = _differences(began.result, self._recording.kept(self._rule))
            return Shadowed(name, "replay-different" if differs else "replay-equal", began.result.status, "", differs)
        kept = self._recording.judged(self._rule, self._hop, self._scope, self._entrance)
        try:
            await (began.give_back(NotKept()) if kept is None else began.finish(kept))
        except NotKept:
            pass
        except SameasError as error:
            return Shadowed(name, "refused", 0, type(error).__name__)
        return Shadowed(name, "fresh", self._recording.status)


def _differences(then: KeptResponse, now: KeptResponse) -> tuple[str, ...]:
    differs = []
    if then.status != now.status:
        differs.append("status")
    if (then.body, then.part, then.size) != (now.body, now.part, now.size):
        differs.append("body")
    old = {pair for pair in then.headers if pair[0] not in _VOLATILE}
    new = {pair for pair in now.headers if pair[0] not in _VOLATILE}
    differs += sorted({name.decode("latin-1") for name, _ in old ^ new})
    return tuple(differs)
