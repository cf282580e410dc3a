"""Payloads that came before are known again without being digested again, and never taken for one another."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sameas import Engine, open_store
from sameas.identity.key import content_key
from sameas.once.call_builder import REMEMBERED, SHORT
from tests.unit.identity.test_form import DIFFERENT, json_values


@pytest.fixture(scope="module")
def engine():
    return Engine(open_store("memory://"))


def key_of(engine, payload, **options):
    return engine._call_builder.call(len, scope="s", payload=payload, **options).request.identity.key


@given(st.lists(json_values, min_size=1, max_size=5))
def test_a_payload_has_its_key_whatever_came_before(engine, payloads):
    for payload in (*payloads, *payloads):
        assert key_of(engine, payload) == content_key(payload)


def test_different_payloads_are_told_apart_again_and_again(engine):
    for _ in range(2):
        assert len({key_of(engine, {"a": value}) for value in DIFFERENT}) == len(DIFFERENT)


@pytest.mark.parametrize("number", [np.float64(2.5), np.str_("abc")])
def test_what_has_a_buffer_is_not_taken_for_its_bytes(engine, number):
    for value in (number, {"price": number}):
        same_bytes = number.tobytes() if value is number else {"price": number.tobytes()}
        keys = [key_of(engine, each) for each in (value, same_bytes, value)]
        assert keys == [content_key(value), content_key(same_bytes), content_key(value)]
        assert keys[0] != keys[1]


def test_a_payload_that_was_changed_is_another(engine):
    payload = {"items": [1]}
    first = key_of(engine, payload)
    payload["items"].append(2)
    assert key_of(engine, payload) == content_key({"items": [1, 2]}) != first


def test_tenants_and_scopes_are_kept_apart(engine):
    digests = {
        engine._call_builder.call(len, scope=scope, tenant=tenant, payload=[1]).request.identity.digest
        for scope, tenant, _ in product("ab", "cd", range(2))
    }
    assert len(digests) == 4


def test_what_is_remembered_is_bounded_in_number_and_size():
    engine = Engine(open_store("memory://"))
    for number in range(REMEMBERED + 10):
        key_of(engine, {"n": number})
    key_of(engine, {"text": "x" * (SHORT + 1)})
    key_of(engine, {"a": 1, "sent_at": 2}, exclude_fields={"sent_at"})
    assert len(engine._call_builder._seen) == 10
