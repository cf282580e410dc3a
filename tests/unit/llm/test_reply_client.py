"""The HTTP client under the providers: bounded replies, and usage that their clients can read."""

import gzip
import json

import pytest
from httpx2 import MockTransport, Response

from sameas.llm import reply_client
from sameas.llm.reply_client import ReplyClient, mended

OPENAI = {"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}}


@pytest.mark.parametrize(
    ("reply", "zeros"),
    [
        ({"choices": []}, {"usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}}),
        ({"choices": [], "usage": None}, {"usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}}),
        ({"content": [], "usage": {"input_tokens": "many"}}, {"usage": {"input_tokens": 0, "output_tokens": 0}}),
        (
            {"content": [], "usage": {"input_tokens": -1, "output_tokens": 2}},
            {"usage": {"input_tokens": 0, "output_tokens": 0}},
        ),
        (
            {"candidates": [], "usageMetadata": {"promptTokenCount": True, "candidatesTokenCount": 1}},
            {"usageMetadata": {"promptTokenCount": 0, "candidatesTokenCount": 0}},
        ),
    ],
)
def test_a_usage_that_no_client_could_read_becomes_zero(reply, zeros):
    assert json.loads(mended(json.dumps(reply).encode())) == {**reply, **zeros}


@pytest.mark.parametrize("body", [json.dumps(OPENAI).encode(), b'{"error":{}}', b"[]", b"<html>", b"\xff", b""])
def test_what_is_right_or_no_reply_stays_as_it_is(body):
    assert mended(body) == body


async def fetched(body, **headers):
    def answer(request):
        return Response(200, content=body, headers=headers)

    async with ReplyClient(transport=MockTransport(answer)) as client:
        return await client.get("http://models.example/")


@pytest.mark.anyio
async def test_a_packed_reply_is_unpacked_once():
    body = json.dumps(OPENAI).encode()
    reply = await fetched(gzip.compress(body), **{"Content-Encoding": "gzip"})
    assert reply.content == body
    assert "content-encoding" not in reply.headers


@pytest.mark.anyio
async def test_a_reply_beyond_the_bound_is_cut_packed_or_not(monkeypatch):
    monkeypatch.setattr(reply_client, "MAX_REPLY_BYTES", 1_000)
    body = b'"' + b"a" * 1_000_000 + b'"'
    assert len((await fetched(body)).content) == 1_000
    assert len((await fetched(gzip.compress(body), **{"Content-Encoding": "gzip"})).content) == 1_000
