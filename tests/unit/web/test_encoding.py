"""A replay is something that its client can read, whatever the first client accepted."""

import gzip
import zlib

import pytest

from sameas.web.encoding import accepts, codings_of
from tests.unit.web.asking import Handler, ask, guarded

pytestmark = pytest.mark.anyio

KEY = '"order-1"'
TEXT = b'{"order": "' + b"x" * 2_000 + b'"}'
LARGE = b'{"order": "' + bytes(range(48, 58)) * 30_000 + b'"}'
GZIP = [("Accept-Encoding", "gzip, br")]


def packed(coding, text=TEXT):
    body = text
    for each in coding.split(", "):
        body = gzip.compress(body) if each.endswith("gzip") else zlib.compress(body)
    return Handler(
        body=body,
        headers=[
            (b"content-encoding", coding.encode()),
            (b"content-length", b"%d" % len(body)),
            (b"etag", b'"1"'),
            (b"content-digest", b"sha-256=:aGk=:"),
        ],
    )


@pytest.mark.parametrize("coding", ["gzip", "deflate", "x-gzip", "deflate, gzip"])
@pytest.mark.parametrize("text", [TEXT, LARGE])
@pytest.mark.parametrize("asked", [[], [("Accept-Encoding", "br")], [("Accept-Encoding", "gzip;q=0, deflate;q=0.0")]])
async def test_a_client_that_does_not_accept_the_encoding_gets_it_unpacked(coding, text, asked):
    handler = packed(coding, text)
    app = guarded(handler, kept_headers=["content-digest"])
    first = await ask(app, key=KEY, headers=GZIP)
    assert first.headers["content-encoding"] == coding
    again = await ask(app, key=KEY, headers=asked)
    assert (again.status, again.replayed, again.body) == (201, "true", text)
    assert again.headers["content-length"] == str(len(text))
    assert again.headers["etag"] == 'W/"1"'
    assert again.headers["vary"] == "Accept-Encoding"
    assert not {"content-encoding", "content-digest"} & set(again.headers)
    assert handler.runs == 1


@pytest.mark.parametrize("asked", ["gzip", "br, GZIP;q=0.5", "*", "x-gzip", "gzip; q=1"])
async def test_a_client_that_accepts_the_encoding_gets_the_same_bytes(asked):
    handler = packed("gzip")
    app = guarded(handler)
    await ask(app, key=KEY)
    again = await ask(app, key=KEY, headers=[("Accept-Encoding", asked)])
    assert (again.body, again.headers["content-encoding"], again.headers["etag"]) == (handler.body, "gzip", '"1"')


async def test_the_replay_is_told_in_what_was_unpacked():
    app = guarded(packed("gzip"), replayed_in_body=True)
    await ask(app, key=KEY, headers=GZIP)
    again = await ask(app, key=KEY)
    assert again.json["idempotency_replayed"] is True
    assert again.headers["content-length"] == str(len(again.body))


@pytest.mark.parametrize(("coding", "body"), [(b"dcb", b"?"), (b"gzip", b"no gzip"), (b"br", b"\xff")])
async def test_an_answer_that_nobody_can_unpack_is_not_sent_and_not_run_again(coding, body):
    handler = Handler(body=body, headers=[(b"content-encoding", coding)])
    app = guarded(handler)
    await ask(app, key=KEY)
    refused = await ask(app, key=KEY)
    assert (refused.status, refused.json["original_status"]) == (406, 201)
    assert refused.json["type"] == "urn:sameas:problem:encoding-not-accepted"
    assert (await ask(app, key=KEY, headers=[("Accept-Encoding", "*")])).body == body
    assert handler.runs == 1


async def test_head_says_what_would_be_sent():
    app = guarded(
        Handler(body=b"", headers=[(b"content-encoding", b"gzip"), (b"content-length", b"9")]), methods=["HEAD"]
    )
    await ask(app, key=KEY, method="HEAD", headers=GZIP)
    again = await ask(app, key=KEY, method="HEAD")
    assert not {"content-encoding", "content-length"} & set(again.headers)


def test_what_is_accepted():
    assert not accepts([], [b"gzip"])
    assert not accepts([(b"accept-encoding", b"")], [b"gzip"])
    assert not accepts([(b"accept-encoding", b"*;q=0")], [b"gzip"])
    assert not accepts([(b"accept-encoding", b"*, gzip;q=0.000")], [b"gzip"])
    assert accepts([(b"accept-encoding", b"br"), (b"accept-encoding", b"gzip;q=0.001")], [b"gzip", b"br"])
    assert codings_of([(b"content-encoding", b"identity"), (b"content-encoding", b"X-GZIP, br")]) == [b"gzip", b"br"]
