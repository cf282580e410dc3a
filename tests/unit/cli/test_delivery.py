"""Every graph gets a place of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sameas.cli.delivery import Delivery, _in_folder, _places, save
from sameas.cli.documents import Source
from sameas.cli.errors import CliError
from sameas.extraction.graph.model import Entity, Evidence, KnowledgeGraph
from sameas.extraction.text.document import Document


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


FULL = """
import resource, signal, sys
from pathlib import Path
from sameas.cli.delivery import save
from sameas.cli.errors import CliError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    save(Path(sys.argv[1]), b"x" * 10_000)
except CliError as error:
    print(error)
"""


def test_a_file_that_cannot_be_written_whole_leaves_the_old_one_and_says_what_to_do(tmp_path):
    target = tmp_path / "graph.ttl"
    target.write_bytes(b"the old graph")
    said = subprocess.run([sys.executable, "-c", FULL, target], capture_output=True, text=True, check=True).stdout
    assert f"{target} cannot be written" in said
    assert "run the command again" in said
    assert target.read_bytes() == b"the old graph"
    assert [*tmp_path.iterdir()] == [target]


def test_a_full_device_is_told_plainly():
    with pytest.raises(CliError, match="No space left on device"):
        save(Path("/dev/full"), b"anything")


KILLED = """
import os, sys
from pathlib import Path
from sameas.extraction.runs.durable_file import writing
with writing(Path(sys.argv[1])) as file:
    file.write(b"half")
    file.flush()
    print("written", flush=True)
    sys.stdin.readline()
    os._exit(9)
"""


def test_what_a_killed_command_left_of_a_graph_goes_with_the_next_and_another_writer_is_left_alone(tmp_path):
    target = tmp_path / "graph [1].ttl"
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(target)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "written\n"
        [left] = tmp_path.glob(".*.writing")
        os.utime(left, (0, 0))
        save(target, b"whole")
        assert left.exists(), "somebody is writing it"
        process.communicate("\n")
    assert left.exists()
    save(target, b"again")
    assert [path.name for path in tmp_path.iterdir()] == [target.name]
    assert target.read_bytes() == b"again"
