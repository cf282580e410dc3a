"""Documents to knowledge graphs true to an ontology, and never the same work twice."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sameas.connections import open_async_store, open_store
from sameas.identity.key import compute_idempotency_key, normalize_text
from sameas.identity.scope import ScopeContext
from sameas.once.async_engine import AsyncEngine
from sameas.once.context import Context, current_context
from sameas.once.engine import Engine
from sameas.once.errors import (
    InProgress,
    KeyReused,
    OutcomeUnknown,
    ResultNotKept,
    SameasError,
    StoredFailure,
    StoreUnavailable,
    Superseded,
)
from sameas.once.policy import Policy
from sameas.once.processor import AsyncIdempotentProcessor, IdempotentProcessor
from sameas.once.record import ProcessingRecord

if TYPE_CHECKING:
    from sameas.interactive import OpenCollection, Result, aextract, extract, open_collection
    from sameas.ontology import compute_ontology_version

__version__ = "0.1.0"

__all__ = [
    "AsyncEngine",
    "AsyncIdempotentProcessor",
    "Context",
    "Engine",
    "IdempotentProcessor",
    "InProgress",
    "KeyReused",
    "OpenCollection",
    "OutcomeUnknown",
    "Policy",
    "ProcessingRecord",
    "Result",
    "ResultNotKept",
    "SameasError",
    "ScopeContext",
    "StoreUnavailable",
    "StoredFailure",
    "Superseded",
    "aextract",
    "compute_idempotency_key",
    "compute_ontology_version",
    "current_context",
    "extract",
    "normalize_text",
    "open_async_store",
    "open_collection",
    "open_store",
]


# Extraction needs libraries that the engine does not: they are imported when somebody asks.
_LAZY = {
    "OpenCollection": "sameas.interactive",
    "Result": "sameas.interactive",
    "aextract": "sameas.interactive",
    "compute_ontology_version": "sameas.ontology",
    "extract": "sameas.interactive",
    "open_collection": "sameas.interactive",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
