"""An answer while the handler gives it: its status, its headers, and its body as far as that is to be held.

A body for which there is no room is let go and counted on: the request was run, and its record must say so.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any, Final

from sameas.identity.errors import SameasError
from sameas.web.capture import Message, Spool
from sameas.web.frameworks import Entrance
from sameas.web.problem import is_ours
from sameas.web.request_claim import RequestContext
from sameas.web.response import KeptResponse
from sameas.web.route import RoutePolicy
from sameas.web.table import Rule

_LOG = logging.getLogger("sameas")

# Not now: the next try is another matter.
NEVER_KEPT: Final = frozenset({429, 503})
# Nor is one of ours that a server further on gave: it was busy, or the answer that it keeps needs another encoding.
_OF_THE_MOMENT: Final = frozenset({406, 409})
_UNSENDABLE: Final = re.compile(rb"[\r\n\0]").search


class NotHttp(SameasError, RuntimeError):
    """The application's answer is none that a server can send; it is not kept, for no replay of it could be sent."""


class NotKept(Exception):
    """The answer is of a status that is not kept."""


class Recording:
    """What one handler answers. `size` is that of the whole body; `is_lost` says that not all of it is here."""

    __slots__ = ("_held", "_most", "headers", "is_lost", "size", "status")

    def __init__(self, *, most: int | None = None) -> None:
        """`most` bounds what is held, for a body that is sent on at once."""
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self.size = 0
        self.is_lost = False
        self._most = most
        self._held: Spool | None = None

    def open(self, message: Message) -> None:
        """The status and the headers, names in lower case."""
        status = message["status"]
        if not 200 <= status <= 599:
            raise NotHttp(f"its status is {status}")
        headers = [(bytes(name).lower(), bytes(value)) for name, value in message.get("headers", ())]
        if _UNSENDABLE(b"".join(map(b"".join, headers))):
            raise NotHttp("a header of it has a line break or a NUL")
        self.status, self.headers = status, headers

    def write(self, piece: bytes) -> None:
        """A piece of the body."""
        if not self.status:
            raise NotHttp("its body began before its status")
        if type(piece) is not bytes:
            piece = bytes(piece)
        self.size += len(piece)
        if self.is_lost or (self._most is not None and self.body.size > self._most):
            return
        try:
            self.body.write(piece)
        except OSError as error:
            _LOG.error("an answer could not be held: %s", type(error).__name__)
            self.is_lost = True
            self.close()

    def check_length(self) -> None:
        """Refuse a body that is not as long as its headers say: it broke off, and so would every replay."""
        said = [value for name, value in self.headers if name == b"content-length"]
        if said and self.status not in (204, 304) and said != [b"%d" % self.size]:
            raise NotHttp("its body is not as long as it says")

    @property
    def body(self) -> Spool:
        """What is held."""
        if self._held is None:
            self._held = Spool()
        return self._held

    def judged(
        self, rule: Rule, request_context: RequestContext, scope: Mapping[str, Any], entrance: Entrance | None
    ) -> KeptResponse | None:
        """What is kept of it; None if a retry is another matter."""
        try:
            if not self.is_settled(rule.policy, entrance):
                return None
            instead = request_context.nobodys(scope)
        except Exception as error:
            # The route's own `keeps` or the user's own properties failed. The work is done, and must not be done again.
            _LOG.exception("an answer of %s is not kept", rule.scope_name)
            instead = f"what decides about it failed ({type(error).__name__})"
        return self.kept(rule, instead=instead)

    def is_settled(self, policy: RoutePolicy, entrance: Entrance | None) -> bool:
        """Whether it is kept: not where the request was refused on the way to its handler, and not where it says that
        nothing was done, whoever said so first and whatever the route would keep."""
        status = self.status
        # What a middleware does itself is done. Where it only leads on, to a login or to https, the key goes along.
        if status >= 300 and entrance is not None and not entrance.is_entered:
            return False
        if status < 400:
            return policy.keeps(status)
        if status in NEVER_KEPT or any(name == b"retry-after" for name, _ in self.headers):
            return False
        if status in _OF_THE_MOMENT and not self.is_lost and is_ours(self.headers, self.body):
            return False
        return policy.keeps(status)

    def kept(self, rule: Rule, *, instead: str = "") -> KeptResponse:
        """What is kept of it, under a route's rule; `instead` of the answer, why there is none."""
        policy = rule.policy
        if instead:
            return KeptResponse(self.status, [], b"", self.size, "nothing", instead)
        headers = [pair for pair in self.headers if pair[0] in policy.kept_names]
        if not self.is_lost:
            if self.body.size <= policy.keep_limit:
                return KeptResponse(self.status, headers, bytes(self.body.view()), self.size)
            encoded = any(name == b"content-encoding" for name, _ in headers)
            if policy.over_limit == "truncate" and not encoded:
                _LOG.warning(
                    "an answer of %s has %d bytes; %d of them are kept", rule.scope_name, self.size, policy.keep_limit
                )
                return KeptResponse(self.status, headers, self.body.start(policy.keep_limit), self.size, "start")
        return KeptResponse(self.status, headers, b"", self.size, "nothing")

    def close(self) -> None:
        """Let go of what is held."""
        if self._held is not None:
            self._held.close()
            self._held = None
