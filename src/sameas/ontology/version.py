"""The version of an ontology: a digest of what extraction uses of it, and of nothing else; and what changed between two
versions, term by term. Pure.

Equal for every notation, order of statements and blank-node name, because it is taken from the model, which has none of
these. Not part of it: the ontology's own name, title, imports and place; annotations that are not read. Of changes, a
term is the same by its IRI and its kind; what both versions say alike is not mentioned.
"""

import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Literal

import msgspec
import rfc8785

from sameas.ontology.lexicon import local_name, name_of
from sameas.ontology.limits import DEFAULT_LIMITS, Limits
from sameas.ontology.model import Ontology, Restriction, Term, Text

MODEL_VERSION = 1
"""Goes up when the model means something else for the same file."""

USED_GROUPS = ("classes", "properties", "individuals", "datatypes")
# What only collections use: results do not depend on it.
_NOT_USED = frozenset({"keys"})

TermKind = Literal["class", "property", "individual", "datatype"]


def compute_ontology_version(
    source: Ontology | Path | str | bytes, *, imports_dir: Path | None = None, limits: Limits = DEFAULT_LIMITS
) -> str:
    """`sha256:` and 64 hex digits; a string is a path, bytes are a file's content. Raises OntologyError."""
    if isinstance(source, Ontology):
        return version_of(source)
    from sameas.ontology.load import load_ontology, read_ontology  # load uses version_of

    if isinstance(source, bytes):
        return read_ontology(source, imports_dir=imports_dir, limits=limits).version
    return load_ontology(source, imports_dir=imports_dir, limits=limits).version


def version_of(ontology: Ontology) -> str:
    """The version of a model that is already there."""
    content = {group: [_content(term) for term in getattr(ontology, group)] for group in USED_GROUPS}
    canonical = rfc8785.dumps({"model": MODEL_VERSION, **content})
    return "sha256:" + hashlib.sha256(canonical).hexdigest()


def _content(term: msgspec.Struct) -> dict[str, Any]:
    """Fields by name, without those at their default: a new field leaves older files' versions alone."""
    return {name: _plain(value) for name, default in _defaults(type(term)) if (value := getattr(term, name)) != default}


def _plain(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        return _content(value)
    return [_plain(one) for one in value] if isinstance(value, tuple) else value


@cache
def _defaults(kind: type[msgspec.Struct]) -> tuple[tuple[str, Any], ...]:
    return tuple((one.name, one.default) for one in msgspec.structs.fields(kind) if one.name not in _NOT_USED)


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
