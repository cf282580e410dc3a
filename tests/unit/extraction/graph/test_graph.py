"""What is found has one order and one form."""

import json
import random

from sameas.extraction.graph.model import Entity, Evidence, KnowledgeGraph, Rejection, Relation, Value, entity_id
from sameas.extraction.text.document import Span


def test_a_graph_is_the_same_whatever_the_order_it_was_found_in() -> None:
    entities = [Entity(f"id-{number}", f"Name {number}", ("http://e/T",)) for number in range(20)]
    relations = [Relation(f"id-{number}", "http://e/p", f"id-{(number + 1) % 20}") for number in range(20)]
    graph = KnowledgeGraph.of(entities=entities, relations=relations, notes=["b", "a", "b"])
    random.Random(1).shuffle(entities)
    random.Random(2).shuffle(relations)
    again = KnowledgeGraph.of(entities=entities, relations=relations, notes=["a", "b"])
    assert graph.to_json() == again.to_json()


def test_the_json_form_is_camel_case_and_comes_back() -> None:
    relation = Relation(
        "a",
        "http://e/p",
        value=Value("3", "http://www.w3.org/2001/XMLSchema#integer", "km"),
        evidence=(Evidence(0, 5, "a 3km"),),
        subject_spans=(Span(0, 1),),
        object_spans=(Span(2, 5),),
    )
    graph = KnowledgeGraph.of(relations=[relation])
    assert KnowledgeGraph.from_json(graph.to_json()) == graph
    assert "subjectSpans" in json.loads(graph.to_json())["relations"][0]


def test_the_same_refusal_is_one_line_with_a_count() -> None:
    refused = [Rejection(at, at + 3, "no_type", "entity_extraction", "Foo") for at in (40, 10, 20)]
    (line,) = KnowledgeGraph.of(rejected=refused).rejected
    assert (line.start, line.count) == (10, 3)


def test_an_entity_id_is_readable_safe_and_told_apart_by_class() -> None:
    one = entity_id("zürich insurance", "http://e/Company")
    assert one.startswith("zurich-insurance-")
    assert one != entity_id("zürich insurance", "http://e/City")
    assert entity_id("東京", "http://e/City").isalnum()
    assert set(entity_id('"><script>', "http://e/City")) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
