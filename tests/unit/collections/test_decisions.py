"""What people decide: kept, told, held through later changes, undone at will."""

import pytest

from sameas.collections.errors import CollectionError, DecisionNotFoundError, EntityAmbiguousError
from tests.unit.collections.press import company, ids, named, person, put, says

JOHN, SHORT, ACME = person("John Smith"), person("Johnny S."), company("Acme Ltd")


def test_same_makes_one_of_two_and_undoing_parts_them_again(collection):
    put(collection, "a", JOHN)
    put(collection, "b", SHORT)
    before = named(collection), ids(collection, "John Smith")
    decision = collection.decide("same", "John Smith", "Johnny S.", reason="one signature")
    assert [count for _, count in named(collection)] == [2]
    assert (decision.reason, decision.by.startswith("local:"), decision.at != "") == ("one signature", True, True)
    undone = collection.undo(decision.id)
    assert (undone.undone_at != "", collection.decisions()) == (True, [])
    assert (named(collection), ids(collection, "John Smith")) == before
    assert len(collection.decisions(undone=True)) == 1
    with pytest.raises(DecisionNotFoundError):
        collection.undo(decision.id)


def test_different_parts_what_documents_put_together(collection):
    put(collection, "a", company("Tweeting Ltd", "Shouting Ltd"))
    put(collection, "b", company("Shouting Ltd"))
    assert len(collection.entities()) == 1
    collection.decide("different", "Tweeting Ltd", "Shouting Ltd")
    assert [count for _, count in named(collection)] == [1, 1]
    assert collection.pairs() == []


def test_a_decision_holds_through_every_later_change(collection):
    put(collection, "a", JOHN, ACME, says(JOHN, "worksFor", ACME))
    put(collection, "b", SHORT)
    collection.decide("same", "John Smith", "Johnny S.")
    put(collection, "a", JOHN, says(JOHN, "born", "1950"))
    put(collection, "b", SHORT, ACME, says(SHORT, "worksFor", ACME))
    assert ("John Smith", 2) in named(collection) or ("Johnny S.", 2) in named(collection)
    collection.remove_name("a")
    put(collection, "c", JOHN)
    assert [count for name, count in named(collection) if name != "Acme Ltd"] == [2]


def test_a_decision_that_two_are_different_holds_when_documents_say_otherwise(collection):
    put(collection, "a", company("Tweeting Ltd"))
    put(collection, "b", company("Shouting Ltd"))
    collection.decide("different", "Tweeting Ltd", "Shouting Ltd")
    put(collection, "c", company("Tweeting Ltd", "Shouting Ltd"))
    assert len(collection.entities()) >= 2
    (first,), (second,) = ids(collection, "Tweeting Ltd"), ids(collection, "Shouting Ltd")
    assert first != second


def test_the_same_decision_again_is_the_same_decision(collection):
    put(collection, "a", JOHN)
    put(collection, "b", SHORT)
    (one,), (other,) = ids(collection, "John Smith"), ids(collection, "Johnny S.")
    assert collection.decide("same", one, other).id == collection.decide("same", one, other).id


def test_a_name_of_several_things_is_refused_and_so_is_what_cannot_be_parted(collection):
    mary = person("Mary Poe")
    put(collection, "a", mary, says(mary, "born", "1950"))
    put(collection, "b", mary, says(mary, "born", "1990"))
    put(collection, "c", JOHN)
    with pytest.raises(EntityAmbiguousError, match="2 things"):
        collection.decide("same", "Mary Poe", "John Smith")
    with pytest.raises(CollectionError, match="where to part"):
        collection.decide("different", "John Smith", "John Smith")


def test_a_decision_wins_over_a_conflict_which_is_then_a_contradiction(collection):
    mary = person("Mary Poe")
    put(collection, "a", mary, says(mary, "born", "1950"))
    put(collection, "b", mary, says(mary, "born", "1990"))
    one, other = ids(collection, "Mary Poe")
    assert collection.contradictions() == []
    collection.decide("same", one, other)
    (found,) = collection.contradictions()
    assert found.kind == "functional"
    assert sorted(side.value.value for side in found.sides) == ["1950", "1990"]
    assert all(side.evidence for side in found.sides)
    assert len(list(collection.statements())) == 2


def test_disjoint_classes_are_told_with_both_sides(collection):
    thing, other = company("Smith"), person("Smith")
    put(collection, "a", thing)
    put(collection, "b", other)
    one, two = ids(collection, "Smith")
    collection.decide("same", one, two)
    (found,) = collection.contradictions()
    assert found.kind == "disjoint"
    assert [len(side) for side in found.evidence] == [1, 1]
