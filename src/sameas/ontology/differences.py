"""What changed between two versions of an ontology, term by term. Pure.

Rule: a term is the same by its IRI and its kind. What both versions say alike is not mentioned.
"""

from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from sameas.ontology.lexicon import local_name, name_of
from sameas.ontology.model import Ontology, Restriction, Term, Text

TermKind = Literal["class", "property", "individual", "datatype"]


class FieldChange(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is said of a term, as it was and as it is."""

    field: str
    before: str
    after: str


class TermChange(msgspec.Struct, frozen=True, kw_only=True):
    """A term that was added, removed, or of which something else is said now."""

    change: Literal["added", "removed", "changed"]
    kind: TermKind
    iri: str
    name: str
    fields: tuple[FieldChange, ...] = ()


def compare_ontologies(before: Ontology, after: Ontology) -> Iterator[TermChange]:
    """Every change, kind by kind and in the order of the IRIs."""
    for kind, old, new in (
        ("class", before.classes, after.classes),
        ("property", before.properties, after.properties),
        ("individual", before.individuals, after.individuals),
        ("datatype", before.datatypes, after.datatypes),
    ):
        yield from _compare(kind, {one.iri: one for one in old}, {one.iri: one for one in new})  # type: ignore[arg-type]


def _compare(kind: TermKind, old: dict[str, Term], new: dict[str, Term]) -> Iterator[TermChange]:
    for iri in sorted(old.keys() | new.keys()):
        before, after = old.get(iri), new.get(iri)
        if before == after:
            continue
        named = after if after is not None else before
        assert named is not None
        name = name_of(named)
        if before is None:
            yield TermChange(change="added", kind=kind, iri=iri, name=name)
        elif after is None:
            yield TermChange(change="removed", kind=kind, iri=iri, name=name)
        else:
            yield TermChange(change="changed", kind=kind, iri=iri, name=name, fields=tuple(_fields(before, after)))


def _fields(before: Term, after: Term) -> Iterator[FieldChange]:
    for field in before.__struct_fields__:
        old, new = getattr(before, field), getattr(after, field)
        if old != new:
            yield FieldChange(field=field.replace("_", " "), before=_said(old), after=_said(new))


def _said(value: Any) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case Text():
            return f"{value.value} ({value.lang})" if value.lang else value.value
        case Restriction():
            return f"{local_name(value.property)} {value.kind} {_said(value.filler) or value.value}".strip()
        case tuple():
            return ", ".join(_said(one) for one in value)
        case str() if "://" in value:
            return local_name(value)
        case _:
            return str(value)
