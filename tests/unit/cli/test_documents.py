"""What an argument of `extract` stands for."""

import io
import os
import sys

import pytest

from sameas.cli import documents
from sameas.cli.documents import find_sources, read_source
from sameas.cli.errors import CliError
from sameas.extraction.text.document import DocumentSource


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a.txt", "b.txt", "c.md"):
        (tmp_path / name).write_text(f"Text of {name}.", "utf-8")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "d.txt").write_text("Deep.", "utf-8")
    return tmp_path


def names(*arguments):
    return [source.name for source in find_sources(arguments)]


def test_files_come_in_order_and_each_once(folder):
    assert names("b.txt", "a.txt", "b.txt") == ["b.txt", "a.txt"]


def test_a_pattern_is_its_files_in_order(folder):
    assert names("*.txt") == ["a.txt", "b.txt"]
    assert names("**/*.txt") == ["a.txt", "b.txt", "deep/d.txt"]
    assert names("a.txt", "*.txt") == ["a.txt", "b.txt"]


def test_a_sentence_is_a_text(folder):
    assert read_source(find_sources(["Acme was founded in 1999."])[0]).text == "Acme was founded in 1999."
    assert read_source(find_sources(["李明出生于北京。"])[0]).text == "李明出生于北京。"


def test_a_long_sentence_is_no_file_name(folder):
    assert read_source(find_sources(["Word. " * 2000])[0]).text.startswith("Word.")


def test_a_missing_file_is_not_taken_for_a_text(folder):
    for argument in ("missing.txt", "my missing report.txt", "missing"):
        with pytest.raises(CliError, match="is not a file"):
            find_sources([argument])


def test_a_missing_file_of_several_says_so_when_it_is_read(folder):
    first, second = find_sources(["missing.txt", "a.txt"])
    with pytest.raises(CliError, match="is not a file"):
        read_source(first)
    assert read_source(second).text


def test_a_pattern_without_files_and_a_folder_without_any_are_refused(folder):
    with pytest.raises(CliError, match="no file fits"):
        find_sources(["*.pdf"])
    (folder / "bare").mkdir()
    with pytest.raises(CliError, match="bare holds no file that can be read"):
        find_sources(["bare"])


def test_a_folder_stands_for_the_files_in_it_that_can_be_read(folder):
    (folder / "deep" / ".hidden.txt").write_text("Nobody.")
    (folder / "deep" / "picture.png").write_bytes(b"\x89PNG")
    (folder / "deep" / "deeper").mkdir()
    (folder / "deep" / "deeper" / "z.md").write_text("# Zoe works here.")
    names = [source.name for source in find_sources(["deep"])]
    assert names == sorted(names)
    assert "deep/deeper/z.md" in names
    assert not [name for name in names if "hidden" in name or "png" in name]


def test_standard_input_is_read_as_utf8_whatever_the_locale(folder, monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO("Zürich lies on a lake.".encode()), encoding="ascii")
    monkeypatch.setattr(sys, "stdin", stream)
    assert read_source(find_sources(["-"])[0]).text == "Zürich lies on a lake."


def test_an_empty_document_is_refused(folder):
    (folder / "empty.txt").write_text(" \n")
    with pytest.raises(CliError, match=r"empty\.txt is empty"):
        read_source(find_sources(["empty.txt"])[0])


def test_a_long_text_comes_in_pieces_that_make_the_whole(folder, monkeypatch):
    monkeypatch.setattr(documents, "LONG", 100)
    monkeypatch.setattr(documents, "_BLOCK", 7)
    text = "Zürich, 北京 and Łódź. " * 20
    (folder / "long.txt").write_text(text, "utf-8-sig")
    pieces = read_source(find_sources(["long.txt"])[0])
    assert "".join(pieces) == text
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode("utf-8-sig"))))
    assert "".join(read_source(find_sources(["-"])[0])) == text


def test_a_long_text_in_another_encoding_is_read_whole_or_refused(folder, monkeypatch):
    monkeypatch.setattr(documents, "LONG", 100)
    (folder / "long.txt").write_text("Zürich. " * 50, "utf-16")
    assert read_source(find_sources(["long.txt"])[0]).text == "Zürich. " * 50
    (folder / "latin.txt").write_bytes("Zürich. ".encode("latin-1") * 50)
    with pytest.raises(CliError, match="Save it as UTF-8"):
        "".join(read_source(find_sources(["latin.txt"])[0]))


def test_a_file_whose_name_is_no_text_is_named_so_that_it_can_be_written(folder):
    os.rename(b"a.txt", b"torn\xff.txt")  # noqa: PTH104
    for argument in ("torn\udcff.txt", "torn*.txt", "."):
        found = next(one for one in find_sources([argument]) if "torn" in one.name)
        assert found.name == "torn\\udcff.txt"
        assert read_source(found).text == "Text of a.txt."
        assert DocumentSource.of_file(found.path).name == found.name
