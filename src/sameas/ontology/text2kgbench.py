"""Text2KGBench's own JSON form of an ontology: concepts, and relations with a domain and a range.

Gives the same IRIs as the benchmark's Turtle files. A domain or range may be a concept's id or its label;
an empty one is open.
"""

from collections.abc import Iterable

import msgspec

from sameas.ontology.errors import OntologySyntaxError
from sameas.ontology.gates import decode_json
from sameas.ontology.limits import DEFAULT_LIMITS, Limits
from sameas.ontology.model import Constraint, Ontology, OntologyClass, OntologyProperty, Text

BASE = "https://cenguix.github.io/Text2KGBench/"


class _Concept(msgspec.Struct, frozen=True):
    qid: str
    label: str


class _Relation(msgspec.Struct, frozen=True):
    pid: str
    label: str
    domain: str = ""
    range: str = ""


class _File(msgspec.Struct, frozen=True):
    id: str
    title: str = ""
    concepts: tuple[_Concept, ...] = ()
    relations: tuple[_Relation, ...] = ()


def read_text2kgbench(data: bytes, *, file: str | None = None, limits: Limits = DEFAULT_LIMITS) -> Ontology:
    """The ontology of one such file."""
    value = decode_json(data, limits=limits, file=file)
    try:
        content = msgspec.convert(value, type=_File)
    except msgspec.ValidationError as error:
        raise OntologySyntaxError(
            str(error),
            file=file,
            todo="Give id, concepts (qid, label) and relations (pid, label, domain, range)",
        ) from error
    return _assemble(content)


def _assemble(content: _File) -> Ontology:
    concepts = f"{BASE}{content.id}/concepts#"
    relations = f"{BASE}{content.id}/relations#"
    by_name = {concept.label: concept.qid for concept in reversed(content.concepts)}
    # The benchmark lists some concepts and relations twice, under another name or with another end.
    names: dict[str, list[str]] = {}
    for concept in content.concepts:
        names.setdefault(concept.qid, []).append(concept.label)
    ends = {end for relation in content.relations for end in (relation.domain, relation.range) if end}

    def resolve(name: str) -> str:
        return name if name in names else by_name.get(name, name)

    def constraint(name: str) -> Constraint:
        return ((concepts + resolve(name),),) if name else ()

    def labels(*texts: str) -> tuple[Text, ...]:
        return tuple(sorted({Text(text) for text in texts if text.strip()}))

    mentioned = {resolve(end) for end in ends}
    merged: dict[str, list[_Relation]] = {}
    for relation in content.relations:
        merged.setdefault(relation.pid, []).append(relation)
    properties = [
        OntologyProperty(
            iri=relations + pid,
            kind="object",
            labels=labels(*(one.label for one in same)),
            domain=_any_of(constraint(one.domain) for one in same),
            range=_any_of(constraint(one.range) for one in same),
        )
        for pid, same in merged.items()
    ]
    classes = [
        OntologyClass(iri=concepts + qid, labels=labels(*names.get(qid, ())), declared=qid in names)
        for qid in {*names, *mentioned}
    ]
    return Ontology(
        iri=BASE + content.id,
        titles=labels(content.title),
        classes=tuple(sorted(classes, key=lambda one: one.iri)),
        properties=tuple(sorted(properties, key=lambda one: one.iri)),
    )


def _any_of(ends: Iterable[Constraint]) -> Constraint:
    """A relation that is listed twice may have either end; an open end is open."""
    names: set[str] = set()
    for end in ends:
        if not end:
            return ()
        names.update(end[0])
    return (tuple(sorted(names)),)
