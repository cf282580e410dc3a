"""An answer without what is less sure: the same in every format, and the run stays whole."""

import pytest

from sameas.extraction.extractors.confidence import least_confidence, sure_part
from sameas.extraction.graph.model import Entity, KnowledgeGraph, Relation, in_memory
from sameas.extraction.outputs import FORMATS, OutputContext, render

GRAPH = KnowledgeGraph.of(
    entities=[
        Entity("acme", "Acme", ("urn:Firm",), confidence=0.9),
        Entity("leeds", "Leeds", ("urn:Place",), confidence=0.3),
        Entity("york", "York", ("urn:Place",), confidence=0.3),
    ],
    relations=[Relation("acme", "urn:in", "leeds", confidence=0.7), Relation("acme", "urn:in", "york", confidence=0.3)],
    notes=["a note"],
)


def test_relations_below_the_confidence_go_and_entities_that_only_they_speak_of():
    sure = in_memory(sure_part(GRAPH, 0.5))
    assert [one.object for one in sure.relations] == ["leeds"]
    assert [one.name for one in sure.entities] == ["Acme", "Leeds"]


def test_the_answer_says_how_much_it_leaves_out():
    assert sure_part(GRAPH, 0.5).notes == (
        "a note",
        "1 relation is left out, below confidence 0.5; --min-confidence 0 shows all.",
    )
    assert sure_part(GRAPH, 0.2).notes == ("a note",)


def test_without_a_confidence_the_graph_is_the_same_object():
    assert sure_part(GRAPH, 0.0) is GRAPH


@pytest.mark.parametrize("to", FORMATS)
def test_no_format_shows_what_is_left_out(to):
    context = OutputContext(key="sha256-" + 64 * "0")
    assert b"York" in render(GRAPH, to=to, context=context)
    assert b"York" not in render(sure_part(GRAPH, 0.5), to=to, context=context)


def test_only_the_reader_has_a_default_and_what_is_asked_for_wins():
    assert (least_confidence("reader", None), least_confidence("lexicon", None)) == (0.5, 0.0)
    assert (least_confidence("reader", 0.0), least_confidence("lexicon", 0.8)) == (0.0, 0.8)
