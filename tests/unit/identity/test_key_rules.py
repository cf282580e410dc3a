"""One set of rules for tenant, scope and key, whatever the store."""

import pytest

from sameas.identity.errors import NotCanonical
from sameas.identity.key import MAX_KEY, MAX_NAME, record_digest
from sameas.once.engine import Engine
from sameas.once.store import Store
from sameas.stores.memory import MemoryBackend

BAD = [
    ("a\0b", "zero byte"),
    ("\ud800", "surrogates"),
    (b"bytes", "text"),
    (7, "text"),
    (["unhashable"], "text"),
]


@pytest.mark.parametrize(("value", "why"), BAD)
@pytest.mark.parametrize("name", ["tenant", "scope", "key"])
def test_what_some_store_could_not_hold_is_refused_before_any_is_asked(name, value, why):
    with pytest.raises(NotCanonical, match=why):
        record_digest(**{"tenant": "t", "scope": "s", "key": "k", name: value})


@pytest.mark.parametrize(("name", "longest"), [("tenant", MAX_NAME), ("scope", MAX_NAME), ("key", MAX_KEY)])
def test_longest_name_is_taken_and_one_character_more_is_not(name, longest):
    names = {"tenant": "t", "scope": "s", "key": "k"}
    for character in ("x", "\U0001f511"):
        assert record_digest(**{**names, name: character * longest})
        with pytest.raises(NotCanonical, match=f"more than {longest}"):
            record_digest(**{**names, name: character * (longest + 1)})


def test_an_engine_refuses_such_a_key_before_the_work():
    with Engine(Store(MemoryBackend())) as engine:
        for key, why in BAD:
            with pytest.raises((NotCanonical, TypeError, ValueError), match=why):
                engine.run(pytest.fail, scope="s", key=key)


@pytest.mark.parametrize(("tag", "why"), [("a\0b", "zero byte"), ("\ud800", "lone surrogates"), (1, "must be text")])
def test_a_tag_follows_the_rules_of_a_key(tag, why):
    engine = Engine(Store(MemoryBackend()))
    with pytest.raises(NotCanonical, match=why):
        engine.run(lambda context: 1, scope="s", key="k", tags=(tag,))
