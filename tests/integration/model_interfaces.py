"""A model behind each interface that is spoken, at a server that is told what to do."""

import pytest

from sameas.llm.models import ModelError, open_model
from tests.unit.llm.asks import an_ask

NAMES = {"openai": "gpt-4o-mini", "ollama": "qwen3", "anthropic": "claude-haiku-4-5", "google": "gemini-2.5-flash"}
# Those that speak as OpenAI does.
OPENAI = ("compatible", "openai", "ollama")
CANARY = "sk-canary-0123456789"
GOOD = {"entities": ["Acme", "Berlin"]}


def opened(server, interface="compatible", **options):
    options = {"timeout": 20.0, "api_key": CANARY, **options}
    if interface == "compatible":
        return open_model(server.address(), **options)
    url = server.url if interface in OPENAI else server.root
    return open_model(f"{interface}:{NAMES[interface]}", url=url, **options)


async def failure(model, server, script):
    """The error of one ask, after which the server saw exactly one request."""
    before = len(server.calls)
    server.rescript(script)
    with pytest.raises(ModelError) as failed:
        await model.ask(an_ask())
    assert len(server.calls) == before + 1
    return failed.value
