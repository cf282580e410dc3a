"""A pronoun is of the subject of the sentence before, unless number, gender or class speak against it."""

import pytest

from sameas.extraction.extractors.reader.ends import Place, ReadEnds
from sameas.extraction.extractors.reader.rivals import Fact
from sameas.extraction.extractors.reader.subjects import Subjects
from sameas.extraction.graph.class_kinds import ClassKinds
from sameas.extraction.text.chunking import Chunk
from sameas.ontology.index import OntologyIndex
from sameas.ontology.load import read_ontology

PREFIX = "https://x.example/#"
ONTOLOGY = """
@prefix : <https://x.example/#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:Company a owl:Class ; rdfs:label "company" . :Person a owl:Class ; rdfs:label "person" . :Prize a owl:Class ; rdfs:label "prize" .
:Any a owl:Class ; rdfs:label "agent" . :Company rdfs:subClassOf :Any . :Person rdfs:subClassOf :Any .
:chief a owl:ObjectProperty ; rdfs:domain :Company ; rdfs:range :Person ; rdfs:label "chief" .
:worksFor a owl:ObjectProperty ; rdfs:domain :Person ; rdfs:range :Company ; rdfs:label "works for" .
:won a owl:ObjectProperty ; rdfs:domain :Any ; rdfs:range :Prize ; rdfs:label "won" .
"""
CLASSES = {"Acme": "Company", "Bolt": "Company", "Anna": "Person", "Otto": "Person", "Cup": "Prize"}


@pytest.mark.parametrize(
    ("text", "subject", "name", "target", "expected"),
    [
        ("Acme sued Bolt. Bolt won. Its chief is Anna.", "Acme", "chief", "Anna", False),
        ("Acme sued Bolt. Bolt won. Its chief is Anna.", "Bolt", "chief", "Anna", True),
        ("Acme grew. Bolt won. It is old. Its chief is Anna.", "Acme", "chief", "Anna", False),
        # Number, gender, class, and two people: not plain.
        ("Acme grew. Bolt and Acme won. Its chief is Anna.", "Acme", "chief", "Anna", True),
        ("Acme wuchs. Die Bolt gewann in der Stadt. Sein Chef ist Otto.", "Acme", "chief", "Otto", True),
        ("Acme grew. Otto won. Its chief is Anna.", "Acme", "chief", "Anna", True),
        ("Otto came. Anna met Otto. She works for Acme.", "Otto", "worksFor", "Acme", True),
        # The sentence has a subject of its own, or goes back from inside.
        ("Acme grew. Anna was given the Cup.", "Acme", "won", "Cup", False),
        ("Acme grew. Anna gave it the Cup.", "Acme", "won", "Cup", True),
        ("Otto came. He works for Acme. Anna was born.", "Anna", "worksFor", "Acme", False),
        ("Acme grew. It was known that the chief was Anna.", "Acme", "chief", "Anna", True),
    ],
)
def test_whom_a_sentence_speaks_of(text, subject, name, target, expected):
    index = OntologyIndex(read_ontology(ONTOLOGY.encode(), extension=".ttl"))
    places = {
        one: Place(text.rindex(one), text.rindex(one) + 4, {PREFIX + kind: 0.9}, 0.9, one.casefold())
        for one, kind in CLASSES.items()
        if one in text
    }
    first = {
        one: Place(text.index(one), text.index(one) + len(one), place.types, 0.9, place.name)
        for one, place in places.items()
    }
    asked = Fact(PREFIX + name, first[subject], first[target], None, 0.5, 0.0)
    others = [
        Fact(PREFIX + "won", each[one], each[one], None, 0.1, 0.0)
        for each in (first, {one: places[one] for one in places if len(one) == 4})
        for one in each
    ]
    subjects = Subjects(index, ReadEnds(index), ClassKinds(index), Chunk(0, 0, len(text), text), [asked, *others], [])
    assert subjects.allows(asked) is expected
