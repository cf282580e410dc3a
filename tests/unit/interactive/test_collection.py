"""`sameas.open_collection`: the same collection as on the command line, filled and asked from Python."""

from pathlib import Path

import pytest

import sameas

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
