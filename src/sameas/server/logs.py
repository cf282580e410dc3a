"""The log of the service: JSON, one object a line, each with idempotencyKey, traceId, invocationId and tenant.

Rule: ids, sizes, times and the kinds of errors are written; texts, results, credentials and query strings never are.
"""

from __future__ import annotations

import logging
import sys
import time
from typing import IO, Any

import msgspec

from sameas.server.bodies import Note

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
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return f"{whole}.{int(seconds % 1 * 1000):03d}Z"
