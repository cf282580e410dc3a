"""Hostile bytes on real uvicorn servers, with each of its parsers: every case has its answer, and no handler runs."""

import gzip
import json

import pytest

from tests.unit.web.serving import Served, head

PROBLEM = "application/problem+json"
# What uvicorn says itself where its parser gives up.
PLAIN = "text/plain; charset=utf-8"
KEY = 'Idempotency-Key: "hostile"'
MEGABYTE = 1 << 20

UNREAD = (400, "")
MALFORMED_KEY = (400, "key-malformed")
MALFORMED_BODY = (400, "body-malformed")


def key(header):
    return head("Content-Length: 2", header) + b"{}"


def body(content, *lines):
    return head(f"Content-Length: {len(content)}", "Content-Type: application/json", KEY, *lines) + content


# The request, and what each parser and the middleware behind it make of it.
CASES = {
    "obs-fold": (key("Idempotency-Key: a\r\n b"), {"h11": MALFORMED_KEY, "httptools": UNREAD}),
    "obs-fold in quotes": (key('Idempotency-Key: "a\r\n b"'), {"h11": MALFORMED_KEY, "httptools": UNREAD}),
    "bare LF": (key("Idempotency-Key: a\n b"), {"h11": MALFORMED_KEY, "httptools": UNREAD}),
    "length and chunks": (
        head("Content-Length: 2", "Transfer-Encoding: chunked", KEY) + b"2\r\n{}\r\n0\r\n\r\n",
        {"h11": (400, "body-ambiguous"), "httptools": UNREAD},
    ),
    "two lengths": (head("Content-Length: 2", "Content-Length: 3", KEY) + b"{}", {"h11": UNREAD, "httptools": UNREAD}),
    "control": (key('Idempotency-Key: "a\x01b"'), {"h11": MALFORMED_KEY, "httptools": UNREAD}),
    "no key": (head("Content-Length: 2") + b"{}", (400, "key-required")),
    "empty key": (key("Idempotency-Key:"), MALFORMED_KEY),
    "key twice": (head("Content-Length: 2", KEY, KEY) + b"{}", MALFORMED_KEY),
    "key of 8 KB": (key(f'Idempotency-Key: "{"a" * 8_000}"'), MALFORMED_KEY),
    "key not ASCII": (key('Idempotency-Key: "\xfc"'), MALFORMED_KEY),
    "deep": (body(b"[" * 100_000 + b"]" * 100_000), MALFORMED_BODY),
    "NaN": (body(b'{"item":NaN}'), MALFORMED_BODY),
    "lone surrogate": (body(rb'{"item":"\ud800"}'), MALFORMED_BODY),
    "integer of 5,000 digits": (body(b'{"item":' + b"9" * 5_000 + b"}"), MALFORMED_BODY),
    "member twice": (body(b'{"item":1,"item":1}'), MALFORMED_BODY),
    "not gzip": (body(b"{}", "Content-Encoding: gzip"), MALFORMED_BODY),
}


@pytest.fixture(scope="module", params=["h11", "httptools"])
def server(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    served = Served(folder, f"sqlite:///{folder}/records.db", parser=request.param)
    try:
        yield served.ready()
    finally:
        served.stop()


def refusal(answer):
    """The status and the problem's name; no name where it is uvicorn's own refusal."""
    if answer.headers["content-type"] == PLAIN:
        return answer.status, ""
    assert answer.headers["content-type"] == PROBLEM
    told = json.loads(answer.content)
    assert told["status"] == answer.status
    return answer.status, told["type"].removeprefix("urn:sameas:problem:")


@pytest.mark.parametrize("case", CASES)
def test_a_hostile_request_is_refused_and_no_handler_runs(server, case):
    request, expected = CASES[case]
    if isinstance(expected, dict):
        expected = expected[server.parser]
    assert refusal(server.asked(request)) == expected
    assert server.runs("create") == 0


def test_a_key_of_70_kb_is_refused_whether_the_parser_reads_it_or_not(server):
    # h11 gives up at 64 KB, unless all of it came at once.
    possible = {"h11": {MALFORMED_KEY, UNREAD}, "httptools": {MALFORMED_KEY}}
    assert refusal(server.asked(key(f'Idempotency-Key: "{"a" * 70_000}"'))) in possible[server.parser]
    assert server.runs("create") == 0


def test_a_gzip_bomb_is_refused_in_flat_memory(server):
    bomb = gzip.compress(bytes(100 * MEGABYTE), mtime=0)
    assert refusal(server.asked(body(b"{}", "Content-Encoding: gzip"))) == MALFORMED_BODY
    before = server.most_memory()
    assert refusal(server.asked(body(bomb, "Content-Encoding: gzip"), within=60)) == (413, "body-too-large")
    assert server.most_memory() - before < 32 * MEGABYTE
    assert server.runs("create") == 0
