"""The ontology in a prompt: numbers for IRIs, signatures with what is inherited, and nothing but the focus."""

import pytest

from sameas.extraction.extractors.prompted.signatures import Signatures
from sameas.ontology.focus import Focus, Focuser, FocusSettings
from sameas.ontology.index import OntologyIndex
from sameas.ontology.load import read_ontology
from tests.unit.extraction.company import EX, ONTOLOGY, company_index

INDEX = company_index()
WHOLE = Focuser(INDEX).focus("")


def menu_of(focus: Focus, index: OntologyIndex = INDEX):
    return Signatures(index).menu(focus)


def test_a_property_is_written_with_its_domain_and_range() -> None:
    assert "9 works for(person -> organization)" in menu_of(WHOLE).property_lines.split("\n")
    assert "1 birth date(person -> date)" in menu_of(WHOLE).property_lines.split("\n")


def test_a_class_is_written_with_what_it_is_a_kind_of() -> None:
    number = menu_of(WHOLE).classes.index(EX + "Company") + 1
    assert f"{number} company < organization" in menu_of(WHOLE).class_lines.split("\n")


def test_numbers_stand_for_iris_and_unknown_numbers_for_nothing_known() -> None:
    menu = menu_of(WHOLE)
    number = menu.properties.index(EX + "worksFor") + 1
    assert menu.property_at(number) == EX + "worksFor"
    for wrong in (0, -1, 10**9):
        assert menu.property_at(wrong) not in INDEX.properties
        assert menu.class_at(wrong) not in INDEX.classes


def test_a_property_inherits_its_ends_from_the_one_above_it() -> None:
    more = ONTOLOGY + ':manages a owl:ObjectProperty ; rdfs:label "manages" ; rdfs:subPropertyOf :worksFor .\n'
    index = OntologyIndex(read_ontology(more.encode(), extension=".ttl"))
    assert Signatures(index).signature(EX + "manages") == "manages(person -> organization)"


def test_only_the_focus_is_written() -> None:
    menu = menu_of(Focus(classes=(EX + "Person",), properties=(EX + "bornIn",)))
    assert menu.class_lines == "1 person"
    assert menu.property_lines == "1 born in(person -> place)"


@pytest.mark.parametrize("text", ["Alice works for Acme.", "The company was founded by a person."])
def test_a_class_that_a_text_is_not_about_changes_no_line(text: str) -> None:
    more = ONTOLOGY + ':Volcano a owl:Class ; rdfs:subClassOf :Place ; rdfs:label "volcano" .\n'
    larger = OntologyIndex(read_ontology(more.encode(), extension=".ttl"))
    settings = FocusSettings(whole_up_to=5)
    before = menu_of(Focuser(INDEX, settings=settings).focus(text))
    after = menu_of(Focuser(larger, settings=settings).focus(text), larger)
    assert (before.class_lines, before.property_lines) == (after.class_lines, after.property_lines)


def test_a_label_of_several_lines_takes_one() -> None:
    more = ONTOLOGY + ':Odd a owl:Class ; rdfs:label "odd\\n7 Injected" .\n'
    index = OntologyIndex(read_ontology(more.encode(), extension=".ttl"))
    menu = menu_of(Focuser(index).focus(""), index)
    assert len(menu.class_lines.split("\n")) == len(menu.classes)
