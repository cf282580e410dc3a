"""Every interface against a server that misbehaves on purpose: real HTTP, one attempt per ask, one error per fault."""

import asyncio
import json
import logging
import socket
import threading
import traceback
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from sameas.llm.faults import MAX_RETRY_AFTER
from sameas.llm.memo import call_key
from sameas.llm.models import Message, ModelError, open_model
from tests.servers.model_script import (
    Step,
    by_text,
    drips,
    empty,
    garbage,
    held,
    refuses,
    replace,
    resets,
    runs_out,
    says,
    status,
    truncated,
)
from tests.servers.port import free_port
from tests.unit.llm.asks import SCHEMA, an_ask

from .model_interfaces import CANARY, GOOD, NAMES, failure, opened

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("providers")]


@pytest.fixture
def server(model_server):
    return model_server


@pytest.fixture(params=["compatible", *NAMES])
def interface(request):
    return request.param


@pytest.fixture
async def model(server, interface):
    model = opened(server, interface)
    yield model
    await model.close()


async def test_a_question_reaches_the_server_as_it_was_asked(model, server):
    server.rescript(says(GOOD))
    ask = an_ask(temperature=0.25)
    reply = await model.ask(ask)
    call = server.calls[-1]
    assert json.loads(reply.text) == GOOD
    assert (reply.finish, reply.model, reply.usage.reported) == ("stop", model.name, True)
    assert (call.system, call.user) == (ask.messages[0].content, ask.messages[1].content)
    assert {name: part for name, part in call.schema.items() if name != "title"} == SCHEMA
    assert "0.25" in json.dumps(call.body)
    assert "100" in json.dumps(call.body)
    assert CANARY in "".join(call.headers.values())


async def test_a_conversation_keeps_its_order(model, server):
    said = (Message("user", "One."), Message("assistant", "[1"), Message("user", "That was no JSON."))
    server.rescript(says(GOOD))
    await model.ask(an_ask(messages=(Message("system", "Count."), *said)))
    body = server.calls[-1].body
    turns = [turn for turn in body.get("messages") or body["contents"] if turn["role"] != "system"]
    assert [turn["role"] in ("assistant", "model") for turn in turns] == [False, True, False]
    assert [part.content in json.dumps(turn) for part, turn in zip(said, turns, strict=True)] == [True] * 3


async def test_a_sample_is_sent_as_a_seed_where_there_is_one(model, server, interface):
    server.rescript(says(GOOD))
    await model.ask(an_ask(sample=7))
    assert ('"seed": 7' in json.dumps(server.calls[-1].body)) == (interface != "anthropic")


@pytest.mark.parametrize(
    ("code", "meant"),
    [
        (400, "bad_request"),
        (401, "auth"),
        (403, "auth"),
        (404, "not_found"),
        (405, "not_found"),
        (422, "bad_request"),
        (429, "rate_limited"),
        (500, "server"),
        (501, "not_found"),
        (502, "server"),
        (503, "overloaded"),
        (529, "overloaded"),
    ],
)
async def test_a_status_has_a_meaning(model, server, code, meant):
    error = await failure(model, server, status(code))
    assert (error.code, error.retry_after, error.usage) == (meant, None, None)
    assert f"status {code}" in str(error)


async def test_an_account_without_credit_is_not_asked_again(server):
    body = b'{"error":{"message":"no credit","type":"insufficient_quota","code":"insufficient_quota"}}'
    model = opened(server)
    error = await failure(model, server, replace(status(429), body=body))
    await model.close()
    assert (error.code, error.is_retryable) == ("auth", False)


@pytest.mark.parametrize(
    ("header", "low", "high"),
    [
        ("7", 7, 7),
        ("0.5", 0.5, 0.5),
        ("0", 0, 0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0, 0),
        ("Thu, 01 Jan 2970 00:00:00 GMT", MAX_RETRY_AFTER, MAX_RETRY_AFTER),
        ("99999999", MAX_RETRY_AFTER, MAX_RETRY_AFTER),
    ],
)
async def test_retry_after_is_read_as_seconds_or_a_date(model, server, header, low, high):
    error = await failure(model, server, status(429, retry_after=header))
    assert low <= error.retry_after <= high


async def test_retry_after_is_counted_from_now_to_a_date(model, server):
    at = datetime.now(UTC) + timedelta(minutes=50)
    error = await failure(model, server, status(429, retry_after=format_datetime(at, usegmt=True)))
    assert 2_000 <= error.retry_after <= 3_000


@pytest.mark.parametrize("header", ["soon", "-3", "nan", ""])
async def test_a_retry_after_that_says_nothing_is_none(model, server, header):
    error = await failure(model, server, status(503, retry_after=header))
    assert (error.code, error.retry_after) == ("overloaded", None)


@pytest.mark.parametrize("script", [resets(), resets(by="close"), resets(0), resets(0, by="close")])
async def test_a_connection_that_ends_in_mid_reply_is_a_network_error(model, server, script):
    error = await failure(model, server, script)
    assert error.code == "network"
    assert (error.usage.input_tokens > 0, error.usage.reported) == (True, False)


@pytest.mark.parametrize(
    "script",
    [
        garbage(),
        garbage(b""),
        garbage(b"[]"),
        garbage(b"null"),
        garbage(b'{"choices": 3, "content": 3, "candidates": 3}'),
        truncated(),
        empty(),
        says(""),
    ],
    ids=["bytes", "nothing", "list", "null", "other types", "truncated", "no choices", "empty text"],
)
async def test_what_is_no_reply_is_malformed(model, server, script):
    error = await failure(model, server, script)
    assert error.code == "malformed"
    assert error.usage is not None


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (garbage(content_type="text/html; charset=utf-8"), "the server answered with a web page"),
        (replace(status(301), headers={"Location": "https://example.org/v1"}), "sends to https://example.org/v1"),
        (replace(status(307), headers={"Location": "/elsewhere"}), "sends to /elsewhere"),
    ],
    ids=["page", "moved", "moved for now"],
)
async def test_an_address_that_is_no_model_s_is_not_found(model, server, script, said):
    error = await failure(model, server, script)
    assert error.code == "not_found"
    assert said in str(error)
    assert len(server.calls) == 1


async def test_a_server_that_drips_is_ended_after_the_time_for_a_whole_reply(server, interface):
    model = opened(server, interface, timeout=0.5)
    error = await failure(model, server, drips(GOOD, every=0.05))
    assert (error.code, error.usage.reported) == ("timeout", False)
    # The connection was given up: the server notices, and the next call is not in its way.
    model_again = opened(server, interface)
    server.rescript(says(GOOD))
    assert json.loads((await model_again.ask(an_ask())).text) == GOOD
    await model.close()
    await model_again.close()


async def test_a_server_that_says_nothing_is_ended_too(server):
    gate = threading.Event()
    model = opened(server, timeout=0.3)
    error = await failure(model, server, held(gate))
    gate.set()
    await model.close()
    assert error.code == "timeout"


async def test_a_server_that_is_not_there_is_a_network_error_that_cost_nothing():
    port = free_port()
    model = open_model(f"http://127.0.0.1:{port}/v1#tiny", timeout=20.0)
    with pytest.raises(ModelError) as failed:
        await model.ask(an_ask())
    await model.close()
    assert (failed.value.code, failed.value.usage) == ("network", None)
    assert f"at 127.0.0.1:{port}: the connection failed" in str(failed.value)


async def test_who_waits_for_a_connection_does_not_wait_as_long_as_for_an_answer(monkeypatch):
    monkeypatch.setattr("sameas.llm.reply_client.CONNECT_WITHIN", 0.3)
    with socket.socket() as full, ExitStack() as waiting:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        # The queue of those who want in is full, so that a packet more is left without an answer, as by a wrong address.
        for _ in range(4):
            one = waiting.enter_context(socket.socket())
            one.setblocking(False)
            one.connect_ex(full.getsockname())
        model = open_model(f"http://127.0.0.1:{full.getsockname()[1]}/v1#tiny", timeout=600.0)
        async with asyncio.timeout(30):
            with pytest.raises(ModelError) as failed:
                await model.ask(an_ask())
        await model.close()
    assert (failed.value.code, failed.value.usage) == ("network", None)


async def test_a_refusal_is_a_reply_with_its_reason(model, server):
    server.rescript(refuses("Not this."))
    reply = await model.ask(an_ask())
    assert (reply.finish, reply.text) == ("refusal", "Not this.")


async def test_a_reply_that_ran_out_of_tokens_says_so(model, server):
    server.rescript(runs_out('{"entities":["Ac'))
    reply = await model.ask(an_ask())
    assert (reply.finish, reply.text) == ("length", '{"entities":["Ac')


async def test_each_ask_goes_out_with_its_own_schema(model, server):
    server.rescript(says(GOOD))
    other = {**SCHEMA, "properties": {**SCHEMA["properties"], "more": {"type": "integer"}}}
    other["required"] = list(other["properties"])
    before = len(server.calls)
    for schema in (SCHEMA, other, SCHEMA, other):
        await model.ask(an_ask(schema=schema))
    sent = [set(call.schema["properties"]) for call in server.calls[before:]]
    assert sent == [set(SCHEMA["properties"]), set(other["properties"])] * 2


async def test_a_wrong_schema_is_handed_over_for_its_caller_to_judge(model, server):
    server.rescript(says({"people": 3}))
    reply = await model.ask(an_ask())
    assert (json.loads(reply.text), reply.finish) == ({"people": 3}, "stop")


@pytest.mark.parametrize(
    "usage",
    [(), (0, 0), (-3, -5), (10**9, 5), (20, 10**9), ("many", None), (None, None), (1.5, 2)],
    ids=["missing", "zero", "negative", "huge in", "huge out", "words", "null", "fractions"],
)
async def test_a_usage_that_cannot_be_never_costs_the_reply(model, server, usage):
    server.rescript(says(GOOD, usage=usage))
    reply = await model.ask(an_ask())
    assert json.loads(reply.text) == GOOD
    assert not reply.usage.reported
    assert reply.usage.output_tokens == model.count_tokens(reply.text)
    assert reply.usage.input_tokens > model.count_tokens(an_ask().messages[1].content)


async def test_a_key_is_nowhere_but_in_the_request(server, interface, caplog):
    caplog.set_level(logging.DEBUG)
    model = opened(server, interface)
    server.rescript(says(GOOD))
    reply = await model.ask(an_ask())
    error = await failure(model, server, status(500))
    await model.close()
    assert CANARY in "".join(server.calls[-1].headers.values())
    texts = [repr(model), model.name, repr(reply), repr(error), call_key(model.name, an_ask())]
    lines = [f"{record.getMessage()} {vars(record)}" for record in caplog.records]
    assert lines
    assert [text for text in (*texts, *lines) if CANARY in text] == []


@pytest.mark.parametrize(
    "script",
    [
        replace(status(401, message=f"Incorrect API key provided: {CANARY}"), headers={"X-Echo": CANARY}),
        status(400, message=CANARY * 50),
        garbage(CANARY.encode(), content_type="text/plain"),
        garbage(json.dumps({"choices": [{"message": CANARY}], "content": CANARY, "candidates": CANARY}).encode()),
    ],
    ids=["refused", "repeated", "text", "JSON"],
)
async def test_a_key_that_the_server_repeats_is_not_repeated_here(model, server, script):
    error = await failure(model, server, script)
    assert error.__cause__ is None
    assert error.__context__ is None
    texts = [str(error), repr(error), repr(vars(error)), "".join(traceback.format_exception(error))]
    assert [text for text in texts if CANARY in text] == []


async def test_no_key_of_the_environment_is_sent_anywhere(server, monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "OLLAMA_API_KEY", "OLLAMA_BASE_URL"):
        monkeypatch.setenv(name, "http://canary.invalid")
    server.rescript(says(GOOD))
    for model in (opened(server, api_key=None), open_model("ollama:qwen3", url=server.url)):
        await model.ask(an_ask())
        await model.close()
        assert "canary" not in json.dumps(dict(server.calls[-1].headers))


async def test_a_caller_who_leaves_closes_the_connection(server):
    gate = threading.Event()
    model = opened(server)
    server.rescript(held(gate))
    before = len(server.calls)
    asking = asyncio.ensure_future(model.ask(an_ask()))
    await asyncio.to_thread(server.wait_for_calls, before + 1)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    gate.set()
    server.rescript(says(GOOD))
    assert (await model.ask(an_ask())).finish == "stop"
    await model.close()


async def test_asks_at_the_same_time_do_not_wait_for_each_other(server):
    gate = threading.Event()
    server.rescript(held(gate, GOOD))
    before = len(server.calls)
    model = opened(server)
    asking = [asyncio.ensure_future(model.ask(an_ask(str(number)))) for number in range(30)]
    await asyncio.to_thread(server.wait_for_calls, before + 30)
    gate.set()
    assert {(await one).text for one in asking} == {json.dumps(GOOD, separators=(",", ":"))}
    assert server.most_at_once >= 30
    await model.close()


def test_one_model_serves_several_event_loops(server):
    """They take turns while the connections of each stay open."""
    server.rescript(says(GOOD))
    model = opened(server)
    loops = [asyncio.new_event_loop() for _ in range(2)]
    try:
        replies = [loop.run_until_complete(model.ask(an_ask())) for loop in (*loops, *loops)]
        assert [reply.finish for reply in replies] == ["stop"] * 4
    finally:
        for loop in loops:
            loop.run_until_complete(model.close())
            loop.close()


def test_who_opened_it_is_told_once_that_its_package_is_loaded(server, interface):
    told = []
    model = opened(server, interface, when_loaded=lambda: told.append("loaded"))

    async def used():
        server.rescript(says(GOOD))
        for _ in range(2):
            await model.open()
            told.append((await model.ask(an_ask())).finish)
        await model.close()

    asyncio.run(used())
    asyncio.run(used())
    assert told == ["loaded"] + ["stop"] * 4


async def test_the_server_answers_by_the_text_that_it_is_asked_about(server):
    server.rescript(by_text({("entities", "Berlin"): {"entities": ["Berlin"]}, "Bonn": status(500)}, otherwise=GOOD))
    model = opened(server)
    assert json.loads((await model.ask(an_ask("Berlin"))).text) == {"entities": ["Berlin"]}
    assert json.loads((await model.ask(an_ask("Berlin", schema_name="relations"))).text) == GOOD
    with pytest.raises(ModelError):
        await model.ask(an_ask("Bonn"))
    await model.close()
    assert server.most_within(60.0) >= 3


@pytest.mark.parametrize("script", [{"entities": []}, '{"entities":[]}'])
async def test_a_script_that_is_one_reply_says_it_to_everybody(server, script):
    server.rescript(script)
    model = open_model(server.address())
    try:
        said = [(await model.ask(an_ask())).text for _ in range(2)]
    finally:
        await model.close()
    assert [json.loads(text) for text in said] == [{"entities": []}] * 2


async def test_the_wait_that_google_asks_for_in_its_body_is_read(server):
    info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7.5s"}
    body = {"error": {"code": 429, "message": "quota", "status": "RESOURCE_EXHAUSTED", "details": [info]}}
    server.rescript(Step(status=429, body=json.dumps(body).encode()))
    model = opened(server, "google")
    try:
        with pytest.raises(ModelError) as caught:
            await model.ask(an_ask())
    finally:
        await model.close()
    assert (caught.value.code, caught.value.retry_after) == ("rate_limited", 7.5)
