"""docs/python.md is run from its first sample to its last."""

import asyncio
import re
import shutil
from pathlib import Path

import pytest

import sameas

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = Path(sameas.__file__).parent / "example"
_SAMPLE = re.compile(r"```python\n(.*?)```", re.DOTALL)


def test_every_sample_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("story.txt", "company.ttl"):
        shutil.copy(EXAMPLE / name, tmp_path)
    (tmp_path / "inbox").mkdir()
    (tmp_path / "inbox" / "note.txt").write_text("Hélène Aubert works for Canary Zellen.")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SAMEAS_EXTRACTOR", "lexicon")
    names: dict[str, object] = {}
    samples = _SAMPLE.findall((ROOT / "docs" / "python.md").read_text("utf-8"))
    assert len(samples) >= 6
    for sample in samples:
        exec(compile(sample, "python.md", "exec"), names)  # noqa: S102
    assert (tmp_path / "graph.ttl").stat().st_size > 1000
    found = names["deals"]
    assert isinstance(found, sameas.Result)
    assert [repr(one) for one in found.relations] == ["<Weserstahl - acquired - Helvetia Zellen>"]
    with sameas.open_collection("press") as press:
        assert press.query("ASK { ?a :acquired ?b }").boolean
        assert "<table>" in press._repr_html_()
    again = asyncio.run(names["graph_of"]("story.txt"))  # type: ignore[operator]
    assert again.documents[0].replayed
