"""Documents and their names, statements and their evidence."""

from datetime import UTC, datetime

import pytest

from sameas.collections import Source
from sameas.collections.errors import CollectionExistsError, DocumentNotFoundError
from tests.unit.collections.press import company, named, new_collection, person, put, says

ALICE, ACME = person("Alice Stone"), company("Acme Ltd")
FACT = says(ALICE, "worksFor", ACME)


def test_equal_texts_are_one_document_with_several_names(collection):
    first = put(collection, "a.txt", ALICE, ACME, FACT, text="the same")
    second = put(collection, "b.txt", ALICE, ACME, FACT, text="the same  \r\n")
    assert (first.added, second.added) == (True, False)
    (name, other) = collection.documents()
    assert name.digest == other.digest
    assert [one.name for one in collection.document(name.digest).names] == ["a.txt", "b.txt"]
    assert collection.info().documents == 1


def test_a_document_goes_with_its_last_name_and_a_fact_with_its_last_evidence(collection):
    put(collection, "a.txt", ALICE, ACME, FACT, text="one")
    put(collection, "b.txt", ALICE, ACME, FACT, text="one")
    assert collection.remove_name("a.txt").removed == ()
    assert collection.info().claims == 1
    assert len(collection.remove_name("b.txt").removed) == 1
    assert (collection.info().documents, collection.info().entities, collection.info().claims) == (0, 0, 0)
    assert list(collection.statements()) == []


def test_one_fact_of_nine_documents_is_one_statement_with_nine_pieces_of_evidence(collection):
    for number in range(9):
        put(collection, f"{number}.txt", ALICE, ACME, says(ALICE, "worksFor", ACME, quote=f"Alice, {number}, Acme"))
    (statement,) = collection.statements()
    assert statement.documents == 9
    assert sorted(one.text for one in statement.evidence) == [f"Alice, {number}, Acme" for number in range(9)]
    assert len({one.document for one in statement.evidence}) == 9
    collection.remove_name("4.txt")
    (statement,) = collection.statements()
    assert len(statement.evidence) == 8


def test_another_text_under_a_name_replaces_the_first_and_things_keep_their_ids(collection):
    put(collection, "a.txt", ALICE, ACME, FACT)
    before = {one.name: one.id for one in collection.entities()}
    change = put(collection, "a.txt", ALICE, ACME, FACT, says(ALICE, "born", "1970"))
    assert (change.added, len(change.removed)) == (True, 1)
    assert {one.name: one.id for one in collection.entities()} == before
    assert collection.info().documents == 1


def test_the_same_again_changes_nothing(collection):
    put(collection, "a.txt", ALICE, ACME, FACT)
    revision = collection.info().revision
    assert not put(collection, "a.txt", ALICE, ACME, FACT).added
    assert collection.info().revision == revision


def test_a_partial_reading_is_replaced_by_the_next_under_all_its_names(collection):
    put(collection, "a.txt", ALICE, text="t", run="r1", complete=False)
    put(collection, "b.txt", ALICE, text="t", run="r1", complete=False)
    assert collection.sync_state().partial == 2
    put(collection, "a.txt", ALICE, ACME, FACT, text="t", run="r1")
    assert collection.sync_state().complete == 2
    assert collection.info().claims == 1


def test_what_failed_is_kept_with_the_reason_and_what_was_there_stays(collection):
    from sameas.collections import Source

    put(collection, "a.txt", ALICE)
    collection.note_failure(Source(name="a.txt"), "it is torn")
    collection.note_failure(Source(name="b.txt"), "no such file")
    assert [(one.names[0].name, one.names[0].error) for one in collection.documents(status="failed")] == [
        ("a.txt", "it is torn"),
        ("b.txt", "no such file"),
    ]
    assert named(collection) == [("Alice Stone", 1)]


def test_an_unknown_name_cannot_be_removed(collection):
    with pytest.raises(DocumentNotFoundError, match="a.txt"):
        collection.remove_name("a.txt")


def test_a_change_says_which_things_and_documents_it_touched(collection):
    put(collection, "a.txt", ALICE, ACME, FACT)
    revision = collection.info().revision
    bob = person("Bob Miller")
    put(collection, "b.txt", bob, ACME, says(bob, "worksFor", ACME))
    changes = collection.changes_since(revision)
    names = {one.id: one.name for one in collection.entities()}
    assert sorted(names[id_] for id_ in changes.entities) == ["Acme Ltd", "Bob Miller"]
    assert len(changes.documents) == 1
    assert collection.changes_since(changes.revision).entities == ()


def test_two_collections_do_not_see_each_other(collections, collection):
    with pytest.raises(CollectionExistsError):
        new_collection(collections)
    other = new_collection(collections, "other")
    put(collection, "a.txt", ALICE, ACME, FACT)
    put(other, "a.txt", ALICE)
    assert named(other) == [("Alice Stone", 1)]
    from sameas.collections import local_caller

    collections.remove("other", caller=local_caller())
    assert named(collection) == [("Acme Ltd", 1), ("Alice Stone", 1)]
    with collections.database.reading() as session:
        assert session.run("documents", collection=other.number, after="", most=1) == []


def test_the_same_text_again_keeps_the_time_of_its_reading(collections):
    moments = iter(datetime(2026, 1, 1, 12, minute, tzinfo=UTC) for minute in range(60))
    collections._clock = lambda: next(moments)
    held = new_collection(collections)
    put(held, "a", ACME, text="one")
    before = held.info().revision, held.documents()[0].names[0].read_at
    put(held, "a", ACME, text="one")
    held.wait_for(Source(name="a"), b"one")
    assert held.documents()[0].names[0].read_at == before[1]
    put(held, "a", ACME, text="one")
    assert (held.info().revision, held.documents()[0].names[0].read_at) == before
    put(held, "a", ACME, text="another")
    assert held.documents()[0].names[0].read_at > before[1]
