"""A cached ontology is the ontology, or it is not used."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sameas.ontology import Limits, OntologyTooLargeError, load_ontology
from sameas.ontology import load as load_module

from .samples import COMPANY, PREFIXES


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "company.ttl"
    file.write_text(COMPANY)
    return file


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def files(cache: Path) -> list[Path]:
    return sorted(cache.iterdir())


def forbid_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> None:
        pytest.fail("the file was parsed")

    monkeypatch.setattr(load_module, "_read", refuse)


def test_a_second_load_comes_from_the_cache_and_is_equal(
    path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = load_ontology(path, cache_dir=cache)
    assert len(files(cache)) == 1
    forbid_reading(monkeypatch)
    assert load_ontology(path, cache_dir=cache) == first


def test_the_cache_needs_no_parser(path: Path, cache: Path) -> None:
    load_ontology(path, cache_dir=cache)
    program = (
        "import sys; from sameas.ontology import load_ontology; load_ontology(sys.argv[1], cache_dir=sys.argv[2]); "
        "print(sorted({'pyoxigraph', 'rdflib', 'pyshacl'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(path), str(cache)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_a_changed_file_is_another_entry_and_the_same_content_elsewhere_is_not(path: Path, cache: Path) -> None:
    first = load_ontology(path, cache_dir=cache)
    copy = path.with_name("copy.ttl")
    copy.write_bytes(path.read_bytes())
    assert load_ontology(copy, cache_dir=cache) == first
    assert len(files(cache)) == 1
    path.write_text(COMPANY + ":More a owl:Class .")
    assert load_ontology(path, cache_dir=cache).version != first.version
    assert len(files(cache)) == 2  # noqa: PLR2004


@pytest.mark.parametrize("damage", ["empty", "half", "bit", "foreign", "older", "folder"])
def test_a_torn_or_foreign_cache_file_is_ignored_and_written_anew(path: Path, cache: Path, damage: str) -> None:
    first = load_ontology(path, cache_dir=cache)
    (entry,) = files(cache)
    content = entry.read_bytes()
    match damage:
        case "empty":
            entry.write_bytes(b"")
        case "half":
            entry.write_bytes(content[: len(content) // 2])
        case "bit":
            entry.write_bytes(content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])
        case "foreign":
            entry.write_bytes(b"\x80\x04something else")
        case "older":
            entry.write_bytes(b"sameas-ontology\n" + bytes(32) + b"\x90")
        case "folder":
            entry.unlink()
            entry.mkdir()
    assert load_ontology(path, cache_dir=cache) == first
    if damage != "folder":
        assert entry.read_bytes() == content


def test_a_cache_folder_that_cannot_be_written_does_no_harm(path: Path, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert load_ontology(path, cache_dir=blocked / "cache").classes


def test_nothing_but_whole_entries_is_left_behind(path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    assert load_ontology(path, cache_dir=cache).classes
    assert files(cache) == []


def test_an_import_that_changes_comes_or_goes_is_seen_through_the_cache(tmp_path: Path, cache: Path) -> None:
    folder = tmp_path / "imports"
    folder.mkdir()
    main = tmp_path / "main.ttl"
    main.write_text(PREFIXES + "<> a owl:Ontology ; owl:imports <https://example.org/base> .")
    versions = [load_ontology(main, imports_dir=folder, cache_dir=cache).version]
    for label in ("b", "c"):
        (folder / "base.ttl").write_text(PREFIXES + f':B a owl:Class ; rdfs:label "{label}" .')
        versions.append(load_ontology(main, imports_dir=folder, cache_dir=cache).version)
    (folder / "base.ttl").unlink()
    versions.append(load_ontology(main, imports_dir=folder, cache_dir=cache).version)
    assert len(set(versions)) == 3  # noqa: PLR2004
    assert versions[0] == versions[-1]


def test_tighter_limits_hold_although_the_cache_has_it(path: Path, cache: Path) -> None:
    load_ontology(path, cache_dir=cache)
    with pytest.raises(OntologyTooLargeError):
        load_ontology(path, cache_dir=cache, limits=Limits(statements=5))
