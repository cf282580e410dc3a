"""The quick way to canonical members gives what the strict way gives, or nothing."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sameas.identity.canonical import canonical_json, parse_json
from sameas.identity.errors import NotCanonical
from sameas.web.bodies import naming, usual_members

NAMES = st.text(st.characters(max_codepoint=0x180), max_size=5)
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.integers(-100, 100).map(lambda n: n / 8)
)
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4))
SEPARATORS = st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", "\t: ")])


def strict_members(value):
    return [canonical_json([name, value[name]]) for name in sorted(value)]


@given(st.dictionaries(NAMES, VALUES, max_size=6), SEPARATORS, st.booleans())
def test_it_agrees_with_the_strict_way_wherever_it_answers(value, separators, ensure_ascii):
    body = json.dumps(value, separators=separators, ensure_ascii=ensure_ascii).encode("utf-8", "surrogatepass")
    members = usual_members(body)
    if members is not None:
        assert members[1] == strict_members(parse_json(body))


@pytest.mark.parametrize(
    "body",
    [
        b'{"item": "a book", "quantity": 3, "amount": 12.5, "to": {"name": "Ann", "city": "Oslo"}, "tags": ["a", null, true]}',
        b'{"a":-1,"b":0,"c":-0.25,"d":0.001}',
        b'{"id":"a5-1.1-01","x":[[[]],{}]}',
    ],
)
def test_it_answers_for_what_is_usual(body):
    _, members = usual_members(body)
    assert members == strict_members(json.loads(body))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"[1]",
        b"3",
        b'{"a":1,"a":1}',
        b'{"a":1,"a":2}',
        b'{"x":{"a":1,"a":1}}',
        b'{"a":1, "b":{"c":1,"c":12}}',
        b'{"a":1.0}',
        b'{"a":1e3}',
        b'{"a":1.50}',
        b'{"a":-0}',
        b'{"a":0.00001}',
        b'{"a":9007199254740993}',
        b'{"a":"\\u0061"}',
        '{"a":"é"}'.encode(),
        b'{"a":NaN}',
        b'{"a":1',
        b'{"a":01}',
        b'{"a":' + b"[" * 200 + b"]" * 200 + b"}",
    ],
)
def test_it_leaves_everything_else_to_the_strict_way(body):
    assert usual_members(body) is None


def test_names_that_a_client_makes_up_are_not_remembered():
    before = naming.cache_info().currsize
    assert usual_members(b'{"%b":1}' % (b"n" * 5_000)) is None
    assert naming.cache_info().currsize == before


def test_a_member_named_twice_is_refused_in_the_end():
    with pytest.raises(NotCanonical):
        parse_json(b'{"a":1,"a":1}')
