"""The log of extractions, line by line as source document 000 has it (parts 4.2, 4.4 and 8.2), each with the key.

Rule: the lines are the same for REST and RPC. Ids, sizes, times, counts and parameters are written; texts never are.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Any

import msgspec

from sameas.extraction.runs.metadata import seconds_of
from sameas.server.schemas import ExtractRequest
from sameas.server.tenants.workspaces import tenant_of

_LOG = logging.getLogger("sameas.extraction")


class ExtractionLog:
    """The lines of one request."""

    def __init__(self, space: str, key: str, audit: Mapping[str, Any]) -> None:
        self._ids = {
            "idempotencyKey": key,
            "traceId": audit.get("trace_id"),
            "invocationId": audit.get("invocation_id"),
            "tenant": tenant_of(space),
        }

    def requested(self, about: Mapping[str, Any]) -> None:
        self._emit("Extraction requested", **about)

    def missed(self) -> None:
        self._emit("Cache miss, orchestrating extraction")

    def started(self, about: Mapping[str, Any]) -> None:
        self._emit("Starting streaming extraction", ontologyId=about["ontologyId"], textLength=about["textLength"])

    def hit(self, source: str, computed_at: str) -> None:
        age = max(0, round((time.time() - seconds_of(computed_at)) * 1000)) if computed_at else None
        self._emit("Cache hit", hitSource=source, cacheAge=age)

    def deduplicated(self, seconds: float) -> None:
        self._emit("Concurrent request deduplicated", waitTime=round(seconds * 1000))

    def completed(self, *, entities: int, relations: int, status: str) -> None:
        self._emit("Extraction complete", entityCount=entities, relationCount=relations, status=status)

    def shadowed(self, outcome: str, *, is_same: bool | None = None) -> None:
        """What would have become of a request if its key were in force."""
        self._emit("Shadow: a key would have decided", wouldHaveBeen=outcome, isSame=is_same)

    def _emit(self, event: str, **fields: Any) -> None:
        if _LOG.isEnabledFor(logging.INFO):
            _LOG.info(event, extra={"fields": {**self._ids, **fields}})


def asked_for(request: ExtractRequest, ontology_id: str) -> dict[str, Any]:
    """What a log says of a request."""
    return {
        "ontologyId": ontology_id,
        "textLength": len(request.text),
        "extractionParams": msgspec.to_builtins(request.extraction_params),
    }


def log_invalidation(ontology_id: str, *, old_version: str | None, new_version: str | None, removed: int) -> None:
    """Results went because their ontology changed or is gone."""
    fields = {
        "ontologyId": ontology_id,
        "oldVersion": old_version,
        "newVersion": new_version,
        "entriesInvalidated": removed,
    }
    _LOG.warning("Ontology cache invalidation", extra={"fields": fields})
