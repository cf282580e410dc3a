"""Results in SQL: the tables of source document 000, part 5, written in step with the run folders.

Rule: a result, its handle and its audit line are written in one transaction. What is read back is what was
written, to the byte. Statements are in `sql/results.sql`.
"""

import time
from collections.abc import Callable, Mapping
from math import inf
from typing import Any, Literal, TypeAlias

import msgspec

from sameas.connections import open_database
from sameas.databases import Row, Session, Statements
from sameas.extraction.runs.metadata import ENTITIES, GRAPH, REJECTED, RELATIONS, RunMetadata, instant
from sameas.identity.canonical import sha256_hex
from sameas.ontology.model import Ontology

AuditLine: TypeAlias = Literal[
    "extraction_started",
    "extraction_completed",
    "extraction_failed",
    "cache_hit",
    "cache_miss",
    "concurrent_deduplicated",
    "ontology_updated",
    "result_removed",
]

_NEVER = "9999-12-31T00:00:00.000Z"


class KeptResult(msgspec.Struct, frozen=True):
    """A result as the database has it: the metadata and the artefacts, by file name."""

    metadata: RunMetadata
    contents: Mapping[str, bytes]


class ResultTables:
    """The tables of one tenant, in SQLite or PostgreSQL."""

    def __init__(self, url: str, *, tenant: str = "", clock: Callable[[], float] = time.time) -> None:
        self._database = open_database(url, Statements.of("sameas.extraction", "results"))
        self._tenant = tenant
        self._clock = clock

    def close(self) -> None:
        self._database.close()

    def begin(self, key: str, *, ontology_id: str, audit: Mapping[str, Any]) -> None:
        """Record that an execution begins."""
        with self._database.transaction() as session:
            self._do(session, "begin_handle", key=key, audit=_json(audit))
            self._log(session, key, ontology_id, "cache_miss", {}, audit)
            self._log(session, key, ontology_id, "extraction_started", {}, audit)

    def save(
        self,
        metadata: RunMetadata,
        contents: Mapping[str, bytes],
        *,
        keep_for: float,
        audit: Mapping[str, Any],
    ) -> None:
        """Save a complete result."""
        key, counts = metadata.idempotency_key, _counts(metadata)
        with self._database.transaction() as session:
            self._do(
                session,
                "save_result",
                key=key,
                ontology_id=metadata.ontology_id,
                ontology_version=metadata.ontology_version,
                text_hash=metadata.text_hash,
                params_hash=metadata.extraction_params_hash,
                entities=contents[ENTITIES].decode(),
                relations=contents[RELATIONS].decode(),
                rejected=contents[REJECTED].decode(),
                graph=contents[GRAPH].decode(),
                metadata=metadata.to_json().decode(),
                audit=_json(audit),
                expires_at=_NEVER if keep_for == inf else instant(self._clock() + keep_for),
            )
            self._do(session, "end_handle", key=key, status="completed", result=_json(counts), error=None)
            self._log(session, key, metadata.ontology_id, "extraction_completed", counts, audit)
            self._do(session, "remove_expired")

    def fail(self, key: str, *, ontology_id: str, error: Mapping[str, Any], audit: Mapping[str, Any]) -> None:
        """Record that an execution ended without a complete result."""
        with self._database.transaction() as session:
            self._do(session, "end_handle", key=key, status="failed", result=None, error=_json(error))
            # A message may quote the text, and this row outlives the run.
            about = {"code": error.get("code"), "digest": sha256_hex(_json(error).encode())}
            self._log(session, key, ontology_id, "extraction_failed", about, audit)

    def load(self, key: str) -> KeptResult | None:
        """A result that has not expired; None also where its layout is not known."""
        rows = self._read("load_result", key=key)
        if not rows:
            return None
        entities, relations, rejected, graph, metadata = (column.encode() for column in rows[0])
        try:
            decoded = RunMetadata.from_json(metadata)
        except ValueError:
            return None
        return KeptResult(decoded, {ENTITIES: entities, RELATIONS: relations, REJECTED: rejected, GRAPH: graph})

    def keys(self, prefix: str) -> list[str]:
        """The keys of kept results that begin with this."""
        return [key for (key,) in self._read("find_keys", first=prefix, beyond=f"{prefix}\uffff")]

    def log(
        self,
        key: str,
        *,
        ontology_id: str,
        event: AuditLine,
        about: Mapping[str, Any] | None = None,
        audit: Mapping[str, Any] | None = None,
    ) -> None:
        """Write a line of the audit log."""
        with self._database.transaction(durable=False) as session:
            self._log(session, key, ontology_id, event, about or {}, audit or {})

    def touch(self, key: str) -> None:
        """Note that the result was used now."""
        with self._database.transaction(durable=False) as session:
            self._do(session, "touch_result", key=key)

    def remove(self, key: str, *, ontology_id: str) -> None:
        """Delete a result and its handle, with a line in the audit log."""
        with self._database.transaction() as session:
            self._do(session, "remove_handle", key=key)
            self._do(session, "remove_result", key=key)
            if session.changed:
                self._log(session, key, ontology_id, "result_removed", {}, {})

    def invalidate(
        self, ontology_id: str, *, old_version: str | None, new_version: str, audit: Mapping[str, Any]
    ) -> int:
        """Delete the results of an ontology except those of the new version, with a line in the audit log."""
        with self._database.transaction() as session:
            self._do(session, "remove_of_ontology", ontology_id=ontology_id, new_version=new_version)
            removed = session.changed
            self._do(session, "remove_ontology_before", id=ontology_id, new_version=new_version)
            about = {
                "oldVersion": old_version,
                "newVersion": new_version,
                "entriesInvalidated": removed,
            }
            self._log(session, "", ontology_id, "ontology_updated", about, audit)
        return removed

    def save_ontology(self, ontology_id: str, ontology: Ontology, *, audit: Mapping[str, Any]) -> None:
        """Keep the content of an ontology, where this version of it is not there."""
        if self._read("ontology_version", id=ontology_id) == [(ontology.version,)]:
            return
        about = {"label": ontology.titles[0].value} if ontology.titles else {}
        with self._database.transaction() as session:
            self._do(
                session,
                "save_ontology",
                id=ontology_id,
                version=ontology.version,
                content=_json(msgspec.to_builtins(ontology)),
                metadata=_json(about),
                content_hash=ontology.version.removeprefix("sha256:"),
                audit=_json(audit),
            )

    def remove_ontology(self, ontology_id: str, *, version: str | None = None) -> None:
        """Delete the content of an ontology, or of one version of it."""
        with self._database.transaction() as session:
            self._do(session, "remove_ontology", id=ontology_id, version=version or "")

    def _read(self, name: str, **values: object) -> list[Row]:
        return self._database.read(name, tenant=self._tenant, now=instant(self._clock()), **values)

    def _do(self, session: Session, name: str, **values: object) -> list[Row]:
        return session.run(name, tenant=self._tenant, now=instant(self._clock()), **values)

    def _log(
        self,
        session: Session,
        key: str,
        ontology_id: str,
        event: AuditLine,
        about: Mapping[str, Any],
        audit: Mapping[str, Any],
    ) -> None:
        line = {
            "ontology_id": ontology_id,
            "event_type": event,
            "metadata": _json(about),
            "audit": _json(audit),
        }
        self._do(session, "log", key=key, **line)


def _counts(metadata: RunMetadata) -> dict[str, Any]:
    return {
        "entityCount": metadata.entity_count,
        "relationCount": metadata.relation_count,
        "durationMs": metadata.duration_ms,
        "digest": metadata.digest(),
    }


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
