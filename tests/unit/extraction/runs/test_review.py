"""Decisions of reviewers: what they change, what is refused, and what holds for another run."""

import pytest
from msgspec.structs import replace

from sameas.extraction.graph.model import Entity, Evidence, KnowledgeGraph, Relation, Value
from sameas.extraction.runs.review import (
    Decision,
    EntityRef,
    ReviewRefusedError,
    Statement,
    Wish,
    apply_decisions,
    check_wish,
)
from sameas.extraction.runs.view import examples_of
from sameas.extraction.text.document import Span
from sameas.ontology.index import OntologyIndex
from sameas.ontology.load import load_ontology
from tests.unit.server.house import EXAMPLE

C = "https://sameas.dev/example/company#"
XSD = "http://www.w3.org/2001/XMLSchema#"
TEXT = "Anna Stone works for Acme GmbH. Acme GmbH employs 12 people. Ana Stone founded Acme GmbH."
INDEX = OntologyIndex(load_ontology(EXAMPLE / "company.ttl"))


def evidence(words: str, nth: int = 0) -> Evidence:
    start = -1
    for _ in range(nth + 1):
        start = TEXT.index(words, start + 1)
    return Evidence(start, start + len(words), words)


def entity(name: str, kind: str, *places: Evidence) -> Entity:
    return Entity(id=f"{name}-id", name=name, types=(C + kind,), mentions=places or (evidence(name),))


ANNA, ANA = entity("Anna Stone", "Person"), entity("Ana Stone", "Person")
ACME = entity("Acme GmbH", "Company", *(evidence("Acme GmbH", nth) for nth in range(3)))
WORKS = Relation(
    ANNA.id,
    C + "worksFor",
    ACME.id,
    evidence=(evidence("Anna Stone works for Acme GmbH."),),
    subject_spans=(Span(0, 10),),
    object_spans=(Span(21, 30),),
    confidence=0.6,
)
EMPLOYS = Relation(
    ACME.id,
    C + "employees",
    value=Value("12", XSD + "integer"),
    evidence=(evidence("Acme GmbH employs 12 people."),),
    subject_spans=(Span(32, 41),),
)
GRAPH = KnowledgeGraph.of(entities=(ANNA, ANA, ACME), relations=(WORKS, EMPLOYS))


def ref(one: Entity) -> EntityRef:
    return EntityRef(id=one.id, name=one.name, types=one.types)


def said(relation: Relation) -> Statement:
    ends = {one.id: one for one in GRAPH.entities}
    target = None if relation.value is not None else ref(ends[relation.object])
    return Statement(
        subject=ref(ends[relation.subject]),
        predicate=relation.predicate,
        object=target,
        value=relation.value,
        evidence=relation.evidence,
    )


def decided(*shared_runs: Wish) -> list[Decision]:
    return [Decision(id=f"d{number}", at="", by="local", run="r", wish=wish) for number, wish in enumerate(shared_runs)]


def applied(*shared_runs: Wish, graph: KnowledgeGraph = GRAPH):
    return apply_decisions(graph, decided(*shared_runs), index=INDEX, text=TEXT)


def refused(wish: Wish, *before: Wish) -> str:
    with pytest.raises(ReviewRefusedError) as told:
        check_wish(GRAPH, decided(*before), wish, index=INDEX, text=TEXT)
    return str(told.value)


def test_an_accepted_fact_is_sure_and_by_a_reviewer() -> None:
    done = applied(Wish(action="accept", statement=said(WORKS)))
    (fact,) = [one for one in done.graph.relations if one.predicate == C + "worksFor"]
    assert (fact.confidence, fact.confidence_from) == (1.0, "reviewer")
    assert done.decided == {WORKS.triple: "accept"}


def test_a_rejected_fact_is_among_the_refused_with_its_reason() -> None:
    done = applied(Wish(action="reject", statement=said(WORKS), reason="he left"))
    assert [one.predicate for one in done.graph.relations] == [C + "employees"]
    (refusal,) = done.graph.rejected
    assert (refusal.code, refusal.subject, refusal.detail) == ("rejected_in_review", "Anna Stone", "he left")


def test_a_decision_that_was_undone_changes_nothing_until_the_undoing_is_undone() -> None:
    reject = Wish(action="reject", statement=said(WORKS))
    undo, redo = Wish(action="undo", undoes="d0"), Wish(action="undo", undoes="d1")
    assert applied(reject, undo).graph == GRAPH
    assert [one.state for one in applied(reject, undo).standing] == ["undone", "applied"]
    assert applied(reject, undo, redo).graph == applied(reject).graph
    assert "no such decision" in refused(undo, reject, undo)


def test_a_value_and_an_end_are_corrected_within_what_the_ontology_allows() -> None:
    more = Statement(subject=ref(ACME), predicate=C + "employees", value=Value("13", XSD + "integer"))
    done = applied(Wish(action="correct", statement=said(EMPLOYS), becomes=more))
    (fact,) = [one for one in done.graph.relations if one.value is not None]
    assert (fact.value.value, fact.evidence) == ("13", EMPLOYS.evidence)
    turned = Statement(subject=ref(ACME), predicate=C + "worksFor", object=ref(ANNA))
    why = refused(Wish(action="correct", statement=said(WORKS), becomes=turned))
    assert why == "worksFor leads from Person to Organization, not from Company to Person"


def test_a_missed_fact_is_added_with_a_thing_that_nobody_had_found() -> None:
    words = evidence("Acme GmbH employs 12 people.")
    new = EntityRef(name="people", types=(C + "Person",), mention=evidence("people"))
    fact = Statement(subject=new, predicate=C + "worksFor", object=ref(ACME), evidence=(words,))
    done = applied(Wish(action="add", statement=fact))
    assert "people" in {one.name for one in done.graph.entities}
    wrong = replace(fact, evidence=(Evidence(3, 9, "no such"),))
    assert "does not say" in refused(Wish(action="add", statement=wrong))
    assert "needs the words" in refused(Wish(action="add", statement=replace(fact, evidence=())))
    assert "there already" in refused(Wish(action="add", statement=said(WORKS)))
    nobody = replace(fact, predicate=C + "nonsense")
    assert "no property nonsense" in refused(Wish(action="add", statement=nobody))


def test_another_class_is_refused_while_facts_would_not_fit_it() -> None:
    to_city = Wish(action="retype", entity=ref(ANNA), types=(C + "City",))
    assert "first reject or correct" in refused(to_city)
    assert "no class Nothing" in refused(Wish(action="retype", entity=ref(ANNA), types=(C + "Nothing",)))
    done = applied(Wish(action="reject", statement=said(WORKS)), to_city)
    assert next(one for one in done.graph.entities if one.id == ANNA.id).types == (C + "City",)


def test_merged_things_share_places_names_and_facts_and_later_decisions_find_them() -> None:
    founded = Statement(
        subject=ref(ACME),
        predicate=C + "founder",
        object=ref(ANA),
        evidence=(evidence("Ana Stone founded Acme GmbH."),),
    )
    done = applied(
        Wish(action="add", statement=founded),
        Wish(action="merge", entity=ref(ANA), into=ref(ANNA)),
        Wish(action="accept", statement=founded),
    )
    assert [one.state for one in done.standing] == ["applied"] * 3
    whole = next(one for one in done.graph.entities if one.id == ANNA.id)
    assert (whole.aliases, len(whole.mentions)) == (("Ana Stone",), 2)
    assert (ACME.id, C + "founder", ANNA.id) in {one.triple[:3] for one in done.graph.relations}
    assert "nothing is both" in refused(Wish(action="merge", entity=ref(ANNA), into=ref(ACME)))
    assert "one thing already" in refused(Wish(action="merge", entity=ref(ANNA), into=ref(ANNA)))


def test_a_split_takes_the_facts_that_rest_on_its_places_along() -> None:
    split = Wish(action="split", entity=ref(ACME), mentions=(evidence("Acme GmbH", 1),), name="Acme the second")
    done = applied(split)
    second = next(one for one in done.graph.entities if one.name == "Acme the second")
    by_predicate = {one.predicate: one for one in done.graph.relations}
    assert by_predicate[C + "employees"].subject == second.id
    assert by_predicate[C + "worksFor"].object == ACME.id
    assert "not all" in refused(Wish(action="split", entity=ref(ACME), mentions=ACME.mentions))


def test_decisions_hold_in_another_run_by_names_and_words_and_the_rest_is_told() -> None:
    other = KnowledgeGraph.of(
        entities=(
            Entity(id="x", name="anna stone", types=(C + "Person",)),
            Entity(id="y", name="Acme", aliases=("Acme GmbH",), types=(C + "Organization",)),
        ),
        # The document was edited: the words are the same, their place is not.
        relations=(Relation("x", C + "worksFor", "y", evidence=(Evidence(50, 82, f"{TEXT[:31]} "),)),),
    )
    done = applied(
        Wish(action="accept", statement=said(WORKS)), Wish(action="reject", statement=said(EMPLOYS)), graph=other
    )
    assert [one.state for one in done.standing] == ["applied", "stale"]
    assert "does not say so" in done.standing[1].why
    elsewhere = KnowledgeGraph.of(
        entities=other.entities,
        relations=(Relation("x", C + "worksFor", "y", evidence=(Evidence(0, 9, "Other words."),)),),
    )
    assert [one.state for one in applied(Wish(action="accept", statement=said(WORKS)), graph=elsewhere).standing] == [
        "stale"
    ]


def test_examples_are_the_sentences_that_were_looked_at_with_all_that_stands() -> None:
    done = applied(Wish(action="accept", statement=said(WORKS)), Wish(action="reject", statement=said(EMPLOYS)))
    assert examples_of(done) == [
        {"text": "Anna Stone works for Acme GmbH.", "triples": [["Anna Stone", C + "worksFor", "Acme GmbH"]]},
        {"text": "Acme GmbH employs 12 people.", "triples": []},
    ]


def test_without_text_or_ontology_facts_can_still_be_judged() -> None:
    accept = decided(Wish(action="accept", statement=said(WORKS)))
    assert apply_decisions(GRAPH, accept, index=None, text=None).standing[0].state == "applied"
    with pytest.raises(ReviewRefusedError, match="not kept here"):
        check_wish(GRAPH, [], Wish(action="retype", entity=ref(ANNA), types=(C + "Person",)), index=None, text=None)
