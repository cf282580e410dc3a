"""A collection is a boundary of permissions: who may read, add, decide and own is a role."""

import io

import pytest

from sameas.collections import Caller, Source
from sameas.collections.errors import CollectionError, CollectionNotFoundError, RoleRequiredError
from tests.unit.collections.press import ONTOLOGY, person, put

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


@pytest.mark.parametrize(
    "name", ["a/b", "", "01a1ecf2-1398-777c-a67b-6ee9f91c0a29", ".", "..", " ", "press ", "a\nb", "\ud800"]
)
def test_a_name_that_cannot_be_typed_in_an_address_is_refused(collections, name):
    with pytest.raises((CollectionError, ValueError)):
        collections.create(name, ontology=ONTOLOGY, caller=OWNER)


def test_a_collection_that_was_removed_is_not_there_for_whoever_had_it_open(collections, press):
    put(press, "one.txt", person("Anna Stone"))
    collections.remove("press", caller=OWNER)
    # SQLite gives the number of the last one again.
    other = collections.create("theirs", ontology=ONTOLOGY, caller=Caller("other", "carol"))
    assert other.number == press.number or collections.database.dialect != "sqlite"
    for use in (
        lambda: put(press, "two.txt", person("Anna Stone")),
        lambda: press.wait_for(Source(name="two.txt"), b"Anna Stone works for Acme."),
        lambda: press.note_failure(Source(name="two.txt"), "it is empty"),
        lambda: press.put_member("bob", "owner"),
        lambda: press.remove_member("carol"),
        press.retry_failed,
        press.info,
        press.members,
        press.documents,
        press.entities,
        lambda: press.export(io.BytesIO()),
    ):
        with pytest.raises(CollectionNotFoundError):
            use()
    assert (other.info().revision, other.documents(), list(other.members())) == (0, [], ["carol"])


def test_a_document_cannot_take_the_name_of_a_list_that_curators_link(press):
    press.link_known("staff.csv", b"iri,name,type\nhttps://example.org/id/anna,Anna Stone,person\n")
    with pytest.raises(CollectionError, match="list of known things"):
        put(press, "known:staff.csv", person("Anna Stone"))
    with pytest.raises(CollectionError, match="list of known things"):
        press.wait_for(Source(name="known:staff.csv"), b"Anna Stone works for Acme.")
    assert [one.same_as for one in press.entities()] == [("https://example.org/id/anna",)]
