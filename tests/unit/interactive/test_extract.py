"""`sameas.extract` gives one object that can be looked at, whatever was given as a document."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document as LangChainDocument

import sameas
from sameas.cli.errors import CliError
from sameas.interactive.extraction import UnknownDocumentError
from sameas.interactive.result import OutputError

EXAMPLE = Path(sameas.__file__).parent / "example"
COMPANY = EXAMPLE / "company.ttl"
TEXT = "Nordlicht Speicher acquired Alster Capital in 2021.\n\nAlster Capital is headquartered in Hamburg."
OTHER = "Last year Nordlicht Speicher acquired Alster Capital."


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SAMEAS_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SAMEAS_EXTRACTOR", "lexicon")
    return tmp_path


def extract(documents: Any, **options: Any) -> sameas.Result:
    return sameas.extract(documents, ontology=COMPANY, **options)


def test_a_file_gives_entities_relations_and_refusals(home: Path) -> None:
    file = home / "note.txt"
    file.write_text(TEXT)
    result = extract(str(file))
    assert {"Alster Capital", "Nordlicht Speicher", "Hamburg"} <= {entity.name for entity in result.entities}
    bought = [one for one in result.relations if one.relation == "acquired"]
    assert [(one.subject, one.object) for one in bought] == [("Nordlicht Speicher", "Alster Capital")]
    place = bought[0].evidence[0]
    assert (place.document, place.paragraph, place.page) == ("note.txt", 1, None)
    assert TEXT[place.start : place.end] == place.text
    assert repr(result).startswith("<sameas.Result of note.txt: ")
    assert result.is_complete


def test_the_same_work_a_second_time_is_a_replay() -> None:
    assert not extract(TEXT).documents[0].replayed
    assert extract(TEXT).documents[0].replayed


def test_several_documents_are_one_result() -> None:
    result = extract([TEXT, OTHER])
    (bought,) = [one for one in result.relations if one.relation == "acquired"]
    assert [place.document for place in bought.evidence] == ["text 1", "text 2"]
    turned = extract([OTHER, TEXT])
    assert [one.id for one in turned.entities] == [one.id for one in result.entities]
    assert [repr(one) for one in turned.relations] == [repr(one) for one in result.relations]


@pytest.mark.anyio
async def test_it_works_where_a_loop_is_running() -> None:
    assert extract(TEXT).relations
    assert (await sameas.aextract(TEXT, ontology=COMPANY)).documents[0].replayed


def test_langchain_documents_are_taken_as_they_are() -> None:
    page = LangChainDocument(TEXT, metadata={"source": "https://example.org/report.pdf", "page": 4})
    result = extract([page])
    assert result.documents[0].source.location == "https://example.org/report.pdf"
    assert {place.page for one in result.relations for place in one.evidence} == {5}
    assert b"https://example.org/report.pdf" in result.render("turtle")


def test_llamaindex_documents_are_taken_as_they_are() -> None:
    class Node:
        """As LlamaIndex's are: `text` cannot be set."""

        def __init__(self) -> None:
            self.metadata = {"file_path": "/reports/a.pdf", "file_name": "a.pdf", "page_label": "7"}

        @property
        def text(self) -> str:
            return TEXT

    result = extract(Node())
    assert result.documents[0].name == "a.pdf"
    assert {place.page for one in result.relations for place in one.evidence} == {7}


def test_a_result_becomes_a_table_a_network_and_rdf() -> None:
    result = extract(TEXT)
    frame = result.to_pandas()
    assert list(frame["relation"]) == [one.relation for one in result.relations]
    assert set(frame["document"]) == {"text 1"}
    assert len(result.to_pandas("entities")) == len(result.entities)
    assert len(result.to_pandas("rejected")) == len(result.rejected)
    network = result.to_networkx()
    assert network.number_of_edges() == len(result.relations)
    assert len(result.to_rdflib()) > len(result.relations)


@pytest.mark.parametrize("name", ["g.ttl", "g.jsonld", "g.nq", "g.graphml", "g.csv", "g.cypher", "g.json"])
def test_a_result_is_saved_as_what_its_file_is_called(home: Path, name: str) -> None:
    assert extract(TEXT).save(home / "new" / name).stat().st_size > 100


def test_several_documents_are_saved_as_one(home: Path) -> None:
    result = extract([TEXT, OTHER])
    assert len(json.loads(result.save(home / "g.json").read_bytes())) == 2
    assert result.save(home / "g.csv").read_bytes().count(b"kind,subject,") == 1
    assert result.save(home / "g.jsonld").stat().st_size
    with pytest.raises(OutputError, match="graphml"):
        result.save(home / "g.graphml")
    with pytest.raises(OutputError, match="say its format"):
        result.save(home / "graph")


def test_a_notebook_sees_the_text_with_its_mentions_and_never_its_markup() -> None:
    page = extract(f"<script>alert('x')</script> {TEXT}")._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert ">Alster Capital</mark>" in page
    assert "paragraph 1" in page


def test_what_cannot_be_a_document_is_told() -> None:
    with pytest.raises(UnknownDocumentError, match="int is not a document"):
        extract(7)
    with pytest.raises(CliError, match="not a file"):
        extract("nowhere.txt")
    with pytest.raises(ValueError, match="empty"):
        extract(" \n ")
    with pytest.raises(ValueError, match="there is no document"):
        extract([])
    with pytest.raises(ValueError, match="need model="):
        extract(TEXT, max_tokens=5)


def test_importing_sameas_loads_nothing_of_extraction() -> None:
    code = "import sameas, sys; print([name for name in sys.modules if name.startswith('sameas.extraction')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
