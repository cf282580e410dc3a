"""What the service writes down: a line for each request, the lines of each extraction as source document 000 has them
(parts 4.2, 4.4 and 8.2), and who changed what, when and why.

Rule: JSON, one object a line, each with idempotencyKey, traceId, invocationId and tenant, the same for REST and RPC.
Ids, sizes, times, counts and the kinds of errors are written; texts, results, credentials and query strings never are.
A change is on the disk in the audit log before its answer goes out.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import msgspec

from sameas.extraction.runs.metadata import instant, seconds_of
from sameas.identity.ids import uuid7
from sameas.objects import Objects
from sameas.once.line_log import LineLog
from sameas.server.bodies import Note
from sameas.server.schemas import ExtractRequest
from sameas.server.tenants.access import Caller
from sameas.server.tenants.workspaces import tenant_of

if TYPE_CHECKING:
    from sameas.server.runs.preparation import Prepared

_encode = msgspec.json.Encoder(enc_hook=str).encode


class JsonFormatter(logging.Formatter):
    """What other parts log, in the same form."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "timestamp": _instant(record.created),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            "logger": record.name,
        }
        line |= getattr(record, "fields", {})
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return _encode(line).decode()


def configure_logging(*, level: str = "INFO", to: IO[str] | None = None) -> None:
    """Have everything that is logged go out as JSON lines."""
    handler = logging.StreamHandler(to or sys.stderr)
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)


class RequestLog:
    """One line for each request (source document 000, part 8.2). Written at once: it is the stream that buffers."""

    def __init__(self, to: IO[bytes] | None = None, *, enabled: bool = True) -> None:
        self._to = to or sys.stderr.buffer
        self._enabled = enabled

    def request(self, method: str, path: str, note: Note, seconds: float) -> None:
        if not self._enabled:
            return
        fields: dict[str, Any] = {"method": method, "status": note.status, "ms": round(seconds * 1000, 3)}
        if note.route:
            fields["route"] = note.route
        if note.hit is not None:
            fields["cacheHit"] = note.hit
        self.write(_EVENTS.get(note.hit, "request"), note, {**fields, **note.about})

    def write(self, event: str, note: Note, fields: dict[str, Any]) -> None:
        """One line about a request."""
        line: dict[str, Any] = {"timestamp": _instant(time.time()), "level": "info", "event": event}
        line |= {"traceId": note.hop.trace_id, "invocationId": note.hop.invocation_id}
        if note.caller is not None:
            line["tenant"] = note.caller.ctx.tenant_id
        if note.key:
            line["idempotencyKey"] = note.key
        self._to.write(_encode(line | fields) + b"\n")
        self._to.flush()


_EVENTS: dict[bool | None, str] = {True: "cache hit", False: "extraction", None: "request"}


def _instant(seconds: float) -> str:
    return f"{_second(int(seconds))}.{int(seconds % 1 * 1000):03d}Z"


@lru_cache(maxsize=4)
def _second(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))


class AuditLog:
    """The file `audit.jsonl` of a home folder, readable by its owner and never rewritten. Processes of one machine can
    share it; of several machines, each line is an object, too.
    """

    def __init__(self, path: Path) -> None:
        self._lines = LineLog(path, fsync=True)
        self.objects: Objects | None = None

    def write(self, event: str, caller: Caller, *, reason: str = "", **about: Any) -> None:
        ctx = caller.ctx
        line = {
            "time": instant(time.time()),
            "event": event,
            "tenant": ctx.tenant_id,
            "actor": caller.actor,
            "credential": caller.principal.credential_id,
            "reason": reason,
            "traceId": ctx.trace_id,
            "invocationId": ctx.invocation_id,
            **about,
        }
        data = msgspec.json.encode(line)
        self._lines.append(data)
        if self.objects is not None:
            self.objects.put(f"audit/{line['time'][:10]}/{uuid7()}.json", data)

    def close(self) -> None:
        self._lines.close()


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

    @classmethod
    def of(cls, prepared: Prepared, audit: Mapping[str, Any]) -> ExtractionLog:
        """The log of a request, which begins here."""
        log = cls(prepared.space, prepared.key.key, audit)
        log.requested(asked_for(prepared.request, prepared.key.components.ontology_id))
        return log

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
            # As `_LOG.info` does, without looking for the line of code: a hit is told of a thousand times a second.
            told = {"fields": {**self._ids, **fields}}
            _LOG.handle(_LOG.makeRecord(_LOG.name, logging.INFO, "", 0, event, (), None, extra=told))


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
