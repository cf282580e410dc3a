"""What goes over the wire, field for field as the source documents have it: camelCase, unknown fields refused.

Rule: a request is decoded into one of these or refused with the place of the mistake; nothing further down looks at
raw JSON. Texts and ids are checked here before they meet anything else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

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
from sameas.extraction.graph.model import Entity, Relation
from sameas.extraction.runs.metadata import RunMetadata, RunStatus
from sameas.questions.desk import Connection
from sameas.questions.index import FoundName

ONTOLOGY_ID = r"^[^\s\x00-\x1f\x7f\\<>\"{}|^`]{1,1024}$"
RUN_KEY = r"^sha256-[0-9a-f]{64}$"

_ONTOLOGY_ID = re.compile(ONTOLOGY_ID.replace("$", r"\Z"))
_RUN_KEY = re.compile(RUN_KEY.replace("$", r"\Z"))

OntologyId = Annotated[str, msgspec.Meta(pattern=ONTOLOGY_ID, max_length=1024, description="An IRI or a name.")]
RunKey = Annotated[str, msgspec.Meta(pattern=RUN_KEY)]


class Schema(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Something that comes in."""


class Answer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Something that goes out."""


class ExtractionParams(
    Schema, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True
):
    """What can change the result, and `concurrency`, `timeout`, `deadline` and `batch`, which cannot (source document
    000, part 4.1). `temp` is another word for `temperature` (part 2.1); without `includeConfidence` confidences are
    given (source document 001). `timeout` is for one attempt at a model's answer, `deadline` for the whole run, both in
    seconds; with `batch` a model's questions are handed in together, for half the price, and answered within a day.
    """

    extractor: Literal["reader", "lexicon", "learned", "model"] | None = None
    model: Annotated[str, msgspec.Meta(min_length=1, max_length=200)] | None = None
    llm_model: Annotated[str, msgspec.Meta(min_length=1, max_length=200)] | None = None
    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] | None = None
    temp: Annotated[float, msgspec.Meta(ge=0, le=2)] | None = None
    max_tokens: Annotated[int, msgspec.Meta(ge=1, le=10_000_000)] | None = None
    mode: Literal["two-stage", "joint"] | None = None
    samples: Annotated[int, msgspec.Meta(ge=1, le=20)] | None = None
    concurrency: Annotated[int, msgspec.Meta(ge=1, le=1000)] | None = None
    chunk_size: Annotated[int, msgspec.Meta(ge=100, le=100_000)] | None = None
    include_confidence: bool | None = None
    timeout: Annotated[float, msgspec.Meta(gt=0, le=3600)] | None = None
    deadline: Annotated[float, msgspec.Meta(gt=0, le=604_800)] | None = None
    batch: bool | None = None

    @property
    def named_model(self) -> str | None:
        return self.model or self.llm_model


NO_PARAMS = ExtractionParams()


class ExtractRequest(Schema, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A text to be extracted. `ontologyVersion`, where given, must be the present one."""

    text: Annotated[str, msgspec.Meta(min_length=1)]
    ontology_id: OntologyId
    ontology_version: Annotated[str, msgspec.Meta(max_length=200)] | None = None
    extraction_params: ExtractionParams = NO_PARAMS
    document: Annotated[str, msgspec.Meta(max_length=1024)] = ""


class SentRequest(ExtractRequest, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A text to be extracted, as it is sent: `params` is another word for `extractionParams` (source document 001, part
    2.1). `ontologyVersion`, where given, must be the present one.
    """

    params: ExtractionParams | None = None

    def in_one_form(self) -> ExtractRequest:
        """The request without other words for the same wish: equal for equal wishes, and what is kept of it."""
        params = self.extraction_params if self.params is None else self.params
        if params.temp is not None:
            params = msgspec.structs.replace(params, temp=None, temperature=params.temp)
        return ExtractRequest(
            text=self.text,
            ontology_id=self.ontology_id,
            ontology_version=self.ontology_version,
            extraction_params=params,
            document=self.document,
        )


class ExtractAnswer(Answer, frozen=True, kw_only=True, rename="camel"):
    """The result of an extraction (source document 000, part 2.1)."""

    idempotency_key: RunKey
    entities: tuple[Entity, ...]
    relations: tuple[Relation, ...]
    cache_hit: bool
    computed_at: str
    status: Literal["complete", "partial"]
    outcome: str | None = None
    ontology_id: str = ""
    ontology_version: str = ""
    ontology_names: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class ShownRun(RunMetadata, frozen=True, kw_only=True, rename="camel"):
    """How a run stands, with the names of its ontology."""

    ontology_names: tuple[str, ...] = ()


class RunAccepted(Answer, frozen=True, kw_only=True, rename="camel"):
    """A run that goes on without the caller."""

    idempotency_key: RunKey
    status: RunStatus
    run: str
    events: str


class RunPage(Answer, frozen=True, kw_only=True, rename="camel"):
    """A page of runs, newest first."""

    runs: tuple[dict[str, Any], ...]
    next: str | None = None


class CancelAnswer(Answer, frozen=True, kw_only=True, rename="camel"):
    """What became of a wish to cancel: `cancelled` here, `requested` of another process, or `ended` before."""

    idempotency_key: RunKey
    outcome: Literal["cancelled", "requested", "ended"]


class KeyQuestion(Answer, frozen=True, kw_only=True, rename="camel"):
    """The key of an extraction and what went into it (source document 000, part 4.1); nothing was run."""

    key: RunKey
    components: KeyParts
    known: RunStatus | None = None
    ontology_names: tuple[str, ...] = ()


class KeyParts(Answer, frozen=True, kw_only=True, rename="camel"):
    text: str
    text_hash: str
    ontology_id: str
    ontology_version: str
    extraction_params_hash: str


class Estimate(Answer, frozen=True, kw_only=True, rename="camel"):
    """What a run would take. Tokens and costs are 0 where no model is asked, costs are null where no price is known.
    `mostTokens` and `mostCost` are bounds, repairs and retries included.
    """

    idempotency_key: RunKey
    cache_hit: bool
    characters: int
    chunks: int
    extractor: str
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    most_tokens: int = 0
    cost: float | None = 0.0
    most_cost: float | None = 0.0
    currency: str = "USD"


class OntologyEntry(Answer, frozen=True, kw_only=True, rename="camel"):
    """An ontology as it is registered: its one id, which results belong to, and the names that stand for it."""

    id: str
    names: tuple[str, ...] = ()
    version: str
    iri: str = ""
    label: str = ""
    classes: int = 0
    properties: int = 0
    media_type: str = ""
    size: int = 0
    shared: bool = False
    updated_at: str = ""
    source: Literal["registry", "folder", "published"] = "registry"


class OntologyPut(Answer, frozen=True, kw_only=True, rename="camel"):
    """What putting an ontology did. Without a change there is no new version and nothing is invalidated; `created`
    says that the name, or the id, is new.
    """

    id: str
    names: tuple[str, ...] = ()
    version: str
    old_version: str | None
    changed: bool
    created: bool
    entries_invalidated: int
    shared: bool = False


class OntologyList(Answer, frozen=True, kw_only=True, rename="camel"):
    ontologies: tuple[OntologyEntry, ...]


class OntologyReport(Answer, frozen=True, kw_only=True, rename="camel"):
    """What a reviewer would say of an ontology that was not kept."""

    valid: bool
    version: str | None = None
    iri: str = ""
    classes: int = 0
    properties: int = 0
    error: str | None = None
    line: int | None = None
    column: int | None = None
    findings: tuple[dict[str, str], ...] = ()


class Invalidated(Answer, frozen=True, kw_only=True, rename="camel"):
    """How many results went."""

    entries_invalidated: int


class Reason(Schema, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Why somebody changes a record; it goes to the audit log."""

    reason: Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]


class KeyEntry(Answer, frozen=True, kw_only=True, rename="camel"):
    """One record of the store, without its result. `clientKey` is the key as its client chose it, `statusCode` that of
    an HTTP answer.
    """

    id: str = ""
    key: str
    client_key: str = ""
    status_code: int | None = None
    scope: str
    tenant: str
    state: Literal["held", "done", "failed"]
    attempt: int
    fence: int
    owner: str
    created_at: str
    lease_until: str
    completed_at: str | None
    expires_at: str | None
    tags: tuple[str, ...]
    route: str
    method: str
    fingerprint: str
    audit: Mapping[str, Any]
    next_caller: str = ""
    words: tuple[str, ...] = ()
    """The record in sentences for a person, where one was asked for."""


class KeyPage(Answer, frozen=True, kw_only=True, rename="camel"):
    keys: tuple[KeyEntry, ...]
    next: str | None = None


class KeyChanged(Answer, frozen=True, kw_only=True, rename="camel"):
    key: str
    scope: str
    done: Literal["released", "forgotten"]


class Health(Answer, frozen=True, kw_only=True, rename="camel"):
    status: Literal["ok", "failing", "stopping"]
    dependencies: Mapping[str, str] = {}


class Call(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One call of the RPC; without an id the server numbers it."""

    tag: str
    payload: Any = None
    id: str | int | None = None


def is_ontology_id(text: str) -> bool:
    """Whether it may name an ontology: printable, no blanks, nothing that an IRI may not hold."""
    return _ONTOLOGY_ID.match(text) is not None and text.isprintable()


def is_run_key(text: str) -> bool:
    return _RUN_KEY.match(text) is not None


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


class ServedCollection(CollectionInfo, frozen=True, kw_only=True):
    """A collection with the names of its ontology beside the id."""

    ontology_names: tuple[str, ...] = ()


class CollectionPage(Answer, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    collections: tuple[ServedCollection, ...]
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
