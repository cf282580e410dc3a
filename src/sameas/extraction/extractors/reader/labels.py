"""What the reader is told of an ontology: one short text for each property and each class; and of which of them it is
asked, for a focus.

Training and reading use the same texts; which of its names a text shows is a style, and training mixes the styles.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from sameas.ontology.index import OntologyIndex
from sameas.ontology.model import Constraint, OntologyClass, OntologyProperty, Text
from sameas.ontology.vocabulary import XSD

Style = Literal["wide", "english", "short", "foreign"]
STYLES: tuple[Style, ...] = ("wide", "english", "short", "foreign")
_ENGLISH = ("en", "")
_HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_COMMENT = 120
_READABLE = re.compile(r"[a-z]{3,}(?: [a-z]+)*")

# More than a focus has, unless somebody widened it.
_PROPERTIES, _CLASSES = 120, 120
_BOOLEAN = XSD + "boolean"


def local_name(iri: str) -> str:
    """The last part of an IRI."""
    return re.split(r"[#/]", iri)[-1]


def _words(name: str) -> str:
    return _HUMPS.sub(" ", name.replace("_", " ")).strip()


def _is_english(text: Text) -> bool:
    return text.lang.split("-")[0] in _ENGLISH


def _label(term: OntologyClass | OntologyProperty | None, iri: str, language: str) -> str:
    labels = term.labels if term else ()
    for text in labels:
        if text.lang.split("-")[0] == language:
            return _words(text.value)
    english = next((text.value for text in labels if _is_english(text)), None)
    if english is not None:
        return _words(english)
    # A name that can be read is English more often than not, whatever language the labels are in.
    named = _words(local_name(iri)).lower()
    other = next((text.value for text in labels), None)
    return named if other is None or _READABLE.fullmatch(named) else _words(other)


def _names(term: OntologyClass | OntologyProperty, style: Style, language: str) -> str:
    main = _label(term, term.iri, language)
    if style == "short":
        return main
    if style == "foreign":
        alternatives = [text.value for text in term.alt_labels if text.lang.split("-")[0] == language][:2]
    else:
        alternatives = [text.value for text in term.alt_labels if _is_english(text)][:3]
    if style == "wide":
        alternatives += [text.value for text in term.labels if not _is_english(text)][:3]
    return "; ".join(dict.fromkeys((main, *(_words(text) for text in alternatives))))


def _comment(comments: Iterable[Text], style: Style) -> str:
    if style in ("short", "foreign"):
        return ""
    found = next((text.value for text in comments if _is_english(text)), "")
    return f" : {found[:_COMMENT]}" if found else ""


def _end(index: OntologyIndex, constraint: Constraint, language: str) -> str:
    names = constraint[0] if constraint else ()
    if not names:
        return "thing"
    shown = [
        local_name(name) if index.is_datatype(name) else _label(index.classes.get(name), name, language)
        for name in names[:3]
    ]
    return " or ".join(shown)


def language_of(term: OntologyClass | OntologyProperty, wanted: str = "") -> str:
    """A language other than English in which the term has a label, the wanted one if it can be; else `en`."""
    others = sorted({text.lang.split("-")[0] for text in term.labels if not _is_english(text)})
    return wanted if wanted in others else (others[0] if others else "en")


def describe_property(index: OntologyIndex, iri: str, *, style: Style = "wide", language: str = "en") -> str:
    """`company | founded by; established by | person : comment`."""
    term = index.properties[iri]
    ends = (_end(index, constraint, language) for constraint in (index.domain(iri), index.range(iri)))
    domain, target = ends
    return f"{domain} | {_names(term, style, language)} | {target}{_comment(term.comments, style)}"


def describe_class(index: OntologyIndex, iri: str, *, style: Style = "wide", language: str = "en") -> str:
    """`type: company; firm : comment`."""
    term = index.classes[iri]
    return f"type: {_names(term, style, language)}{_comment(term.comments, style)}"


class Asked(NamedTuple):
    """Properties and classes by IRI, each with its text, and of each property whether its values are yes and no."""

    properties: tuple[str, ...]
    property_texts: tuple[str, ...]
    booleans: tuple[bool, ...]
    classes: tuple[str, ...]
    class_texts: tuple[str, ...]


def ask_for(index: OntologyIndex, properties: Sequence[str], classes: Sequence[str]) -> Asked:
    """The first of them, as many as can be read at once; what is deprecated is not asked for."""
    named = [iri for iri in properties[:_PROPERTIES] if not index.properties[iri].deprecated]
    kinds = tuple(classes[:_CLASSES])
    return Asked(
        tuple(named),
        tuple(describe_property(index, iri) for iri in named),
        tuple(any(_BOOLEAN in group for group in index.expected_range(iri)) for iri in named),
        kinds,
        tuple(describe_class(index, iri) for iri in kinds),
    )
