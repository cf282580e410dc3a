"""The runs of a tenant: list, find, read, remove, repair, and keep within a size.

Rule: the folders are the truth. Nothing but a name on the disk says that a run exists, so there is no index
to lose; the record of the once engine and the rows of a database are put right from the folders by `rescan`.
Removing forgets the record first: nobody is sent to a folder that is going.
"""

import fcntl
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import methodcaller
from pathlib import Path
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from sameas.extraction.durable_file import write_durably
from sameas.extraction.events import ProgressEvent
from sameas.extraction.folder_names import QUARANTINE, is_key
from sameas.extraction.graph import KnowledgeGraph
from sameas.extraction.journal import read_journal
from sameas.extraction.metadata import (
    ARTEFACTS,
    EVENTS,
    METADATA,
    AuditError,
    FileDigest,
    RunMetadata,
    RunStatus,
    instant,
    seconds_of,
)
from sameas.extraction.results import ResultTables
from sameas.extraction.run_folder import RunDamagedError, RunFolder, size_of
from sameas.extraction.run_record import RunRecords
from sameas.extraction.size_bound import Kept, is_look_due, least_recent
from sameas.extraction.spending import SpendingFile
from sameas.identity.key import key_prefix

__all__ = ["Rescan", "Run", "RunAmbiguousError", "RunDamagedError", "RunMetadata", "RunNotFoundError", "Runs"]

_TOUCH_EVERY = 3600.0
_PREFIX = "sha256-"

# A name of its own: inside the class, `list` is the method.
MetadataList: TypeAlias = list[RunMetadata]


class RunNotFoundError(LookupError):
    """No run has this key."""


class RunAmbiguousError(LookupError):
    """Several runs have a key that begins so."""

    def __init__(self, prefix: str, keys: list[str]) -> None:
        self.keys = tuple(keys)
        super().__init__(f"{prefix!r} is the start of {len(keys)} keys; type more of it: {', '.join(keys)}")


class Run:
    """One run, as its folder tells it."""

    def __init__(self, folder: RunFolder, metadata: RunMetadata) -> None:
        self._folder = folder
        self.folder = folder.path
        self.metadata = metadata

    @property
    def key(self) -> str:
        return self.metadata.idempotency_key

    def graph(self) -> KnowledgeGraph:
        """What was found, whole or in part; every file is checked."""
        return self._folder.graph(self.metadata)

    def artefact(self, name: str) -> bytes:
        """A file of the result, checked."""
        return self._folder.read(name, self.metadata)

    def events(self, after: int = 0) -> Iterator[ProgressEvent]:
        """What the run told, from the event after this number."""
        return read_journal(self._folder.journal_path, after=after)


class Rescan(msgspec.Struct, frozen=True, kw_only=True):
    """What a rescan put right, by key."""

    recorded: tuple[str, ...] = ()
    saved: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()
    quarantined: tuple[str, ...] = ()


class Runs:
    """The folder `runs/` of one tenant."""

    def __init__(
        self,
        folder: Path,
        *,
        records: RunRecords,
        tables: ResultTables | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._path = folder
        self._records = records
        self._tables = tables
        self._clock = clock

    def at(self, key: str) -> RunFolder:
        """The folder of a key, whether it is there or not."""
        return RunFolder(self._path, key)

    def list(
        self, *, status: RunStatus | None = None, ontology: str | None = None, limit: int | None = None
    ) -> MetadataList:
        """The runs, newest first; those whose metadata cannot be read are left to `rescan`."""
        found = [
            metadata
            for key in self._keys()
            if (metadata := self.at(key).peek()) is not None
            and (status is None or metadata.status == status)
            and (ontology is None or metadata.ontology_id == ontology)
        ]
        found.sort(key=lambda metadata: (metadata.started_at, metadata.idempotency_key), reverse=True)
        return found[:limit]

    def find(self, prefix: str) -> Run:
        """The run with this key, or the only one whose key begins so (8 hex digits or more)."""
        start = _PREFIX + key_prefix(prefix)
        keys = {key for key in self._keys() if key.startswith(start)}
        if self._tables is not None:
            keys.update(self._tables.keys(start))
        if not keys:
            raise RunNotFoundError(f"no run has a key that begins with {prefix!r}; list the runs to see their keys")
        if len(keys) > 1:
            raise RunAmbiguousError(prefix, sorted(keys))
        (key,) = keys
        folder = self.at(key)
        if not folder.exists():
            self.restore(key)
        return Run(folder, folder.metadata())

    def events(self, prefix: str, *, after: int = 0) -> Iterator[ProgressEvent]:
        """The journal of a run."""
        return self.find(prefix).events(after)

    def remove(self, key: str) -> None:
        """Delete a run: its record, its rows, its folder. A worker that is still at it is fenced."""
        folder = self.at(key)
        metadata = folder.peek()
        forgotten = self._records.forget(key)
        if self._tables is not None:
            self._tables.remove(key, ontology_id=metadata.ontology_id if metadata else "")
        if not folder.remove() and not forgotten:
            raise RunNotFoundError(f"there is no run {key}; list the runs to see their keys")

    def touch(self, key: str) -> None:
        """The result was used; noted at most once an hour."""
        path, now = self.at(key).path, self._clock()
        try:
            if path.stat().st_mtime > now - _TOUCH_EVERY:
                return
            os.utime(path, (now, now))
        except FileNotFoundError:
            return
        if self._tables is not None:
            self._tables.touch(key)

    def bound(self, key: str, *, max_bytes: int) -> tuple[str, ...]:
        """After a run: once in a while, see to the bound."""
        if not is_look_due(key, size=self.at(key).size(), bound=max_bytes):
            return ()
        return self.prune(max_bytes=max_bytes, keep=key)

    def prune(self, *, max_bytes: int, keep: str = "") -> tuple[str, ...]:
        """Remove the least recently used runs until the rest fits, none under way; returns their keys."""
        kept = [Kept(path.stat().st_mtime, size_of(path), path) for path in (self._path / QUARANTINE).glob("*-*")]
        for key in self._keys():
            folder = self.at(key)
            metadata = folder.peek()
            try:
                if metadata is None or not (metadata.is_under_way and self._records.is_held(key)):
                    kept.append(Kept(folder.path.stat().st_mtime, folder.size(), folder.path))
            except FileNotFoundError:
                continue
        gone = []
        for one in least_recent(kept, bound=max_bytes):
            if not is_key(one.path.name):
                shutil.rmtree(one.path, ignore_errors=True)
            elif one.path.name != keep:
                self.remove(one.path.name)
                gone.append(one.path.name)
        return tuple(gone)

    def clear_quarantine(self) -> int:
        """Delete what was set aside; returns how many folders went."""
        aside = [path for path in (self._path / QUARANTINE).glob("*") if path.is_dir()]
        for path in aside:
            shutil.rmtree(path, ignore_errors=True)
        return len(aside)

    def supersede(self, ontology_id: str, *, new_version: str) -> tuple[str, ...]:
        """Mark the runs of an ontology's other versions; their folders stay until they are pruned."""
        now = instant(self._clock())
        marked = []
        for metadata in self.list(ontology=ontology_id):
            if metadata.ontology_version == new_version or metadata.superseded_at or metadata.is_under_way:
                continue
            folder = self.at(metadata.idempotency_key)
            write_durably(folder.path / METADATA, replace(metadata, superseded_at=now).to_json())
            marked.append(folder.key)
        return tuple(marked)

    def restore(self, key: str) -> RunMetadata | None:
        """Write the folder of a result that only the database has; its events are not kept there."""
        kept = self._tables.load(key) if self._tables is not None else None
        if kept is None or kept.metadata.superseded_at:
            return None
        named = {name: kept.metadata.files.get(name) for name in ARTEFACTS}
        if named != {name: FileDigest.of(data) for name, data in kept.contents.items()}:
            return None
        files = {name: digest for name, digest in kept.metadata.files.items() if name != EVENTS}
        metadata = replace(kept.metadata, files=files)
        folder = self.at(key)
        folder.prepare()
        folder.write_artefacts({name: methodcaller("write", data) for name, data in kept.contents.items()})
        write_durably(folder.path / METADATA, metadata.to_json())
        return metadata

    def set_aside(self, key: str, *, fence: int | None = None) -> Path | None:
        """Move a damaged run to the quarantine and forget its record, unless somebody did it meanwhile.

        `fence` is that of the record which led to the damage; a later one stands for other work.
        """
        with self._alone():
            if fence is not None and self._records.fence(key) not in (fence, None):
                return None
            place = self.at(key).set_aside()
            self._records.forget(key)
        return place

    def rescan(self) -> Rescan:
        """Put right what a crash left between the folders, the records and the database."""
        recorded, saved, ended, quarantined = [], [], [], []
        for key in self._keys():
            folder = self.at(key)
            if self._records.is_held(key):
                continue
            try:
                metadata = folder.metadata()
                if metadata.status == "complete":
                    folder.result()
                    if metadata.superseded_at or self._is_over(metadata):
                        continue
                    if self._records.remake(metadata):
                        recorded.append(key)
                    if self._tables is not None and self._tables.load(key) is None:
                        self._save(folder, metadata, self._tables)
                        saved.append(key)
                elif metadata.is_under_way:
                    self._say_ended(folder, metadata)
                    ended.append(key)
            except RunDamagedError:
                if self.set_aside(key) is not None:
                    quarantined.append(key)
        return Rescan(recorded=tuple(recorded), saved=tuple(saved), ended=tuple(ended), quarantined=tuple(quarantined))

    def _save(self, folder: RunFolder, metadata: RunMetadata, tables: ResultTables) -> None:
        contents = {name: folder.read(name, metadata) for name in ARTEFACTS}
        left = seconds_of(metadata.completed_at or metadata.started_at) + self._records.retention - self._clock()
        tables.save(metadata, contents, keep_for=left, audit={})

    def _is_over(self, metadata: RunMetadata) -> bool:
        completed_at = seconds_of(metadata.completed_at or metadata.started_at)
        return completed_at + self._records.retention <= self._clock()

    def _say_ended(self, folder: RunFolder, metadata: RunMetadata) -> None:
        now = instant(self._clock())
        error = AuditError(timestamp=now, type="internal_error", message="its worker ended without a word")
        usage = SpendingFile(folder.path).read(metadata.usage)
        folder.write_metadata(
            replace(metadata, status="partial", completed_at=now, errors=(*metadata.errors, error), usage=usage)
        )

    def _keys(self) -> tuple[str, ...]:
        try:
            with os.scandir(self._path) as entries:
                return tuple(entry.name for entry in entries if is_key(entry.name) and entry.is_dir())
        except FileNotFoundError:
            return ()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One process and thread at a time: comparing a fence and forgetting its record are two steps."""
        self._path.mkdir(parents=True, exist_ok=True)
        with (self._path / ".lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
