"""A file is there whole or not at all."""

import os
from pathlib import Path

import pytest

from sameas.extraction.runs.durable_file import sweep, write_durably, writing


def test_a_write_that_fails_leaves_the_old_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    write_durably(path, b"old")

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_durably(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_content_is_on_the_disk_before_its_name_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    fsync, replace = os.fsync, Path.replace
    monkeypatch.setattr(os, "fsync", lambda handle: (steps.append("fsync"), fsync(handle)))
    monkeypatch.setattr(Path, "replace", lambda self, to: (steps.append("rename"), replace(self, to)))
    write_durably(tmp_path / "file", b"new")
    assert steps == ["fsync", "rename", "fsync"]


def test_what_a_killed_writer_left_is_swept_up(tmp_path: Path) -> None:
    (tmp_path / ".metadata.json-0123.writing").write_bytes(b"{")
    (tmp_path / "metadata.json").write_bytes(b"{}")
    sweep(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["metadata.json"]


def test_a_file_that_comes_in_pieces_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_durably(path, b"old")
    with pytest.raises(ZeroDivisionError), writing(path) as file:
        file.write(b"half of the new")
        raise ZeroDivisionError
    assert [(one.name, one.read_bytes()) for one in tmp_path.iterdir()] == [("file", b"old")]
    with writing(path) as file:
        file.write(b"new ")
        assert path.read_bytes() == b"old"
        file.write(b"content")
    assert path.read_bytes() == b"new content"
