"""What goes over the wire about collections: wishes that come in, pages and answers that go out."""

from __future__ import annotations

from typing import Annotated

import msgspec

from sameas.collections.model import (
    CollectionInfo,
    Contradiction,
    Decision,
    DocumentInfo,
    EntityInfo,
    Finding,
    Pair,
    Role,
    Statement,
    SyncState,
    Verdict,
)
from sameas.questions.paths import Connection
from sameas.questions.search import FoundName
from sameas.server.schemas import Answer, OntologyId, Schema

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=255)]


class CollectionMade(Schema, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A collection to be made."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9][A-Za-z0-9._ -]*$")]
    ontology_id: OntologyId
    base: Annotated[str, msgspec.Meta(max_length=1024)] | None = None


class NewDocument(Schema, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A document to be read: its text, or its content in base64 with its media type."""

    name: Name
    text: str | None = None
    content_base64: str | None = None
    media_type: Annotated[str, msgspec.Meta(max_length=200)] = ""
    path: Annotated[str, msgspec.Meta(max_length=2048)] = ""
    title: Annotated[str, msgspec.Meta(max_length=1024)] = ""
    source_time: Annotated[str, msgspec.Meta(max_length=64)] = ""


class NewDocuments(Schema, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Documents to be read, and how."""

    documents: Annotated[tuple[NewDocument, ...], msgspec.Meta(min_length=1, max_length=1000)]
    extractor: Annotated[str, msgspec.Meta(pattern="^(reader|lexicon|learned|model)$")] | None = None
    model: Annotated[str, msgspec.Meta(min_length=1, max_length=200)] | None = None


class NewDecision(Schema, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Two things are the same, or different."""

    verdict: Verdict
    a: Name
    b: Name
    reason: Annotated[str, msgspec.Meta(max_length=1000)] = ""


class ErasureWish(Schema, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    reason: Annotated[str, msgspec.Meta(max_length=1000)] = ""


class RoleGiven(Schema, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    role: Role


class CollectionPage(Answer, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    collections: tuple[CollectionInfo, ...]
    next: str | None = None


class DocumentPage(Answer, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    documents: tuple[DocumentInfo, ...]
    next: str | None = None


class EntityList(Answer, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    entities: tuple[EntityInfo, ...]
    next: str | None = None


class StatementPage(Answer, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    statements: tuple[Statement, ...]
    next: str | None = None


class PairPage(Answer, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    pairs: tuple[Pair, ...]
    next: str | None = None


class DecisionPage(Answer, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    decisions: tuple[Decision, ...]
    next: str | None = None


class ContradictionPage(Answer, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    contradictions: tuple[Contradiction, ...]
    next: str | None = None


class Accepted(Answer, frozen=True, kw_only=True, rename="camel"):
    """How many texts were written down, and how far the work is."""

    accepted: int
    sync: SyncState


class MemberEntry(Answer, frozen=True, kw_only=True, rename="camel"):
    principal: str
    role: Role


class MemberList(Answer, frozen=True, kw_only=True, rename="camel"):
    members: tuple[MemberEntry, ...]


class Findings(Answer, frozen=True, kw_only=True, rename="camel"):
    findings: tuple[Finding, ...]


class Hits(Answer, frozen=True, kw_only=True, rename="camel"):
    """Things whose names are near, best first."""

    hits: tuple[FoundName, ...]


class FoundPath(Answer, frozen=True, kw_only=True, rename="camel"):
    """The facts that lead from one thing to another; none where they are not connected."""

    path: tuple[Connection, ...]
