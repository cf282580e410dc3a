"""What an extraction finds: mentions, claims, entities, relations, and what was refused.

Rule: every object is frozen and every collection has one order, so that equal work gives equal bytes.
Offsets count characters of the normalised text; inside a chunk's own work they count from the chunk's start.
Nothing here reads a text, an ontology or a clock.
"""

import hashlib
import re
import unicodedata
from collections.abc import Collection, Iterable
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

import msgspec

from sameas.extraction.text.document import Span

MentionKind: TypeAlias = Literal["name", "individual", "noun", "literal"]
RelationStatus: TypeAlias = Literal["grounded", "unverified"]
ConfidenceSource: TypeAlias = Literal["rule", "model", "agreement", "reviewer"]
"""What a confidence is: a rule's judgement, what a model says of itself, the share of samples that agree, or the word
of a person.
"""

RejectionCode: TypeAlias = Literal[
    "empty_name",
    "not_in_text",
    "unknown_type",
    "no_type",
    "unknown_relation",
    "domain_mismatch",
    "range_mismatch",
    "self_relation",
    "duplicate",
    "no_evidence",
    "evidence_too_far",
    "unresolved_end",
    "not_supported",
    "not_checked",
    "negated",
    "hedged",
    "no_longer",
    "ambiguous_type",
    "addressed_to_model",
    "not_asserted",
    "rejected_in_review",
]


class Evidence(msgspec.Struct, frozen=True, order=True, rename="camel"):
    """The characters of the text that support something, with their place."""

    start: int
    end: int
    text: str


class Mention(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One place where the text names a thing or states a value.

    `types` are class IRIs, most specific first; a literal has none and carries `value` and `datatype`
    instead. `looks_like` is what the shape of a name alone suggests (person, organisation, place). `form` is what
    examples call it where the text does not: the name of the thing, or the value as they write it.
    """

    start: int
    end: int
    text: str
    kind: MentionKind = "name"
    types: tuple[str, ...] = ()
    value: str = ""
    datatype: str = ""
    unit: str = ""
    individual: str = ""
    looks_like: str = ""
    confidence: float = 1.0
    confidence_from: ConfidenceSource = "rule"
    form: str = ""

    @property
    def span(self) -> Span:
        return Span(self.start, self.end)

    @property
    def order(self) -> tuple[int, int, str, tuple[str, ...], str, str, str]:
        return (self.start, self.end, self.kind, self.types, self.value, self.individual, self.form)

    def shifted(self, by: int) -> "Mention":
        return msgspec.structs.replace(self, start=self.start + by, end=self.end + by)


class Claim(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A relation as an extractor saw it in one chunk, between two of the chunk's own mentions."""

    subject: Mention
    predicate: str
    object: Mention
    evidence: Span
    confidence: float = 1.0
    confidence_from: ConfidenceSource = "rule"
    reach: int = 0
    """So many sentences were read together: the ends may be as far apart."""

    @property
    def order(self) -> tuple[Any, ...]:
        return (self.evidence, self.predicate, self.subject.order, self.object.order)

    def turned(self) -> "Claim":
        return msgspec.structs.replace(self, subject=self.object, object=self.subject)

    def shifted(self, by: int) -> "Claim":
        return msgspec.structs.replace(
            self,
            subject=self.subject.shifted(by),
            object=self.object.shifted(by),
            evidence=self.evidence.shifted(by),
        )


class Entity(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One thing: a stable id, its name, its other names, its classes and every place that names it."""

    id: str
    name: str
    types: tuple[str, ...]
    aliases: tuple[str, ...] = ()
    mentions: tuple[Evidence, ...] = ()
    individual: str = ""
    confidence: float = 1.0
    confidence_from: ConfidenceSource = "rule"


class Value(msgspec.Struct, frozen=True, order=True, rename="camel", omit_defaults=True):
    """A literal object of a relation: its lexical form, its datatype IRI and, for a quantity, its unit.

    `written` is the value as the examples of a learned extractor write it, where that is another way.
    """

    value: str
    datatype: str
    unit: str = ""
    written: str = ""


class Relation(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Subject, property and object (an entity's id or a value), each tied to the characters that support
    it.
    """

    subject: str
    predicate: str
    object: str = ""
    value: Value | None = None
    evidence: tuple[Evidence, ...] = ()
    subject_spans: tuple[Span, ...] = ()
    object_spans: tuple[Span, ...] = ()
    status: RelationStatus = "grounded"
    confidence: float = 1.0
    confidence_from: ConfidenceSource = "rule"

    @property
    def triple(self) -> tuple[str, str, str, str, str, str]:
        value = self.value
        if value is None:
            return (self.subject, self.predicate, self.object, "", "", "")
        return (self.subject, self.predicate, "", value.value, value.datatype, value.unit)


class Rejection(msgspec.Struct, frozen=True, order=True, rename="camel", omit_defaults=True):
    """Something an extractor offered and the pipeline refused; `count` says how often the same was
    refused.
    """

    start: int
    end: int
    code: RejectionCode
    stage: str
    subject: str = ""
    predicate: str = ""
    object: str = ""
    detail: str = ""
    count: int = 1

    def shifted(self, by: int) -> "Rejection":
        return msgspec.structs.replace(self, start=self.start + by, end=self.end + by)


class Graph(Protocol):
    """What a writer needs of a graph. What is gone through may be made on the way, and anew each time."""

    @property
    def entities(self) -> Collection[Entity]: ...

    @property
    def relations(self) -> Collection[Relation]: ...

    @property
    def rejected(self) -> Collection[Rejection]: ...

    @property
    def notes(self) -> tuple[str, ...]: ...


class KnowledgeGraph(msgspec.Struct, frozen=True, rename="camel"):
    """The result of a run. Build it with `KnowledgeGraph.of`, which puts everything in its one order."""

    entities: tuple[Entity, ...] = ()
    relations: tuple[Relation, ...] = ()
    rejected: tuple[Rejection, ...] = ()
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        *,
        entities: Iterable[Entity] = (),
        relations: Iterable[Relation] = (),
        rejected: Iterable[Rejection] = (),
        notes: Iterable[str] = (),
    ) -> "KnowledgeGraph":
        return cls(
            entities=tuple(sorted(entities, key=lambda entity: entity.id)),
            relations=tuple(sorted(relations, key=lambda relation: relation.triple)),
            rejected=merge_rejections(rejected),
            notes=tuple(sorted(set(notes))),
        )

    def __repr__(self) -> str:
        # Short, because asyncio writes out the result of a finished task where nobody sees it.
        return f"<KnowledgeGraph of {len(self.entities)} entities and {len(self.relations)} relations>"

    def to_json(self) -> bytes:
        return msgspec.json.encode(self)

    @classmethod
    def from_json(cls, data: bytes | str) -> "KnowledgeGraph":
        return msgspec.json.decode(data, type=cls)


class FoundGraph(NamedTuple):
    """A graph that a run has just found; its parts lie where the run has put them."""

    entities: Collection[Entity]
    relations: Collection[Relation]
    rejected: Collection[Rejection]
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        return f"<FoundGraph of {len(self.entities)} entities and {len(self.relations)} relations>"


def in_memory(graph: Graph) -> KnowledgeGraph:
    """The graph with everything that belongs to it."""
    if isinstance(graph, KnowledgeGraph):
        return graph
    return KnowledgeGraph(tuple(graph.entities), tuple(graph.relations), tuple(graph.rejected), graph.notes)


def merge_rejections(rejections: Iterable[Rejection]) -> tuple[Rejection, ...]:
    """One line for each thing refused for one reason, at its first place, with the number of times."""
    first: dict[tuple[str, ...], Rejection] = {}
    for rejection in sorted(rejections):
        what = (
            rejection.code,
            rejection.stage,
            rejection.subject,
            rejection.predicate,
            rejection.object,
            rejection.detail,
        )
        seen = first.get(what)
        first[what] = rejection if seen is None else msgspec.structs.replace(seen, count=seen.count + rejection.count)
    return tuple(sorted(first.values()))


_NOT_SLUG = re.compile(r"[^a-z0-9]+")


def entity_id(name_key: str, type_iri: str) -> str:
    """A stable id of a thing from its name's normal form and its class: a readable part and 16 hex of a
    digest.

    It depends on nothing else, so an edit elsewhere in the document leaves it as it is.
    """
    plain = unicodedata.normalize("NFKD", name_key).encode("ascii", "ignore").decode().lower()
    readable = _NOT_SLUG.sub("-", plain).strip("-")[:48].strip("-")
    joined = f"{len(name_key)}:{name_key}{type_iri}".encode("utf-8", "surrogatepass")
    digest = hashlib.sha256(joined).hexdigest()[:16]
    return f"{readable}-{digest}" if readable else digest
