"""What no extractor may state, whichever it is: the reader, one fitted to examples, learned patterns, the lexicon."""

import asyncio
from collections.abc import Callable
from functools import lru_cache

import pytest

from sameas.extraction.evaluation.reader_learning import fit_reader
from sameas.extraction.extractors.contract import Extractor
from sameas.extraction.extractors.embedded import find_weights
from sameas.extraction.extractors.learned import LearnedExtractor, schema_of
from sameas.extraction.extractors.learning.examples import Example, Triple
from sameas.extraction.extractors.learning.train import learn
from sameas.extraction.extractors.lexicon import LexiconExtractor
from sameas.extraction.extractors.reader.extractor import ReaderExtractor
from sameas.extraction.extractors.reader.reading import Reader, load_reader
from sameas.extraction.pipeline.pipeline import Pipeline
from sameas.ontology.index import OntologyIndex
from sameas.ontology.load import read_ontology

PREFIX = "https://x.example/#"
ONTOLOGY = """
@prefix : <https://x.example/#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
:Company a owl:Class ; rdfs:label "company" ; skos:altLabel "firm" . :Person a owl:Class ; rdfs:label "person" .
:Place a owl:Class ; rdfs:label "place" ; skos:altLabel "city" .
:Company owl:disjointWith :Person , :Place . :Person owl:disjointWith :Place .
:headquarteredIn a owl:ObjectProperty ; rdfs:domain :Company ; rdfs:range :Place ; rdfs:label "headquartered in" ; skos:altLabel "based in" .
:acquired a owl:ObjectProperty ; rdfs:domain :Company ; rdfs:range :Company ; rdfs:label "acquired" ; skos:altLabel "bought" .
:chiefExecutive a owl:ObjectProperty ; rdfs:domain :Company ; rdfs:range :Person ; rdfs:label "chief executive" ; skos:altLabel "CEO" .
:foundedOn a owl:DatatypeProperty ; rdfs:domain :Company ; rdfs:range xsd:date ; rdfs:label "founded" .
:employees a owl:DatatypeProperty ; rdfs:domain :Company ; rdfs:range xsd:integer ; rdfs:label "number of employees" ; skos:altLabel "employs" .
"""
FACTS = (
    ("Hale Textiles is headquartered in Bath.", "Hale Textiles", "headquarteredIn", "Bath"),
    ("Mora Foods, based in Porto, is growing.", "Mora Foods", "headquarteredIn", "Porto"),
    ("In spring Hale Textiles acquired Wool & Sons.", "Hale Textiles", "acquired", "Wool & Sons"),
    ("Kestrel Group bought Mora Foods.", "Kestrel Group", "acquired", "Mora Foods"),
    ("The chief executive of Kestrel Group is Ines Moor.", "Kestrel Group", "chiefExecutive", "Ines Moor"),
    ("Tom Reed is CEO of Hale Textiles.", "Hale Textiles", "chiefExecutive", "Tom Reed"),
    ("Hale Textiles employs 310 people.", "Hale Textiles", "employees", "310"),
    ("Mora Foods employs 85 people in Porto.", "Mora Foods", "employees", "85"),
    ("Kestrel Group was founded on 3 May 1988.", "Kestrel Group", "foundedOn", "1988-05-03"),
    ("Wool & Sons was founded on 9 June 1921.", "Wool & Sons", "foundedOn", "1921-06-09"),
)
EXAMPLES = [Example(text, (Triple(one, PREFIX + name, other),)) for text, one, name, other in FACTS]
# Offices of the dead and of those to come, bounds, rumours and denials, in four languages.
NEVER = {
    "en": """
        The late Tom Reed was chief executive of Mora Foods.
        Tom Reed will become chief executive of Mora Foods in May.
        Tom Reed, the chief executive-designate of Mora Foods, spoke first.
        Hale Textiles employs more than 500 people.
        Hale Textiles employs at least 500 people.
        Hale Textiles is rumoured to have acquired Mora Foods.
        Nothing suggests that Hale Textiles acquired Mora Foods.
        Hale Textiles denies that it acquired Mora Foods.
        Had Hale Textiles acquired Mora Foods, Tom Reed would have left.
        For years Hale Textiles was headquartered in Leeds, but it has moved away.
        The board refused to let Hale Textiles acquire Mora Foods.
        Tom Reed was once chief executive of Mora Foods.
        Hale Textiles employs fewer than 90 people.
        Wanted: a chief executive for Mora Foods, said Tom Reed.
        Tom Reed hopes to be chief executive of Mora Foods one day.
        Shareholders asked whether Hale Textiles had acquired Mora Foods.
        Tom Reed stepped down as chief executive of Mora Foods.
        A spoof video shows Hale Textiles buying Mora Foods.
        It is a myth that Hale Textiles is headquartered in Leeds.
        Hale Textiles employs up to 300 people in the season.
    """,
    "de": """
        Der verstorbene Tom Reed war Geschäftsführer von Mora Foods.
        Tom Reed wird im Mai Geschäftsführer von Mora Foods.
        Der designierte Geschäftsführer von Mora Foods, Tom Reed, sprach zuerst.
        Hale Textiles beschäftigt mehr als 500 Menschen.
        Hale Textiles beschäftigt mindestens 500 Menschen.
        Hale Textiles soll Mora Foods gekauft haben.
        Nichts deutet darauf hin, dass Hale Textiles Mora Foods gekauft hat.
        Hale Textiles bestreitet, Mora Foods gekauft zu haben.
        Hätte Hale Textiles Mora Foods gekauft, wäre Tom Reed gegangen.
        Hale Textiles hatte seinen Sitz früher in Leeds.
        Der Kauf von Mora Foods durch Hale Textiles wurde untersagt.
        Tom Reed war einst Geschäftsführer von Mora Foods.
        Hale Textiles beschäftigt weniger als 90 Menschen.
        Kauft Hale Textiles nun Mora Foods?
        Tom Reed möchte Geschäftsführer von Mora Foods werden.
        Ob Hale Textiles seinen Sitz in Leeds hat, ist unklar.
        Tom Reed trat als Geschäftsführer von Mora Foods zurück.
        Im Roman kauft Hale Textiles die Firma Mora Foods.
        Dass Hale Textiles seinen Sitz in Leeds hat, ist ein Märchen.
        Hale Textiles beschäftigt in der Saison bis zu 300 Menschen.
    """,
    "fr": """
        Feu Tom Reed était directeur général de Mora Foods.
        Tom Reed deviendra directeur général de Mora Foods en mai.
        Le futur directeur général de Mora Foods, Tom Reed, a parlé.
        Hale Textiles emploie plus de 500 personnes.
        Hale Textiles emploie au moins 500 personnes.
        Hale Textiles aurait racheté Mora Foods.
        Rien n'indique que Hale Textiles a racheté Mora Foods.
        Hale Textiles dément avoir racheté Mora Foods.
        Si Hale Textiles avait racheté Mora Foods, Tom Reed serait parti.
        Hale Textiles avait autrefois son siège à Leeds.
        Le rachat de Mora Foods par Hale Textiles a été interdit.
        Tom Reed fut jadis directeur général de Mora Foods.
        Hale Textiles emploie moins de 90 personnes.
        Hale Textiles va-t-elle racheter Mora Foods ?
        Tom Reed espère devenir directeur général de Mora Foods.
        On ignore si Hale Textiles a son siège à Leeds.
        Tom Reed a quitté la direction générale de Mora Foods.
        Dans le roman, Hale Textiles rachète Mora Foods.
        Il est faux que Hale Textiles a son siège à Leeds.
        Hale Textiles emploie jusqu'à 300 personnes en saison.
    """,
    "es": """
        El difunto Tom Reed era director general de Mora Foods.
        Tom Reed será director general de Mora Foods en mayo.
        El futuro director general de Mora Foods, Tom Reed, habló primero.
        Hale Textiles emplea a más de 500 personas.
        Hale Textiles emplea al menos a 500 personas.
        Hale Textiles habría comprado Mora Foods.
        Nada indica que Hale Textiles haya comprado Mora Foods.
        Hale Textiles niega haber comprado Mora Foods.
        Si Hale Textiles hubiera comprado Mora Foods, Tom Reed se habría ido.
        Hale Textiles tenía antes su sede en Leeds.
        La compra de Mora Foods por Hale Textiles fue prohibida.
        Tom Reed fue en su día director general de Mora Foods.
        Hale Textiles emplea a menos de 90 personas.
        ¿Va a comprar Hale Textiles a Mora Foods?
        Tom Reed quiere ser director general de Mora Foods.
        No se sabe si Hale Textiles tiene su sede en Leeds.
        Tom Reed dejó la dirección general de Mora Foods.
        En la novela, Hale Textiles compra Mora Foods.
        Es falso que Hale Textiles tenga su sede en Leeds.
        Hale Textiles emplea hasta a 300 personas en temporada.
    """,
}
Fact = tuple[str, str, str]


@lru_cache
def index() -> OntologyIndex:
    return OntologyIndex(read_ontology(ONTOLOGY.encode(), extension=".ttl"))


def _reader() -> Reader:
    weights = find_weights()
    assert weights is not None
    return load_reader(weights)


EXTRACTORS: dict[str, Callable[[], Extractor]] = {
    "reader": lambda: ReaderExtractor(index(), _reader(), digest=""),
    "fitted": lambda: fit_reader(EXAMPLES, index(), _reader()),
    "learned": lambda: LearnedExtractor(index(), learn(EXAMPLES, schema_of(index()))),
    "lexicon": lambda: LexiconExtractor(index()),
}


@lru_cache
def pipeline(name: str) -> Pipeline:
    return Pipeline(index=index(), extractor=EXTRACTORS[name]())


def stated(name: str, text: str) -> set[Fact]:
    """Everything that is kept, at any confidence."""
    found = asyncio.run(pipeline(name).run(text, key="k", formats=())).found
    names = {entity.id: entity.name for entity in found.entities}
    return {
        (names[one.subject], one.predicate.removeprefix(PREFIX), one.value.value if one.value else names[one.object])
        for one in found.relations
    }


@pytest.fixture(params=EXTRACTORS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_it_states_what_is_plainly_said(name):
    assert ("Hale Textiles", "headquarteredIn", "Leeds") in stated(name, "Hale Textiles is headquartered in Leeds.")


@pytest.mark.parametrize(
    "text",
    [
        "Hale Textiles is not headquartered in Leeds.",
        "Hale Textiles never acquired Mora Foods.",
        "Hale Textiles may be headquartered in Leeds.",
        "Hale Textiles reportedly acquired Mora Foods.",
        "Is Hale Textiles headquartered in Leeds?",
        "If Hale Textiles acquired Mora Foods, prices would rise.",
        "Hale Textiles is no longer headquartered in Leeds.",
        "Hale Textiles was headquartered in Leeds until 2019.",
        "Tom Reed was fired as chief executive of Mora Foods.",
        "In the novel, Hale Textiles acquired Mora Foods.",
        "Tom Reed was named CEO of the Year.",
        "Hale Textiles employs 20 fewer than Mora Foods.",
        "Hale Textiles lacks a headquarters in Leeds.",
        "Hale Textiles almost acquired Mora Foods.",
        "Hale Textiles has yet to acquire Mora Foods.",
        "Hale Textiles acquired Mora Foods, but the deal fell through.",
        "A blogger wrote that Hale Textiles acquired Mora Foods.",
        "Former CEO Tom Reed of Mora Foods wrote a book.",
        "Hale Textiles hat seinen Sitz nicht in Leeds.",
        "Hale Textiles hätte Mora Foods beinahe gekauft.",
        "Hale Textiles n'a pas son siège à Leeds.",
        "Hale Textiles a failli racheter Mora Foods.",
        "Hale Textiles no tiene su sede en Leeds.",
        "Hale Textiles casi compró Mora Foods.",
    ],
)
def test_what_is_denied_doubted_asked_supposed_over_or_told_in_a_story_is_never_stated(name, text):
    assert stated(name, text) == set()


@pytest.mark.parametrize("language", NEVER)
def test_offices_of_the_dead_and_to_come_bounds_and_rumours_state_nothing_in_any_language(name, language):
    assert {
        text: facts for text in map(str.strip, NEVER[language].strip().splitlines()) if (facts := stated(name, text))
    } == {}


@pytest.mark.parametrize(
    "text",
    [
        "Ines Moor replaced Tom Reed as chief executive of Mora Foods.",
        "Before Ines Moor, the CEO was Tom Reed of Mora Foods.",
        "CEO Tom Reed of Mora Foods has made way for Ines Moor.",
        "The CEO of Mora Foods, Tom Reed, has been replaced by Ines Moor.",
    ],
)
def test_who_was_replaced_is_not_in_office(name, text):
    facts = stated(name, text)
    assert ("Mora Foods", "chiefExecutive", "Tom Reed") not in facts


def test_an_aside_does_not_act(name):
    facts = stated(name, "Hale Textiles, based in Austin, Texas, bought Mora Foods.")
    assert not {one for one in facts if one[1] == "acquired" and one[0] != "Hale Textiles"}


def test_what_the_buyer_is_said_to_be_is_not_said_of_what_was_bought(name):
    facts = stated(name, "The company that acquired Instagram is based in Menlo Park.")
    assert ("Instagram", "headquarteredIn", "Menlo Park") not in facts


def test_a_number_of_people_across_a_country_is_a_number_and_no_place(name):
    facts = stated(name, "Hale Textiles employs 220 people across the UK.")
    assert facts <= {("Hale Textiles", "employees", "220")}


@pytest.mark.parametrize(
    "text",
    [
        "# Annual Report\n\nHale Textiles is headquartered in Leeds.\nTom Reed joined in May.",
        "Who buys Mora Foods? Hale Textiles acquired Mora Foods.",
        "Contacts\n- Hale Textiles\n- Mora Foods\n\nTom Reed is CEO of Mora Foods.",
    ],
)
def test_a_name_swallows_no_verb_heading_question_mark_or_next_line(name, text):
    ends = {end for first, _, other in stated(name, text) for end in (first, other)}
    assert ends <= {"Hale Textiles", "Leeds", "Mora Foods", "Tom Reed"}


def test_a_place_is_no_date_and_a_year_is_not_stretched_to_a_day(name):
    assert not {one for one in stated(name, "Hale Textiles was founded in Leeds.") if one[1] == "foundedOn"}
    facts = {one for one in stated(name, "Hale Textiles was founded in 1990.") if one[1] == "foundedOn"}
    assert facts <= {("Hale Textiles", "foundedOn", "1990")}


def test_a_literal_range_of_a_json_ontology_takes_no_place():
    data = (
        b'{"title": "t", "id": "t", "concepts": [{"qid": "c", "label": "company"}, {"qid": "p", "label": "place"}], '
        b'"relations": [{"pid": "f", "label": "founded", "domain": "c", "range": "date"}]}'
    )
    found = OntologyIndex(read_ontology(data, extension=".json"))
    text = "The company Hale Textiles was founded in the place Leeds."
    for extractor in (LexiconExtractor(found), ReaderExtractor(found, _reader(), digest="")):
        run = Pipeline(index=found, extractor=extractor).run(text, key="k", formats=())
        assert not len(asyncio.run(run).found.relations)


def test_evidence_of_the_reader_is_the_clause():
    text = "Hale Textiles is headquartered in Leeds, while Mora Foods is headquartered in Porto."
    found = asyncio.run(pipeline("reader").run(text, key="k", formats=())).found
    said = {evidence.text for one in found.relations for evidence in one.evidence}
    assert said == {"Hale Textiles is headquartered in Leeds", "Mora Foods is headquartered in Porto."}
