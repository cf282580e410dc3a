"""Every row of the contract: what the middleware answers in which situation, on an application that counts its runs."""

import asyncio
import logging
import time

import pytest

from sameas import AsyncEngine, Policy, StoreUnavailable, current_context
from sameas.once.errors import StoreError
from sameas.once.record import LOST
from sameas.once.store import AsyncStore, Query
from sameas.stores.memory import MemoryBackend
from sameas.testing import MovableClock
from sameas.web import IdempotencyMiddleware, RoutePolicy, every_status
from tests.unit.once.renewals import Renewals
from tests.unit.web.asking import Handler, Reply, ask, guarded, http_scope

pytestmark = pytest.mark.anyio

KEY = '"order-1"'


async def until(condition):
    """Let the loop turn until something is so; the test's own time limit is the bound."""
    while not condition():
        await asyncio.sleep(0)


async def test_the_first_request_runs_and_the_second_gets_the_same_bytes():
    handler = Handler(headers=[(b"location", b"/orders/1"), (b"x-odd", b"1")])
    app = guarded(handler)
    first = await ask(app, key=KEY, json={"a": 1})
    second = await ask(app, key="order-1", body=b'{ "a":1 }', headers=[("Content-Type", "application/json")])
    assert (first.status, first.replayed, first.body) == (201, "false", handler.body)
    assert (second.status, second.replayed, second.body) == (201, "true", handler.body)
    assert handler.runs == 1
    assert second.headers["location"] == "/orders/1"
    assert "x-odd" not in second.headers
    assert second.headers["idempotency-expires"] == first.headers["idempotency-expires"]
    assert second.headers["content-length"] == str(len(handler.body))


async def test_the_handler_gets_the_body_as_it_was_sent():
    handler = Handler()
    body = b"x" * 700_000
    await ask(guarded(handler), key=KEY, pieces=[body[at : at + 60_000] for at in range(0, len(body), 60_000)])
    assert handler.bodies == [body]


async def test_an_answer_expires():
    clock = MovableClock()
    handler = Handler()
    app = guarded(handler, backend=MemoryBackend(clock=clock), expires_after=100)
    await ask(app, key=KEY)
    clock.advance(99)
    assert (await ask(app, key=KEY)).replayed == "true"
    clock.advance(2)
    assert (await ask(app, key=KEY)).replayed == "false"


async def test_a_duplicate_waits_for_the_first_and_shares_its_answer():
    handler = Handler(gate=asyncio.Event())
    app = guarded(handler)
    first = asyncio.create_task(ask(app, key=KEY))
    await handler.started.wait()
    others = [asyncio.create_task(ask(app, key=KEY)) for _ in range(5)]
    await asyncio.sleep(0.01)
    assert not any(other.done() for other in others)
    handler.gate.set()
    replies = await asyncio.gather(first, *others)
    assert [reply.body for reply in replies] == [handler.body] * 6
    assert [reply.replayed for reply in replies] == ["false"] + ["true"] * 5
    assert handler.runs == 1


@pytest.mark.parametrize("settings", [{"on_busy": "refuse"}, {"wait_for": 0.01}])
async def test_a_duplicate_that_may_not_wait_any_longer_is_told_to_come_back(settings):
    handler = Handler(gate=asyncio.Event())
    app = guarded(handler, **settings)
    first = asyncio.create_task(ask(app, key=KEY))
    await handler.started.wait()
    refused = await ask(app, key=KEY)
    assert (refused.status, refused.json["type"]) == (409, "urn:sameas:problem:in-progress")
    assert int(refused.headers["retry-after"]) >= 1
    assert refused.headers["content-type"] == "application/problem+json"
    handler.gate.set()
    assert (await first).status == 201


async def test_another_request_under_the_key_is_refused_with_the_fields_that_differ():
    handler = Handler()
    app = guarded(handler)
    await ask(app, key=KEY, json={"amount": 1, "to": "a"})
    refused = await ask(app, key=KEY, json={"amount": 2, "to": "a"})
    assert (refused.status, refused.json["fields"]) == (422, ["amount"])
    assert (await ask(app, key=KEY, json={"amount": 1, "to": "a"}, query=b"x=1")).json["fields"] == [":query"]
    assert handler.runs == 1


async def test_another_request_is_refused_while_the_first_is_in_progress():
    handler = Handler(gate=asyncio.Event())
    app = guarded(handler)
    first = asyncio.create_task(ask(app, key=KEY, json={"amount": 1}))
    await handler.started.wait()
    assert (await ask(app, key=KEY, json={"amount": 2})).status == 422
    handler.gate.set()
    await first
    assert handler.runs == 1


@pytest.mark.parametrize(
    "key",
    [
        None,
        "",
        "a b",
        '"a',
        "é",
        ["a", "a"],
        "a" * 256,
        '"' + "a" * 256 + '"',
        '""',
        '"a b"',
        '"' + "a" * 70_000 + '"',
        '"a\x00"',
        "a\r\n b",
        "\n",
        "a,b",
        "a\\b",
        'a"b',
    ],
)
async def test_a_key_that_is_missing_malformed_long_or_sent_twice_is_refused(key):
    handler = Handler()
    refused = await ask(guarded(handler, key="required"), key=key)
    assert (refused.status, refused.headers["content-type"]) == (400, "application/problem+json")
    assert handler.runs == 0
    if isinstance(key, str) and len(key) > 3:
        assert key not in refused.body.decode()


async def test_a_route_may_ask_for_keys_of_its_own_pattern():
    assert (await ask(guarded(Handler(), key_pattern=r"[ -~]+"), key='"a b"')).status == 201
    app = guarded(Handler(), key_pattern=r"[a-z]{1,200}")
    assert (await ask(app, key="abc")).status == 201
    refused = await ask(app, key='"a b/c"')
    assert (refused.status, "[a-z]{1,200}" in refused.json["detail"]) == (400, True)


@pytest.mark.parametrize(
    "key",
    [
        "8e03978e40d543ddbc936894a57f9324",
        "8e03978e-40d5-43dd-bc93-6894a57f9324",
        "01ARZ3NDEKTSV4RRFFQ69G5FAV",
        "-V1StGXR8_Z5jdHi6B-myT",
        "_V1StGXR8",
        "1763424000000",
        "q83vEjRWeJCrze8SNFZ4kA==",
        "+/8=",
        "user/42/pay",
        "a" * 255,
        "1",
        "(a)@b?c=d&e=[f]",
    ],
)
async def test_keys_as_people_make_them_are_accepted_bare_and_quoted_and_mean_the_same(key):
    handler = Handler()
    app = guarded(handler, key="required")
    assert (await ask(app, key=key)).status == 201
    assert (await ask(app, key=f'"{key}"')).replayed == "true"
    assert handler.runs == 1


async def test_a_quoted_key_may_have_what_a_bare_one_may_not():
    handler = Handler()
    app = guarded(handler)
    for key in ('"a,b"', r'"a\"b"', '"a;b"', r'"a\\b"', '"' + r"\"" * 255 + '"'):
        assert (await ask(app, key=key)).status == 201
    assert handler.runs == 5


async def test_without_a_key_a_route_that_does_not_need_one_is_left_alone():
    handler = Handler()
    reply = await ask(guarded(handler))
    assert reply.status == 201
    assert reply.replayed is None
    await ask(guarded(handler))
    assert handler.runs == 2


async def test_the_content_can_be_the_key():
    handler = Handler()
    app = guarded(handler, key="content")
    first = await ask(app, json={"a": 1})
    assert (await ask(app, json={"a": 1}, key="ignored")).replayed == "true"
    assert (await ask(app, json={"a": 2})).replayed == "false"
    assert (first.replayed, handler.runs) == ("false", 2)


@pytest.mark.parametrize("kind", ["websocket", "lifespan"])
async def test_other_scopes_are_passed_through(kind):
    seen = []

    async def app(scope, receive, send):
        seen.append((scope["type"], await receive()))

    async def receive():
        return {"type": f"{kind}.something"}

    await IdempotencyMiddleware(app, engine=AsyncEngine(AsyncStore(MemoryBackend())))({"type": kind}, receive, None)
    assert seen == [(kind, {"type": f"{kind}.something"})]


async def test_get_is_left_alone_unless_the_route_names_it():
    handler = Handler()
    assert (await ask(guarded(handler), key=KEY, method="GET")).replayed is None
    app = guarded(handler, methods=["GET"])
    await ask(app, key=KEY, method="GET")
    assert (await ask(app, key=KEY, method="GET")).replayed == "true"


class Down(MemoryBackend):
    """A store whose claims, or whose results, do not arrive."""

    def __init__(self, *, claims=True, results=True):
        super().__init__()
        self.claims, self.results = claims, results

    def claim(self, request):
        if not self.claims:
            raise StoreUnavailable(retry_after=7.0)
        return super().claim(request)

    def complete(self, lease, outcome, retain_for):
        if not self.results:
            raise StoreUnavailable
        return super().complete(lease, outcome, retain_for)


async def test_when_the_store_is_down_nothing_runs():
    handler = Handler()
    refused = await ask(guarded(handler, backend=Down(claims=False)), key=KEY)
    assert (refused.status, handler.runs) == (503, 0)
    assert 7 <= int(refused.headers["retry-after"]) <= 9


async def test_a_result_that_the_store_did_not_take_is_given_unmarked_where_that_was_chosen():
    policy = Policy(hand_in_for=0.01, on_unstored="return")
    engine = AsyncEngine(AsyncStore(Down(results=False)), policy=policy)
    reply = await ask(guarded(Handler(), engine=engine), key=KEY)
    assert (reply.status, reply.replayed) == (201, "false")
    assert "idempotency-expires" not in reply.headers


@pytest.mark.parametrize("lease", [0.001, 3_600])
async def test_a_result_that_nobody_can_be_sure_of_is_not_called_a_success(lease):
    engine = AsyncEngine(AsyncStore(Down(results=False)), policy=Policy(hand_in_for=0.05))
    reply = await ask(guarded(Handler(), engine=engine, lease=lease), key=KEY)
    assert (reply.status, reply.json["type"]) == (500, "urn:sameas:problem:outcome-unknown")
    assert "Check its effect" in reply.json["detail"]
    assert "`result`" not in reply.json["detail"], "that is an attribute for those who call the engine"


async def test_an_answer_that_the_store_refuses_is_given_once_and_not_run_again():
    class Choosy(MemoryBackend):
        def complete(self, lease, outcome, retain_for):
            if outcome.meta:
                raise StoreError("too large")
            return super().complete(lease, outcome, retain_for)

    handler = Handler()
    app = guarded(handler, backend=Choosy())
    first, again = await ask(app, key=KEY), await ask(app, key=KEY)
    assert (first.status, first.replayed) == (201, "false")
    assert (again.status, again.json["type"]) == (409, "urn:sameas:problem:answer-not-kept")
    assert handler.runs == 1


@pytest.mark.parametrize("status", [500, 503, 429, 401, 408])
async def test_an_answer_that_says_try_again_is_not_kept(status):
    handler = Handler(status=status)
    app = guarded(handler)
    first = await ask(app, key=KEY)
    assert (first.status, first.replayed, first.body) == (status, "false", handler.body)
    handler.status = 200
    assert (await ask(app, key=KEY)).replayed == "false"
    assert (await ask(app, key=KEY)).replayed == "true"
    assert handler.runs == 2


async def test_keeping_server_errors_is_one_line():
    handler = Handler(status=500)
    app = guarded(handler, keeps=every_status)
    await ask(app, key=KEY)
    assert ((await ask(app, key=KEY)).status, handler.runs) == (500, 1)


async def test_a_handler_that_raises_is_run_again_by_the_next():
    handler = Handler(error=LookupError("no"))
    app = guarded(handler)
    with pytest.raises(LookupError):
        await ask(app, key=KEY)
    assert (await ask(app, key=KEY)).status == 201


async def test_a_waiter_whose_leader_fails_runs_itself():
    handler = Handler(gate=asyncio.Event(), error=LookupError("no"))
    app = guarded(handler)
    first = asyncio.create_task(ask(app, key=KEY))
    await handler.started.wait()
    second = asyncio.create_task(ask(app, key=KEY))
    await asyncio.sleep(0.01)
    handler.gate.set()
    with pytest.raises(LookupError):
        await first
    assert (await second).status == 201
    assert handler.runs == 2


async def test_an_application_without_an_answer_is_an_error_and_releases():
    async def silent(scope, receive, send):
        pass

    app = guarded(silent)
    with pytest.raises(RuntimeError, match="without an answer"):
        await ask(app, key=KEY)
    assert (await app.engine.find(Query())).records == []


async def test_an_answer_too_large_to_keep_is_never_run_again():
    handler = Handler(body=b"x" * 5_000, status=202)
    app = guarded(handler, keep_limit=1_000)
    assert (await ask(app, key=KEY)).body == handler.body
    again = await ask(app, key=KEY)
    assert (again.status, again.json["original_status"], again.json["original_size"]) == (409, 202, 5_000)
    assert handler.runs == 1


async def test_a_stream_that_becomes_too_large_to_keep_is_never_run_again():
    handler = Handler(pieces=[b"x" * 600] * 10, body=b"end")
    app = guarded(handler, keep_limit=1_000, delivery="passthrough")
    assert (await ask(app, key=KEY)).body == b"x" * 6_000 + b"end"
    again = await ask(app, key=KEY)
    assert (again.status, again.json["original_size"], handler.runs) == (409, 6_003, 1)


async def test_an_answer_too_large_can_be_truncated_and_says_so(caplog):
    handler = Handler(body=b"x" * 5_000, headers=[(b"content-length", b"5000")])
    app = guarded(handler, keep_limit=1_000, over_limit="truncate")
    with caplog.at_level(logging.WARNING, "sameas"):
        await ask(app, key=KEY)
    again = await ask(app, key=KEY)
    assert (again.status, again.body, again.headers["content-length"]) == (201, b"x" * 1_000, "1000")
    assert again.headers["x-idempotency-truncated"] == "5000"
    assert "5000" in caplog.text
    assert "order-1" not in caplog.text


async def test_a_compressed_answer_is_not_truncated():
    app = guarded(
        Handler(body=b"x" * 5_000, headers=[(b"content-encoding", b"gzip")]), keep_limit=1_000, over_limit="truncate"
    )
    await ask(app, key=KEY)
    assert (await ask(app, key=KEY)).status == 409


async def test_a_streamed_answer_is_held_until_it_is_accepted_and_replayed_whole():
    gate = asyncio.Event()
    pieces = [b"a" * 100_000] * 6

    async def streaming(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for piece in pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await gate.wait()
        await send({"type": "http.response.body", "body": b"end"})

    app, reply = guarded(streaming), Reply()
    request_claim = asyncio.create_task(ask(app, key=KEY, reply=reply))
    await asyncio.sleep(0.01)
    assert reply.messages == []
    gate.set()
    await request_claim
    assert reply.body == b"".join(pieces) + b"end"
    assert (await ask(app, key=KEY)).body == reply.body


async def test_passthrough_streams_while_it_records_and_the_last_piece_waits_for_the_record():
    gate, accepted = asyncio.Event(), []

    class Slow(MemoryBackend):
        def complete(self, lease, outcome, retain_for):
            accepted.append([message.get("more_body") for message in reply.messages])
            return super().complete(lease, outcome, retain_for)

    async def streaming(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"one", "more_body": True})
        await gate.wait()
        await send({"type": "http.response.body", "body": b"two"})

    app, reply = guarded(streaming, backend=Slow(), delivery="passthrough"), Reply()
    request_claim = asyncio.create_task(ask(app, key=KEY, reply=reply))
    await until(lambda: len(reply.messages) == 2)
    assert (reply.replayed, reply.body) == ("false", b"one")
    gate.set()
    await request_claim
    assert accepted == [[None, True]]
    assert reply.complete
    assert (await ask(app, key=KEY)).body == b"onetwo"


class Losing(MemoryBackend):
    """A store where somebody else was faster, with this answer."""

    def complete(self, lease, outcome, retain_for):
        mine = yield from super().complete(lease, outcome, retain_for)
        assert mine is not None
        return LOST


async def test_a_passthrough_whose_fence_is_lost_is_cut_off():
    app, reply = guarded(Handler(pieces=[b"one"]), backend=Losing(), delivery="passthrough"), Reply()
    with pytest.raises(OSError, match="cut off"):
        await ask(app, key=KEY, reply=reply)
    assert not reply.complete


@pytest.mark.parametrize("pieces", [[], [b"one"]])
async def test_a_passthrough_whose_result_the_store_was_not_told_of_is_cut_off(pieces):
    engine = AsyncEngine(AsyncStore(Down(results=False)), policy=Policy(hand_in_for=0.01))
    reply = Reply()
    with pytest.raises(OSError, match="OutcomeUnknown"):
        await ask(guarded(Handler(pieces=pieces), engine=engine, delivery="passthrough"), key=KEY, reply=reply)
    assert not reply.complete


async def test_a_passthrough_that_hears_of_its_loss_stops_in_the_middle():
    async def streaming(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"one", "more_body": True})
        current_context().lost = True
        await send({"type": "http.response.body", "body": b"two", "more_body": True})

    app, reply = guarded(streaming, delivery="passthrough"), Reply()
    with pytest.raises(OSError, match="cut off"):
        await ask(app, key=KEY, reply=reply)
    assert reply.body == b"one"


async def test_a_worker_that_was_replaced_answers_with_what_was_accepted():
    reply = await ask(guarded(Handler(), backend=Losing()), key=KEY)
    assert (reply.status, reply.replayed) == (201, "true")


async def test_a_body_over_the_limit_is_refused_while_it_arrives():
    handler, reply, read = Handler(), Reply(), []
    app = guarded(handler, body_limit=100_000)

    async def endless():
        read.append(1)
        assert len(read) < 10
        return {"type": "http.request", "body": b"x" * 60_000, "more_body": True}

    async def send(message):
        reply.messages.append(message)

    await app(http_scope(headers=[(b"idempotency-key", b"a")]), endless, send)
    assert (reply.status, handler.runs, len(read)) == (413, 0, 2)


@pytest.mark.parametrize("declared", ["100001", "9" * 5_000])
async def test_a_body_that_is_announced_over_the_limit_is_not_read(declared):
    handler = Handler()
    refused = await ask(guarded(handler, body_limit=100_000), key=KEY, headers=[("Content-Length", declared)])
    assert (refused.status, handler.runs) == (413, 0)


async def test_a_client_that_goes_while_it_sends_changes_nothing():
    handler = Handler()
    app = guarded(handler)
    messages = [{"type": "http.request", "body": b"x", "more_body": True}, {"type": "http.disconnect"}]

    async def receive():
        return messages.pop(0)

    await app(http_scope(headers=[(b"idempotency-key", b"a")]), receive, None)
    assert handler.runs == 0


async def test_the_replay_can_be_told_in_the_body_and_is_never_stored():
    handler = Handler(headers=[(b"content-length", b"12")])
    app = guarded(handler, replayed_in_body=True)
    first, second = await ask(app, key=KEY), await ask(app, key=KEY)
    assert first.json == {"order": 1, "idempotency_replayed": False}
    assert second.json == {"order": 1, "idempotency_replayed": True}
    assert first.headers["content-length"] == str(len(first.body))
    assert second.headers["content-length"] == str(len(second.body))
    (record,) = (await app.engine.find(Query())).records
    kept = await app.engine.store.read(record.identity)
    assert b"idempotency_replayed" not in kept.outcome.data


@pytest.mark.parametrize("body", [b"[1]", b"{ }", b'{"idempotency_replayed": 5}', b"text", b"", b' {"a": {}} \n'])
async def test_only_json_objects_are_told_of_the_replay(body):
    import json

    app = guarded(Handler(body=body), replayed_in_body=True)
    await ask(app, key=KEY)
    reply = (await ask(app, key=KEY)).body
    if body in (b"{ }", b' {"a": {}} \n'):
        assert json.loads(reply) == {**json.loads(body), "idempotency_replayed": True}
    else:
        assert reply == body


async def test_the_handler_finishes_and_its_result_is_kept_where_the_servers_task_is_gone():
    handler = Handler(gate=asyncio.Event())
    app, reply = guarded(handler), Reply()
    request_claim = asyncio.create_task(ask(app, key=KEY, reply=reply))
    await handler.started.wait()
    request_claim.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request_claim
    handler.gate.set()
    await app.drain()
    assert reply.messages == []
    assert (await ask(app, key=KEY)).replayed == "true"
    assert handler.runs == 1


async def test_a_client_that_cannot_be_sent_to_changes_nothing():
    handler = Handler()
    app = guarded(handler)

    async def receive():
        return {"type": "http.request", "body": b""}

    async def send(message):
        raise OSError("gone")

    await app(http_scope(headers=[(b"idempotency-key", b"a")]), receive, send)
    assert (await ask(app, key="a")).replayed == "true"


async def test_the_handler_never_hears_that_its_client_went_before_its_answer_is_out():
    heard = []

    async def listening(scope, receive, send):
        await receive()
        hearing = asyncio.create_task(receive())
        await asyncio.sleep(0.01)
        heard.append(hearing.done())
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x"})
        heard.append((await hearing)["type"])

    await ask(guarded(listening), key=KEY)
    assert heard == [False, "http.disconnect"]


async def test_at_shutdown_handlers_have_the_grace_time_and_then_their_claims_are_given_back():
    handler = Handler(gate=asyncio.Event())
    app = guarded(handler, grace_seconds=0.05)
    request_claim = asyncio.create_task(ask(app, key=KEY))
    await handler.started.wait()
    told = []

    async def inner(scope, receive, send):
        told.append((await receive())["type"])

    app.app = inner

    async def receive():
        return {"type": "lifespan.shutdown"}

    await app({"type": "lifespan"}, receive, None)
    assert told == ["lifespan.shutdown"]
    with pytest.raises(asyncio.CancelledError):
        await request_claim
    assert (await app.engine.find(Query())).records == []


async def test_a_handler_that_is_ended_before_it_begins_gives_its_claim_back():
    handler = Handler()
    app = guarded(handler)
    request_claim = asyncio.create_task(ask(app, key=KEY))
    await asyncio.sleep(0)
    (handler_run,) = app.running
    handler_run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request_claim
    await app.drain()
    assert handler.runs == 0
    assert (await app.engine.find(Query())).records == []
    assert (await ask(app, key=KEY)).replayed == "false"


async def test_background_work_delays_neither_the_answer_nor_the_record():
    gate = asyncio.Event()

    async def with_background(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x"})
        await gate.wait()

    app, reply = guarded(with_background), Reply()
    request_claim = asyncio.create_task(ask(app, key=KEY, reply=reply))
    await until(lambda: reply.complete)
    assert (await ask(app, key=KEY)).replayed == "true"
    assert not request_claim.done()
    gate.set()
    await request_claim


async def test_a_failure_in_the_background_is_the_servers_to_hear_and_the_record_stays():
    async def failing(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x"})
        raise LookupError("in the background")

    app = guarded(failing)
    with pytest.raises(LookupError):
        await ask(app, key=KEY)
    assert (await ask(app, key=KEY)).replayed == "true"


async def test_the_handler_is_told_about_itself():
    seen = []

    async def request_claim(scope, receive, send):
        seen.append(current_context().child_key("stripe"))
        await Handler()(scope, receive, send)

    app = guarded(request_claim)
    await ask(app, key=KEY)
    assert seen[0].startswith("sha256-")


async def test_a_handler_that_asks_itself_is_refused_at_once():
    replies = []

    async def again(scope, receive, send):
        replies.append(await ask(app, key=KEY))
        await Handler()(scope, receive, send)

    app = guarded(again)
    await ask(app, key=KEY)
    assert replies[0].status == 409


@pytest.mark.parametrize("status", [204, 304])
async def test_an_answer_without_a_body_stays_without(status):
    app = guarded(Handler(status=status, body=b""))
    await ask(app, key=KEY)
    again = await ask(app, key=KEY)
    assert (again.status, again.body, again.replayed) == (status, b"", "true")
    assert "content-length" not in again.headers


async def test_head_keeps_the_length_that_was_said():
    app = guarded(Handler(body=b"", headers=[(b"content-length", b"12")]), methods=["HEAD"])
    await ask(app, key=KEY, method="HEAD")
    again = await ask(app, key=KEY, method="HEAD")
    assert (again.headers["content-length"], again.body) == ("12", b"")
    refused = await ask(app, key="a b", method="HEAD")
    assert (refused.status, refused.body) == (400, b"")


async def test_ways_past_the_middleware_are_not_offered_to_the_handler():
    offered = []

    async def app(scope, receive, send):
        offered.append(scope["extensions"])
        await Handler()(scope, receive, send)

    extensions = {"http.response.pathsend": {}, "http.response.debug": {}}
    await ask(guarded(app), key=KEY, extensions=extensions)
    assert offered == [{"http.response.debug": {}}]


async def test_two_middlewares_of_one_store_share_its_answers():
    backend, handler = MemoryBackend(), Handler()
    await ask(guarded(handler, backend=backend), key=KEY)
    assert (await ask(guarded(handler, backend=backend), key=KEY)).replayed == "true"


async def test_route_method_and_status_are_kept_for_listings():
    app = guarded(Handler(), routes={"POST /orders/{id}": RoutePolicy(scope="orders")})
    await ask(app, "/orders/7", key=KEY)
    (record,) = (await app.engine.find(Query(route="/orders/{id}", method="POST", status=201))).records
    assert (record.identity.scope, record.identity.key) == ("orders", "order-1")


async def test_off_is_off():
    handler = Handler()
    app = guarded(handler, mode="off", key="required")
    await ask(app)
    await ask(app)
    assert handler.runs == 2
    with pytest.raises(ValueError, match="mode"):
        guarded(handler, mode="loud")


async def test_a_handler_longer_than_its_lease_keeps_it():
    handler = Handler(gate=asyncio.Event())
    backend = Renewals()
    app = guarded(handler, backend=backend, lease=0.06)
    first = asyncio.create_task(ask(app, key=KEY))
    await handler.started.wait()
    for _ in range(4):
        await backend.apass_time(0.04)
    other = guarded(handler, backend=backend, on_busy="refuse")
    assert (await ask(other, key=KEY)).status == 409
    handler.gate.set()
    assert (await first).replayed == "false"
    assert handler.runs == 1


def blocking(seconds, *, then=None):
    async def handler(scope, receive, send):
        # What this is about: a call that does not let the loop go.
        time.sleep(seconds)  # noqa: ASYNC251
        if then is not None:
            await then()
        await Handler()(scope, receive, send)

    return handler


async def turn():
    await asyncio.sleep(0)


@pytest.mark.parametrize("then", [None, turn])
async def test_a_handler_that_blocks_the_loop_beyond_its_lease_is_warned_about(then, caplog):
    await ask(guarded(blocking(0.3, then=then), lease=0.1, scope="pay"), key=KEY)
    assert caplog.text.count("the event loop was held up for longer than the lease of pay (0.1 s)") == 1
