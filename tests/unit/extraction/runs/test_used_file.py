"""Whoever deletes a run finds everything of it, also where a worker was killed as it wrote down what it uses."""

from pathlib import Path

import pytest

from sameas.extraction.pipeline.checkpoints import UsedFile, read_used
from tests.servers.full_disk import files_end_at


@pytest.mark.parametrize("torn", ["checkpoint entity_extr", "checkpoint grounding ab", "call ab", "c"])
def test_a_torn_line_hides_nothing_of_the_attempt_after_it(tmp_path: Path, torn: str) -> None:
    path = tmp_path / ".used" / "key"
    first = UsedFile(path)
    first.call("one")
    first.close()
    with path.open("a") as file:
        file.write(torn)
    second = UsedFile(path)
    second.checkpoint("grounding", "digest")
    second.call("two")
    second.close()
    used = read_used(path)
    assert used.is_known
    assert ("grounding", "digest") in used.checkpoints
    assert {"one", "two"} <= used.calls


def test_what_could_not_be_written_down_is_an_error(tmp_path: Path) -> None:
    used = UsedFile(tmp_path / "key")
    with files_end_at(4), pytest.raises(OSError, match="disk full"):
        used.call("one")
    used.call("two")
    used.close()
    assert read_used(tmp_path / "key").calls == {"two"}


def test_a_run_that_nobody_wrote_down_is_told_from_one_that_used_nothing(tmp_path: Path) -> None:
    assert not read_used(tmp_path / "key").is_known
    used = UsedFile(tmp_path / "key")
    used.begin()
    used.close()
    assert read_used(tmp_path / "key") == (frozenset(), frozenset(), True)
