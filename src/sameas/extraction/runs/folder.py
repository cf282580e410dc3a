"""The folder of one run, `runs/{key}/`: its name, its files, whether they are whole, and how damage is set aside.

Rule: a result is believed only if its metadata says complete and every artefact has the digest that the metadata gives;
anything else is damage, with a reason for people. A writer shows its fence; one that was replaced is refused. Only a
digest, or a name that is harmless by its very letters, becomes the name of a folder; any other name is replaced by its
digest. No tenant's folder can have the name of a run or of another tenant's folder, even on a file system that ignores
case. Text and ontology of a run are kept beside its result; either may be missing, for instance after a result came
back from a database, and is then reported as missing.
"""

import hashlib
import os
import re
import shutil
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, TypeAlias

import msgspec

from sameas.extraction.events.journal import FileJournal, JournalDamagedError, read_journal
from sameas.extraction.graph.model import Entity, Graph, KnowledgeGraph, Rejection, Relation
from sameas.extraction.outputs import Writable
from sameas.extraction.runs.durable_file import settle_folder, sweep, write_copy, write_durably, writing
from sameas.extraction.runs.metadata import (
    ARTEFACTS,
    ENTITIES,
    EVENTS,
    METADATA,
    REJECTED,
    RELATIONS,
    FileDigest,
    RunMetadata,
)
from sameas.identity.errors import SameasError
from sameas.identity.key import normalize_text
from sameas.ontology.model import Ontology

_KEY = re.compile(r"sha256-[0-9a-f]{64}")
_SAFE = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_MADE = re.compile(r"tenant-[0-9a-f]{64}")
_NOBODY = "_"

QUARANTINE = ".quarantine"
USED = ".used"
STARTED = ".started"
TEXT = "text.txt"
ONTOLOGIES = ".ontologies"
_BETWEEN = "~"
_REMOVAL_TRIES = 5
# The layout of a kept ontology; another one is not read.
_LAYOUT = b"sameas-ontology-1\n"
_ontology = msgspec.msgpack.Decoder(Ontology)
_entities = msgspec.json.Decoder(tuple[Entity, ...])
_relations = msgspec.json.Decoder(tuple[Relation, ...])
_rejected = msgspec.json.Decoder(tuple[Rejection, ...])


def is_key(name: str) -> bool:
    """Whether a name is a whole extraction key."""
    return _KEY.fullmatch(name) is not None


def key_folder(key: str) -> str:
    """The folder name of a run. Raises ValueError if it is not a key."""
    if not is_key(key):
        raise ValueError(f"{key!r} is not an extraction key: it must be 'sha256-' and 64 hex digits")
    return key


def tenant_folder(tenant: str) -> str:
    """The folder name of a tenant; `_` stands for the anonymous one."""
    if not tenant:
        return _NOBODY
    if _SAFE.fullmatch(tenant) and not is_key(tenant) and not _MADE.fullmatch(tenant):
        return tenant
    return "tenant-" + hashlib.sha256(tenant.encode("utf-8", "surrogatepass")).hexdigest()


class Mark(NamedTuple):
    """When a run began, as its metadata writes it, and its key."""

    started_at: str
    key: str


class RunOrder:
    """When each run of a tenant began, as the names of empty files, so that runs can be listed in that order."""

    def __init__(self, runs: Path) -> None:
        self._path = runs / STARTED

    def marks(self) -> set[Mark]:
        """All marks, in no order."""
        try:
            with os.scandir(self._path) as entries:
                parted = (entry.name.partition(_BETWEEN) for entry in entries)
                return {Mark(started_at, key) for started_at, _, key in parted if is_key(key)}
        except FileNotFoundError:
            return set()

    def add(self, mark: Mark) -> None:
        self._path.mkdir(parents=True, exist_ok=True)
        self._file(mark).touch()

    def remove(self, mark: Mark) -> None:
        self._file(mark).unlink(missing_ok=True)

    def _file(self, mark: Mark) -> Path:
        return self._path / f"{mark.started_at}{_BETWEEN}{mark.key}"


class RunDamagedError(SameasError):
    """The folder of a run is torn, incomplete or was changed; extract again to have it redone."""


class RunReplacedError(SameasError):
    """Another worker took this run over; what this one still has is not accepted."""


class Stored(NamedTuple):
    """A result as it was read and checked."""

    metadata: RunMetadata
    graph: Graph


Write: TypeAlias = Callable[[Writable], object]
"""Writes the content of a file to it."""


class RunFolder:
    """The files of one run. A copy of objects need not outlive a power cut."""

    def __init__(self, runs: Path, key: str, *, is_copy: bool = False) -> None:
        self.key = key
        self._is_copy = is_copy
        self.path = runs / key_folder(key)
        self.used_path = runs / USED / key_folder(key)
        self._quarantine = runs / QUARANTINE

    @property
    def journal_path(self) -> Path:
        return self.path / EVENTS

    def exists(self) -> bool:
        return self.path.is_dir()

    def is_blank(self) -> bool:
        """Whether nothing was written yet: no folder, or one whose maker was killed at once."""
        return not self.exists() or not any(_size(path) for path in self.path.iterdir())

    def peek(self) -> RunMetadata | None:
        """The metadata if it can be read, without a word if not."""
        try:
            return self.metadata()
        except RunDamagedError:
            return None

    def metadata(self) -> RunMetadata:
        try:
            metadata = RunMetadata.from_json((self.path / METADATA).read_bytes())
        except FileNotFoundError:
            raise RunDamagedError(f"{METADATA} is missing") from None
        except ValueError as error:
            raise RunDamagedError(f"{METADATA} cannot be read: {error}") from error
        if metadata.idempotency_key != self.key:
            raise RunDamagedError(f"{METADATA} is of another run, {metadata.idempotency_key}")
        return metadata

    def result(self, *, digest: str | None = None) -> Stored:
        """The whole result, every file checked; `digest` is what the record of the run says it is."""
        metadata = self.metadata()
        if metadata.status != "complete":
            raise RunDamagedError(f"{METADATA} says {metadata.status}, but the run was completed")
        if digest is not None and metadata.digest() != digest:
            raise RunDamagedError(f"{METADATA} is not what was accepted")
        missing = [name for name in ARTEFACTS if name not in metadata.files]
        if missing:
            raise RunDamagedError(f"{METADATA} does not list {', '.join(missing)}")
        return Stored(metadata, self.graph(metadata))

    def graph(self, metadata: RunMetadata) -> KnowledgeGraph:
        """What the run found, whole or in part, every file that the metadata lists checked."""
        contents = {name: self._checked(name, metadata.files[name]) for name in ARTEFACTS if name in metadata.files}
        journal = metadata.files.get(EVENTS)
        if journal is not None and _size(self.journal_path) != journal.size:
            raise RunDamagedError(f"{EVENTS} has not the size that {METADATA} gives")
        try:
            graph = KnowledgeGraph(
                entities=_entities.decode(contents.get(ENTITIES, b"[]")),
                relations=_relations.decode(contents.get(RELATIONS, b"[]")),
                rejected=_rejected.decode(contents.get(REJECTED, b"[]")),
                notes=metadata.notes,
            )
        except ValueError as error:
            raise RunDamagedError(f"an artefact is not of this version: {error}") from error
        counted = (len(graph.entities), len(graph.relations))
        if contents and counted != (metadata.entity_count, metadata.relation_count):
            raise RunDamagedError(f"{METADATA} counts other entities or relations than the files hold")
        return graph

    def read(self, name: str, metadata: RunMetadata) -> bytes:
        """One artefact, checked."""
        digest = metadata.files.get(name)
        if digest is None:
            raise RunDamagedError(f"{METADATA} does not list {name}")
        return self._checked(name, digest)

    def check_journal(self) -> None:
        """Read the journal to its end; damage in its middle is damage of the run."""
        try:
            for _ in read_journal(self.journal_path):
                pass
        except JournalDamagedError as error:
            raise RunDamagedError(str(error)) from error

    def prepare(self) -> None:
        """Make the folder, and clear away what a killed writer left."""
        if not self.path.is_dir():
            self.path.mkdir(parents=True, exist_ok=True)
            if not self._is_copy:
                settle_folder(self.path.parent)
        sweep(self.path)

    def open_journal(self, *, anew: bool) -> FileJournal:
        """The journal to write to, under a new inode: what a replaced worker still appends reaches nobody."""
        copy = self.path / f".{EVENTS}-copy.writing"
        if anew or not self.journal_path.exists():
            copy.write_bytes(b"")
        else:
            shutil.copyfile(self.journal_path, copy)
        if self._is_copy:
            copy.replace(self.journal_path)
            return FileJournal(self.journal_path, forced=False)
        with copy.open("rb") as file:
            os.fsync(file.fileno())
        copy.replace(self.journal_path)
        settle_folder(self.path)
        return FileJournal(self.journal_path)

    def write_metadata(self, metadata: RunMetadata) -> None:
        """Replace the metadata, unless a later worker has written it."""
        current = self.peek()
        if current is not None and current.fence > metadata.fence:
            raise RunReplacedError
        if not self.exists():
            raise RunReplacedError
        write = write_copy if self._is_copy else write_durably
        write(self.path / METADATA, metadata.to_json())

    def write_artefacts(self, contents: Mapping[str, Write]) -> dict[str, FileDigest]:
        """Write the files of a result and give their digests; they count once the metadata lists them."""
        digests = {}
        for name, write in contents.items():
            with writing(self.path / name, settle=False, forced=not self._is_copy) as file:
                counted = _Counted(file)
                write(counted)
            digests[name] = counted.digest()
        if not self._is_copy:
            settle_folder(self.path)
        return digests

    def set_aside(self) -> Path | None:
        """Move the folder to the quarantine; None where it is gone already."""
        self._quarantine.mkdir(parents=True, exist_ok=True)
        number = 1
        while True:
            place = self._quarantine / f"{self.key}-{number}"
            try:
                if not place.exists():
                    self.path.rename(place)
                    settle_folder(self._quarantine)
                    return place
            except FileNotFoundError:
                return None
            except OSError:
                if not place.exists():
                    raise
            number += 1

    def remove(self) -> bool:
        """Delete the folder, moved away first so that nobody reads half of it; False where there is none."""
        place = self.set_aside()
        if place is not None:
            remove_tree(place)
        return place is not None

    def remove_copies(self) -> bool:
        """Delete what was set aside of this run; False where there was nothing."""
        places = list(self._quarantine.glob(f"{self.key}-*"))
        for place in places:
            remove_tree(place)
        return bool(places)

    def size(self) -> int:
        return size_of(self.path)

    def _checked(self, name: str, expected: FileDigest) -> bytes:
        try:
            data = (self.path / name).read_bytes()
        except FileNotFoundError:
            raise RunDamagedError(f"{name} is missing") from None
        if FileDigest.of(data) != expected:
            raise RunDamagedError(f"{name} has not the digest that {METADATA} gives")
        return data


class _Counted:
    """Passes on what is written and keeps its digest."""

    def __init__(self, target: Writable) -> None:
        self._target = target
        self._hash = hashlib.sha256()
        self._size = 0

    def write(self, data: bytes, /) -> int:
        self._target.write(data)
        self._hash.update(data)
        self._size += len(data)
        return len(data)

    def digest(self) -> FileDigest:
        return FileDigest(self._hash.hexdigest(), self._size)


def remove_tree(folder: Path) -> None:
    """Delete a folder even while a late writer may still add to it; raises OSError if that fails."""
    for _ in range(_REMOVAL_TRIES - 1):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
    with suppress(FileNotFoundError):
        shutil.rmtree(folder)


def size_of(folder: Path) -> int:
    """The bytes of a run's files; 0 if there is no folder."""
    return sum(_size(path) for path in folder.iterdir()) if folder.is_dir() else 0


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def keep_text(folder: RunFolder, text: str | Iterable[str]) -> None:
    """Write the normalised text of a run; pieces must be normalised already."""
    pieces = (normalize_text(text),) if isinstance(text, str) else text
    # Not forced to the disk: what a power cut leaves has another digest, and is not believed.
    unready = folder.path / f".{TEXT}.writing"
    with unready.open("wb") as target:
        for piece in pieces:
            target.write(piece.encode("utf-8", "surrogatepass"))
    unready.replace(folder.path / TEXT)


def read_text(folder: RunFolder, metadata: RunMetadata) -> str | None:
    """The text that offsets of the run refer to; None if it is missing or is not the run's."""
    try:
        data = (folder.path / TEXT).read_bytes()
    except FileNotFoundError:
        return None
    return data.decode() if hashlib.sha256(data).hexdigest() == metadata.text_hash else None


def keep_ontology(runs: Path, ontology: Ontology) -> Path:
    """Write an ontology once for all runs of its version; returns its file."""
    path = ontology_file(runs, ontology.version)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with writing(path) as target:
            target.write(_LAYOUT + msgspec.msgpack.encode(ontology))
    return path


def read_ontology(runs: Path, version: str) -> Ontology | None:
    """The ontology of a version; None if it is missing or was written by another release."""
    try:
        data = ontology_file(runs, version).read_bytes()
    except FileNotFoundError:
        return None
    if not data.startswith(_LAYOUT):
        return None
    try:
        return _ontology.decode(data[len(_LAYOUT) :])
    except msgspec.DecodeError:
        return None


def forget_ontologies(runs: Path, *, needed: Iterable[str]) -> None:
    """Delete the ontologies that are not needed."""
    kept = {ontology_file(runs, version).name for version in needed}
    for path in (runs / ONTOLOGIES).glob("*"):
        if path.name not in kept:
            path.unlink(missing_ok=True)


def ontology_file(runs: Path, version: str) -> Path:
    """The file of an ontology version."""
    # A version may be any text; its digest is a harmless name.
    return runs / ONTOLOGIES / hashlib.sha256(version.encode("utf-8", "surrogatepass")).hexdigest()
