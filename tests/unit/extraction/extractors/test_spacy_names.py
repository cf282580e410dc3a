"""A spaCy pipeline adds names to what another extractor finds, and is part of the key."""

import asyncio
import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from sameas.extraction.extractors.contract import Extractor, extractor_digest
from sameas.extraction.extractors.lexicon import LexiconExtractor
from sameas.extraction.extractors.spacy_names import SpacyNames, SpacyUnavailableError, find_pipeline
from sameas.extraction.graph.model import Mention
from sameas.extraction.pipeline.pipeline import Pipeline
from sameas.extraction.pipeline.settings import PipelineSettings
from sameas.extraction.text.chunking import Chunk
from sameas.ontology.focus import Focus, Focuser
from sameas.ontology.index import OntologyIndex
from sameas.ontology.load import read_ontology
from tests.unit.extraction.company import EX, company_index

INDEX = company_index()
LEXICON = LexiconExtractor(INDEX)
PATTERNS = [
    {"label": "PERSON", "pattern": "jane doe"},
    {"label": "PERSON", "pattern": "jane doe's"},
    {"label": "PERSON", "pattern": "Alice Stone"},
    {"label": "PERSON", "pattern": "Acme Robotics Ltd"},
    {"label": "PERSON", "pattern": "Jane Doe"},
    {"label": "PERSON", "pattern": "Zarah Doe"},
    {"label": "ORG", "pattern": "initech"},
    {"label": "GPE", "pattern": "ulm"},
    {"label": "GPE", "pattern": "France"},
    {"label": "DATE", "pattern": "on 1 May 1980"},
    {"label": "DATE", "pattern": "last summer"},
    {"label": "COUNTRY", "pattern": "freedonia"},
    {"label": "NORP", "pattern": "freedonians"},
]


def saved(folder: Path, patterns: list[dict[str, str]] = PATTERNS) -> Path:
    """A real pipeline in a folder: a tokenizer and rules."""
    spacy = pytest.importorskip("spacy")
    language = spacy.blank("en")
    language.add_pipe("entity_ruler").add_patterns(patterns)
    language.to_disk(folder)
    return folder


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("pipelines") / "names")


@pytest.fixture(scope="module")
def extractor(pipeline: Path) -> SpacyNames:
    return SpacyNames(LEXICON, INDEX, pipeline=pipeline)


def mentions(extractor: Extractor, text: str, *, focus: Focus | None = None) -> list[Mention]:
    chunk = Chunk(0, 0, len(text), text)
    found = asyncio.run(extractor.extract_entities(chunk, focus or Focuser(INDEX).focus(text)))
    assert all(text[one.start : one.end] == one.text for one in found.items)
    return list(found.items)


def classes(found: list[Mention]) -> dict[str, tuple[str, ...]]:
    return {one.text: tuple(iri.removeprefix(EX) for iri in one.types) for one in found if one.kind != "literal"}


def test_it_keeps_the_contract(extractor: SpacyNames) -> None:
    assert isinstance(extractor, Extractor)
    assert extractor.name == "lexicon+spacy"


def test_names_without_capitals_are_found_with_the_class_of_their_kind(extractor: SpacyNames) -> None:
    text = "yesterday 👩\u200d🚀 jane doe of initech\nwent to ulm."
    assert mentions(LEXICON, text) == []
    assert classes(mentions(extractor, text)) == {
        "jane doe": ("Person",),
        "initech": ("Organization",),
        "ulm": ("Place",),
    }


def test_a_name_without_a_class_gets_one(extractor: SpacyNames) -> None:
    text = "The crowd saw Zarah Doe."
    assert classes(mentions(LEXICON, text)) == {"Zarah Doe": ()}
    assert classes(mentions(extractor, text)) == {"Zarah Doe": ("Person",)}


def test_what_the_other_extractor_knows_stays(extractor: SpacyNames) -> None:
    text = "Alice Stone works for Acme Robotics Ltd in France."
    assert mentions(extractor, text) == mentions(LEXICON, text)


def test_a_label_that_is_no_kind_stands_for_the_class_of_that_name(extractor: SpacyNames) -> None:
    assert classes(mentions(extractor, "they left freedonia, the freedonians.")) == {"freedonia": ("Country",)}


def test_a_class_outside_the_focus_is_not_offered(extractor: SpacyNames) -> None:
    focus = Focus(classes=(EX + "Person",))
    assert classes(mentions(extractor, "so jane doe left ulm.", focus=focus)) == {"jane doe": ("Person",)}


def test_the_possessive_is_no_part_of_a_name(extractor: SpacyNames) -> None:
    assert classes(mentions(extractor, "this is jane doe's hat.")) == {"jane doe": ("Person",)}


class Nothing:
    """An extractor that finds nothing."""

    name = "nothing"
    version = "1"
    settings: dict[str, Any] = {}
    extract_entities = extract_relations = staticmethod(lambda *_: _nothing())


async def _nothing() -> Any:
    from sameas.extraction.extractors.contract import Found

    return Found()


def test_dates_are_read_by_their_form(pipeline: Path) -> None:
    alone = SpacyNames(Nothing(), INDEX, pipeline=pipeline)
    found = mentions(alone, "it began on 1 May 1980 and ended last summer.")
    assert [(one.text, one.value, one.datatype.rsplit("#")[-1]) for one in found] == [
        ("1 May 1980", "1980-05-01", "date")
    ]


def test_relations_reach_the_added_names(pipeline: Path) -> None:
    def run(concurrency: int) -> Any:
        work = Pipeline(
            index=INDEX,
            extractor=SpacyNames(LEXICON, INDEX, pipeline=pipeline),
            settings=PipelineSettings(concurrency=concurrency),
        )
        return asyncio.run(work.run("so jane doe works for initech.\n\n" * 30, key="k"))

    result = run(4)
    names = {entity.id: entity.name for entity in result.graph.entities}
    said = {(names[one.subject], one.predicate, names[one.object]) for one in result.graph.relations}
    assert said == {("jane doe", EX + "worksFor", "initech")}
    assert run(1).outputs == result.outputs


def test_the_pipeline_is_part_of_the_key(pipeline: Path, extractor: SpacyNames, tmp_path: Path) -> None:

    assert extractor.settings["spacy"] == version("spacy")
    assert extractor.settings["pipeline"] == "en_pipeline"
    assert extractor.settings["pipeline_version"] == "0.0.0"
    assert version("spacy") in extractor.version
    assert str(pipeline) not in json.dumps(dict(extractor.settings))
    moved = SpacyNames(LEXICON, INDEX, pipeline=saved(tmp_path / "elsewhere"))
    assert extractor_digest(moved) == extractor_digest(extractor)
    # Its name and version say nothing of this change.
    other = SpacyNames(LEXICON, INDEX, pipeline=saved(tmp_path / "other", PATTERNS[:-1]))
    assert extractor_digest(other) != extractor_digest(extractor)
    assert extractor_digest(SpacyNames(Nothing(), INDEX, pipeline=pipeline)) != extractor_digest(extractor)


def test_the_key_is_known_without_importing_spacy(pipeline: Path) -> None:
    code = (
        "import sys; from sameas.extraction.extractors.spacy_names import find_pipeline; print(find_pipeline(sys.argv[1]).content);"
        "assert 'spacy' not in sys.modules"
    )
    answer = subprocess.run([sys.executable, "-c", code, str(pipeline)], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == find_pipeline(pipeline).content


def test_an_ontology_without_classes_for_the_names_is_told(pipeline: Path) -> None:
    ontology = read_ontology(
        b"@prefix owl: <http://www.w3.org/2002/07/owl#> . @prefix r: <http://www.w3.org/2000/01/rdf-schema#> ."
        b"<urn:x> a owl:Class ; r:label 'molecule' .",
        extension=".ttl",
    )
    index = OntologyIndex(ontology)
    only_names = SpacyNames(Nothing(), index, pipeline=saved(pipeline.parent / "people", PATTERNS[:2]))
    text = "so jane doe left."
    found = asyncio.run(only_names.extract_entities(Chunk(0, 0, len(text), text), Focuser(index).focus(text)))
    assert found.items == ()
    assert "no class for the kinds of names" in found.notes[0]
    assert "PERSON" in found.notes[0]


def test_without_spacy_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(SpacyUnavailableError, match=r"sameas\[spacy\].*spacy download"):
        SpacyNames(LEXICON, INDEX)


@pytest.mark.parametrize("name", ["xx_no_such_pipeline", "no/such/folder", ""])
def test_a_pipeline_that_is_not_there_is_named_with_how_to_get_it(name: str) -> None:
    pytest.importorskip("spacy")
    with pytest.raises(SpacyUnavailableError, match=f"{name}.*spacy download"):
        find_pipeline(name)


def test_a_folder_that_is_no_pipeline_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("spacy")
    (tmp_path / "meta.json").write_text("{}")
    with pytest.raises(SpacyUnavailableError, match="does not describe"):
        find_pipeline(tmp_path)
    (tmp_path / "meta.json").write_text('{"lang": "en", "name": "x", "version": "1.0.0"}')
    extractor = SpacyNames(LEXICON, INDEX, pipeline=tmp_path)
    with pytest.raises(SpacyUnavailableError, match="cannot be loaded"):
        mentions(extractor, "so jane doe left.")
