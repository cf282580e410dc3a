"""A collection is a boundary of permissions: who may read, add, decide and own is a role."""

import pytest

from sameas.collections import Caller
from sameas.collections.errors import CollectionError, CollectionNotFoundError, RoleRequiredError
from tests.unit.collections.press import ONTOLOGY

OWNER, BOB, ADMIN = Caller("acme", "alice"), Caller("acme", "bob"), Caller("acme", "root", everything=True)


@pytest.fixture
def press(collections):
    return collections.create("press", ontology=ONTOLOGY, caller=OWNER)


def test_to_whoever_has_no_role_a_collection_is_not_there(collections, press):
    with pytest.raises(CollectionNotFoundError):
        collections.open("press", caller=BOB)
    with pytest.raises(CollectionNotFoundError):
        collections.open(press.id, caller=Caller("other", "alice", everything=True))
    assert collections.list(BOB) == []
    assert [one.role for one in collections.list(ADMIN)] == ["owner"]


def test_each_role_may_do_what_those_before_may(collections, press):
    press.put_member("bob", "contributor")
    assert collections.open("press", caller=BOB, role="contributor").name == "press"
    with pytest.raises(RoleRequiredError, match="curator"):
        collections.open("press", caller=BOB, role="curator")
    with pytest.raises(RoleRequiredError):
        collections.remove("press", caller=BOB)
    press.remove_member("bob")
    with pytest.raises(CollectionNotFoundError):
        collections.open("press", caller=BOB)


@pytest.mark.parametrize("name", ["a/b", "", "01a1ecf2-1398-777c-a67b-6ee9f91c0a29"])
def test_a_name_that_cannot_be_typed_in_an_address_is_refused(collections, name):
    with pytest.raises((CollectionError, ValueError)):
        collections.create(name, ontology=ONTOLOGY, caller=OWNER)
