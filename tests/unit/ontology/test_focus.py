"""Which part of an ontology a text brings with it."""

import subprocess
import sys

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from sameas.ontology import (
    Focuser,
    FocusSettings,
    Ontology,
    OntologyClass,
    OntologyIndex,
    OntologyProperty,
    Text,
    read_ontology,
)
from tests.shared_data import shared

from .samples import COMPANY, EX

BASE = "https://schema.org/"
TEXTS = [
    "Alice Stone works for Acme Ltd in Berlin.",
    "The movie was directed by Sofia Coppola in 2003.",
    "a recipe with sugar and flour",
    "",
]
SMALL = FocusSettings(whole_up_to=1)


def company(*, settings: FocusSettings = SMALL) -> Focuser:
    return Focuser(OntologyIndex(read_ontology(COMPANY.encode())), settings=settings)


def test_a_small_ontology_is_passed_whole() -> None:
    ontology = read_ontology(COMPANY.encode())
    focus = Focuser(OntologyIndex(ontology)).focus("anything")
    assert focus.is_whole
    assert focus.classes == tuple(one.iri for one in ontology.classes)
    assert focus.properties == tuple(one.iri for one in ontology.properties)


def test_a_large_ontology_is_cut_to_what_the_words_point_to(focuser: Focuser) -> None:
    focus = focuser.focus("The movie had a director and three actors.")
    assert BASE + "Movie" in focus.classes
    assert BASE + "CreativeWork" in focus.classes
    assert BASE + "Recipe" not in focus.classes
    assert {BASE + "director", BASE + "actor"} <= set(focus.properties)
    assert len(focus.properties) <= FocusSettings().properties


def test_a_plural_a_label_of_several_words_and_another_language_are_found() -> None:
    focuser = company()
    assert EX + "Company" in focuser.focus("two companies").classes
    assert EX + "Person" in focuser.focus("a human being").classes
    assert EX + "Person" in focuser.focus("une personne").classes
    assert EX + "worksFor" in focuser.focus("she is employed by them").properties
    assert EX + "worksFor" in focuser.focus("she joined them").properties


def test_other_forms_of_a_word_are_found(focuser: Focuser) -> None:
    properties = focuser.focus("It was directed by her and founded in spring.").properties
    assert {BASE + "director", BASE + "founder", BASE + "foundingDate"} <= set(properties)


def test_a_known_individual_points_to_its_class() -> None:
    focus = company().focus("Offers by Acme Ltd")
    assert {EX + "Company", EX + "Organization"} <= set(focus.classes)


def test_names_suggest_people_organizations_and_places(focuser: Focuser) -> None:
    focus = focuser.focus("Yesterday Alice Stone left Berlin.")
    assert {BASE + "Person", BASE + "Organization", BASE + "Place"} <= set(focus.classes)
    assert BASE + "EventVenue" not in focus.classes


def test_words_without_spaces_are_found() -> None:
    label = Text("\u516c\u53f8", "zh")
    ontology = Ontology(classes=(OntologyClass(iri="a:C", labels=(label,)), OntologyClass(iri="a:D")))
    assert Focuser(OntologyIndex(ontology), settings=SMALL).focus("\u8fd9\u5bb6\u516c\u53f8\u5f88\u5927").classes == (
        "a:C",
    )


def test_a_text_without_any_known_word_has_an_empty_focus(focuser: Focuser) -> None:
    focus = focuser.focus("qwx zzk")
    assert (focus.classes, focus.properties) == ((), ())


@settings(max_examples=30, deadline=None)
@given(
    text=st.sampled_from(TEXTS),
    name=st.from_regex(r"zq[a-z]{3,9}", fullmatch=True),
    parent=st.sampled_from(["", "Movie", "Thing", "Person"]),
)
def test_a_class_that_no_text_is_about_changes_no_focus_byte_for_byte(
    schema: Ontology, focuser: Focuser, text: str, name: str, parent: str
) -> None:
    added = OntologyClass(iri=BASE + name, labels=(Text(name),), parents=(BASE + parent,) if parent else ())
    classes = tuple(sorted((*schema.classes, added), key=lambda one: one.iri))
    larger = msgspec.structs.replace(schema, classes=classes)
    assert Focuser(OntologyIndex(larger)).focus(text).encode() == focuser.focus(text).encode()


def test_a_property_that_no_text_is_about_changes_no_focus(schema: Ontology, focuser: Focuser) -> None:
    added = OntologyProperty(iri="a:zqx", labels=(Text("zqx"),), domain=(("a:Nothing",),))
    larger = msgspec.structs.replace(schema, properties=(added, *schema.properties))
    for text in TEXTS:
        assert Focuser(OntologyIndex(larger)).focus(text).encode() == focuser.focus(text).encode()


def test_the_hash_seed_does_not_matter() -> None:
    path = shared("data", "ontologies", "schemaorg.ttl")
    program = (
        "import sys; from sameas.ontology import *; f = Focuser(OntologyIndex(load_ontology(sys.argv[1])));"
        "print([f.focus(t).encode() for t in sys.argv[2:]])"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program, str(path), *TEXTS],
            capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
        ).stdout
        for seed in ("0", "1", "77")
    }  # fmt: skip
    assert len(outputs) == 1
