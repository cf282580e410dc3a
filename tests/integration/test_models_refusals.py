"""Servers on OpenAI's interface that do not know a part of our requests: it is left out, once and for all."""

import json

import pytest

from sameas.llm.models import ModelError, open_model
from tests.servers.model_script import Call, Step, says, status
from tests.servers.model_server import ModelServer
from tests.unit.llm.asks import SCHEMA, an_ask

pytestmark = pytest.mark.anyio

GOOD = {"entities": ["Acme", "Berlin"]}
NAMES = {"openai": "openai:gpt-3.5-turbo", "ollama": "ollama:qwen3"}
INTERFACES = ["compatible", *NAMES]


@pytest.fixture
def server(model_server):
    return model_server


def opened(server, interface):
    if interface == "compatible":
        return open_model(server.address(), timeout=20.0)
    return open_model(NAMES[interface], url=server.url, api_key="k", timeout=20.0)


def knows(*formats: str):
    """A server that takes these formats only; an empty one is none at all."""

    def answer(call: Call) -> Step:
        kind = (call.body.get("response_format") or {}).get("type", "")
        if kind in formats:
            return says(GOOD)
        return status(
            400, message=f"Invalid parameter: 'response_format' of type '{kind}' is not supported with this model."
        )

    return answer


@pytest.mark.parametrize("interface", INTERFACES)
@pytest.mark.parametrize(("formats", "tries"), [(("json_object",), 2), (("",), 3)], ids=["objects", "nothing"])
async def test_a_model_that_takes_no_schema_is_told_of_it_in_words(
    server: ModelServer, interface: str, formats: tuple[str, ...], tries: int
) -> None:
    model = opened(server, interface)
    server.rescript(knows(*formats))
    for text in ("One.", "Two."):
        assert json.loads((await model.ask(an_ask(text))).text) == GOOD
    await model.close()
    assert len(server.calls) == tries + 1
    *refused, first, second = server.calls
    assert refused[0].schema is not None
    for call in (first, second):
        assert json.dumps(SCHEMA, separators=(",", ":")) in call.system
        assert an_ask().messages[0].content in call.system
        assert call.user in ("One.", "Two.")


@pytest.mark.parametrize("interface", INTERFACES)
async def test_a_refusal_of_something_else_is_not_argued_with(server: ModelServer, interface: str) -> None:
    model = opened(server, interface)
    for said in ("Invalid schema for response_format 'entities': no", "the text is too long", "no"):
        before = len(server.calls)
        server.rescript(status(400, message=said))
        with pytest.raises(ModelError) as failed:
            await model.ask(an_ask())
        assert failed.value.code == "bad_request"
        assert len(server.calls) == before + 1
    await model.close()


async def test_a_server_that_refuses_whatever_is_left_out_is_not_asked_for_ever(server: ModelServer) -> None:
    model = opened(server, "ollama")
    server.rescript(status(400, message="response_format and reasoning_effort: no"))
    with pytest.raises(ModelError):
        await model.ask(an_ask())
    await model.close()
    assert len(server.calls) == 4


async def test_ollama_is_asked_not_to_think(server: ModelServer) -> None:
    server.rescript(says(GOOD))
    for interface in INTERFACES:
        model = opened(server, interface)
        await model.ask(an_ask())
        await model.close()
        assert server.calls[-1].body.get("reasoning_effort") == ("none" if interface == "ollama" else None)


async def test_an_older_ollama_that_knows_no_such_effort_is_asked_without(server: ModelServer) -> None:
    def answer(call: Call) -> Step:
        if "reasoning_effort" not in call.body:
            return says(GOOD)
        return status(400, message='invalid reasoning value: \'none\' (must be "high", "medium", or "low")')

    server.rescript(answer)
    model = opened(server, "ollama")
    for text in ("One.", "Two."):
        assert json.loads((await model.ask(an_ask(text))).text) == GOOD
    await model.close()
    assert ["reasoning_effort" in call.body for call in server.calls] == [True, False, False]
    assert all(call.schema is not None for call in server.calls)
