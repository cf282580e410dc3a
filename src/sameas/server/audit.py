"""The audit log of the service: who changed what, when and why, one JSON object a line, never rewritten.

Rule: a change is on the disk here before its answer goes out. Each line is one write to a file opened for appending, so
that processes of one machine can share it.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import msgspec

from sameas.extraction.metadata import instant
from sameas.server.door import Visitor


class AuditLog:
    """The file `audit.jsonl` of a home folder, readable by its owner."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def write(self, event: str, visitor: Visitor, *, reason: str = "", **about: Any) -> None:
        ctx = visitor.ctx
        line = {
            "time": instant(time.time()),
            "event": event,
            "tenant": ctx.tenant_id,
            "actor": visitor.actor,
            "credential": visitor.principal.credential_id,
            "reason": reason,
            "traceId": ctx.trace_id,
            "invocationId": ctx.invocation_id,
            **about,
        }
        data = msgspec.json.encode(line) + b"\n"
        if os.write(self._file, data) != len(data):
            raise OSError("the audit log took only part of a line: is the disk full?")
        os.fsync(self._file)

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
