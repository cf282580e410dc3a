"""`sameas.open_collection`: the same collection as on the command line, filled and asked from Python."""

from pathlib import Path

import pytest

import sameas
from sameas.collections.errors import EntityNotFoundError
from sameas.collections.exports import EXPORT_ENDINGS, EXPORT_FORMATS

COMPANY = Path(sameas.__file__).parent / "example" / "company.ttl"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SAMEAS_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SAMEAS_EXTRACTOR", "lexicon")
    return tmp_path


def test_a_folder_is_kept_in_step(home: Path) -> None:
    folder = home / "inbox"
    folder.mkdir()
    (folder / "one.txt").write_text("Nordlicht Speicher acquired Alster Capital.")
    (folder / "two.txt").write_text("Alster Capital is headquartered in Hamburg.")
    with sameas.open_collection("press", ontology=COMPANY) as press:
        assert press.sync(folder).added == 2
        assert press.query("ASK { ?a :acquired ?b . ?b :headquarters ?c }").boolean
        (folder / "two.txt").unlink()
        (folder / "one.txt").write_text("Weserstahl AG acquired Alster Capital in 2021.")
        done = press.sync(folder)
        assert (done.changed, done.removed, done.unchanged) == (1, 1, 0)
        assert press.sync(folder).unchanged == 1
        assert [one.subject_name for one in press.statements if one.predicate.endswith("acquired")] == ["Weserstahl AG"]


def test_a_collection_keeps_the_ontology_that_it_was_made_with_and_says_so(home: Path) -> None:
    ontology = home / "company.ttl"
    ontology.write_bytes(COMPANY.read_bytes())
    with sameas.open_collection("press", ontology=ontology) as press:
        before = press.collection.opened_as.ontology_version
    with sameas.open_collection("press", ontology=ontology):
        pass
    ontology.write_text(COMPANY.read_text("utf-8").replace(":acquired", ":boughtUp"), "utf-8")
    with (
        pytest.warns(UserWarning, match="keeps the ontology that it was made with"),
        sameas.open_collection("press", ontology=ontology) as press,
    ):
        assert press.collection.ontology.version == before


def test_a_file_of_a_collection_is_written_as_it_is_called(home: Path) -> None:
    with sameas.open_collection("press", ontology=COMPANY) as press:
        press.add("Nordlicht Speicher acquired Alster Capital.")
        for ending, output in EXPORT_ENDINGS.items():
            called = press.export(home / f"press{ending}").read_bytes()
            assert called == press.export(home / "asked.txt", output=output).read_bytes()
        with pytest.raises(ValueError, match=r"\.nq"):
            press.export(home / "press.graphml")
        assert not (home / "press.graphml").exists()


def test_a_decision_is_undone_and_markup_in_a_text_is_shown_as_text() -> None:
    with sameas.open_collection("press", ontology=COMPANY) as press:
        press.add("Nordlicht Speicher <img src=x onerror=alert(1)> acquired Alster Capital.")
        press.add("Nordlicht Speicher acquired Alster Capital, <b>they say</b>.")
        decision = press.same("Nordlicht Speicher", "Alster Capital", reason="by mistake")
        press.undo(decision.id)
        assert press.find("Alster Capital")[0].id != press.find("Nordlicht Speicher")[0].id
        shown = press._repr_html_()
        assert "they say" in shown
        assert "<b>they" not in shown
        assert "<img" not in shown


def test_known_things_are_linked_and_a_collection_is_written_out_and_checked(home: Path) -> None:
    known = home / "companies.csv"
    known.write_text("iri,name,type\nhttps://example.org/id/1,Alster Capital,company\n")
    with sameas.open_collection("press", ontology=COMPANY) as press:
        press.add("Nordlicht Speicher acquired Alster Capital.")
        assert press.link(known).entities == 1
        assert press.entity("Alster Capital").entity.same_as == ("https://example.org/id/1",)
        known.write_text("iri,name,type\nhttps://example.org/id/2,Alster Capital,company\n")
        press.link(str(known))
        assert press.entity("Alster Capital").entity.same_as == ("https://example.org/id/2",)
        for output in EXPORT_FORMATS:
            written = press.export(home / f"press.{output}", output=output)
            assert b"Alster Capital" in written.read_bytes()
        with pytest.raises(ValueError, match="nquads"):
            press.export(home / "press.xlsx", output="xlsx")  # type: ignore[arg-type]
        assert not (home / "press.xlsx").exists()
        assert press.check() == []
        with press.collection.database.transaction() as session:
            session.run("remove_nodes", collection=press.collection.number, document=_first_document(press))
        assert "document-counts" in [one.code for one in press.check()]


def _first_document(press: sameas.OpenCollection) -> int:
    with press.collection.reading() as reader:
        rows = reader.session.run("all_documents", collection=press.collection.number)
    return int(rows[0][0])


@pytest.mark.parametrize("database", ["", "sqlite:///{home}/all.db"])
def test_a_thing_is_erased_with_the_runs_and_the_index_that_named_it(
    home: Path, monkeypatch: pytest.MonkeyPatch, database: str
) -> None:
    # Results and collections in one file, in which one transaction at a time writes.
    monkeypatch.setenv("SAMEAS_DATABASE", database.format(home=home))
    with sameas.open_collection("press", ontology=COMPANY) as press:
        press.add(["Ada Byron works for Canary Zellen.", "Weserstahl AG acquired Alster Capital."])
        assert press.query('ASK { ?a rdfs:label "Canary Zellen" }').boolean
        done = press.erase("Canary Zellen", reason="asked for")
        assert (done.documents, len(done.runs)) == (1, 1)
        assert not press.query('ASK { ?a rdfs:label "Canary Zellen" }').boolean
        assert press.check() == []
        with pytest.raises(EntityNotFoundError):
            press.erase("Canary Zellen")
    left = [path for path in home.rglob("*") if path.is_file() and b"Canary" in path.read_bytes()]
    assert left == []


def test_a_document_that_names_what_was_erased_leaves_no_run_behind(home: Path) -> None:
    inbox = home / "inbox"
    inbox.mkdir()
    (inbox / "one.txt").write_text("Ada Byron works for Canary Zellen. Weserstahl AG acquired Alster Capital.")
    with sameas.open_collection("press", ontology=COMPANY) as press:
        press.add("Ada Byron works for Canary Zellen.")
        press.erase("Canary Zellen")
        (change,) = press.add("Weserstahl AG acquired Canary Zellen.")
        assert (change.added, change.names_erased) == (True, True)
        assert press.sync(inbox).added == 1
        assert press.find("Canary") == []
        assert press.sync(inbox).unchanged == 1
        assert press.check() == []
    left = [path for path in home.rglob("*") if path.is_file() and b"Canary" in path.read_bytes()]
    assert left == [inbox / "one.txt"]
