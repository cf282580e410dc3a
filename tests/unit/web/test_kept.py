"""Which answers are kept: never one that says "not now", whoever said it first."""

import asyncio
import gzip

import pytest

from sameas.web import every_status
from tests.unit.web.asking import Handler, ask, guarded

pytestmark = pytest.mark.anyio

KEY = '"order-1"'
LATER = [(b"Retry-After", b"5")]


async def runs(handler, **settings):
    app = guarded(handler, **settings)
    for _ in range(2):
        await ask(app, key=KEY)
    return handler.runs


@pytest.mark.parametrize("mode", ["hold", "passthrough"])
@pytest.mark.parametrize("keeps", [None, every_status])
@pytest.mark.parametrize(
    ("status", "headers"),
    [(429, []), (503, []), (409, LATER), (400, LATER), (403, LATER), (422, LATER), (500, LATER), (504, LATER)],
)
async def test_what_says_not_now_is_never_kept(status, headers, keeps, mode):
    settings = {"delivery": mode, **({} if keeps is None else {"keeps": keeps})}
    assert await runs(Handler(status=status, headers=headers), **settings) == 2


@pytest.mark.parametrize("status", [200, 201, 202, 301, 303, 307])
async def test_what_was_done_or_leads_on_is_kept_with_its_retry_after(status):
    handler = Handler(status=status, headers=LATER)
    app = guarded(handler)
    await ask(app, key=KEY)
    again = await ask(app, key=KEY)
    assert (again.status, again.replayed, again.headers["retry-after"], handler.runs) == (status, "true", "5", 1)


@pytest.mark.parametrize("status", [400, 404, 409, 422])
async def test_a_refusal_that_a_retry_would_not_change_is_kept(status):
    assert await runs(Handler(status=status)) == 1


class Gateway:
    """Passes a request on to another application, and its answer back."""

    def __init__(self, onward):
        self.onward = onward

    async def __call__(self, scope, receive, send):
        message = await receive()
        headers = [(name.decode(), value.decode()) for name, value in scope["headers"] if name != b"idempotency-key"]
        reply = await ask(self.onward, scope["path"], key="inner", body=message["body"], headers=headers)
        for each in reply.messages:
            await send(each)


async def test_a_409_of_ours_that_a_gateway_passes_on_is_not_kept_there():
    handler = Handler(gate=asyncio.Event())
    inner = guarded(handler, on_busy="refuse")
    first = asyncio.create_task(ask(inner, key="inner"))
    await handler.started.wait()
    gateway = guarded(Gateway(inner))
    assert (await ask(gateway, key=KEY)).json["type"] == "urn:sameas:problem:in-progress"
    handler.gate.set()
    await first
    assert ((await ask(gateway, key=KEY)).status, handler.runs) == (201, 1)


async def test_a_409_of_ours_without_retry_after_is_not_kept_either_and_anothers_is():
    large = Handler(body=b"x" * 5_000)
    inner = guarded(large, keep_limit=1_000)
    await ask(inner, key="inner")
    gateway = guarded(Gateway(inner))
    for _ in range(2):
        reply = await ask(gateway, key=KEY)
        assert (reply.json["type"], reply.replayed) == ("urn:sameas:problem:answer-not-kept", "false")
    for body in (b'{"type":"https://example.com/conflict"}', b"no JSON", b"[]", b'{"type": 3}'):
        app = guarded(Handler(status=409, body=body, kind=b"application/problem+json"))
        await ask(app, key=KEY)
        assert (await ask(app, key=KEY)).replayed == "true"


class Compressing:
    """Compresses the answers of another application, whatever they are."""

    def __init__(self, onward, compress):
        self.onward, self.compress = onward, compress

    async def __call__(self, scope, receive, send):
        reply = await ask(self.onward, scope["path"], key="inner")
        start, body = reply.messages[0], self.compress(reply.body)
        headers = [pair for pair in start["headers"] if pair[0] != b"content-length"]
        await send({**start, "headers": [*headers, (b"content-encoding", b"gzip")]})
        await send({"type": "http.response.body", "body": body})


@pytest.mark.parametrize(("compress", "replayed"), [(gzip.compress, "false"), (lambda body: body, "true")])
async def test_a_409_of_ours_that_was_compressed_on_the_way_is_not_kept_and_what_is_no_gzip_is_not_ours(
    compress, replayed
):
    inner = guarded(Handler(body=b"x" * 5_000), keep_limit=1_000)
    await ask(inner, key="inner")
    gateway = guarded(Compressing(inner, compress))
    accepting = [("Accept-Encoding", "gzip")]
    assert (await ask(gateway, key=KEY, headers=accepting)).status == 409
    assert (await ask(gateway, key=KEY, headers=accepting)).replayed == replayed


async def test_a_406_of_ours_is_not_kept_by_a_gateway_for_the_next_request_may_accept_more():
    handler = Handler(body=b"?", headers=[(b"content-encoding", b"dcb")])
    inner = guarded(handler)
    await ask(inner, key="inner")
    gateway = guarded(Gateway(inner))
    refused = await ask(gateway, key=KEY)
    assert refused.json["type"] == "urn:sameas:problem:encoding-not-accepted"
    answered = await ask(gateway, key=KEY, headers=[("Accept-Encoding", "dcb")])
    assert (answered.status, answered.body, handler.runs) == (201, b"?", 1)


async def test_under_shadow_the_rule_of_a_route_that_fails_changes_nothing():
    handler = Handler()
    app = guarded(handler, keeps=lambda status: 1 / 0, mode="shadow")
    assert [(await ask(app, key=KEY)).status for _ in range(2)] == [201, 201]
    assert [shadowed.verdict for shadowed in app.shadow.latest] == ["fresh", "replay-different"]


@pytest.mark.parametrize("delivery", ["hold", "passthrough"])
async def test_what_is_done_is_not_done_again_where_the_rule_of_the_route_fails(delivery, caplog):
    def keeps(status):
        raise ZeroDivisionError

    handler = Handler()
    app = guarded(handler, keeps=keeps, delivery=delivery)
    first, again = await ask(app, key=KEY), await ask(app, key=KEY)
    assert (first.status, again.status, handler.runs) == (201, 409, 1)
    assert again.json["type"] == "urn:sameas:problem:answer-not-kept"
    assert "ZeroDivisionError" in again.json["detail"]
    assert "ZeroDivisionError" in caplog.text
