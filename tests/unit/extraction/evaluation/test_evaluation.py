"""Scoring by complete gold."""

import json

import pytest

from sameas.extraction.evaluation import GoldDocument, judge, read_domains, report_of
from sameas.extraction.evaluation.report import calibration_error
from sameas.extraction.extractors.learning.examples import ExamplesError
from sameas.extraction.graph.model import Entity, Evidence, KnowledgeGraph, Relation, Value

TEXT = "Acme Ltd was founded in 1999. It is not based in Leeds."
GOLD = GoldDocument(TEXT, (("Acme Ltd", "foundedOn", "1999"), ("Acme Ltd", "employees", "1200")), ("negation",))
ACME = Entity(id="acme", name="acme ltd", types=("C",))
LEEDS = Entity(id="leeds", name="Leeds", types=("P",))
FOUNDED = Relation(
    subject="acme",
    predicate="https://x.example/#foundedOn",
    value=Value("1999", "xsd:gYear"),
    evidence=(Evidence(0, 29, TEXT[:29]),),
    confidence=0.9,
)
STAFF = Relation(subject="acme", predicate="https://x.example/#employees", value=Value("1200.0", "xsd:decimal"))
BASED = Relation(
    subject="acme",
    predicate="https://x.example/#basedIn",
    object="leeds",
    evidence=(Evidence(30, 55, TEXT[30:]),),
    confidence=0.6,
)


def graph(*relations):
    return KnowledgeGraph.of(entities=(ACME, LEEDS), relations=relations)


def test_names_are_compared_without_case_and_values_by_their_normal_forms():
    judged = judge("firms", GOLD, graph(FOUNDED, STAFF))
    assert [one.is_right for one in judged.stated] == [True, True]
    assert judged.missed == 0


def test_a_fact_that_the_text_denies_is_wrong_and_stands_against_the_text():
    judged = judge("firms", GOLD, graph(FOUNDED, BASED))
    assert [(one.is_right, one.is_against_the_text) for one in judged.stated] == [(False, True), (True, False)]
    assert judged.missed == 1
    report = report_of([judged])
    assert (report.whole.right, report.whole.stated, report.whole.there) == (1, 2, 2)
    assert report.share_against_the_text == 0.5
    assert report.languages["english"].f1 == 0.5
    assert report.tags["negation"].recall == 0.5


def test_facts_below_the_asked_confidence_are_not_stated():
    judged = judge("firms", GOLD, graph(FOUNDED, BASED), min_confidence=0.7)
    assert [one.fact[1] for one in judged.stated] == ["foundedOn"]


def test_a_text_without_facts_is_read_well_by_saying_nothing():
    report = report_of([judge("firms", GoldDocument("Who bought Bolt?", ()), graph())])
    assert (report.whole.precision, report.whole.recall) == (1.0, 1.0)


def test_confidence_that_says_what_it_should_has_no_error():
    assert calibration_error([(0.75, True)] * 3 + [(0.75, False)]) == pytest.approx(0.0)
    assert calibration_error([(0.9, False)] * 10) == pytest.approx(0.9)
    assert calibration_error([]) == 0.0


def test_domains_are_read_by_name_and_a_bad_line_is_named(tmp_path):
    for name in ("b", "a"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "ontology.ttl").write_text("")
        (tmp_path / name / "documents.jsonl").write_text(json.dumps({"text": "x", "triples": [["a", "b", "c"]]}) + "\n")
    assert [domain.name for domain in read_domains(tmp_path)] == ["a", "b"]
    (tmp_path / "b" / "documents.jsonl").write_text('\n{"text": "x", "triples": [["a", "b"]]}\n')
    with pytest.raises(ExamplesError, match="line 2"):
        read_domains(tmp_path)


def test_a_folder_without_domains_is_refused(tmp_path):
    with pytest.raises(ExamplesError, match="holds no domain"):
        read_domains(tmp_path)
