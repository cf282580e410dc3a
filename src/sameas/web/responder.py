"""One request, from its key to its answer: replayed, or run once."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from sameas.once.processing_record import ProcessingRecord
from sameas.web.asking import Asking
from sameas.web.capture import Disconnected, GivenBody, Receive, Spool
from sameas.web.client import Client
from sameas.web.handling import Handling
from sameas.web.problem import Problem, Send
from sameas.web.table import Rule

if TYPE_CHECKING:
    from sameas.web.asgi import IdempotencyMiddleware

_LOG = logging.getLogger("sameas")


async def respond(
    home: IdempotencyMiddleware,
    rule: Rule,
    scope: dict[str, Any],
    receive: Receive,
    send: Send,
    keys: tuple[bytes, ...],
) -> None:
    """Answer a request; `keys` are the values of its Idempotency-Key."""
    asking = Asking(home, rule, scope)
    client = Client(send, rule.policy, head_only=scope["method"] == "HEAD")
    try:
        try:
            asking.read_key(keys)
            hop = await asking.hop()
            begun = await asking.begin(receive, hop.ctx, rule.options)
        except Problem as problem:
            await client.tell(problem)
            return
        except Disconnected:
            return
        except OSError as error:
            _LOG.error("a request could not be held: %s", type(error).__name__)
            await client.tell(
                Problem(503, "no-room", "The request cannot be held here; it was not run.", retry_after=5.0)
            )
            return
        if isinstance(begun, ProcessingRecord):
            await client.replay(begun)
        else:
            body, asking.body = GivenBody(asking.body), Spool()
            await Handling(home, rule, scope, hop, begun, body, client).run()
    finally:
        asking.body.close()
