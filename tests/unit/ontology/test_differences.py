"""What changed between two versions of an ontology."""

from sameas.ontology.load import read_ontology
from sameas.ontology.version import compare_ontologies

HEAD = """@prefix : <https://example.org/o#> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
<https://example.org/o> a owl:Ontology . :Person a owl:Class ; rdfs:label "person"@en .
"""


def changes(before, after):
    old, new = (read_ontology((HEAD + text).encode()) for text in (before, after))
    return list(compare_ontologies(old, new))


def test_the_same_twice_has_no_changes():
    assert changes(":Place a owl:Class .", ":Place a owl:Class .") == []


def test_terms_are_added_removed_and_changed_field_by_field():
    found = changes(
        ':Place a owl:Class . :at a owl:ObjectProperty ; rdfs:label "at"@en ; rdfs:domain :Person .',
        ':Firm a owl:Class . :at a owl:ObjectProperty ; rdfs:label "is at"@en ; rdfs:domain :Firm .',
    )
    told = {(one.change, one.kind, one.iri.rpartition("#")[2]) for one in found}
    assert told == {("added", "class", "Firm"), ("removed", "class", "Place"), ("changed", "property", "at")}
    (changed,) = [one for one in found if one.change == "changed"]
    assert {one.field: (one.before, one.after) for one in changed.fields} == {
        "labels": ("at (en)", "is at (en)"),
        "domain": ("Person", "Firm"),
    }
