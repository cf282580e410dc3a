"""What people decide: kept, told, held through later changes, undone at will."""

import pytest

from sameas.collections import local_caller
from sameas.collections.errors import CollectionError, DecisionNotFoundError, EntityAmbiguousError
from sameas.extraction.graph.model import Entity, Evidence
from sameas.once.errors import StoreError
from sameas.ontology.load import read_ontology
from tests.unit.collections.press import collections_in, company, ids, named, new_collection, person, put, says

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


def test_what_is_no_text_is_refused_with_a_reason_and_changes_nothing(collection):
    put(collection, "a", JOHN)
    put(collection, "b", SHORT)
    for given, reason in (("John Smith", "half \ud800 a sign"), ("John \udcff Smith", "")):
        with pytest.raises(StoreError, match="half a character"):
            collection.decide("same", given, "Johnny S.", reason=reason)
    assert collection.decisions(undone=True) == []
    assert collection.decide("same", "John Smith", "Johnny S.", reason="a whole 😀 sign").reason == "a whole 😀 sign"


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
    (before,) = collection.contradictions()
    assert before.other is not None
    collection.decide("same", one, other)
    (found,) = collection.contradictions()
    assert (found.kind, found.other) == ("functional", None)
    assert sorted(side.value.value for side in found.sides) == ["1950", "1990"]
    assert all(side.evidence for side in found.sides)
    assert len(list(collection.statements())) == 2


def test_what_keeps_two_of_one_name_apart_is_a_contradiction_until_somebody_decides(collection):
    mary, acme = person("Mary Poe"), company("Acme Ltd")
    put(collection, "a", mary, says(mary, "born", "1950", quote="Mary Poe, born in 1950."))
    put(collection, "b", mary, acme, says(mary, "born", "1990", quote="Poe was born in 1990."))
    put(collection, "c", mary, says(mary, "born", "1990"))
    (found,) = collection.contradictions()
    assert found.other is not None
    assert {found.entity.id, found.other.id} == set(ids(collection, "Mary Poe"))
    assert (found.kind, found.predicate.endswith("born")) == ("functional", True)
    assert {(side.subject, side.value.value, side.documents) for side in found.sides} == {
        (side.subject, value, count)
        for side, (value, count) in zip(
            sorted(found.sides, key=lambda side: side.value.value), (("1950", 1), ("1990", 2)), strict=True
        )
    }
    assert {place.text for side in found.sides for place in side.evidence} >= {"Poe was born in 1990."}
    decided = collection.decide("different", found.entity.id, found.other.id, reason="aunt and niece")
    assert collection.contradictions() == []
    collection.undo(decided.id)
    assert collection.contradictions() == [found]
    collection.remove_name("a")
    assert collection.contradictions() == []


def test_what_keeps_two_of_one_name_apart_is_told_the_same_whoever_came_first(tmp_path):
    told = []
    mary, mere = person("Mary Poe"), person("Ann Mere")
    said = [("a", mary, "1950"), ("b", mary, "1990"), ("c", mere, "1960"), ("d", mere, "1961"), ("e", mary, "1920")]
    for number, order in enumerate((said, said[::-1])):
        with collections_in(tmp_path, f"sqlite:///{tmp_path}/{number}.db") as opened:
            held = new_collection(opened)
            for name, who, year in order:
                put(held, name, who, says(who, "born", year))
            found = held.contradictions()
            told.append([(one.entity.name, [side.value.value for side in one.sides]) for one in found])
    assert told[0] == told[1]
    assert len(told[0]) == 4


def test_classes_that_keep_two_of_one_name_apart_are_told(tmp_path):
    ontology = read_ontology(
        b"""@prefix : <http://example.org/> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
        @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . <http://example.org/o> a owl:Ontology .
        :Agent a owl:Class ; rdfs:label "agent" . :Place a owl:Class ; rdfs:label "place" .
        :Bank a owl:Class ; rdfs:subClassOf :Agent ; rdfs:label "bank" ; owl:disjointWith :Club .
        :Club a owl:Class ; rdfs:subClassOf :Agent ; rdfs:label "club" .
        :born a owl:DatatypeProperty , owl:FunctionalProperty ; rdfs:label "born" ."""
    )
    with collections_in(tmp_path) as opened:
        held = opened.create("clubs", ontology=ontology, caller=local_caller())
        for name, type_ in (("a", "Bank"), ("b", "Club")):
            iri = f"http://example.org/{type_}"
            one = Entity(f"mercury-{name}", "Mercury", (iri,), (), (Evidence(0, 7, "Mercury"),))
            # What only one of them is said to be makes two of them, and is no conflict.
            put(held, name, one, *([says(one, "born", "1900")] if type_ == "Bank" else []))
        (found,) = held.contradictions()
        assert (found.kind, found.other is not None) == ("disjoint", True)
        assert sorted(found.classes) == ["http://example.org/Bank", "http://example.org/Club"]
        assert [len(side) for side in found.evidence] == [1, 1]
        assert held.check() == []


def test_disjoint_classes_are_told_with_both_sides(collection):
    thing, other = company("Smith"), person("Smith")
    put(collection, "a", thing)
    put(collection, "b", other)
    one, two = ids(collection, "Smith")
    collection.decide("same", one, two)
    (found,) = collection.contradictions()
    assert found.kind == "disjoint"
    assert [len(side) for side in found.evidence] == [1, 1]
