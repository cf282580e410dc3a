"""The learned model as an extractor: places, classes, values and identity."""

import asyncio
from importlib.resources import files
from pathlib import Path

import pytest

from sameas.cli.errors import CliError, ExitCode, explain
from sameas.cli.extractors import choose_extractor
from sameas.extraction.extractors import learned
from sameas.extraction.extractors.contract import Extractor, extractor_identity
from sameas.extraction.extractors.deferred import ModelReplacedError
from sameas.extraction.extractors.embedded import beside, saved_version
from sameas.extraction.extractors.learned import LearnedExtractor, schema_of
from sameas.extraction.extractors.learning import LearnedMention, LearnedModel, LearnedTriple, read_examples
from sameas.extraction.extractors.learning.train import learn
from sameas.extraction.extractors.lexicon import LexiconExtractor
from sameas.extraction.pipeline.pipeline import Pipeline
from sameas.extraction.text.chunking import chunk_text
from sameas.ontology.index import OntologyIndex
from sameas.ontology.load import load_ontology, read_ontology

EXAMPLE = Path(str(files("sameas.example").joinpath("company.ttl"))).parent
NS = "https://sameas.dev/example/company#"
XSD = "http://www.w3.org/2001/XMLSchema#"


@pytest.fixture(scope="module")
def index():
    return OntologyIndex(load_ontology(EXAMPLE / "company.ttl"))


@pytest.fixture(scope="module")
def model(index):
    schema = schema_of(index)
    return learn(read_examples(EXAMPLE / "examples.jsonl", schema)[:24], schema)


class Parrot:
    """A model that says what it was told to."""

    version = "parrot"
    properties = ()

    trusted: frozenset[str] = frozenset()

    def __init__(self, *facts, confidence=0.9):
        self._facts = facts
        self._confidence = confidence

    def extract(self, sentence):
        found = []
        for subject, name, target, *form in self._facts:
            if subject in sentence and target in sentence:
                at, to = sentence.index(subject), sentence.index(target)
                found.append(
                    LearnedTriple(
                        NS + name,
                        LearnedMention(subject, at, at + len(subject)),
                        LearnedMention(target, to, to + len(target), form[0] if form else None),
                        self._confidence,
                    )
                )
        return found


def run(index, extractor, text):
    return asyncio.run(Pipeline(index=index, extractor=extractor).run(text, key="k")).graph


def facts(graph):
    names = {entity.id: entity.name for entity in graph.entities}
    return {
        (
            names[one.subject],
            one.predicate.removeprefix(NS),
            names[one.object] if one.value is None else one.value.value,
        )
        for one in graph.relations
    }


def test_the_schema_has_every_property_with_its_ends(index):
    schema = schema_of(index)
    assert len(schema.properties) == len(index.properties)
    founder, employees = schema.find("founder"), schema.find(NS + "employees")
    assert (founder.domain, founder.range, founder.datatype) == (NS + "Organization", NS + "Person", None)
    assert (employees.range, employees.datatype) == (None, XSD + "integer")
    assert schema.label_of(NS + "Person") == "person"


def test_it_is_an_extractor_whose_model_is_part_of_its_identity(index, model):
    extractor = LearnedExtractor(index, model)
    assert isinstance(extractor, Extractor)
    assert extractor_identity(extractor)["settings"]["model"] == model.version
    other = LearnedExtractor(index, model, minimum=0.5)
    assert extractor_identity(other) != extractor_identity(extractor)


def test_the_version_of_a_saved_model_is_read_from_its_head(model, tmp_path):
    path = tmp_path / "m.learned"
    model.save(path)
    assert saved_version(path) == model.version == LearnedModel.load(path).version
    path.write_bytes(b"something else")
    assert saved_version(path) == ""


def test_relations_that_the_ontology_has_no_words_for_are_learned(index, model):
    text = "Falke Uhren GmbH was founded in 1977 by Berta Kunz."
    found = facts(run(index, LearnedExtractor(index, model), text))
    assert ("Falke Uhren GmbH", "founder", "Berta Kunz") in found


def test_ends_are_the_exact_words_that_were_learned(index):
    text = "In the spring Falke Uhren GmbH chose Dr. Berta Kunz for the post."
    graph = run(index, LearnedExtractor(index, Parrot(("Falke Uhren", "chiefExecutive", "Kunz"))), text)
    assert facts(graph) == {("Falke Uhren", "chiefExecutive", "Kunz")}
    assert {entity.name for entity in graph.entities} == {"Falke Uhren", "Kunz"}
    (relation,) = graph.relations
    assert relation.status == "grounded"
    assert relation.evidence[0].text == text


def test_a_name_that_the_lexicon_takes_for_two_is_one(index):
    text = "People buy Das Buch: Mr. Lessmore at Falke Uhren GmbH."
    graph = run(
        index, LearnedExtractor(index, Parrot(("Falke Uhren GmbH", "produces", "Das Buch: Mr. Lessmore"))), text
    )
    assert facts(graph) == {("Falke Uhren GmbH", "produces", "Das Buch: Mr. Lessmore")}
    assert "Lessmore" not in {entity.name for entity in graph.entities}


def test_what_domain_and_range_forbid_is_not_offered(index):
    text = "Berta Kunz was in Germany on 3 May 1950."
    parrot = Parrot(("Germany", "founder", "Berta Kunz"), ("Berta Kunz", "employees", "3 May 1950"))
    graph = run(index, LearnedExtractor(index, parrot), text)
    assert not {name for _, name, _ in facts(graph)} & {"founder", "employees"}
    assert not [one for one in graph.rejected if one.predicate]


def test_examples_overrule_the_classes_that_the_lexicon_gives(index):
    text = "Berta Kunz works for the company Falke Uhren."
    graph = run(index, LearnedExtractor(index, Parrot(("Falke Uhren", "birthPlace", "Berta Kunz"))), text)
    assert facts(graph) == {("Falke Uhren", "birthPlace", "Berta Kunz")}


def test_what_the_lexicon_says_of_other_names_stays(index):
    text = "Berta Kunz works for Falke Uhren GmbH. Otto Brandt works for Weser Glas GmbH."
    alone = facts(run(index, LexiconExtractor(index), text))
    parrot = Parrot(("Falke Uhren GmbH", "chiefExecutive", "Berta Kunz"))
    both = facts(run(index, LearnedExtractor(index, parrot), text))
    kept = {fact for fact in alone if "Otto Brandt" in fact}
    assert kept
    assert both == kept | {("Falke Uhren GmbH", "chiefExecutive", "Berta Kunz")}


def test_of_a_property_that_has_examples_the_model_alone_speaks(index):
    text = "Falke Uhren GmbH was founded by Berta Kunz."
    assert facts(run(index, LexiconExtractor(index), text)) == {("Falke Uhren GmbH", "founder", "Berta Kunz")}
    silent = Parrot()
    silent.properties = (NS + "founder",)
    assert facts(run(index, LearnedExtractor(index, silent), text)) == set()


def test_a_normal_form_is_the_name_of_the_thing_and_the_words_are_its_evidence(index):
    text = "Falke Uhren stands on Uckermark soil."
    graph = run(index, LearnedExtractor(index, Parrot(("Falke Uhren", "headquarters", "Uckermark", "Ucker"))), text)
    assert facts(graph) == {("Falke Uhren", "headquarters", "Ucker")}
    (place,) = (entity for entity in graph.entities if entity.name == "Ucker")
    assert place.aliases == ("Uckermark",)
    assert [one.text for one in place.mentions] == ["Uckermark"]


def test_one_word_can_stand_for_two_things(index):
    text = "Falke Uhren is quite Prussian."
    parrot = Parrot(("Falke Uhren", "headquarters", "Prussian", "Prussia"), ("Falke Uhren", "produces", "Prussian"))
    graph = run(index, LearnedExtractor(index, parrot), text)
    assert facts(graph) == {("Falke Uhren", "headquarters", "Prussia"), ("Falke Uhren", "produces", "Prussian")}


def test_a_class_guessed_from_a_preposition_gives_way(index):
    text = "Alster Capital invested in Falke Uhren last year."
    graph = run(index, LearnedExtractor(index, Parrot(("Alster Capital", "investedIn", "Falke Uhren"))), text)
    assert facts(graph) == {("Alster Capital", "investedIn", "Falke Uhren")}
    types = {entity.name: entity.types for entity in graph.entities}
    assert types["Falke Uhren"] == (NS + "Company",)


def test_numbers_and_dates_come_as_the_range_wants_them_and_as_examples_write_them(index):
    text = "Berta Kunz, whom everybody calls Bertl, has her feast on 3 May 1950."
    graph = run(index, LearnedExtractor(index, Parrot(("Berta Kunz", "birthDate", "3 May 1950", "May 3rd"))), text)
    assert facts(graph) == {("Berta Kunz", "birthDate", "1950-05-03")}
    (relation,) = graph.relations
    assert relation.value.written == "May 3rd"


def test_which_number_is_the_month_is_for_the_examples_to_say(index):
    text = "Berta Kunz, whom everybody calls Bertl, has her feast on 04/05/1950."
    taught = Parrot(("Berta Kunz", "birthDate", "04/05/1950", "1950-04-05"))
    assert facts(run(index, LearnedExtractor(index, taught), text)) == {("Berta Kunz", "birthDate", "1950-04-05")}


def test_a_year_is_a_day_where_the_examples_write_it_so(index):
    text = "Berta Kunz, whom everybody calls Bertl, came in 1950."
    plain = Parrot(("Berta Kunz", "birthDate", "1950"))
    assert facts(run(index, LearnedExtractor(index, plain), text)) == {("Berta Kunz", "birthDate", "1950")}
    taught = Parrot(("Berta Kunz", "birthDate", "1950", "1950-01-01"))
    assert facts(run(index, LearnedExtractor(index, taught), text)) == {("Berta Kunz", "birthDate", "1950-01-01")}


def test_a_text_value_keeps_its_learned_normal_form(index):
    text = "Falke Uhren lives by Carpe Diem and nothing else."
    graph = run(index, LearnedExtractor(index, Parrot(("Falke Uhren", "motto", "Carpe Diem", "carpe diem"))), text)
    assert ("Falke Uhren", "motto", "carpe diem") in facts(graph)


def test_a_normal_form_that_names_an_individual_stands_for_it(index):
    text = "Falke Berg is a place on german soil."
    parrot = Parrot(("Falke Berg", "locatedIn", "german", "Germany"))
    graph = run(index, LearnedExtractor(index, parrot), text)
    known = {entity.individual for entity in graph.entities}
    assert NS + "Germany" in known


def test_the_models_own_thresholds_decide_unless_more_is_asked_for(index):
    text = "Falke Uhren GmbH chose Berta Kunz."
    fact = ("Falke Uhren GmbH", "chiefExecutive", "Berta Kunz")
    parrot = Parrot(fact, confidence=0.1)
    assert facts(run(index, LearnedExtractor(index, parrot), text)) == {fact}
    assert facts(run(index, LearnedExtractor(index, parrot, minimum=0.3), text)) == set()


def test_of_what_the_lexicon_reads_well_a_weak_guess_is_no_fact_in_a_document(index):
    fact = ("Falke Uhren GmbH", "chiefExecutive", "Berta Kunz")
    sentence = "Falke Uhren GmbH chose Berta Kunz."
    document = f"It was spring. The lake was still cold. {sentence} Nobody said a word."
    weak, likely = (Parrot(fact, confidence=confidence) for confidence in (0.3, 0.6))
    for parrot in (weak, likely):
        parrot.trusted = frozenset({NS + "chiefExecutive"})
    assert facts(run(index, LearnedExtractor(index, weak), sentence)) == {fact}
    assert facts(run(index, LearnedExtractor(index, weak), document)) == set()
    assert facts(run(index, LearnedExtractor(index, likely), document)) == {fact}


def test_the_lexicon_speaks_of_learned_properties_where_it_is_trusted(index):
    text = "Falke Uhren GmbH was founded by Berta Kunz. Falke Uhren GmbH was not founded by Otto Brandt."
    parrot = Parrot()
    parrot.properties = (NS + "founder",)
    assert facts(run(index, LearnedExtractor(index, parrot), text)) == set()
    parrot.trusted = frozenset(parrot.properties)
    graph = run(index, LearnedExtractor(index, parrot), text)
    assert facts(graph) == {("Falke Uhren GmbH", "founder", "Berta Kunz")}
    assert "negated" in {refused.code for refused in graph.rejected}


def test_a_weak_guess_does_not_overrule_what_a_name_is_taken_for(index):
    text = "In the spring Dr. Berta Kunz came to Otto Brandt."
    fact = ("Berta Kunz", "boardMember", "Otto Brandt")
    assert facts(run(index, LearnedExtractor(index, Parrot(fact)), text)) == {fact}
    assert facts(run(index, LearnedExtractor(index, Parrot(fact, confidence=0.1)), text)) == set()


def test_a_pronoun_is_nobodys_name(index):
    parrot = Parrot(("He", "worksFor", "Falke Uhren GmbH"))
    assert facts(run(index, LearnedExtractor(index, parrot), "He was seen at Falke Uhren GmbH.")) == set()


def test_several_sentences_keep_their_own_offsets(index):
    text = "Nothing is said here. Falke Uhren GmbH chose Berta Kunz. Nor here."
    parrot = Parrot(("Falke Uhren GmbH", "chiefExecutive", "Berta Kunz"))
    (relation,) = run(index, LearnedExtractor(index, parrot), text).relations
    assert relation.evidence[0].text == "Falke Uhren GmbH chose Berta Kunz."
    assert text[relation.subject_spans[0].start : relation.subject_spans[0].end] == "Falke Uhren GmbH"


def test_a_relation_that_both_see_is_there_once(index):
    text = "Falke Uhren GmbH was founded by Berta Kunz."
    parrot = Parrot(("Falke Uhren GmbH", "founder", "Berta Kunz"))
    assert len(run(index, LearnedExtractor(index, parrot), text).relations) == 1


def test_remembered_chunks_are_bounded(index):
    extractor = LearnedExtractor(index, Parrot())
    for number in range(learned._REMEMBERED + 20):
        extractor._triples(chunk_text(f"Sentence {number}.")[0])
    assert len(extractor._recent) == learned._REMEMBERED


def test_the_model_beside_the_ontology_is_chosen_and_built_late(index, model, tmp_path):
    path = tmp_path / "company.ttl"
    assert choose_extractor(index.ontology, path=path).name == "reader"
    assert choose_extractor(index.ontology, path=path, default="lexicon").name == "lexicon"
    model.save(beside(path))
    chosen = choose_extractor(index.ontology, path=path)
    assert extractor_identity(chosen) == extractor_identity(LearnedExtractor(index, model))
    assert choose_extractor(index.ontology, path=path, wanted="lexicon").name == "lexicon"
    assert facts(run(index, chosen, "Falke Uhren GmbH was founded in 1977 by Berta Kunz."))


def test_a_model_that_is_wanted_and_not_there_is_refused_with_the_way_to_it(index, tmp_path):
    with pytest.raises(CliError, match="Run `sameas learn EXAMPLES --ontology"):
        choose_extractor(index.ontology, path=tmp_path / "company.ttl", wanted="learned")


def test_a_model_that_was_replaced_meanwhile_is_not_used_under_the_old_identity(index, model, tmp_path):
    path = tmp_path / "company.ttl"
    model.save(beside(path))
    chosen = choose_extractor(index.ontology, path=path)
    schema = schema_of(index)
    learn(read_examples(EXAMPLE / "examples.jsonl", schema)[:6], schema).save(beside(path))
    with pytest.raises(ModelReplacedError, match="changed while it was read") as refused:
        run(index, chosen, "Falke Uhren GmbH was founded in 1977 by Berta Kunz.")
    assert explain(refused.value) == ("company.ttl.learned changed while it was read; ask again", ExitCode.FAILED)


def test_what_was_learned_needs_no_cue_in_the_ontology():
    mute = OntologyIndex(
        read_ontology(
            b"@prefix owl: <http://www.w3.org/2002/07/owl#> .\n"
            b"<http://e/Q1> a owl:Class . <http://e/P57> a owl:ObjectProperty .\n",
            extension=".ttl",
        )
    )
    said = run(mute, LexiconExtractor(mute), "Falke Uhren GmbH chose Berta Kunz.").notes
    left = run(mute, LearnedExtractor(mute, Parrot()), "Falke Uhren GmbH chose Berta Kunz.").notes
    assert (
        [note for note in said if note not in left] == [note for note in said if "no cue for relations" in note] != []
    )
