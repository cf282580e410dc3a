"""The part of an ontology that a chunk can be about, as numbered lines for a prompt.

Rule: numbers stand for IRIs in the prompt and in the reply, so that no IRI is ever read from a model. The lines
depend on the focus and on the terms in it, not on the rest of the ontology: a class that no chunk is about changes no
prompt.
"""

from collections.abc import Sequence
from functools import lru_cache

import msgspec

from sameas.ontology.focus import Focus
from sameas.ontology.index import OntologyIndex
from sameas.ontology.lexicon import local_name, name_of
from sameas.ontology.model import Constraint, Term
from sameas.ontology.vocabulary import TOP

# A focus is kept as long as its neighbours are about the same; small ontologies have one.
_REMEMBERED = 256
_LONGEST_COMMENT = 100


class Menu(msgspec.Struct, frozen=True):
    """What a prompt offers: classes and properties, numbered from 1 in this order."""

    classes: tuple[str, ...]
    properties: tuple[str, ...]
    class_lines: str
    property_lines: str
    takes_values: bool

    def class_at(self, number: int) -> str:
        """The class of a number; a number that was not offered becomes a name that no ontology has."""
        return _at(self.classes, number)

    def property_at(self, number: int) -> str:
        return _at(self.properties, number)


def _at(iris: Sequence[str], number: int) -> str:
    return iris[number - 1] if 1 <= number <= len(iris) else f"number {number}"


class Signatures:
    """Writes the menus of one ontology."""

    def __init__(self, index: OntologyIndex) -> None:
        self._index = index
        self.menu = lru_cache(maxsize=_REMEMBERED)(self._menu)

    def _menu(self, focus: Focus) -> Menu:
        index = self._index
        classes = tuple(iri for iri in focus.classes if iri in index.classes and not index.classes[iri].deprecated)
        properties = tuple(
            iri for iri in focus.properties if iri in index.properties and not index.properties[iri].deprecated
        )
        return Menu(
            classes=classes,
            properties=properties,
            class_lines="\n".join(self._class_line(number, iri, classes) for number, iri in enumerate(classes, 1)),
            property_lines="\n".join(self._property_line(number, iri) for number, iri in enumerate(properties, 1)),
            takes_values=any(self._takes_values(iri) for iri in properties),
        )

    def label(self, iri: str) -> str:
        """The name of a term on one line."""
        term = self._index.term(iri)
        return _one_line(name_of(term)) if term is not None else local_name(iri)

    def signature(self, iri: str) -> str:
        """`works for(person -> organization)`."""
        index = self._index
        return f"{self.label(iri)}({self._end(index.domain(iri))} -> {self._end(index.range(iri))})"

    def _class_line(self, number: int, iri: str, offered: Sequence[str]) -> str:
        # Only what is offered too: a parent outside of the focus is not there to be chosen.
        parents = [one for one in self._index.class_tree.parents(iri) if one in offered and one != iri]
        line = f"{number} {self.label(iri)}"
        if parents:
            line += " < " + ", ".join(self.label(one) for one in sorted(parents))
        return line + _comment(self._index.classes[iri])

    def _property_line(self, number: int, iri: str) -> str:
        return f"{number} {self.signature(iri)}{_comment(self._index.properties[iri])}"

    def _end(self, constraint: Constraint) -> str:
        if not constraint or any(name in TOP for group in constraint for name in group):
            return "any"
        return " & ".join("|".join(self.label(name) for name in group) for group in constraint)

    def _takes_values(self, iri: str) -> bool:
        one, reach = self._index.properties[iri], self._index.range(iri)
        if one.kind == "datatype" or not reach:
            return True
        return any(self._index.is_datatype(name) for group in reach for name in group)


def _comment(term: Term) -> str:
    """What the ontology says of a term, where that is short and in English or in no language."""
    comments = [text.value for text in term.comments if text.lang.split("-")[0] in ("", "en")]
    short = [text for text in map(_one_line, comments) if len(text) <= _LONGEST_COMMENT]
    return f": {min(short)}" if short else ""


def _one_line(text: str) -> str:
    return " ".join(text.split())
