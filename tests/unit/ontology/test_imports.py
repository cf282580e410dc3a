"""`owl:imports` are reported, answered from a folder, and never fetched."""

import socket
from pathlib import Path

import pytest

from sameas.ontology import (
    Limits,
    OntologyNotFoundError,
    OntologySyntaxError,
    OntologyTooLargeError,
    compute_ontology_version,
    load_ontology,
    review_ontology,
)

from .samples import EX, PREFIXES

MAIN = "<https://example.org/main> a owl:Ontology ; owl:imports <https://example.org/base> . :A a owl:Class ; rdfs:subClassOf :B ."
BASE = '<https://example.org/base> a owl:Ontology . :B a owl:Class ; rdfs:label "b" .'


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        pytest.fail("a socket was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "imports"
    path.mkdir()
    return path


def put(path: Path, text: str) -> Path:
    path.write_text(PREFIXES + text)
    return path


def test_an_import_that_nothing_answers_is_reported(tmp_path: Path) -> None:
    ontology = load_ontology(put(tmp_path / "main.ttl", MAIN))
    assert ontology.unresolved_imports == ("https://example.org/base",)
    findings = {finding.code: finding for finding in review_ontology(ontology)}
    assert "imports folder" in findings["import-not-found"].message


@pytest.mark.parametrize("name", ["base.ttl", "base", "anything.ttl"])
def test_a_file_answers_by_its_name_or_by_the_iri_it_declares(name: str, tmp_path: Path, folder: Path) -> None:
    main = put(tmp_path / "main.ttl", MAIN)
    put(folder / (name if "." in name else f"{name}.ttl"), BASE)
    ontology = load_ontology(main, imports_dir=folder)
    assert ontology.unresolved_imports == ()
    assert {one.iri: one.declared for one in ontology.classes} == {EX + "A": True, EX + "B": True}


def test_an_imported_ontology_is_part_of_the_version(tmp_path: Path, folder: Path) -> None:
    main = put(tmp_path / "main.ttl", MAIN)
    put(folder / "base.ttl", BASE)
    merged = put(tmp_path / "merged.ttl", MAIN + BASE)
    assert load_ontology(main, imports_dir=folder).version == load_ontology(merged).version
    assert compute_ontology_version(main, imports_dir=folder) != compute_ontology_version(main)


def test_the_name_of_the_ontology_is_that_of_the_file_and_not_of_an_import(tmp_path: Path, folder: Path) -> None:
    put(folder / "base.ttl", BASE.replace("/base>", "/a-base>"))
    assert load_ontology(put(tmp_path / "main.ttl", MAIN), imports_dir=folder).iri == "https://example.org/main"


def test_circles_of_imports_end(tmp_path: Path, folder: Path) -> None:
    put(
        folder / "base.ttl",
        BASE + "<https://example.org/base> owl:imports <https://example.org/main> , <https://example.org/base> .",
    )
    put(folder / "main.ttl", MAIN)
    ontology = load_ontology(folder / "main.ttl", imports_dir=folder)
    assert [item.file for item in ontology.imports] == ["base.ttl", "main.ttl"]
    assert len(ontology.classes) == 2  # noqa: PLR2004


def test_imports_of_imports_are_followed_and_each_missing_one_is_reported(tmp_path: Path, folder: Path) -> None:
    put(folder / "base.ttl", BASE + "<https://example.org/base> owl:imports <https://example.org/further> .")
    ontology = load_ontology(put(tmp_path / "main.ttl", MAIN), imports_dir=folder)
    assert ontology.unresolved_imports == ("https://example.org/further",)


def test_blank_nodes_of_two_files_stay_two(tmp_path: Path, folder: Path) -> None:
    main = put(tmp_path / "main.ttl", MAIN + ":p rdfs:domain _:x . _:x owl:unionOf ( :A ) .")
    put(folder / "base.ttl", BASE + ":q rdfs:domain _:x . _:x owl:unionOf ( :B ) .")
    domains = {one.iri: one.domain for one in load_ontology(main, imports_dir=folder).properties}
    assert domains == {EX + "p": ((EX + "A",),), EX + "q": ((EX + "B",),)}


@pytest.mark.parametrize("iri", ["file:///etc/passwd", "https://example.org/../../etc/passwd", "../secret.ttl"])
def test_an_import_never_leaves_the_folder(iri: str, tmp_path: Path, folder: Path) -> None:
    put(tmp_path / "secret.ttl", ":Secret a owl:Class .")
    main = put(tmp_path / "main.ttl", f"<> a owl:Ontology ; owl:imports <{iri}> .")
    ontology = load_ontology(main, imports_dir=folder)
    assert ontology.classes == ()
    assert len(ontology.unresolved_imports) == 1


def test_a_broken_import_is_named_by_its_own_file(tmp_path: Path, folder: Path) -> None:
    (folder / "base.ttl").write_text("oops")
    with pytest.raises(OntologySyntaxError) as caught:
        load_ontology(put(tmp_path / "main.ttl", MAIN), imports_dir=folder)
    assert caught.value.file == str(folder / "base.ttl")


def test_a_broken_file_that_nothing_imports_does_no_harm(tmp_path: Path, folder: Path) -> None:
    (folder / "broken.ttl").write_text("oops")
    put(folder / "other.ttl", BASE)
    assert load_ontology(put(tmp_path / "main.ttl", MAIN), imports_dir=folder).unresolved_imports == ()


def test_a_missing_imports_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OntologyNotFoundError, match="imports folder"):
        load_ontology(put(tmp_path / "main.ttl", MAIN), imports_dir=tmp_path / "nowhere")


def test_imports_are_limited(tmp_path: Path, folder: Path) -> None:
    many = " , ".join(f"<https://example.org/i{n}>" for n in range(20))
    main = put(tmp_path / "main.ttl", f"<> a owl:Ontology ; owl:imports {many} .")
    with pytest.raises(OntologyTooLargeError, match="imports"):
        load_ontology(main, imports_dir=folder, limits=Limits(imports=10))
