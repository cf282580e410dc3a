"""The runs of a tenant: list, find, read, remove, repair, and keep within a size.

Rule: the folders are the truth. A run exists if its folder does, so there is no index to lose; `rescan` corrects the
records of the once engine and the rows of a database from the folders. Removing a run forgets its record first, so that
no caller is sent to a folder that is being deleted.
"""

import fcntl
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from operator import methodcaller
from pathlib import Path
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from sameas.extraction.events.events import ProgressEvent
from sameas.extraction.events.journal import read_journal
from sameas.extraction.graph.model import KnowledgeGraph
from sameas.extraction.pipeline.checkpoints import UsedFile, UseNotes
from sameas.extraction.runs.caches import RunCaches
from sameas.extraction.runs.checkpoint_file import KeptItem, is_look_due, least_recent
from sameas.extraction.runs.durable_file import write_durably
from sameas.extraction.runs.folder import (
    QUARANTINE,
    Mark,
    RunDamagedError,
    RunFolder,
    RunOrder,
    forget_ontologies,
    is_key,
    ontology_file,
    read_ontology,
    read_text,
    size_of,
)
from sameas.extraction.runs.metadata import (
    ARTEFACTS,
    EVENTS,
    METADATA,
    AuditError,
    FileDigest,
    RunMetadata,
    RunStatus,
    SpendingFile,
    instant,
    seconds_of,
)
from sameas.extraction.runs.record import RunRecords
from sameas.extraction.runs.results import ResultTables
from sameas.extraction.runs.review_file import ReviewFile
from sameas.extraction.runs.run_objects import RunObjects, read_place
from sameas.identity.errors import SameasError
from sameas.identity.key import key_prefix
from sameas.ontology.model import Ontology

__all__ = ["Rescan", "Run", "RunAmbiguousError", "RunDamagedError", "RunMetadata", "RunNotFoundError", "Runs"]

_TOUCH_EVERY = 3600.0
_PREFIX = "sha256-"

# A name of its own: inside the class, `list` is the method.
MetadataList: TypeAlias = list[RunMetadata]


class RunNotFoundError(SameasError, LookupError):
    """No run has this key."""


class RunAmbiguousError(SameasError, LookupError):
    """Several runs have a key that begins so."""

    def __init__(self, prefix: str, keys: list[str]) -> None:
        self.keys = tuple(keys)
        super().__init__(f"{prefix!r} is the start of {len(keys)} keys; type more of it: {', '.join(keys)}")


class Run:
    """One run, read from its folder."""

    def __init__(self, folder: RunFolder, metadata: RunMetadata, *, objects: RunObjects | None = None) -> None:
        self._folder = folder
        self._objects = objects
        self.folder = folder.path
        self.metadata = metadata

    @property
    def key(self) -> str:
        return self.metadata.idempotency_key

    def graph(self) -> KnowledgeGraph:
        """What was found, whole or in part; every file is checked."""
        return self._folder.graph(self.metadata)

    def text(self) -> str | None:
        """The normalised text, which all offsets refer to; None if it is not kept here."""
        return read_text(self._folder, self.metadata)

    def ontology(self) -> Ontology | None:
        """The ontology as it was then; None if it is not kept here."""
        runs, version = self._folder.path.parent, self.metadata.ontology_version
        if self._objects is not None:
            self._objects.fetch_ontology(ontology_file(runs, version))
        return read_ontology(runs, version)

    def artefact(self, name: str) -> bytes:
        """A file of the result, checked."""
        return self._folder.read(name, self.metadata)

    def review(self) -> ReviewFile:
        """What reviewers decided about the document of this run."""
        return ReviewFile(self._folder.path.parent, self.metadata, objects=self._objects)

    def events(self, after: int = 0) -> Iterator[ProgressEvent]:
        """The events of the run after this number."""
        return read_journal(self._folder.journal_path, after=after)


class Rescan(msgspec.Struct, frozen=True, kw_only=True):
    """What a rescan corrected, by key."""

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
        caches: RunCaches | None = None,
        objects: RunObjects | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._path = folder
        self._order = RunOrder(folder)
        self._caches = caches
        self._records = records
        self._tables = tables
        self.objects = objects
        self._clock = clock

    def refresh(self, key: str, *, place: str = "", anew: bool = False) -> None:
        """If runs are kept as objects, bring the folder up to date: with a given place, or with the newest attempt."""
        if self.objects is not None:
            self.objects.refresh(self.at(key), place=place, anew=anew)

    def place(self, key: str) -> str:
        """The place of the objects that the folder is a copy of; empty if there are none."""
        return "" if self.objects is None else read_place(self.at(key)).partition("/")[0]

    def at(self, key: str) -> RunFolder:
        """The folder of a key, whether it is there or not."""
        return RunFolder(self._path, key, is_copy=self.objects is not None)

    def noting(self, key: str) -> UseNotes:
        """Where a run notes what it uses of the caches."""
        path = self.at(key).used_path
        return UsedFile(path) if self._caches is None else self._caches.noting(key, path)

    def list(
        self, *, status: RunStatus | None = None, ontology: str | None = None, limit: int | None = None
    ) -> MetadataList:
        """The runs, newest first; those whose metadata cannot be read are left to `rescan`."""
        return [*islice(self.newest(status=status, ontology=ontology), limit)]

    def newest(
        self, *, status: RunStatus | None = None, ontology: str | None = None, after: str | None = None
    ) -> Iterator[RunMetadata]:
        """The runs after this key, newest first; each is read when its turn comes."""
        marks = self._marks()
        if after is not None:
            places = [number for number, mark in enumerate(marks) if mark.key == after]
            marks = marks[places[-1] + 1 :] if places else []
        for mark in marks:
            metadata = self._fresh(mark.key)
            if metadata is None or metadata.started_at != mark.started_at:
                if metadata is None or metadata.started_at > mark.started_at:
                    # Of a run that was deleted, or of an attempt before.
                    self._order.remove(mark)
                continue
            if (status is None or metadata.status == status) and (ontology is None or metadata.ontology_id == ontology):
                yield metadata

    def count(self) -> int:
        """The number of runs, in any state."""
        return len(self._keys())

    def _fresh(self, key: str) -> RunMetadata | None:
        """The state of a run, wherever it is worked on."""
        metadata = self.at(key).peek()
        if self.objects is not None and (metadata is None or metadata.is_under_way):
            self.refresh(key)
            metadata = self.at(key).peek()
        return metadata

    def _marks(self) -> Sequence[Mark]:
        """When each run began, newest first; a run without a mark gets one."""
        if self.objects is not None:
            return self.objects.marks()
        marks, keys = self._order.marks(), set(self._keys())
        for key in keys - {mark.key for mark in marks}:
            metadata = self.at(key).peek()
            if metadata is not None:
                mark = Mark(metadata.started_at, key)
                self._order.add(mark)
                marks.add(mark)
        return sorted(marks, reverse=True)

    def find(self, prefix: str) -> Run:
        """The run with this key, or the only one whose key begins so (8 hex digits or more)."""
        start = _PREFIX + key_prefix(prefix)
        keys = {key for key in self._keys() if key.startswith(start)}
        if self._tables is not None:
            keys.update(self._tables.keys(start))
        if self.objects is not None:
            if is_key(start):
                self.refresh(start)
                keys = {start} if self.at(start).exists() else keys
            else:
                keys.update(mark.key for mark in self.objects.marks() if mark.key.startswith(start))
        if not keys:
            raise RunNotFoundError(f"no run has a key that begins with {prefix!r}; list the runs to see their keys")
        if len(keys) > 1:
            raise RunAmbiguousError(prefix, sorted(keys))
        (key,) = keys
        folder = self.at(key)
        if self.objects is not None and not is_key(start):
            self.refresh(key)
        if not folder.exists():
            self.restore(key)
        return Run(folder, folder.metadata(), objects=self.objects)

    def events(self, prefix: str, *, after: int = 0) -> Iterator[ProgressEvent]:
        """The journal of a run."""
        return self.find(prefix).events(after)

    def remove(self, key: str) -> None:
        """Delete a run: its record, its rows, its folder, and what the caches have of it. A worker that still works on
        it is fenced off. Raises RunNotFoundError.
        """
        folder = self.at(key)
        metadata = folder.peek()
        was_used = self._caches is not None and self._caches.forget_run(folder, asked_model=_asked_model(metadata))
        # The list of what to delete is deleted last.
        was_there = [self._drop(key), folder.remove_copies(), was_used]
        if metadata is not None:
            ReviewFile(self._path, metadata, objects=self.objects).forget_run(self._is_there)
        if not any(was_there):
            raise RunNotFoundError(f"there is no run {key}; list the runs to see their keys")

    def _is_there(self, key: str) -> bool:
        return self.at(key).exists() if self.objects is None else bool(self.objects.names(key))

    def clear_caches(self) -> None:
        """Delete every checkpoint and every reply of a model, whichever run they are of."""
        if self._caches is not None:
            self._caches.clear()

    def clear_ontologies(self) -> None:
        """Delete kept ontologies that no run refers to."""
        needed = {metadata.ontology_version for metadata in self.newest()}
        forget_ontologies(self._path, needed=needed)
        if self.objects is not None:
            self.objects.forget_ontologies(needed={ontology_file(self._path, version).name for version in needed})

    def touch(self, key: str) -> None:
        """Note that the result was used, at most once an hour."""
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
        """Enforce the size bound now and then; called after each run."""
        if not is_look_due(key, size=self.at(key).size(), bound=max_bytes):
            return ()
        return self.prune(max_bytes=max_bytes, keep=key)

    def prune(self, *, max_bytes: int, keep: str = "") -> tuple[str, ...]:
        """Remove the least recently used runs until the rest fits, but none that is under way; returns their keys."""
        kept = [KeptItem(path.stat().st_mtime, size_of(path), path) for path in (self._path / QUARANTINE).glob("*-*")]
        for key in self._keys():
            folder = self.at(key)
            metadata = folder.peek()
            try:
                if metadata is None or not (metadata.is_under_way and self._records.is_held(key)):
                    kept.append(KeptItem(folder.path.stat().st_mtime, folder.size(), folder.path))
            except FileNotFoundError:
                continue
        gone = []
        for one in least_recent(kept, bound=max_bytes):
            if not is_key(one.path.name):
                shutil.rmtree(one.path, ignore_errors=True)
            elif one.path.name != keep:
                if self.objects is not None:
                    # A copy: what it is a copy of stays.
                    self.at(one.path.name).remove()
                else:
                    self._drop(one.path.name)
                gone.append(one.path.name)
        return tuple(gone)

    def clear_quarantine(self) -> int:
        """Delete the folders in the quarantine; returns their number."""
        aside = [path for path in (self._path / QUARANTINE).glob("*") if path.is_dir()]
        for path in aside:
            shutil.rmtree(path, ignore_errors=True)
        return len(aside)

    def supersede(self, ontology_id: str, *, new_version: str, tell: bool = True) -> tuple[str, ...]:
        """Mark the runs of an ontology's other versions; their folders stay until they are pruned. Without `tell` only
        the copies of this home: what is fetched later is marked already.
        """
        now = instant(self._clock())
        marked = []
        for key in self._keys():
            folder = self.at(key)
            metadata = folder.peek()
            if metadata is None or metadata.ontology_id != ontology_id or metadata.ontology_version == new_version:
                continue
            if metadata.superseded_at or metadata.is_under_way:
                continue
            write_durably(folder.path / METADATA, replace(metadata, superseded_at=now).to_json())
            marked.append(key)
        if self.objects is not None and tell:
            self.objects.supersede(ontology_id, version=new_version, at=now)
        return tuple(marked)

    def restore(self, key: str) -> RunMetadata | None:
        """Write the folder of a result that only the database has, without its events."""
        if self.objects is not None and self.at(key).exists():
            return self.at(key).peek()
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
        self._order.add(Mark(metadata.started_at, key))
        write_durably(folder.path / METADATA, metadata.to_json())
        return metadata

    def set_aside(self, key: str, *, fence: int | None = None) -> Path | None:
        """Move a damaged run to the quarantine and forget its record, unless another worker already did.

        `fence` is that of the record which led to the damage; a later one stands for other work.
        """
        with self._alone():
            if fence is not None and self._records.fence(key) not in (fence, None):
                return None
            place = self.at(key).set_aside()
            self._records.forget(key)
        return place

    def rescan(self) -> Rescan:
        """Correct what a crash left inconsistent between the folders, the records and the database."""
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

    def _drop(self, key: str) -> bool:
        """Delete a run, and leave the caches to others that have the same text; False where there was none."""
        folder = self.at(key)
        metadata = folder.peek()
        forgotten = self._records.forget(key)
        if self._tables is not None:
            self._tables.remove(key, ontology_id=metadata.ontology_id if metadata else "")
        removed = folder.remove()
        if self.objects is not None:
            removed = self.objects.remove(key) or removed
        folder.used_path.unlink(missing_ok=True)
        if self._caches is not None:
            self._caches.forget_uses(key)
        return removed or forgotten

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

    def here(self, *, ontology: str | None = None) -> Sequence[str]:
        """The keys of the runs that this home has something of, be it a copy."""
        if ontology is None:
            return self._keys()
        known = ((key, self.at(key).peek()) for key in self._keys())
        return [key for key, metadata in known if metadata is not None and metadata.ontology_id == ontology]

    def _keys(self) -> tuple[str, ...]:
        try:
            with os.scandir(self._path) as entries:
                return tuple(entry.name for entry in entries if is_key(entry.name) and entry.is_dir())
        except FileNotFoundError:
            return ()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Exclude other processes and threads: comparing a fence and forgetting its record are two steps."""
        self._path.mkdir(parents=True, exist_ok=True)
        with (self._path / ".lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _asked_model(metadata: RunMetadata | None) -> bool:
    """Whether a run may have asked a model; of one that cannot be read that is not known."""
    return metadata is None or metadata.extractor.name.startswith("model:")
