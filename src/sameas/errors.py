"""Every error that sameas gives to its callers, as one tree: catch `SameasError` for all of them, or a branch.

SameasError
|-- of a call               InProgress, KeyReused, Superseded, StoredFailure, OutcomeUnknown, ResultNotKept, ...
|   `-- StoreError          StoreUnavailable, RecordDamaged, StoreMisconfigured, RowRefused
|-- of identity             NotCanonical, ScopeError (Unauthorized); both are ValueErrors too
|-- of HTTP                 Problem, UnseenMark, NotHttp, MalformedKey
|-- of models               CallRefused (BudgetSpent, RequestTooLarge, CircuitOpen, ...), ModelError, StageTimedOutError
|-- of ontologies           OntologyError (OntologyNotFoundError, OntologySyntaxError, ...)
|-- of documents            DocumentError (UnsupportedDocumentError, DocumentLimitError, ...)
|-- of runs                 PartialRunError, RunNotFoundError, RunDamagedError, ChunkFailedError, ...
|-- of learning             ExamplesError, SchemaError, ContainerError, ModelReplacedError, ReaderFilesError, ...
|-- of collections          CollectionError (CollectionNotFoundError, EntityAmbiguousError, RoleRequiredError, ...)
|-- of questions            QuestionError (QueryError, QueryLimitError, IndexBusyError, PublishError)
|-- from Python             EmptyDocumentError, UnknownDocumentError, OutputError, MissingLibraryError
|-- of the client           ServiceError, ServiceUnreachable
`-- SettingsError           a setting cannot be used

What a caller writes wrongly (an option that is not there, a lease of no length) is a TypeError or ValueError of Python.
An error whose package needs an extra is imported when somebody asks for it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sameas.identity.errors import NotCanonical
from sameas.identity.scope import ScopeError
from sameas.once.errors import (
    BatchFailed,
    InProgress,
    KeyReused,
    NestedInTransaction,
    NotEncodable,
    OutcomeUnknown,
    RecordDamaged,
    Reentered,
    ResultDoesNotFit,
    ResultNotKept,
    SameasError,
    StoreClosed,
    StoredFailure,
    StoreError,
    StoreFull,
    StoreMisconfigured,
    StoreUnavailable,
    Superseded,
    TooManyWaiters,
    TransactionEnded,
    TransactionRefused,
)

if TYPE_CHECKING:
    from sameas.client.calls import ServiceError, ServiceUnreachable
    from sameas.collections.errors import (
        CollectionError,
        CollectionExistsError,
        CollectionNotFoundError,
        DecisionNotFoundError,
        DocumentNotFoundError,
        EntityAmbiguousError,
        EntityNotFoundError,
        RoleRequiredError,
    )
    from sameas.collections.known_things import KnownListError
    from sameas.collections.sync import FolderError
    from sameas.databases.database import RowRefused
    from sameas.extraction.events.journal import JournalDamagedError
    from sameas.extraction.extractors.contract import ChunkFailedError
    from sameas.extraction.extractors.deferred import ModelReplacedError, WeightsMissingError
    from sameas.extraction.extractors.learning.container import ContainerError
    from sameas.extraction.extractors.learning.examples import ExamplesError
    from sameas.extraction.extractors.learning.schema import SchemaError
    from sameas.extraction.extractors.reader.weights import ReaderFilesError
    from sameas.extraction.extractors.spacy_names import SpacyUnavailableError
    from sameas.extraction.runs.folder import RunDamagedError, RunReplacedError
    from sameas.extraction.runs.library import RunAmbiguousError, RunNotFoundError
    from sameas.extraction.runs.review import ReviewRefusedError
    from sameas.extraction.runs.shared_runs import RunCancelledError
    from sameas.extraction.runs.work import PartialRunError
    from sameas.extraction.text.inputs.errors import (
        DamagedDocumentError,
        DocumentError,
        DocumentLimitError,
        MissingExtraError,
        UnsupportedDocumentError,
    )
    from sameas.interactive.documents import UnknownDocumentError
    from sameas.interactive.extraction import EmptyDocumentError
    from sameas.interactive.frames import MissingLibraryError
    from sameas.interactive.result import OutputError
    from sameas.llm.errors import (
        BudgetSpent,
        CallRefused,
        CircuitOpen,
        HeldBack,
        LimitsUnreachable,
        RequestTooLarge,
        TooManyWaiting,
    )
    from sameas.llm.models import ModelError
    from sameas.llm.timeouts import StageTimedOutError
    from sameas.objects import ObjectsUnavailable
    from sameas.ontology.errors import (
        OntologyError,
        OntologyExpressionError,
        OntologyExtraError,
        OntologyFormatError,
        OntologyNotFoundError,
        OntologyRefusedError,
        OntologySyntaxError,
        OntologyTooLargeError,
    )
    from sameas.questions.errors import IndexBusyError, PublishError, QueryError, QueryLimitError, QuestionError
    from sameas.settings import SettingsError
    from sameas.tenancy.authenticator import Unauthorized
    from sameas.web.header import MalformedKey
    from sameas.web.problem import Problem
    from sameas.web.recording import NotHttp
    from sameas.web.route import UnseenMark

_ELSEWHERE = {
    "BudgetSpent": "llm.errors",
    "CallRefused": "llm.errors",
    "ChunkFailedError": "extraction.extractors.contract",
    "CircuitOpen": "llm.errors",
    "CollectionError": "collections.errors",
    "CollectionExistsError": "collections.errors",
    "CollectionNotFoundError": "collections.errors",
    "ContainerError": "extraction.extractors.learning.container",
    "DamagedDocumentError": "extraction.text.inputs.errors",
    "DecisionNotFoundError": "collections.errors",
    "DocumentError": "extraction.text.inputs.errors",
    "DocumentLimitError": "extraction.text.inputs.errors",
    "DocumentNotFoundError": "collections.errors",
    "EntityAmbiguousError": "collections.errors",
    "EntityNotFoundError": "collections.errors",
    "ExamplesError": "extraction.extractors.learning.examples",
    "FolderError": "collections.sync",
    "HeldBack": "llm.errors",
    "JournalDamagedError": "extraction.events.journal",
    "KnownListError": "collections.known_things",
    "LimitsUnreachable": "llm.errors",
    "MalformedKey": "web.header",
    "MissingExtraError": "extraction.text.inputs.errors",
    "ModelError": "llm.models",
    "ModelReplacedError": "extraction.extractors.deferred",
    "NotHttp": "web.recording",
    "ObjectsUnavailable": "objects",
    "OntologyError": "ontology.errors",
    "OntologyExpressionError": "ontology.errors",
    "OntologyExtraError": "ontology.errors",
    "OntologyFormatError": "ontology.errors",
    "OntologyNotFoundError": "ontology.errors",
    "OntologyRefusedError": "ontology.errors",
    "OntologySyntaxError": "ontology.errors",
    "OntologyTooLargeError": "ontology.errors",
    "PartialRunError": "extraction.runs.work",
    "Problem": "web.problem",
    "ReaderFilesError": "extraction.extractors.reader.weights",
    "RequestTooLarge": "llm.errors",
    "RoleRequiredError": "collections.errors",
    "RowRefused": "databases.database",
    "ReviewRefusedError": "extraction.runs.review",
    "RunAmbiguousError": "extraction.runs.library",
    "RunCancelledError": "extraction.runs.shared_runs",
    "RunDamagedError": "extraction.runs.folder",
    "RunNotFoundError": "extraction.runs.library",
    "RunReplacedError": "extraction.runs.folder",
    "SchemaError": "extraction.extractors.learning.schema",
    "ServiceError": "client.calls",
    "ServiceUnreachable": "client.calls",
    "SettingsError": "settings",
    "SpacyUnavailableError": "extraction.extractors.spacy_names",
    "StageTimedOutError": "llm.timeouts",
    "TooManyWaiting": "llm.errors",
    "Unauthorized": "tenancy.authenticator",
    "UnseenMark": "web.route",
    "UnsupportedDocumentError": "extraction.text.inputs.errors",
    "WeightsMissingError": "extraction.extractors.deferred",
    "QuestionError": "questions.errors",
    "QueryError": "questions.errors",
    "QueryLimitError": "questions.errors",
    "IndexBusyError": "questions.errors",
    "PublishError": "questions.errors",
    "EmptyDocumentError": "interactive.extraction",
    "UnknownDocumentError": "interactive.documents",
    "OutputError": "interactive.result",
    "MissingLibraryError": "interactive.frames",
}

__all__ = [
    "BatchFailed",
    "BudgetSpent",
    "CallRefused",
    "ChunkFailedError",
    "CircuitOpen",
    "CollectionError",
    "CollectionExistsError",
    "CollectionNotFoundError",
    "ContainerError",
    "DamagedDocumentError",
    "DecisionNotFoundError",
    "DocumentError",
    "DocumentLimitError",
    "DocumentNotFoundError",
    "EmptyDocumentError",
    "EntityAmbiguousError",
    "EntityNotFoundError",
    "ExamplesError",
    "FolderError",
    "HeldBack",
    "InProgress",
    "IndexBusyError",
    "JournalDamagedError",
    "KeyReused",
    "KnownListError",
    "LimitsUnreachable",
    "MalformedKey",
    "MissingExtraError",
    "MissingLibraryError",
    "ModelError",
    "ModelReplacedError",
    "NestedInTransaction",
    "NotCanonical",
    "NotEncodable",
    "NotHttp",
    "ObjectsUnavailable",
    "OntologyError",
    "OntologyExpressionError",
    "OntologyExtraError",
    "OntologyFormatError",
    "OntologyNotFoundError",
    "OntologyRefusedError",
    "OntologySyntaxError",
    "OntologyTooLargeError",
    "OutcomeUnknown",
    "OutputError",
    "PartialRunError",
    "Problem",
    "PublishError",
    "QueryError",
    "QueryLimitError",
    "QuestionError",
    "ReaderFilesError",
    "RecordDamaged",
    "Reentered",
    "RequestTooLarge",
    "ResultDoesNotFit",
    "ResultNotKept",
    "ReviewRefusedError",
    "RoleRequiredError",
    "RowRefused",
    "RunAmbiguousError",
    "RunCancelledError",
    "RunDamagedError",
    "RunNotFoundError",
    "RunReplacedError",
    "SameasError",
    "SchemaError",
    "ScopeError",
    "ServiceError",
    "ServiceUnreachable",
    "SettingsError",
    "SpacyUnavailableError",
    "StageTimedOutError",
    "StoreClosed",
    "StoreError",
    "StoreFull",
    "StoreMisconfigured",
    "StoreUnavailable",
    "StoredFailure",
    "Superseded",
    "TooManyWaiters",
    "TooManyWaiting",
    "TransactionEnded",
    "TransactionRefused",
    "Unauthorized",
    "UnknownDocumentError",
    "UnseenMark",
    "UnsupportedDocumentError",
    "WeightsMissingError",
]


def __getattr__(name: str) -> Any:
    if name in _ELSEWHERE:
        return getattr(import_module(f"sameas.{_ELSEWHERE[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
