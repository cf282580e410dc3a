"""What one document says, made ready for the tables: its things (nodes) and claims, each with what tells it apart.

Rule: everything here is a function of the document and the ontology alone. A node's name, family and signature say
which atom it belongs to, in whatever order documents come.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Protocol

import msgspec

from sameas.collections.names import hashed, normal_name
from sameas.collections.scoring import Trait
from sameas.collections.traits import Traits
from sameas.extraction.graph.model import Entity, Evidence, Relation


class Said(Protocol):
    """A graph, as far as a collection takes it in."""

    @property
    def entities(self) -> Collection[Entity]: ...

    @property
    def relations(self) -> Collection[Relation]: ...


class Locate(Protocol):
    """Where a stretch of the text stands in the source: page and paragraph."""

    def __call__(self, start: int, end: int, /) -> tuple[int | None, int | None]: ...


Place = tuple[int, int, str, int | None, int | None]
"""Start, end, text, page, paragraph: a piece of evidence as the tables have it."""


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """A thing in a document."""

    local_id: str
    name: str
    key: str
    family: str
    types: tuple[str, ...]
    aliases: tuple[str, ...]
    individual: str
    known: str
    mentions: tuple[Place, ...]
    signature: tuple[Trait, ...]


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """A statement of a document; `object` is a local id, or empty where there is a value."""

    subject: str
    predicate: str
    object: str
    value: str
    datatype: str
    unit: str
    confidence: float
    status: str
    evidence: tuple[Place, ...]
    subject_token: int
    object_token: int


class Draft(msgspec.Struct, frozen=True):
    nodes: tuple[Node, ...]
    claims: tuple[Claim, ...]


def draft(said: Said, *, traits: Traits, locate: Locate | None = None, known: bool = False) -> Draft:
    """The nodes and claims of a graph. With `known` its entities are known things, whose id is their IRI."""
    relations = tuple(said.relations)
    by_subject: dict[str, list[Relation]] = {}
    for relation in relations:
        by_subject.setdefault(relation.subject, []).append(relation)
    keys = {entity.id: normal_name(entity.name) for entity in said.entities}
    nodes = []
    for entity in said.entities:
        own = by_subject.get(entity.id, ())
        iri = entity.id if known else ""
        signature = {*_signature(own, keys, entity.types, traits)}
        if iri or entity.individual:
            signature.add(Trait("known", "", iri or entity.individual))
        nodes.append(
            Node(
                local_id=entity.id,
                name=entity.name,
                key=keys[entity.id],
                family=traits.family(entity.types),
                types=entity.types,
                aliases=entity.aliases,
                individual=entity.individual,
                known=iri,
                mentions=_places(entity.mentions, locate),
                signature=tuple(sorted(signature)),
            )
        )
    claims = [_claim(relation, keys, locate) for relation in relations if relation.subject in keys]
    return Draft(tuple(nodes), tuple(claims))


def _signature(
    relations: Iterable[Relation], keys: dict[str, str], types: Sequence[str], traits: Traits
) -> Iterable[Trait]:
    values: dict[str, set[str]] = {}
    for relation in relations:
        token = _token(relation, keys)
        values.setdefault(relation.predicate, set()).add(token)
        if relation.predicate in traits.functional:
            yield Trait("one", relation.predicate, token)
        if relation.predicate in traits.inverse_functional:
            yield Trait("key", relation.predicate, token)
    for class_iri, properties in traits.keys:
        if all(prop in values for prop in properties) and traits.is_under(types, class_iri):
            joined = "\x1f".join(min(values[prop]) for prop in properties)
            yield Trait("key", f"{class_iri} {' '.join(properties)}", f"v:{joined}")


def _token(relation: Relation, keys: dict[str, str]) -> str:
    if relation.value is None:
        return f"e:{keys.get(relation.object, relation.object)}"
    return f"v:{' '.join(relation.value.value.casefold().split())} {relation.value.unit}".rstrip()


def _claim(relation: Relation, keys: dict[str, str], locate: Locate | None) -> Claim:
    value = relation.value
    return Claim(
        subject=relation.subject,
        predicate=relation.predicate,
        object=relation.object if value is None else "",
        value="" if value is None else value.value,
        datatype="" if value is None else value.datatype,
        unit="" if value is None else value.unit,
        confidence=relation.confidence,
        status=relation.status,
        evidence=_places(relation.evidence, locate),
        subject_token=hashed("token", f"e:{keys[relation.subject]}"),
        object_token=hashed("token", _token(relation, keys)),
    )


def _places(evidence: Iterable[Evidence], locate: Locate | None) -> tuple[Place, ...]:
    found: list[Place] = []
    for one in evidence:
        page, paragraph = locate(one.start, one.end) if locate is not None else (None, None)
        found.append((one.start, one.end, one.text, page, paragraph))
    return tuple(found)
