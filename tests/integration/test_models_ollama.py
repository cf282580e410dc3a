"""Ollama in its own words: the schema as `format`, and a window that holds the whole prompt."""

from collections.abc import Iterator

import pytest

from sameas.llm.models import ModelError, open_model
from tests.servers.model_script import runs_out, says, status
from tests.servers.model_server import ModelServer
from tests.unit.llm.asks import SCHEMA, an_ask

from .model_interfaces import GOOD, opened

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("providers")]


@pytest.fixture
def ollama() -> Iterator[ModelServer]:
    with ModelServer(says(GOOD, usage=(60, 9)), is_ollama=True) as server:
        yield server


async def test_a_question_has_its_schema_as_format_and_room_for_all_of_it(ollama: ModelServer) -> None:
    model = opened(ollama, "ollama")
    reply = await model.ask(an_ask())
    await model.ask(an_ask("word " * 8_000))
    await model.ask(an_ask())
    await model.close()
    assert (reply.text, reply.finish, reply.model) == ('{"entities":["Acme","Berlin"]}', "stop", "ollama:qwen3")
    assert (reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.reported) == (60, 9, True)
    first, long, last = (call.body for call in ollama.calls)
    assert {call.path for call in ollama.calls} == {"/api/chat"}
    assert first["format"] == SCHEMA
    assert (first["stream"], first["think"]) == (False, False)
    assert first["options"] == {"num_ctx": 4096, "num_predict": 100, "temperature": 0.0, "seed": 0}
    # The window holds forty thousand bytes, and is not made smaller again: that takes seconds.
    assert (long["options"]["num_ctx"], last["options"]["num_ctx"]) == (16_384, 16_384)


async def test_thoughts_are_allowed_in_its_words(ollama: ModelServer) -> None:
    model = opened(ollama, "ollama")
    await model.ask(an_ask(effort="low"))
    await model.close()
    assert ollama.calls[0].body["think"] is True


async def test_gpt_oss_has_levels_and_cannot_be_told_not_to_think(ollama: ModelServer) -> None:
    model = open_model("ollama:gpt-oss:20b", url=ollama.url)
    for effort in ("high", None):
        await model.ask(an_ask(effort=effort))
    await model.close()
    assert [call.body["think"] for call in ollama.calls] == ["high", "low"]


async def test_a_prompt_in_a_script_of_many_tokens_has_room_in_the_window(ollama: ModelServer) -> None:
    model = opened(ollama, "ollama")
    # 10,000 bytes, each of which may be a token.
    await model.ask(an_ask("န" * 3_334))
    await model.close()
    assert ollama.calls[0].body["options"]["num_ctx"] == 16_384


async def test_a_reply_that_was_cut_is_one(ollama: ModelServer) -> None:
    ollama.rescript(runs_out())
    model = opened(ollama, "ollama")
    assert (await model.ask(an_ask())).finish == "length"
    await model.close()


@pytest.mark.parametrize(
    ("code", "said", "meant"),
    [
        (404, "model 'qwen3' not found", "not_found"),
        (400, "model 'qwen3' not found", "not_found"),
        (500, "model 'qwen3' failed", "server"),
        (503, "model 'qwen3' is loading", "overloaded"),
        (400, "model 'qwen3' takes no images", "bad_request"),
    ],
)
async def test_errors_mean_what_they_mean_elsewhere(ollama: ModelServer, code: int, said: str, meant: str) -> None:
    ollama.rescript(status(code, message=said))
    model = opened(ollama, "ollama")
    with pytest.raises(ModelError, match=said) as failed:
        await model.ask(an_ask())
    await model.close()
    assert failed.value.code == meant
    assert len(ollama.calls) == 1


async def test_a_server_without_that_path_is_asked_on_the_other(model_server: ModelServer) -> None:
    model_server.rescript(says(GOOD))
    model = opened(model_server, "ollama")
    for _ in range(2):
        assert (await model.ask(an_ask())).finish == "stop"
    await model.close()
    assert {call.path for call in model_server.calls} == {"/v1/chat/completions"}
