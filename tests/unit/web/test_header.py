"""The Idempotency-Key header is a structured-field string, or bare what people make."""

import json
import re

import pytest

from sameas.web.header import MAX_RAW, MalformedKey, parse_key
from sameas.web.route import MAX_KEY
from tests.shared_data import shared
from tests.unit.web.asking import Handler, ask, guarded

FILES = ("string", "string-generated", "token", "token-generated")


BARE = re.compile(rb"[!-~]+", re.ASCII)


def is_bare(raw):
    """Whether a value that is no string or token of the vectors is a key all the same, and begins nothing else."""
    return len(raw) == 1 and BARE.fullmatch(raw[0].strip(b" ")) and not set(raw[0]) & set(b'",;\\')


def is_cut_short(raw):
    """Whether a bare value has parameters: who sends `order;a` without quotes means all of it."""
    return len(raw) == 1 and not raw[0].strip(b" ").startswith(b'"') and b";" in raw[0]


def must_fail(case, raw):
    return case.get("must_fail") or (case.get("can_fail") and len(raw) > 1) or is_cut_short(raw)


def cases():
    for name in FILES:
        for case in json.loads(shared("vectors", "structured-fields", f"{name}.json").read_text()):
            if case["header_type"] == "item":
                yield case


def test_every_string_and_token_of_the_vectors_is_read_or_refused_as_they_say():
    seen = 0
    for case in cases():
        seen += 1
        raw = [value.encode("utf-8") for value in case["raw"]]
        if is_bare(raw):
            assert parse_key(raw) == raw[0].strip(b" ").decode(), case["name"]
            continue
        if must_fail(case, raw) or len(raw[0]) > MAX_RAW:
            with pytest.raises(MalformedKey):
                parse_key(raw)
            continue
        value = case["expected"][0]
        assert parse_key(raw) == (value["value"] if isinstance(value, dict) else value), case["name"]
    assert seen > 500


@pytest.mark.anyio
async def test_every_vector_that_must_fail_is_a_problem_document_and_no_run_behind_the_middleware():
    handler = Handler()
    app = guarded(handler, key="required", key_pattern=r"[ -~]+")
    refused, keys = 0, set()
    for case in cases():
        raw = [value.encode("utf-8") for value in case["raw"]]
        runs = handler.runs
        reply = await ask(app, key=raw, json={})
        bare = is_bare(raw)
        if not bare and must_fail(case, raw):
            refused += 1
            assert (reply.status, reply.headers["content-type"]) == (400, "application/problem+json"), case["name"]
            assert reply.json["type"] in {f"urn:sameas:problem:key-{why}" for why in ("required", "malformed")}
            assert handler.runs == runs, case["name"]
            continue
        value = raw[0].strip(b" ").decode() if bare else case["expected"][0]
        key = value["value"] if isinstance(value, dict) else value
        if 0 < len(key) <= MAX_KEY:
            assert (reply.status, reply.replayed) == (201, "true" if key in keys else "false"), case["name"]
            keys.add(key)
        else:
            assert reply.status == 400, case["name"]
    assert refused > 200
    assert handler.runs == len(keys) > 200


@pytest.mark.parametrize("raw", [b"8e03978e-40d5-43dd-bc93-6894a57f9324", b'"8e03978e-40d5-43dd-bc93-6894a57f9324"'])
def test_a_uuid_may_be_bare_although_it_begins_with_a_digit(raw):
    assert parse_key([raw]) == "8e03978e-40d5-43dd-bc93-6894a57f9324"


@pytest.mark.parametrize("raw", [b'"a";x=1', b'"a"; x;y="z"', b'"a";x=:YQ==:;y=-1.5'])
def test_parameters_mean_nothing(raw):
    assert parse_key([raw]) == "a"


@pytest.mark.anyio
async def test_of_two_bare_keys_none_is_cut_short_to_the_other():
    handler = Handler()
    app = guarded(handler, key="required")
    assert [(await ask(app, key=[key], json={})).status for key in (b"order;a", b"order;b", b"order")] == [
        400,
        400,
        201,
    ]
    assert handler.runs == 1


@pytest.mark.parametrize(
    "values",
    [
        [],
        [b"a", b"a"],
        [b""],
        [b"a, b"],
        [b'"a";x=('],
        [b'"a";X'],
        [b'"a" ;x'],
        [b"a\r\n b"],
        [b"a\nb"],
        [b"\x00"],
        [b'"' + b"a" * 70_000 + b'"'],
        [b"a\x7f"],
        [b"a\\b"],
        [b'a"b'],
        [b"a b"],
        [b"a;b"],
        [b"a;x=?1"],
        [b"a;"],
        [b"\xc3\xa9"],
    ],
)
def test_anything_else_is_refused_and_never_repeated(values):
    with pytest.raises(MalformedKey) as refused:
        parse_key(values)
    assert not any(value and len(value) > 3 and value.decode("latin-1") in str(refused.value) for value in values)
