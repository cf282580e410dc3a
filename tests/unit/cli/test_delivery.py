"""Every graph gets a place of its own."""

from pathlib import Path

import pytest

from sameas.cli.delivery import Delivery, _in_folder, _places
from sameas.cli.documents import Source
from sameas.cli.errors import CliError
from sameas.extraction.document import Document
from sameas.extraction.graph import Entity, Evidence, KnowledgeGraph


def test_documents_of_one_name_get_files_of_their_own():
    names = ["a.html", "a.md", "d1/b.txt", "d2/B.txt"]
    sources = [Source(name, path=Path(name)) for name in names]
    targets = _in_folder(sources, Path("out"), "turtle")
    assert [str(target) for target in targets.values()] == ["out/a.ttl", "out/a-2.ttl", "out/b.ttl", "out/B-2.ttl"]


def test_several_graphs_need_a_folder_or_a_stream(tmp_path):
    sources = [Source("a.txt"), Source("b.txt")]
    file = tmp_path / "one.ttl"
    file.touch()
    with pytest.raises(CliError, match="is one file"):
        Delivery(sources, form="turtle", out=file, as_json=False)
    with pytest.raises(CliError, match="do not fit on one stream"):
        Delivery(sources, form="graphml", out=None, as_json=False)


def test_places_are_those_of_the_source():
    original = "\tFirst line.  \r\nAda Byron lived.\r\n"
    at = original.index("Ada Byron")
    normal = Document(original).normalized.index("Ada Byron")
    entity = Entity(id="e1", name="Ada Byron", types=(), mentions=(Evidence(normal, normal + 9, "Ada Byron"),))
    places = _places(KnowledgeGraph(entities=(entity,)), Document(original))
    assert places == {"unit": "text", "spans": [(normal, normal + 9, 0, at, at + 9)]}
    assert at != normal
