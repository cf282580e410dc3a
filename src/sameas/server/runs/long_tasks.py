"""What a process for long work is asked, and what it answers: MessagePack of plain fields, nothing is unpickled.

Rule: an error crosses as its fields and is raised on the other side as what it was, where callers tell it from others;
every other one as the problem that it stands for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from sameas.extraction.pipeline.run import RunPart
from sameas.identity.key import IdempotencyKey, KeyComponents
from sameas.once.errors import InProgress, OutcomeUnknown, StoreUnavailable, Superseded
from sameas.ontology import errors as ontology_errors
from sameas.ontology.errors import OntologyError
from sameas.server.problems import Problem, problem_of
from sameas.server.runs.answers import Done
from sameas.server.runs.models import AccountState, ModelEstimate
from sameas.server.schemas import ExtractRequest, OntologyEntry
from sameas.server.tenants.ontologies import ContentGone, Registered
from sameas.server.tenants.ontology_files import Described, Source

# A frame is its length in so many bytes, and then the message.
LENGTH_BYTES = 8

# What says nothing about the work: the store was away, or somebody else was at it.
AWAY = (StoreUnavailable, OutcomeUnknown, Superseded, InProgress)


class TaskResult(msgspec.Struct, frozen=True):
    """A registered ontology."""

    entry: OntologyEntry
    tenant: str
    digest: str
    file: str = ""

    @classmethod
    def of(cls, found: Registered) -> TaskResult:
        return cls(found.entry, found.tenant, found.digest, "" if found.file is None else str(found.file))

    def registered(self) -> Registered:
        return Registered(self.entry, self.tenant, self.digest, Path(self.file) if self.file else None)


class Begin(msgspec.Struct, frozen=True, tag=True):
    """The first message: the settings of the service, as builtins."""

    settings: Mapping[str, Any]


class Describe(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """What is in an ontology, given as bytes or as a file."""

    number: int
    source: Source


class Prepare(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """The key of a request."""

    number: int
    space: str
    request: ExtractRequest
    found: TaskResult


class EstimateTask(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """What a model would be asked about a request."""

    number: int
    space: str
    request: ExtractRequest
    found: TaskResult


class ExtractTask(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """The result of a request; `allowed` is what it may spend on models."""

    number: int
    space: str
    request: ExtractRequest
    found: TaskResult
    audit: Mapping[str, Any]
    allowed: tuple[int, Decimal | None] | None = None


class HelpTask(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """A part of the chunks of a run that goes on elsewhere."""

    number: int
    space: str
    request: ExtractRequest
    found: TaskResult
    part: RunPart
    allowed: tuple[int, Decimal | None] | None = None


class LookAtModels(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """How limiters and circuits stand."""

    number: int


class Cancel(msgspec.Struct, frozen=True, tag=True):
    """End the task of this number."""

    number: int


Question: TypeAlias = Describe | Prepare | EstimateTask | ExtractTask | HelpTask | LookAtModels
Task: TypeAlias = Begin | Question | Cancel


class Keyed(msgspec.Struct, frozen=True, kw_only=True):
    """A key with its components but the text, and who will extract."""

    key: str
    text_hash: str
    ontology_id: str
    ontology_version: str
    extraction_params_hash: str
    extractor: tuple[str, str]

    def whole(self) -> IdempotencyKey:
        return IdempotencyKey(
            self.key,
            KeyComponents("", self.text_hash, self.ontology_id, self.ontology_version, self.extraction_params_hash),
        )


class Extracted(msgspec.Struct, frozen=True, kw_only=True):
    """A finished extraction as its answer, and how the engine came by it."""

    key: str
    status: str
    cache_hit: bool
    head: bytes
    tail: bytes
    how: str
    stored: bool = True
    shared: bool = False
    computed_at: str = ""
    entities: int = 0
    relations: int = 0

    def done(self) -> Done:
        about = (self.stored, self.shared, self.computed_at, self.entities, self.relations)
        return Done(self.key, self.status, self.cache_hit, self.head, self.tail, *about)


class Failed(msgspec.Struct, frozen=True, kw_only=True):
    """An error as its fields."""

    kind: str
    message: str = ""
    number: int = 0
    code: str = ""
    retry_after: float | None = None
    members: Mapping[str, Any] = {}
    line: int | None = None
    column: int | None = None
    todo: str = ""

    @classmethod
    def of(cls, error: BaseException) -> Failed:
        match error:
            case asyncio.CancelledError():
                return cls(kind="cancelled")
            case ContentGone():
                return cls(kind="content-gone", message=error.owner)
            case OntologyError():
                return cls(
                    kind="ontology",
                    code=type(error).__name__,
                    message=error.what,
                    line=error.line,
                    column=error.column,
                    todo=error.todo,
                )
            case OSError():
                return cls(kind="disk", number=error.errno or 0, message=error.strerror or str(error))
            case _ if isinstance(error, AWAY):
                return cls(kind="away", message=str(error))
            case _:
                problem = problem_of(error)
                said = f"{type(error).__name__}: {error}" if problem.status == 500 else problem.detail
                return cls(
                    kind="internal" if problem.status == 500 else "problem",
                    message=said,
                    number=problem.status,
                    code=problem.code,
                    retry_after=problem.retry_after,
                    members=problem.members,
                )

    def error(self) -> BaseException:
        match self.kind:
            case "cancelled":
                return asyncio.CancelledError()
            case "content-gone":
                return ContentGone(self.message)
            case "ontology":
                kind: type[OntologyError] = getattr(ontology_errors, self.code, OntologyError)
                return kind(self.message, line=self.line, column=self.column, todo=self.todo)
            case "disk":
                return OSError(self.number, self.message)
            case "away":
                return StoreUnavailable(self.message)
            case "problem":
                return Problem(self.number, self.code, self.message, retry_after=self.retry_after, **self.members)
            case _:
                return RuntimeError(self.message)


class TaskAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What came of the task of a number: one of the rest."""

    number: int
    described: Described | None = None
    keyed: Keyed | None = None
    extracted: Extracted | None = None
    estimated: ModelEstimate | None = None
    helped: int | None = None
    states: tuple[AccountState, ...] = ()
    failed: Failed | None = None
