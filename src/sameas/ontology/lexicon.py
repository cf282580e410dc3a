"""The words of an ontology: every label of every term, and a readable name where the file gives none."""

import re
from typing import Literal

import msgspec

from sameas.ontology.model import Datatype, Individual, Ontology, OntologyClass, OntologyProperty, Term

EntryKind = Literal["class", "property", "individual", "pattern"]

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SEPARATORS = re.compile(r"[_\-.+\s]+")


class Entry(msgspec.Struct, frozen=True, array_like=True, order=True):
    """A text that stands for a term."""

    text: str
    lang: str
    kind: EntryKind
    iri: str
    preferred: bool
    """A label, or the words of one, not an alternative one and not made from the IRI."""


def local_name(iri: str) -> str:
    """The last part of an IRI."""
    cut = max(iri.rfind(mark) for mark in "#/:")
    return iri[cut + 1 :] or iri


def name_from_iri(iri: str) -> str:
    """Words from the last part of an IRI: `worksFor` gives "works for", `New_York` gives "New York"."""
    return _words(local_name(iri)) or iri


def words_of_label(label: str) -> str:
    """The words of a label that is written as one, such as schema.org's `worksFor`; empty for every other label."""
    words = _words(label) if label.isidentifier() and label.isascii() else ""
    return words if " " in words else ""


def _words(name: str) -> str:
    words = [word for part in _SEPARATORS.split(name) for word in _CAMEL.split(part) if word]
    if len(words) > 1 and not any(mark in name for mark in "_-"):
        words = [word if word.isupper() and len(word) > 1 else word.lower() for word in words]
    return " ".join(words)


def name_of(term: Term, *, lang: str = "en") -> str:
    """The one name to show: a label in the language, else without one, else any, else from the IRI."""
    if not term.labels:
        return name_from_iri(term.iri)
    return min(term.labels, key=lambda text: (text.lang.split("-")[0] != lang, text.lang != "", text)).value


def build_lexicon(ontology: Ontology) -> tuple[Entry, ...]:
    """All entries, sorted; deprecated terms are left out."""
    found: set[Entry] = set()
    for one in ontology.classes:
        if not one.deprecated:
            found.update(_entries(one, "class"))
    for each in ontology.properties:
        if not each.deprecated:
            found.update(_entries(each, "property"))
            found.update(Entry(text.value, text.lang, "pattern", each.iri, True) for text in each.patterns)
    for thing in ontology.individuals:
        found.update(_entries(thing, "individual"))
    return tuple(sorted(found))


def _entries(term: OntologyClass | OntologyProperty | Individual | Datatype, kind: EntryKind) -> set[Entry]:
    found = {Entry(text.value, text.lang, kind, term.iri, True) for text in term.labels}
    found |= {Entry(text.value, text.lang, kind, term.iri, False) for text in term.alt_labels}
    if kind != "individual":
        # An individual's label is a name, which is written as it is: `YouTube`.
        split = {msgspec.structs.replace(entry, text=words_of_label(entry.text)) for entry in found}
        found |= {entry for entry in split if entry.text}
    return found or {Entry(name_from_iri(term.iri), "", kind, term.iri, False)}
