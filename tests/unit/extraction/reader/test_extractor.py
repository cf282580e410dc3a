"""From what is read to mentions and claims; what is read is given here, the network has tests of its own."""

import asyncio
import json
import threading
from itertools import pairwise
from pathlib import Path

import pytest

from sameas.cli.errors import CliError
from sameas.cli.extractors import choose_extractor, is_installed
from sameas.extraction.extractors.deferred import deferred_reader
from sameas.extraction.extractors.embedded import find_weights
from sameas.extraction.extractors.reader.extractor import ReaderExtractor
from sameas.extraction.extractors.reader.reading import Reader, ReadFact, Reading, ReadMention
from sameas.extraction.pipeline.pipeline import Pipeline
from sameas.extraction.text.chunking import chunk_text
from sameas.llm.timeouts import StageTimedOutError, StageTimeout, within
from sameas.ontology.focus import Focuser
from sameas.ontology.index import OntologyIndex
from sameas.ontology.load import read_ontology

TINY = Path(__file__).parent / "tiny"
PREFIX = "https://x.example/#"
ONTOLOGY = """
@prefix : <https://x.example/#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
:Firm a owl:Class ; rdfs:label "firm" . :Place a owl:Class ; rdfs:label "place" . :Town a owl:Class ; rdfs:subClassOf :Place ; rdfs:label "town" .
:Firm owl:disjointWith :Place .
:seat a owl:ObjectProperty , owl:FunctionalProperty ; rdfs:domain :Firm ; rdfs:range :Place ; rdfs:label "seat" .
:staff a owl:DatatypeProperty ; rdfs:domain :Firm ; rdfs:range xsd:integer ; rdfs:label "staff" .
:isListed a owl:DatatypeProperty ; rdfs:domain :Firm ; rdfs:range xsd:boolean ; rdfs:label "is listed" .
"""
SEAT, STAFF, LISTED = PREFIX + "seat", PREFIX + "staff", PREFIX + "isListed"


class Told:
    """Reads what it was told that a text says: (subject, property, object or truth, score)."""

    def __init__(self, *facts, kinds=None):
        self._facts = facts
        self._kinds = kinds or {}
        self.texts = []

    def read(self, text, *, properties, booleans, classes, keep_from=0.05, also=()):
        self.texts.append(text)
        self.also = [text[start:end] for start, end in also]
        mentions, numbers = [], {}
        for fact in self._facts:
            for end in (fact[0], fact[2]):
                if isinstance(end, str) and end in text and end not in numbers:
                    numbers[end] = len(mentions)
                    types = tuple(self._kinds.get((end, label.split(":")[1].strip()), 0.5) for label in classes)
                    at = text.index(end)
                    mentions.append(ReadMention(at, at + len(end), len(numbers), 0.9, types))
        facts = []
        for subject, name, target, score in self._facts:
            if subject in numbers and (target in numbers or isinstance(target, bool)):
                number = next(at for at, label in enumerate(properties) if f"| {name} |" in label)
                other, truth = (None, target) if isinstance(target, bool) else (numbers[target], None)
                facts.append(ReadFact(number, numbers[subject], other, truth, score, (1.0, 0, 0, 0, 0, 0)))
        return Reading(tuple(mentions), tuple(facts))


@pytest.fixture(scope="module")
def index():
    return OntologyIndex(read_ontology(ONTOLOGY.encode(), extension=".ttl"))


def found(index, told, text):
    extractor = ReaderExtractor(index, told, digest="d", judge_signs=lambda signs, iri: 0.9 if signs.score > 1 else 0.6)
    result = asyncio.run(Pipeline(index=index, extractor=extractor).run(text, key="k", formats=())).found
    names = {entity.id: entity.name for entity in result.entities}
    facts = {
        (names[one.subject], one.predicate, one.value.value if one.value else names[one.object])
        for one in result.relations
    }
    return facts, {entity.name: entity.types for entity in result.entities}


def test_a_thing_has_the_likeliest_class_that_its_property_allows(index):
    told = Told(("Kolb", "seat", "Ulm", 0.9), kinds={("Ulm", "town"): 0.9, ("Ulm", "firm"): 0.95})
    facts, types = found(index, told, "Kolb sits at Ulm.")
    assert facts == {("Kolb", SEAT, "Ulm")}
    assert types["Ulm"] == (PREFIX + "Town",)


def test_a_number_is_what_the_house_reads_at_its_place(index):
    facts, _ = found(index, Told(("Kolb", "staff", "1,200", 0.9)), "Kolb has 1,200 people.")
    assert facts == {("Kolb", STAFF, "1200")}


def test_a_yes_and_a_no_are_never_both_stated(index):
    told = Told(("Kolb", "is listed", True, 0.4), ("Kolb", "is listed", False, 0.6))
    assert found(index, told, "Kolb trades on no exchange.")[0] == {("Kolb", LISTED, "false")}


def test_of_a_functional_property_the_surest_object_stays(index):
    told = Told(("Kolb", "seat", "Ulm", 0.9), ("Kolb", "seat", "Bonn", 0.4))
    assert found(index, told, "Kolb sits at Ulm near Bonn.")[0] == {("Kolb", SEAT, "Ulm")}


def test_what_a_thing_is_holds_wherever_it_is_named(index):
    told = Told(("Kolb", "seat", "Ulm", 0.9), ("Ulm", "staff", "30", 0.4))
    facts, types = found(index, told, "Kolb sits at Ulm. Ulm has 30 people.")
    assert facts == {("Kolb", SEAT, "Ulm")}
    assert types["Ulm"] == (PREFIX + "Place",) or types["Ulm"] == (PREFIX + "Town",)


def test_pronouns_are_no_names(index):
    assert found(index, Told(("It", "seat", "Ulm", 0.9)), "It sits at Ulm.")[0] == set()


def test_what_the_sentence_denies_is_refused_however_sure_the_reader_is(index):
    assert found(index, Told(("Kolb", "seat", "Ulm", 0.99)), "Kolb does not sit at Ulm.")[0] == set()


def test_ends_may_be_as_far_apart_as_what_was_read_together(index):
    told = Told(("Kolb", "seat", "Ulm", 0.9))
    text = "Kolb is old. People like it. It makes beer. Many drink it. It sits at Ulm."
    assert found(index, told, text)[0] == {("Kolb", SEAT, "Ulm")}


def test_a_long_chunk_is_read_in_windows_that_share_a_sentence(index):
    told = Told()
    text = " ".join(
        f"Sentence number {number} says that nothing at all happened in the town on that day." for number in range(12)
    )
    (chunk,) = chunk_text(text)
    extractor = ReaderExtractor(index, told, digest="d")
    asyncio.run(extractor.extract_entities(chunk, Focuser(index).focus(chunk.text)))
    assert len(told.texts) > 1
    assert all(len(window) <= 450 for window in told.texts)
    for one, other in pairwise(told.texts):
        last = "Sentence" + one.rpartition("Sentence")[2]
        assert other.startswith(last)


def test_the_weights_are_a_part_of_the_key_and_nothing_is_loaded_for_it(index):
    weights = find_weights()
    assert weights is not None
    deferred = deferred_reader(index.ontology, weights=weights)
    assert deferred.settings["weights"] == json.loads((weights / "manifest.json").read_text())["digest"]
    assert deferred._built is None


def test_the_reader_is_chosen_where_its_weights_are(index, tmp_path, monkeypatch):
    path = tmp_path / "x.ttl"
    assert is_installed("reader")
    assert choose_extractor(index.ontology, path=path).name == "reader"
    monkeypatch.setattr("sameas.extraction.extractors.embedded._PACKAGE", "no_such_package")
    assert not is_installed("reader")
    assert choose_extractor(index.ontology, path=path).name == "lexicon"
    with pytest.raises(CliError, match="not installed"):
        choose_extractor(index.ontology, path=path, wanted="reader")


def test_any_network_goes_through_the_pipeline(index):
    extractor = ReaderExtractor(index, Reader(TINY), digest="d")
    asyncio.run(
        Pipeline(index=index, extractor=extractor).run("Acme Ltd of Ülm is based in Austin.", key="k", formats=())
    )


def test_waiting_for_a_turn_is_not_work_of_the_stage(index):
    class Slow(Told):
        def read(self, text, **asked):
            turn.wait(10)
            return super().read(text, **asked)

    turn, told = threading.Event(), Slow()
    extractor = ReaderExtractor(index, told, digest="d")
    chunks = chunk_text("Kolb sits at Ulm.")
    focus = Focuser(index).focus(chunks[0].text)
    limits = StageTimeout(1_900, 2_000)

    async def ask(number):
        return await within(
            "entity_extraction",
            lambda: extractor.extract_entities(chunks[0], focus),
            limits=limits,
            on_soft=lambda: None,
        )

    async def go():
        asking = [asyncio.create_task(ask(number)) for number in range(6)]
        ended, _ = await asyncio.wait(asking, return_when=asyncio.FIRST_EXCEPTION)
        assert all(isinstance(one.exception(), StageTimedOutError) for one in ended)
        turn.set()
        return await asyncio.gather(*asking, return_exceptions=True)

    # Those that were being read ran out of time; those that waited for a thread did not.
    assert [isinstance(one, StageTimedOutError) for one in asyncio.run(go())].count(True) <= 2


def test_names_and_values_that_only_the_lexicon_sees_are_offered_to_the_reader(index):
    told = Told(("Acme", "seat", "Bergen", 0.9))
    found(index, told, "Acme has its seat in Bergen and a staff of 120.")
    assert {"Acme", "Bergen", "120"} <= set(told.also)


def test_a_point_that_belongs_to_a_name_stays_where_the_sentence_goes_on(index):
    for read in ("Acme Inc", "Acme Inc.,"):
        facts, _ = found(index, Told((read, "seat", "Bergen", 0.9)), "Acme Inc., a firm, has its seat in Bergen.")
        assert facts == {("Acme Inc.", SEAT, "Bergen")}


@pytest.mark.parametrize(
    "text",
    [
        "Acme is not listed.",
        "Acme may be listed soon.",
        "Is Acme listed?",
        "Acme was listed until 2019.",
        "Acme wants to be listed.",
        "Acme ist nicht listed.",
        "Acme n'est pas listed.",
    ],
)
def test_a_yes_that_the_sentence_does_not_say_is_refused(text, index):
    assert found(index, Told(("Acme", "is listed", True, 0.9)), text)[0] == set()


def test_a_no_that_the_sentence_says_is_stated(index):
    facts, _ = found(index, Told(("Acme", "is listed", False, 0.9)), "Acme is not listed.")
    assert facts == {("Acme", LISTED, "false")}


def test_an_opposite_says_no(index):
    told = Told(("Acme", "is listed", True, 0.9))
    assert found(index, told, "Acme is closed-source.")[0] == set()
