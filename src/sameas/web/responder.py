"""One request, from its key to its answer: replayed, or run once."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from sameas.once.record import ProcessingRecord
from sameas.web.capture import Disconnected, GivenBody, Receive, Spool
from sameas.web.client_connection import ClientConnection
from sameas.web.handler_run import HandlerRun
from sameas.web.problem import Problem, Send
from sameas.web.request_claim import RequestClaim
from sameas.web.table import Rule

if TYPE_CHECKING:
    from sameas.web.asgi import IdempotencyMiddleware

_LOG = logging.getLogger("sameas")

# Stands for a body that its handler has now. Nothing is ever written to it.
_GIVEN_AWAY: Final = Spool()


async def respond(
    home: IdempotencyMiddleware,
    rule: Rule,
    scope: dict[str, Any],
    receive: Receive,
    send: Send,
    keys: tuple[bytes, ...],
) -> None:
    """Answer a request; `keys` are the values of its Idempotency-Key."""
    request_claim = RequestClaim(home, rule, scope)
    client = ClientConnection(send, rule.policy, scope["headers"], head_only=scope["method"] == "HEAD")
    try:
        try:
            request_claim.read_key(keys)
            request_context = await request_claim.request_context()
            begun = await request_claim.begin(receive, request_context, rule.options)
        except Problem as problem:
            await client.send_problem(problem)
            return
        except Disconnected:
            return
        except OSError as error:
            _LOG.error("a request could not be held: %s", type(error).__name__)
            await client.send_problem(
                Problem(503, "no-room", "The request cannot be held here; it was not run.", retry_after=5.0)
            )
            return
        if isinstance(begun, ProcessingRecord):
            await client.replay(begun)
        else:
            body, request_claim.body = GivenBody(request_claim.body), _GIVEN_AWAY
            await HandlerRun(home, rule, scope, request_context, begun, body, client).run()
    finally:
        request_claim.body.close()
