"""What a collection tells: itself, its documents, things, statements, doubtful pairs, decisions and contradictions.

Rule: every object is frozen and goes over the wire as it is, in camelCase. Entities are named by their ids; the IRI is
the collection's base and the id. Offsets count characters of a document's normalised text.
"""

from typing import Literal, TypeAlias

import msgspec

Role: TypeAlias = Literal["reader", "contributor", "curator", "owner"]
"""Each may do what those before may: read, add and remove documents, decide, give roles and delete."""

DocumentStatus: TypeAlias = Literal["waiting", "complete", "partial", "failed"]
Verdict: TypeAlias = Literal["same", "different"]
ContradictionKind: TypeAlias = Literal["functional", "disjoint"]


class Told(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Goes over the wire."""


class CollectionInfo(Told, frozen=True, kw_only=True):
    """A collection, and how much is in it."""

    id: str
    name: str
    base: str
    ontology_id: str
    ontology_version: str
    created_at: str
    revision: int
    """Goes up with every change of its content."""
    documents: int
    entities: int
    claims: int
    """What documents say; the same from nine documents counts nine times."""
    role: Role | None = None
    """What the caller may do."""


class SourceName(Told, frozen=True, kw_only=True):
    """One name of a document: a file, an address, or what a caller calls it."""

    name: str
    status: DocumentStatus
    path: str = ""
    error: str = ""
    media_type: str = ""
    title: str = ""
    size: int = 0
    source_time: str = ""
    """When the source was last changed, where that is known."""
    read_at: str = ""


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A name of a document and what is known of the source."""

    name: str
    path: str = ""
    media_type: str = ""
    title: str = ""
    size: int = 0
    source_time: str = ""
    folder: str = ""
    """The folder that is kept in step, if the source was found in one."""


class DocumentInfo(Told, frozen=True, kw_only=True):
    """A text with all of its names. One that could not be read yet has no digest."""

    digest: str
    """`sha256-` and 64 hex of the normalised text; empty for a source that waits or failed."""
    iri: str
    status: DocumentStatus
    names: tuple[SourceName, ...]
    run: str = ""
    """The key of the run that read it."""
    added_at: str = ""
    entities: int = 0
    claims: int = 0


class CollectionEvidence(Told, frozen=True, kw_only=True):
    """The characters of a document that support something."""

    document: str
    """The document's digest."""
    start: int
    end: int
    text: str
    page: int | None = None
    paragraph: int | None = None
    document_name: str = ""


class EntityInfo(Told, frozen=True, kw_only=True):
    """A thing, over all documents."""

    id: str
    iri: str
    name: str
    types: tuple[str, ...]
    aliases: tuple[str, ...] = ()
    documents: int = 0
    same_as: tuple[str, ...] = ()
    """Known things that it is: IRIs of individuals of the ontology and of linked lists."""


class LiteralValue(Told, frozen=True, kw_only=True):
    value: str
    datatype: str
    unit: str = ""


class Statement(Told, frozen=True, kw_only=True):
    """One fact with all its evidence."""

    subject: str
    predicate: str
    object: str = ""
    """An entity's id; empty where the object is a value."""
    value: LiteralValue | None = None
    subject_name: str = ""
    object_name: str = ""
    confidence: float = 1.0
    """The highest that any of its documents gives."""
    documents: int = 1
    evidence: tuple[CollectionEvidence, ...] = ()


class EntityPage(Told, frozen=True, kw_only=True):
    """All that is known of one thing. `redirected_from` is the id that was asked for, where it was merged."""

    entity: EntityInfo
    statements: tuple[Statement, ...]
    """Those that begin with it."""
    mentioned_by: tuple[Statement, ...]
    """Those that end with it."""
    mentions: tuple[CollectionEvidence, ...]
    redirected_from: str = ""
    truncated: bool = False
    """There is more than a page takes."""


class MatchReason(Told, frozen=True, kw_only=True):
    """What speaks for (a positive weight, in log-odds) or against two things being one."""

    kind: str
    weight: float
    detail: str = ""


class Pair(Told, frozen=True, kw_only=True):
    """Two things that may be one."""

    a: EntityInfo
    b: EntityInfo
    probability: float
    reasons: tuple[MatchReason, ...]


class Decision(Told, frozen=True, kw_only=True):
    """What somebody decided of two things; in force until it is undone."""

    id: str
    verdict: Verdict
    a: str
    b: str
    """The ids of the entities, as they are now."""
    a_name: str
    b_name: str
    by: str
    reason: str
    at: str
    undone_at: str = ""
    undone_by: str = ""


class Contradiction(Told, frozen=True, kw_only=True):
    """Two or more sides that cannot all be true."""

    kind: ContradictionKind
    entity: EntityInfo
    predicate: str
    sides: tuple[Statement, ...] = ()
    """Of a functional property: a statement for each value, with its evidence."""
    classes: tuple[str, ...] = ()
    """Two classes that exclude each other, of which it is said to be."""
    evidence: tuple[tuple[CollectionEvidence, ...], ...] = ()
    """Of classes: where documents say the one and the other."""
    other: EntityInfo | None = None
    """The second thing, where just this keeps two of one name apart: they may be one, of which documents disagree."""


class SyncState(Told, frozen=True, kw_only=True):
    """How far the work on a collection is."""

    revision: int
    waiting: int
    complete: int
    partial: int
    failed: int


class Changes(Told, frozen=True, kw_only=True):
    """What was touched after a revision; what is not there any more was removed."""

    revision: int
    entities: tuple[str, ...]
    documents: tuple[str, ...]
    erased: bool = False
    """Something was erased since, whose id is not told: whoever keeps a copy makes it anew."""


class Finding(Told, frozen=True, kw_only=True):
    """Something that `check` found wrong."""

    code: str
    detail: str


class Change(Told, frozen=True, kw_only=True):
    """What one addition, removal or decision did."""

    revision: int
    added: bool = False
    """A text came in, or another text under the name."""
    removed: tuple[str, ...] = ()
    """Digests of documents that went."""
    entities: int = 0
    claims: int = 0
    names_erased: bool = False
    """It names what was erased, and went in without: the run that read it has it still, and is to be deleted."""
