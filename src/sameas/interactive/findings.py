"""What was found, for people: entities and relations of one document or of several, each place with its document.

Rule: the same thing in several documents is one entity here, the same fact one relation with the evidence of all; the
order is that of ids, whatever the order of the documents.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from sameas.extraction.graph.model import Evidence, Rejection
from sameas.extraction.outputs.context import local_name

if TYPE_CHECKING:
    from sameas.interactive.result import DocumentResult


class Place(msgspec.Struct, frozen=True, omit_defaults=True):
    """Characters of a document. `document` is its name, page and paragraph are there where it has them."""

    document: str
    start: int
    end: int
    text: str
    page: int | None = None
    paragraph: int | None = None


class FoundEntity(msgspec.Struct, frozen=True, kw_only=True):
    """One thing and every place that names it."""

    id: str
    iri: str
    name: str
    types: tuple[str, ...]
    aliases: tuple[str, ...]
    mentions: tuple[Place, ...]
    confidence: float

    def __repr__(self) -> str:
        return f"<{self.name!r}, {', '.join(map(local_name, self.types)) or 'thing'}>"


class FoundRelation(msgspec.Struct, frozen=True, kw_only=True):
    """One fact and everything that supports it. `object` is the name of an entity or the value."""

    subject: str
    subject_id: str
    predicate: str
    object: str
    object_id: str = ""
    datatype: str = ""
    unit: str = ""
    evidence: tuple[Place, ...]
    status: str
    confidence: float

    @property
    def relation(self) -> str:
        """The predicate, short."""
        return local_name(self.predicate)

    def __repr__(self) -> str:
        return f"<{self.subject} - {self.relation} - {self.object}{f' {self.unit}' if self.unit else ''}>"


class Refusal(msgspec.Struct, frozen=True):
    """Something that was offered and refused, with the document it was in."""

    document: str
    rejection: Rejection

    def __repr__(self) -> str:
        one = self.rejection
        said = " - ".join(filter(None, (one.subject, local_name(one.predicate) if one.predicate else "", one.object)))
        return f"<{one.code}: {said}>"


def entities_of(documents: Sequence[DocumentResult]) -> list[FoundEntity]:
    """The things of the documents, each once."""
    found: dict[str, FoundEntity] = {}
    for document in documents:
        for entity in document.graph.entities:
            one = FoundEntity(
                id=entity.id,
                iri=document.base + entity.id,
                name=entity.name,
                types=entity.types,
                aliases=entity.aliases,
                mentions=_places(entity.mentions, document),
                confidence=entity.confidence,
            )
            known = found.get(entity.id)
            found[entity.id] = one if known is None else _joined(known, one)
    return [found[key] for key in sorted(found)]


def relations_of(documents: Sequence[DocumentResult]) -> list[FoundRelation]:
    """The facts of the documents, each once with all of its evidence."""
    names = {entity.id: entity.name for entity in entities_of(documents)}
    found: dict[tuple[str, ...], FoundRelation] = {}
    for document in documents:
        for relation in document.graph.relations:
            value = relation.value
            one = FoundRelation(
                subject=names.get(relation.subject, relation.subject),
                subject_id=relation.subject,
                predicate=relation.predicate,
                object=names.get(relation.object, relation.object) if value is None else value.value,
                object_id=relation.object,
                datatype="" if value is None else value.datatype,
                unit="" if value is None else value.unit,
                evidence=_places(relation.evidence, document),
                status=relation.status,
                confidence=relation.confidence,
            )
            known = found.get(relation.triple)
            if known is not None:
                one = msgspec.structs.replace(
                    known,
                    evidence=known.evidence + one.evidence,
                    confidence=max(known.confidence, one.confidence),
                    status=min(known.status, one.status),
                )
            found[relation.triple] = one
    return [found[key] for key in sorted(found)]


def refusals_of(documents: Sequence[DocumentResult]) -> list[Refusal]:
    """What was refused, document by document."""
    return [Refusal(document.name, one) for document in documents for one in document.graph.rejected]


def _joined(one: FoundEntity, other: FoundEntity) -> FoundEntity:
    name = min(one.name, other.name)
    aliases = {one.name, other.name, *one.aliases, *other.aliases} - {name}
    return msgspec.structs.replace(
        one,
        name=name,
        types=tuple(dict.fromkeys((*one.types, *other.types))),
        aliases=tuple(sorted(aliases)),
        mentions=one.mentions + other.mentions,
        confidence=max(one.confidence, other.confidence),
    )


def _places(evidence: Iterable[Evidence], document: DocumentResult) -> tuple[Place, ...]:
    return tuple(
        Place(document.name, one.start, one.end, one.text, *document.places.of(one.start, one.end)) for one in evidence
    )
