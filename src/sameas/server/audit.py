"""The audit log of the service: who changed what, when and why, one JSON object a line, never rewritten.

Rule: a change is on the disk here before its answer goes out. Processes of one machine can share the file; of several
machines, each line is an object, too.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import msgspec

from sameas.extraction.runs.metadata import instant
from sameas.identity.ids import uuid7
from sameas.objects import Objects
from sameas.once.appended_lines import AppendedLines
from sameas.server.tenants.access import Caller


class AuditLog:
    """The file `audit.jsonl` of a home folder, readable by its owner."""

    def __init__(self, path: Path) -> None:
        self._lines = AppendedLines(path, fsync=True)
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
