"""A real model on loopback, through OpenAI's and Anthropic's interface: the protocol as a server really speaks it."""

import json

import pytest

from sameas.llm.memo import CallMemo
from sameas.llm.models import ModelError, open_model
from sameas.once.async_engine import AsyncEngine
from sameas.once.store import AsyncStore
from sameas.stores.memory import MemoryBackend
from tests.servers.real_model import CONTEXT_TOKENS, MODEL
from tests.unit.llm.asks import an_ask
from tests.unit.llm.scripts import SCRIPTS

pytestmark = pytest.mark.anyio

# Numbers instead of words for the types, and bounds on everything, so that even a small model ends.
SCHEMA = {
    "type": "object",
    "properties": {
        "entities": {
            "type": "array",
            "maxItems": 1,
            "items": {
                "type": "object",
                "properties": {
                    "name": {"type": "string", "maxLength": 12},
                    "type": {"type": "integer", "enum": [0, 1]},
                },
                "required": ["name", "type"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["entities"],
    "additionalProperties": False,
}


@pytest.fixture
async def openai(real_model_server):
    model = open_model(real_model_server.address, api_key=real_model_server.api_key, timeout=60.0)
    yield model
    await model.close()


@pytest.fixture
async def anthropic(real_model_server):
    model = open_model(
        f"anthropic:{MODEL}", url=real_model_server.root, api_key=real_model_server.api_key, timeout=60.0
    )
    yield model
    await model.close()


@pytest.fixture(params=["openai", "anthropic"])
def either(request, openai, anthropic):
    return {"openai": openai, "anthropic": anthropic}[request.param]


def question(**changes):
    return an_ask(**{"schema": SCHEMA, "max_output_tokens": 200, **changes})


async def test_a_real_reply_obeys_the_schema_and_is_counted(openai):
    reply = await openai.ask(question())
    [entity] = json.loads(reply.text)["entities"] or [{"name": "", "type": 0}]
    assert entity.keys() == {"name", "type"}
    assert len(entity["name"]) <= 12
    assert entity["type"] in (0, 1)
    assert reply.usage.reported
    # The template of the model adds its marks to what was said; our count has a margin and the schema.
    assert 10 < reply.usage.input_tokens < 100
    assert 0 < reply.usage.output_tokens <= 200


async def test_equal_asks_at_temperature_zero_get_equal_replies(openai):
    first, second = [await openai.ask(question(max_output_tokens=12)) for _ in range(2)]
    assert first.text == second.text


async def test_our_count_is_not_below_what_the_real_tokenizer_makes_of_prose(openai):
    text = "Acme was founded in Berlin in 1999. It makes rockets for the Moon, and sells them to Globex. " * 4
    short, long = [
        (await openai.ask(question(messages=an_ask(given).messages, max_output_tokens=1))) for given in ("A", text)
    ]
    real = long.usage.input_tokens - short.usage.input_tokens
    assert real <= openai.count_tokens(text) <= 2 * real


@pytest.mark.parametrize("script", SCRIPTS)
async def test_the_most_that_a_text_may_have_is_not_below_what_a_small_vocabulary_makes_of_any_script(openai, script):
    text = SCRIPTS[script]
    short, long = [
        (await openai.ask(question(messages=an_ask(given).messages, max_output_tokens=1))) for given in ("A", text)
    ]
    assert long.usage.reported
    # The letter that stands for no text.
    real = long.usage.input_tokens - short.usage.input_tokens + 1
    assert real <= openai.most_tokens(text)


async def test_a_real_reply_that_is_cut_says_so(either):
    reply = await either.ask(question(max_output_tokens=4))
    assert (reply.finish, reply.usage.output_tokens, reply.usage.reported) == ("length", 4, True)


async def test_a_text_that_does_not_fit_is_a_bad_request_that_cost_nothing(either):
    with pytest.raises(ModelError, match=f"{CONTEXT_TOKENS} tokens") as failed:
        await either.ask(question(messages=an_ask("word " * CONTEXT_TOKENS).messages))
    assert (failed.value.code, failed.value.usage, failed.value.is_retryable) == ("bad_request", None, False)


async def test_a_schema_that_the_server_cannot_use_is_a_bad_request(openai):
    with pytest.raises(ModelError) as failed:
        await openai.ask(question(schema={"type": "object", "properties": {"a": {"type": "no such type"}}}))
    assert failed.value.code == "bad_request"


@pytest.mark.parametrize("key", ["wrong", None])
async def test_a_wrong_key_is_refused_and_not_repeated(real_model_server, key):
    model = open_model(real_model_server.address, api_key=key, timeout=60.0)
    with pytest.raises(ModelError) as failed:
        await model.ask(question())
    await model.close()
    assert failed.value.code == "auth"
    assert "wrong" not in str(failed.value)


async def test_a_real_reply_is_paid_for_once(openai):
    memo = CallMemo(AsyncEngine(AsyncStore(MemoryBackend())))
    ask = question()
    first = await memo.ask(
        openai.name, ask, lambda: openai.ask(ask), is_valid=lambda reply: bool(json.loads(reply.text))
    )
    second = await memo.ask(openai.name, ask, lambda: openai.ask(ask))
    assert (first.was_kept, second.was_kept, first.reply) == (False, True, second.reply)


@pytest.mark.parametrize("interface", ["openai", "anthropic"])
async def test_a_streamed_answer_is_the_whole_answer(real_model_server, interface):
    address, url = (
        (real_model_server.address, None) if interface == "openai" else (f"anthropic:{MODEL}", real_model_server.root)
    )
    ask = an_ask(schema=SCHEMA, max_output_tokens=60) if interface == "openai" else an_ask(max_output_tokens=12)
    replies = []
    for stream in (False, True):
        model = open_model(address, url=url, api_key=real_model_server.api_key, timeout=60.0, stream=stream)
        replies.append(await model.ask(ask))
        await model.close()
    whole, streamed = replies
    assert (streamed.text, streamed.finish) == (whole.text, whole.finish)
    assert streamed.usage.reported
    assert streamed.usage.input_tokens == whole.usage.input_tokens
