"""What a sentence denies, doubts, asks, supposes or says to be over is not stated, whichever extractor offers it."""

import asyncio

import pytest

from sameas.extraction.extractors.contract import Found
from sameas.extraction.graph.guard import Guard
from sameas.extraction.graph.model import Claim, Mention
from sameas.extraction.graph.stance import claim_stance
from sameas.extraction.pipeline.pipeline import Pipeline
from sameas.extraction.text.chunking import Chunk, sentence_spans
from sameas.extraction.text.document import Span
from sameas.ontology.index import OntologyIndex
from sameas.ontology.load import read_ontology

ONTOLOGY = """
@prefix : <https://x.example/#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
:Firm a owl:Class ; rdfs:label "firm" . :Person a owl:Class ; rdfs:label "person" . :Place a owl:Class ; rdfs:label "place" .
:basedIn a owl:ObjectProperty ; rdfs:domain :Firm ; rdfs:range :Place ; rdfs:label "based in" .
:acquired a owl:ObjectProperty ; rdfs:domain :Firm ; rdfs:range :Firm ; rdfs:label "acquired" .
:chief a owl:ObjectProperty ; rdfs:domain :Firm ; rdfs:range :Person ; rdfs:label "chief executive" .
:founded a owl:DatatypeProperty ; rdfs:domain :Firm ; rdfs:range xsd:gYear ; rdfs:label "founded in" .
:isListed a owl:DatatypeProperty ; rdfs:domain :Firm ; rdfs:range xsd:boolean ; rdfs:label "is listed" .
"""
PREFIX = "https://x.example/#"
CLASSES = {
    "Acme": "Firm",
    "Bolt": "Firm",
    "Cord": "Firm",
    "Leeds": "Place",
    "Austin": "Place",
    "Anna": "Person",
    "Otto": "Person",
}


class EagerExtractor:
    """Claims whatever the ontology allows between any two names of a text: what the text says is for others to judge."""

    name, version = "eager", "1"
    settings: dict[str, object] = {}

    async def extract_entities(self, chunk, focus):
        found = []
        for name, kind in CLASSES.items():
            at = chunk.text.find(name)
            if at >= 0:
                found.append(Mention(at, at + len(name), name, types=(PREFIX + kind,)))
        return Found(tuple(found))

    async def extract_relations(self, chunk, mentions, focus):
        properties = {("Firm", "Place"): "basedIn", ("Firm", "Firm"): "acquired", ("Firm", "Person"): "chief"}
        claims = []
        for one in mentions:
            for other in mentions:
                kinds = (one.types[0].removeprefix(PREFIX), other.types[0].removeprefix(PREFIX))
                if one is not other and kinds in properties and (kinds != ("Firm", "Firm") or one.start < other.start):
                    evidence = chunk.sentences[0] if len(chunk.sentences) == 1 else chunk.sentences[-1]
                    claims.append(Claim(one, PREFIX + properties[kinds], other, evidence))
        return Found(tuple(claims))


@pytest.fixture(scope="module")
def index() -> OntologyIndex:
    return OntologyIndex(read_ontology(ONTOLOGY.encode(), extension=".ttl"))


def stated(text: str, index: OntologyIndex) -> set[tuple[str, str, str]]:
    result = asyncio.run(Pipeline(index=index, extractor=EagerExtractor()).run(text, key="k", formats=()))
    names = {entity.id: entity.name for entity in result.found.entities}
    return {
        (names[one.subject], one.predicate.removeprefix(PREFIX), names[one.object]) for one in result.found.relations
    }


@pytest.mark.parametrize(
    "text",
    [
        "Acme is not headquartered in Leeds.",
        "Acme never acquired Bolt.",
        "Acme was founded long ago. It is not based in Leeds.",
        "It is untrue that Acme acquired Bolt.",
        "Acme may acquire Bolt.",
        "Acme plans to acquire Bolt next year.",
        "If Acme acquires Bolt, prices will rise.",
        "Did Acme acquire Bolt?",
        "Acme is no longer based in Leeds.",
        "Acme was based in Leeds until 2019.",
        "Until 2019, Acme was based in Leeds.",
        "Anna was chief executive of Acme from 2001 to 2009.",
        "Anna was fired as chief executive of Acme.",
        "Before her, the chief executive of Acme was Otto.",
        "In the film, Acme acquires Bolt.",
        "Rumours say that Acme acquired Bolt.",
        "According to a blogger, Acme acquired Bolt.",
        "Acme hat Bolt nicht gekauft.",
        "Acme plant, Bolt zu kaufen.",
        "Acme est basée à Leeds, selon une rumeur?",
        "Acme ya no tiene su sede en Leeds.",
    ],
)
def test_what_is_denied_doubted_asked_or_over_is_never_stated(text: str, index: OntologyIndex) -> None:
    assert stated(text, index) == set()


def test_who_was_replaced_is_no_longer_and_who_came_is(index: OntologyIndex) -> None:
    assert stated("Anna replaced Otto as chief executive of Acme.", index) == {("Acme", "chief", "Anna")}


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("Acme is based in Leeds.", {("Acme", "basedIn", "Leeds")}),
        ("Acme, which is not listed, is based in Leeds.", {("Acme", "basedIn", "Leeds")}),
        ("Acme is based in Leeds, but it does not export.", {("Acme", "basedIn", "Leeds")}),
        ("Although it did not grow, Acme acquired Bolt.", {("Acme", "acquired", "Bolt")}),
        ("Acme not only grew but acquired Bolt.", {("Acme", "acquired", "Bolt")}),
        ("The Acme plant stands in Leeds.", {("Acme", "basedIn", "Leeds")}),
        ("Acme falls under a law and is based in Leeds.", {("Acme", "basedIn", "Leeds")}),
        ("According to its annual report, Acme is based in Leeds.", {("Acme", "basedIn", "Leeds")}),
    ],
)
def test_a_denial_beside_a_fact_takes_nothing_from_it(text: str, facts: set, index: OntologyIndex) -> None:
    assert stated(text, index) == facts


def test_a_value_that_began_a_state_which_ended_is_still_stated(index: OntologyIndex) -> None:
    text = "Acme was founded in 1999 and traded until 2016."
    year = Mention(20, 24, "1999", kind="literal", value="1999", datatype="http://www.w3.org/2001/XMLSchema#gYear")
    firm = Mention(0, 4, "Acme", types=(PREFIX + "Firm",))
    chunk = Chunk(0, 0, len(text), text)
    claim = Claim(firm, PREFIX + "founded", year, chunk.sentences[0])
    assert Guard(index).claims(chunk, [claim], mentions=[firm, year]).kept == (claim,)


def test_a_no_to_a_yes_or_no_question_is_a_fact(index: OntologyIndex) -> None:
    text = "Acme is not listed."
    listed = Mention(
        8, 18, "not listed", kind="literal", value="false", datatype="http://www.w3.org/2001/XMLSchema#boolean"
    )
    firm = Mention(0, 4, "Acme", types=(PREFIX + "Firm",))
    chunk = Chunk(0, 0, len(text), text)
    claim = Claim(firm, PREFIX + "isListed", listed, chunk.sentences[0])
    assert Guard(index).claims(chunk, [claim], mentions=[firm, listed]).kept == (claim,)


@pytest.mark.parametrize(
    ("text", "subject", "object_", "stance"),
    [
        ("Acme is a firm. Chief executive Ann Ray has made way for Bo Lind.", "Acme", "Ann Ray", "no_longer"),
        ("Acme is a firm. Chief executive Ann Ray has made way for Bo Lind.", "Acme", "Bo Lind", ""),
        ("Changes in Acme. Removed: support for the BMP format.", "Acme", "BMP", "no_longer"),
        ("Acme is a firm. In the novel, its chief is Ann Ray.", "Acme", "Ann Ray", "hedged"),
        ("Acme is a firm. Its chief is Ann Ray.", "Acme", "Ann Ray", ""),
    ],
)
def test_the_sentence_of_the_later_end_decides_from_its_first_word(text, subject, object_, stance):
    first, last = (Span(text.index(end), text.index(end) + len(end)) for end in (subject, object_))
    assert claim_stance(text, tuple(sentence_spans(text)), first, last, words=("chief",)) == stance


@pytest.mark.parametrize(
    ("text", "subject", "object_", "stance"),
    [
        ("Anna reported that Acme, based in Leeds, has bought Bolt.", "Anna", "Bolt", "hedged"),
        ("Anna reported that Acme has bought Bolt.", "Anna", "Acme", "hedged"),
        ("Anna told Otto that Acme has bought Bolt.", "Otto", "Bolt", "hedged"),
        ("Anna teilte gestern mit, dass Acme die Firma Bolt gekauft hat.", "Anna", "Bolt", "hedged"),
        ("Anna a annoncé lundi que la société Acme a acheté Bolt.", "Anna", "Bolt", "hedged"),
        ("Anna informó de que Acme ha comprado Bolt.", "Anna", "Bolt", "hedged"),
        ("Anna reported that Acme has bought Bolt.", "Acme", "Bolt", ""),
        ("Acme announced that it has bought Bolt.", "Acme", "Bolt", ""),
        ("Acme announced that Anna is its chief.", "Acme", "Anna", ""),
        ("Acme announced that Cord bought its rival Bolt.", "Acme", "Bolt", ""),
        ("Acme gab bekannt, dass sie Bolt gekauft hat.", "Acme", "Bolt", ""),
        ("Acme a annoncé qu'elle a acheté Bolt.", "Acme", "Bolt", ""),
        ("Acme anunció que ha comprado Bolt.", "Acme", "Bolt", ""),
    ],
)
def test_who_reports_is_not_the_subject_of_what_is_reported(text, subject, object_, stance):
    first, last = (Span(text.index(name), text.index(name) + len(name)) for name in (subject, object_))
    assert claim_stance(text, tuple(sentence_spans(text)), first, last, words=["acquired", "bought"]) == stance


def test_who_says_what_a_property_of_saying_says_is_its_subject():
    text = "Anna announced that Acme has opened."
    first, last = (Span(text.index(name), text.index(name) + 4) for name in ("Anna", "Acme"))
    assert claim_stance(text, tuple(sentence_spans(text)), first, last, words=["announced"]) == ""
