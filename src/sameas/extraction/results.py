"""Results in SQL: the tables of source document 000, part 5, written in step with the run folders.

Rule: a result, its handle and its audit line are written in one transaction. A connection lives for one call,
so that threads, tasks and forked processes need not know of each other. Statements are in `sql/`.
"""

import re
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import lru_cache
from importlib.resources import files
from math import inf
from typing import Any, Literal, TypeAlias
from urllib.parse import unquote, urlsplit

import msgspec

from sameas.extraction.metadata import ENTITIES, GRAPH, REJECTED, RELATIONS, RunMetadata, instant
from sameas.once.errors import StoreUnavailable
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

_NAME = re.compile(r"^-- name: (\w+)\n-- purpose: .+\n", re.MULTILINE)
_BUSY_SECONDS = 10.0
_NEVER = "9999-12-31T00:00:00.000Z"


class KeptResult(msgspec.Struct, frozen=True):
    """A result as the database has it: the metadata and the artefacts, by file name."""

    metadata: RunMetadata
    contents: Mapping[str, bytes]


class ResultTables:
    """The tables of one tenant in one SQLite file."""

    def __init__(self, url: str, *, tenant: str = "", clock: Callable[[], float] = time.time) -> None:
        self._path = _sqlite_path(url)
        self._tenant = tenant
        self._clock = clock
        with self._connection() as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.executescript(_statements()["schema"])

    def begin(self, key: str, *, ontology_id: str, audit: Mapping[str, Any]) -> None:
        """An execution begins."""
        with self._transaction() as connection:
            self._do(connection, "begin_handle", key=key, audit=_json(audit))
            self._log(connection, key, ontology_id, "cache_miss", {}, audit)
            self._log(connection, key, ontology_id, "extraction_started", {}, audit)

    def save(
        self,
        metadata: RunMetadata,
        contents: Mapping[str, bytes],
        *,
        keep_for: float,
        audit: Mapping[str, Any],
    ) -> None:
        """Keep a complete result."""
        key, counts = metadata.idempotency_key, _counts(metadata)
        with self._transaction() as connection:
            self._do(
                connection,
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
            self._do(connection, "end_handle", key=key, status="completed", result=_json(counts), error=None)
            self._log(connection, key, metadata.ontology_id, "extraction_completed", counts, audit)
            self._do(connection, "remove_expired")

    def fail(self, key: str, *, ontology_id: str, error: Mapping[str, Any], audit: Mapping[str, Any]) -> None:
        """An execution ended without a complete result."""
        with self._transaction() as connection:
            self._do(connection, "end_handle", key=key, status="failed", result=None, error=_json(error))
            self._log(connection, key, ontology_id, "extraction_failed", error, audit)

    def load(self, key: str) -> KeptResult | None:
        """A result that has not expired; None also where its layout is not known."""
        with self._connection() as connection:
            row = self._do(connection, "load_result", key=key).fetchone()
        if row is None:
            return None
        entities, relations, rejected, graph, metadata = (column.encode() for column in row)
        try:
            decoded = RunMetadata.from_json(metadata)
        except ValueError:
            return None
        return KeptResult(decoded, {ENTITIES: entities, RELATIONS: relations, REJECTED: rejected, GRAPH: graph})

    def keys(self, prefix: str) -> list[str]:
        """The keys of kept results that begin with this."""
        with self._connection() as connection:
            rows = self._do(connection, "find_keys", first=prefix, beyond=f"{prefix}\uffff").fetchall()
        return [key for (key,) in rows]

    def log(
        self,
        key: str,
        *,
        ontology_id: str,
        event: AuditLine,
        about: Mapping[str, Any] | None = None,
        audit: Mapping[str, Any] | None = None,
    ) -> None:
        """One line of the audit log."""
        with self._transaction(synchronous="NORMAL") as connection:
            self._log(connection, key, ontology_id, event, about or {}, audit or {})

    def touch(self, key: str) -> None:
        """The result was used now."""
        with self._transaction(synchronous="NORMAL") as connection:
            self._do(connection, "touch_result", key=key)

    def remove(self, key: str, *, ontology_id: str) -> None:
        """Delete a result and its handle; the audit log says so."""
        with self._transaction() as connection:
            self._do(connection, "remove_handle", key=key)
            if self._do(connection, "remove_result", key=key).rowcount:
                self._log(connection, key, ontology_id, "result_removed", {}, {})

    def invalidate(
        self, ontology_id: str, *, old_version: str | None, new_version: str, audit: Mapping[str, Any]
    ) -> int:
        """Delete every result of an ontology but those of the new version; the audit log says so."""
        with self._transaction() as connection:
            removal = self._do(connection, "remove_of_ontology", ontology_id=ontology_id, new_version=new_version)
            about = {
                "oldVersion": old_version,
                "newVersion": new_version,
                "entriesInvalidated": removal.rowcount,
            }
            self._log(connection, "", ontology_id, "ontology_updated", about, audit)
        return removal.rowcount

    def save_ontology(self, ontology_id: str, ontology: Ontology, *, audit: Mapping[str, Any]) -> None:
        """Keep the content of an ontology, where this version of it is not there."""
        with self._connection() as connection:
            known = self._do(connection, "ontology_version", id=ontology_id).fetchone()
        if known == (ontology.version,):
            return
        about = {"label": ontology.titles[0].value} if ontology.titles else {}
        with self._transaction() as connection:
            self._do(
                connection,
                "save_ontology",
                id=ontology_id,
                version=ontology.version,
                content=_json(msgspec.to_builtins(ontology)),
                metadata=_json(about),
                content_hash=ontology.version.removeprefix("sha256:"),
                audit=_json(audit),
            )

    def _do(self, connection: sqlite3.Connection, name: str, **values: object) -> sqlite3.Cursor:
        common = {"tenant": self._tenant, "now": instant(self._clock())}
        return connection.execute(_statements()[name], {**common, **values})

    def _log(
        self,
        connection: sqlite3.Connection,
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
        self._do(connection, "log", key=key, **line)

    @contextmanager
    def _transaction(self, *, synchronous: Literal["FULL", "NORMAL"] = "FULL") -> Iterator[sqlite3.Connection]:
        with self._connection() as connection:
            # What only tells of a use may be lost to a power cut; a replay must not wait for the disk.
            connection.execute(f"PRAGMA synchronous = {synchronous}")
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.execute("COMMIT")

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        try:
            # What was not committed when the connection closes is undone.
            with closing(sqlite3.connect(self._path, timeout=_BUSY_SECONDS, isolation_level=None)) as connection:
                yield connection
        except sqlite3.Error as error:
            raise StoreUnavailable(f"the database of results cannot answer: {error}") from error


def _counts(metadata: RunMetadata) -> dict[str, Any]:
    return {
        "entityCount": metadata.entity_count,
        "relationCount": metadata.relation_count,
        "durationMs": metadata.duration_ms,
        "digest": metadata.digest(),
    }


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


@lru_cache
def _statements() -> Mapping[str, str]:
    text = files("sameas.extraction").joinpath("sql", "results_sqlite.sql").read_text("utf-8")
    _, *parts = _NAME.split(text)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def _sqlite_path(url: str) -> str:
    path = unquote(url.removeprefix("sqlite://").removeprefix("/"))
    if urlsplit(url).scheme != "sqlite" or not path or path == ":memory:":
        raise ValueError(f"results are kept in an SQLite file, such as sqlite:///sameas.db, not in {url!r}")
    return path
