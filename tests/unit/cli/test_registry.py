"""Ontologies by name."""

import pytest

from sameas.cli.errors import CliError
from sameas.cli.registry import add_file, check_name, find_ontology, registered
from sameas.settings import Settings


@pytest.fixture
def settings(tmp_path):
    return Settings(home=tmp_path / "home")


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "company.ttl"
    path.write_text("# one")
    return path


def test_a_file_is_found_by_its_path_and_by_its_name(settings, file):
    add_file(file, name="firm", settings=settings)
    assert find_ontology(str(file), settings) == file
    assert find_ontology("firm", settings).read_text() == "# one"


def test_a_name_has_one_file_whatever_its_notation(settings, file, tmp_path):
    add_file(file, name="firm", settings=settings)
    other = tmp_path / "company.owl"
    other.write_text("<rdf/>")
    add_file(other, name="firm", settings=settings)
    assert registered(settings) == {"firm": settings.ontologies / "firm.owl"}


def test_models_and_half_written_files_are_no_ontologies(settings, file):
    add_file(file, name="firm", settings=settings)
    (settings.ontologies / "firm.ttl.learned").write_text("x")
    (settings.ontologies / ".x.tmp").write_text("x")
    assert [*registered(settings)] == ["firm"]


def test_what_is_not_there_is_refused_with_what_is(settings, file):
    assert registered(settings) == {}
    add_file(file, name="firm", settings=settings)
    with pytest.raises(CliError, match="known by name are firm, foaf"):
        find_ontology("frim", settings)


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "x" * 101, "a b"])
def test_a_name_cannot_leave_the_folder(name):
    with pytest.raises(CliError, match="cannot be the name"):
        check_name(name)


def test_a_well_known_ontology_needs_no_file_and_one_that_was_added_wins(settings, tmp_path):
    assert find_ontology("foaf", settings).name == "foaf.rdf"
    mine = tmp_path / "mine.ttl"
    mine.write_text("")
    assert find_ontology("foaf", settings) != add_file(mine, name="foaf", settings=settings)
    assert find_ontology("foaf", settings).suffix == ".ttl"
