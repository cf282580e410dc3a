"""Names by their shape, and when two are one."""

import pytest

from sameas.extraction.extractors.lexicon.names import find_names
from sameas.extraction.graph.name_forms import initials, is_acronym, is_slip, name_key
from sameas.extraction.text.chunking import sentence_spans


def names(text: str) -> list[str]:
    return [text[name.start : name.end] for name in find_names(text, tuple(sentence_spans(text)))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("In 1999 Ms. Alice Stone founded Acme Robotics Ltd.", ["Alice Stone", "Acme Robotics Ltd"]),
        ("Ludwig van Beethoven met J. R. R. Tolkien's friend.", ["Ludwig van Beethoven", "J. R. R. Tolkien"]),
        ("The company moved to Zürich.", ["Zürich"]),
        ("Researchers met researchers.", []),
        ("Владимир Набоков родился.", ["Владимир Набоков"]),
        ("O'Brien's dog saw IBM.", ["O'Brien", "IBM"]),
        ("It is a 2008 Israeli drama.", []),
        ("Drug Testing and Analysis is a journal.", ["Drug Testing and Analysis"]),
        ("On Monday we met Jean-Luc.", ["Jean-Luc"]),
        ("Jasper Robotics Inc. met Acme Ltd. in Ulm.", ["Jasper Robotics Inc.", "Acme Ltd.", "Ulm"]),
        ("He met Acme Ltd.", ["Acme Ltd"]),
        ("Neither Acme AG nor Globex AG left.", ["Acme AG", "Globex AG"]),
        ("Acme AG CEO Kim left.", ["Acme AG", "CEO Kim"]),
        ("Anna Keller of Acme GmbH & Co. KG left.", ["Anna Keller", "Acme GmbH & Co. KG"]),
        ("They make the Polaris 40.", ["Polaris 40"]),
    ],
)
def test_names_are_seen(text: str, expected: list[str]) -> None:
    assert names(text) == expected


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Met Dr. Stone.", "person"),
        ("Met Acme GmbH.", "organisation"),
        ("It is the University of Cambridge here.", "organisation"),
        ("Walked along Lake Geneva.", "place"),
        ("They live in Ulm.", "somewhere"),
        ("We asked Ulm.", ""),
        ("We asked Anna Keller.", "person"),
        ("We asked J. R. Smith.", "person"),
        ("We asked Otto Park.", "place"),
        ("We asked Weser Glas.", ""),
    ],
)
def test_a_shape_suggests_a_kind(text: str, kind: str) -> None:
    found = list(find_names(text, tuple(sentence_spans(text))))
    assert found[-1].looks_like == kind


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Acme Ltd.", "ACME"),
        ("The Beatles", "Beatles"),
        ("Stone, Alice", "Ms Alice Stone"),
        ("Müller", "Muller"),
        ("Ｔｏｋｙｏ", "Tokyo"),
        ("Jean-Luc Picard", "Jean Luc Picard"),
    ],
)
def test_normal_forms_meet(one: str, other: str) -> None:
    assert name_key(one) == name_key(other)


def test_normal_forms_keep_what_matters() -> None:
    assert name_key("Boeing 747") != name_key("Boeing 777")
    assert name_key("Limited") == "limited"
    assert name_key("!!!") == "!!!"


@pytest.mark.parametrize(
    ("one", "other", "slip"),
    [
        ("micorsoft research", "microsoft research", True),
        ("wittgenstein", "witgenstein", True),
        ("anna stone", "anne stone", False),
        ("north korea", "south korea", False),
        ("marina stone", "martina stone", False),
        ("model 1234567", "model 1234568", False),
        ("engineering", "engineerings", False),
        ("acme robotics", "acme", False),
        ("same", "same", False),
        # Digits of other scripts are digits.
        ("modelyear፩", "modelyear፪", False),
    ],
)
def test_only_a_slip_is_a_slip(one: str, other: str, slip: bool) -> None:
    assert is_slip(one, other) is slip
    assert is_slip(other, one) is slip


def test_acronyms() -> None:
    assert initials("international business machines") == "ibm"
    assert initials("university of the arts") == "ua"
    assert is_acronym("I.B.M.")
    assert not is_acronym("Ibm")


def test_a_short_line_ends_a_name_and_a_full_one_does_not() -> None:
    assert "Laura Bennett" in names("Name: Laura Bennett\nDate of birth: 12 June 1988")
    wrapped = "The accounts of the society were kept for years by Laura\nBennett, who lived in Cardiff."
    assert "Laura\nBennett" in names(wrapped)
    labelled = "Those who were present at the meeting were Omar Haddad and Li Wei\nApologies: Anna Schmidt"
    assert {"Li Wei", "Anna Schmidt"} <= set(names(labelled))
