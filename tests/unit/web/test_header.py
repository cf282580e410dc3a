"""The Idempotency-Key header is a structured-field string or token, and nothing else."""

import json

import pytest

from sameas.web.header import MAX_RAW, MalformedKey, parse_key
from sameas.web.route import MAX_KEY
from tests.shared_data import shared
from tests.unit.web.asking import Handler, ask, guarded

FILES = ("string", "string-generated", "token", "token-generated")


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
        if case.get("must_fail") or (case.get("can_fail") and len(raw) > 1) or len(raw[0]) > MAX_RAW:
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
        if case.get("must_fail") or (case.get("can_fail") and len(raw) > 1):
            refused += 1
            assert (reply.status, reply.headers["content-type"]) == (400, "application/problem+json"), case["name"]
            assert reply.json["type"] in {f"urn:sameas:problem:key-{why}" for why in ("required", "malformed")}
            assert handler.runs == runs, case["name"]
            continue
        value = case["expected"][0]
        key = value["value"] if isinstance(value, dict) else value
        if 0 < len(key) <= MAX_KEY:
            assert (reply.status, reply.replayed) == (201, "true" if key in keys else "false"), case["name"]
            keys.add(key)
        else:
            assert reply.status == 400, case["name"]
    assert refused > 250
    assert handler.runs == len(keys) > 200


@pytest.mark.parametrize("raw", [b"8e03978e-40d5-43dd-bc93-6894a57f9324", b'"8e03978e-40d5-43dd-bc93-6894a57f9324"'])
def test_a_uuid_may_be_bare_although_it_begins_with_a_digit(raw):
    assert parse_key([raw]) == "8e03978e-40d5-43dd-bc93-6894a57f9324"


@pytest.mark.parametrize("raw", [b'"a";x=1', b'"a"; x;y="z"', b"a;x=?1", b"a;x=:YQ==:;y=-1.5"])
def test_parameters_mean_nothing(raw):
    assert parse_key([raw]) == "a"


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
        [b":base64:"],
        [b"?1"],
        [b"8e03978e-40d5-43dd-bc93"],
    ],
)
def test_anything_else_is_refused_and_never_repeated(values):
    with pytest.raises(MalformedKey) as refused:
        parse_key(values)
    assert not any(value and len(value) > 3 and value.decode("latin-1") in str(refused.value) for value in values)
