"""Shadow mode changes nothing and says what would have happened."""

import asyncio

import pytest

from sameas.web import ShadowLedger
from tests.unit.web.asking import Handler, ask, guarded
from tests.unit.web.test_asgi import Down

pytestmark = pytest.mark.anyio

KEY = '"order-1"'


def verdicts(app):
    return [shadowed.verdict for shadowed in app.shadow.latest]


async def test_every_request_runs_and_equal_answers_agree():
    handler = Handler(headers=[(b"set-cookie", b"a=b"), (b"date", b"now")])
    app = guarded(handler, mode="shadow")
    replies = [await ask(app, key=KEY, json={"a": 1}) for _ in range(3)]
    assert handler.runs == 3
    assert [reply.replayed for reply in replies] == [None] * 3
    assert verdicts(app) == ["fresh", "replay-equal", "replay-equal"]
    assert app.shadow.counts["POST /orders", "replay-equal"] == 2


async def test_answers_that_differ_are_told_with_what_differs(caplog):
    handler, told = Handler(headers=[(b"location", b"/1")]), []
    app = guarded(handler, mode="shadow", shadow=ShadowLedger(told.append))
    await ask(app, key=KEY)
    handler.body, handler.status, handler.headers = b'{"order": 2}', 200, [(b"location", b"/2")]
    assert (await ask(app, key=KEY)).json == {"order": 2}
    assert told[-1].verdict == "replay-different"
    assert told[-1].differs == ("status", "body", "location")
    assert "replay-different" in caplog.text
    assert "order-1" not in caplog.text


async def test_what_would_have_been_refused_runs_and_is_told():
    handler = Handler()
    app = guarded(handler, mode="shadow", key="required", body_limit=100)
    await ask(app, key=KEY, json={"a": 1})
    await ask(app, key=KEY, json={"a": 2})
    await ask(app)
    await ask(app, key="a b")
    await ask(app, key='"long"', body=b"x" * 500)
    await ask(app, key='"nan"', body=b"{NaN}", headers=[("Content-Type", "application/json")])
    assert handler.runs == 6
    assert handler.bodies[4] == b"x" * 500
    assert [shadowed.code for shadowed in app.shadow.latest][1:] == [
        "key-reused",
        "key-required",
        "key-malformed",
        "body-too-large",
        "body-malformed",
    ]


async def test_a_duplicate_in_progress_runs_beside_the_first():
    handler = Handler(gate=asyncio.Event())
    app = guarded(handler, mode="shadow")
    first = asyncio.create_task(ask(app, key=KEY))
    await handler.started.wait()
    handler.started.clear()
    second = asyncio.create_task(ask(app, key=KEY))
    await handler.started.wait()
    handler.gate.set()
    await asyncio.gather(first, second)
    assert sorted(verdicts(app)) == ["fresh", "in-progress"]
    assert handler.runs == 2


@pytest.mark.parametrize("down", [{"claims": False}, {"results": False}])
async def test_a_store_that_fails_is_a_verdict_and_no_error(down):
    from sameas import AsyncEngine, Policy
    from sameas.once.store import AsyncStore

    handler = Handler()
    engine = AsyncEngine(AsyncStore(Down(**down)), policy=Policy(hand_in_for=0.05))
    app = guarded(handler, mode="shadow", engine=engine, lease=0.001)
    assert (await ask(app, key=KEY)).status == 201
    assert verdicts(app) == ["refused"]


async def test_a_handler_that_fails_gives_its_claim_back():
    handler = Handler(error=LookupError("no"))
    app = guarded(handler, mode="shadow")
    with pytest.raises(LookupError):
        await ask(app, key=KEY)
    await ask(app, key=KEY)
    assert verdicts(app) == ["fresh"]


async def test_statuses_that_are_not_kept_are_fresh_again():
    handler = Handler(status=500)
    app = guarded(handler, mode="shadow")
    await ask(app, key=KEY)
    await ask(app, key=KEY)
    assert verdicts(app) == ["fresh", "fresh"]


async def test_a_large_body_reaches_the_handler_whole():
    handler = Handler()
    app = guarded(handler, mode="shadow")
    body = b"x" * 600_000
    await ask(app, key=KEY, pieces=[body[:400_000]], body=body[400_000:])
    assert handler.bodies == [body]
