"""Answers that come piece by piece, over real HTTP: the same reply, and a stream that is cut is never a reply."""

import json

import pytest

from sameas.llm.models import ModelError
from tests.servers.model_script import (
    Step,
    cut_stream,
    drips,
    empty,
    garbage,
    refuses,
    resets,
    runs_out,
    says,
    status,
    truncated,
)
from tests.servers.model_wire import PIECES
from tests.unit.llm.asks import an_ask

from .model_interfaces import GOOD, OPENAI, failure, opened

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("providers")]


@pytest.fixture
def server(model_server):
    return model_server


@pytest.fixture(params=OPENAI)
async def model(request, server):
    model = opened(server, request.param, stream=True)
    yield model
    await model.close()


async def test_pieces_become_the_whole_reply_with_its_usage(model, server):
    server.rescript(says(GOOD, usage=(50, 9)))
    reply = await model.ask(an_ask())
    assert server.calls[-1].body["stream"] is True
    assert json.loads(reply.text) == GOOD
    assert (reply.finish, reply.usage.input_tokens, reply.usage.output_tokens) == ("stop", 50, 9)
    assert reply.usage.reported


@pytest.mark.parametrize("usage", [(), (-3, -5), ("many", None), (None, None)])
async def test_a_usage_that_cannot_be_never_costs_the_reply(model, server, usage):
    server.rescript(says(GOOD, usage=usage))
    reply = await model.ask(an_ask())
    assert json.loads(reply.text) == GOOD
    assert not reply.usage.reported


async def test_a_stream_that_ran_out_of_tokens_says_so(model, server):
    server.rescript(runs_out('{"entities":["Ac'))
    reply = await model.ask(an_ask())
    assert (reply.finish, reply.text) == ("length", '{"entities":["Ac')


async def test_a_refusal_is_a_reply_with_its_reason(model, server):
    server.rescript(refuses("Not this."))
    reply = await model.ask(an_ask())
    assert (reply.finish, reply.text) == ("refusal", "Not this.")


@pytest.mark.parametrize("events", range(PIECES + 1))
async def test_a_stream_that_ends_before_its_answer_is_no_reply(model, server, events):
    """Also after the last piece of the text, which is whole and good JSON: nothing said that it is."""
    error = await failure(model, server, cut_stream(events, GOOD))
    assert (error.code, error.is_retryable) == ("malformed", True)
    assert error.usage.input_tokens > 0


async def test_the_mark_of_the_end_may_be_missing(model, server):
    server.rescript(cut_stream(-1, GOOD))
    reply = await model.ask(an_ask())
    assert (reply.finish, json.loads(reply.text)) == ("stop", GOOD)


@pytest.mark.parametrize(
    ("script", "code"),
    [
        (resets(0.5, reply=GOOD), "network"),
        (resets(0.5, reply=GOOD, by="close"), "network"),
        (truncated(GOOD), "malformed"),
        (garbage(), "malformed"),
        (garbage(b'data: {"id":"x","obj', content_type="text/event-stream"), "malformed"),
        (garbage(b"data: [DONE]\n\n", content_type="text/event-stream"), "malformed"),
        (empty(), "malformed"),
        (status(429), "rate_limited"),
        (status(500), "server"),
        (status(400), "bad_request"),
    ],
    ids=["reset", "closed", "cut", "garbage", "half an event", "nothing", "no choice", "429", "500", "400"],
)
async def test_a_fault_of_a_stream_has_a_meaning(model, server, script, code):
    assert (await failure(model, server, script)).code == code


async def test_a_slow_stream_is_ended(server):
    model = opened(server, timeout=0.3, stream=True)
    error = await failure(model, server, drips(GOOD, every=0.05))
    await model.close()
    assert error.code == "timeout"


@pytest.mark.parametrize("is_whole", [True, False])
async def test_a_stream_of_anthropic_that_ends_before_its_answer_is_no_reply(server, is_whole):
    nothing_yet = {"stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 40, "output_tokens": 1}}
    message = {"id": "m", "type": "message", "role": "assistant", "model": "x", "content": [], **nothing_yet}
    begin = {"type": "message_start", "message": message}
    piece = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": json.dumps(GOOD)}}
    events = [begin, {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}, piece]
    if is_whole:
        delta = {"stop_reason": "end_turn", "stop_sequence": None}
        events += [
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 9}},
            {"type": "message_stop"},
        ]
    body = "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events).encode()
    server.rescript(Step(body=body, headers={"Content-Type": "text/event-stream"}))
    model = opened(server, "anthropic", stream=True)
    try:
        if is_whole:
            assert json.loads((await model.ask(an_ask())).text) == GOOD
        else:
            with pytest.raises(ModelError) as failed:
                await model.ask(an_ask())
            assert failed.value.code == "malformed"
    finally:
        await model.close()
