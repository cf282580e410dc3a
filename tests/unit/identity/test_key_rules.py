"""One set of rules for tenant, scope, key and what is said beside them, whatever the store."""

import pytest

from sameas.identity.errors import NotCanonical
from sameas.identity.key import MAX_KEY, MAX_NAME, fingerprint, former_fingerprint, record_digest
from sameas.once.call_builder import identity_of
from sameas.once.codec import PLAIN, pack
from sameas.once.engine import Engine
from sameas.once.record import ClaimRequest, Lease, State
from sameas.once.store import Query, Selection, Store
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


@pytest.mark.parametrize(
    ("option", "error", "why"),
    [
        ({"tags": ["a\0b"]}, NotCanonical, "zero byte"),
        ({"tags": ["\ud800"]}, NotCanonical, "lone surrogates"),
        ({"tags": [1]}, NotCanonical, "must be text"),
        ({"tags": [""]}, NotCanonical, "one line of text"),
        ({"tags": ["a\nb"]}, NotCanonical, "one line of text"),
        ({"tags": ["x" * 1_000] * 66}, NotCanonical, "more than 65535"),
        ({"tags": ["\U0001f511" * 1_000] * 17}, NotCanonical, "more than 65535"),
        ({"tags": "one"}, TypeError, "not one string"),
        ({"route": "orders"}, ValueError, "is not a route"),
        ({"route": "/orders?a=1"}, ValueError, "is not a route"),
        ({"route": "/" + "x" * 256}, ValueError, "is not a route"),
        ({"route": "/\0"}, NotCanonical, "zero byte"),
        ({"route": "/\ud800"}, NotCanonical, "lone surrogates"),
        ({"method": "BREW"}, ValueError, "is not a method"),
        ({"audit": {"who": object()}}, TypeError, "audit takes an object of what JSON can hold"),
        ({"audit": {"who": "\ud800"}}, TypeError, "audit takes an object of what JSON can hold"),
        ({"audit": ["who"]}, TypeError, "audit takes an object of what JSON can hold"),
        ({"request_fingerprint": "a\0b"}, NotCanonical, "zero byte"),
        ({"request_fingerprint": 5}, NotCanonical, "must be text"),
        ({"request_fingerprint": "x" * 65_536}, NotCanonical, "more than 65535"),
        ({"namespace": "another"}, ValueError, "namespace must be"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_what_is_said_about_work_follows_one_set_of_rules(option, error, why):
    with Engine(Store(MemoryBackend())) as engine:
        with pytest.raises(error, match=why):
            engine.run(pytest.fail, **{"scope": "s", "key": "k", **option})
        if "tags" in option:
            with pytest.raises(error, match=why):
                engine.run_many(pytest.fail, [1], scope="s", **option)


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"tenant": "a\0b"}, "zero byte"),
        ({"scope": "\ud800"}, "lone surrogates"),
        ({"key_prefix": 7}, "must be text"),
        ({"route": "/\0"}, "zero byte"),
        ({"tag": ""}, "one line of text"),
        ({"state": "lost"}, "not a valid State"),
        ({"status": "200"}, "an integer that a database can hold"),
        ({"created_from": 2**63}, "an integer that a database can hold"),
        ({"created_before": 1.5}, "an integer that a database can hold"),
        ({"limit": 2**64}, "an integer that a database can hold"),
        ({"limit": -1}, "must not be negative"),
        ({"after": "zz"}, "not the cursor of a page"),
        ({"after": "f" * 80}, "not the cursor of a page"),
    ],
)
def test_what_some_store_could_not_be_asked_is_refused_before_any_is(asked, why):
    with pytest.raises(ValueError, match=why):
        Query(**asked)
    if asked.keys() <= {"tenant", "scope", "tag"}:
        with pytest.raises(ValueError, match=why):
            Selection(**asked)


def test_the_text_of_a_state_is_the_state():
    assert Query(state="done").state is State.DONE


@pytest.mark.parametrize("batch", [0, -1, 2**63])
def test_a_batch_of_nothing_is_refused(batch):
    with Engine(Store(MemoryBackend())) as engine, pytest.raises(ValueError, match="at least one record"):
        engine.prune(batch=batch)


def test_no_fingerprint_of_a_payload_is_longer_than_any_store_holds():
    wide = {f"{number}" + "\U0001f511" * 3_000: number for number in range(60)}
    print_ = fingerprint(wide)
    assert len(print_) == 64
    assert print_ != fingerprint({**wide, next(iter(wide)): "another"})
    # A program of before named each field; what it kept is known again.
    before = former_fingerprint(wide, secret=b"", exclude_fields=())
    assert len(before) > 65_535
    with Engine(Store(MemoryBackend())) as engine:
        identity = identity_of("s", "k")
        claim = engine.store.claim(ClaimRequest(identity, before, "a1", 10_000_000, 60_000_000))
        engine.store.complete(Lease(identity, claim.fence, "a1"), outcome=pack(1, PLAIN)[0], retain_for=60_000_000)
        assert engine.record(pytest.fail, scope="s", key="k", payload=wide).result == 1
