"""A run as objects that every machine sees: its journal while it grows, its files when it has ended.

Rule: an attempt has a place of its own, named by its fence, so that a late writer harms nobody; the accepted record
names the place. A journal is segments, because objects cannot be added to; numbers go on from attempt to attempt, and
what a replaced worker still writes is not read. The folder of a run is a copy of what is here, made where it is needed,
and believed by the digests of its metadata.

    runs/{tenant}/{key}/{fence}/events/{first}-{last}   lines of the journal
    runs/{tenant}/{key}/{fence}/metadata.json           how it stands, while it is under way
    runs/{tenant}/{key}/{fence}/spending.jsonl          what it has spent so far
    runs/{tenant}/{key}/{fence}/result                  all files, once it has ended
    runs/{tenant}/{key}/{fence}/files/{name}            a file that is too large for that
    helpers/{tenant}/{key}/{part}-{id}                  what a helper of a run has spent, until the run has ended
    started/{tenant}/{time}~{key}                       when a run began, the newest first
    ontologies/{tenant}/{digest}                        an ontology of some run, by its version
    superseded/{tenant}/{digest}                        since when results of an ontology's other versions are old
    reviews/{tenant}/{document}/{id}                    a decision of a reviewer
"""

import hashlib
import logging
import re
import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import suppress
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec
from msgspec.structs import replace

from sameas.extraction.events.journal import JournalLine, JournalTail
from sameas.extraction.runs.durable_file import write_copy
from sameas.extraction.runs.folder import TEXT, Mark, RunFolder, is_key, tenant_folder
from sameas.extraction.runs.metadata import EVENTS, METADATA, SPENDING, RunMetadata, seconds_of
from sameas.llm.ledger import UsageRow, joined
from sameas.objects import Objects, ObjectsUnavailable

_LOG = logging.getLogger("sameas")
# Seconds between two uploads of what a run has written; a shorter run is uploaded as a whole.
_EVERY = 0.3
# The same for how it stands, which each stage changes.
_METADATA_EVERY = 1.0
# Bytes of a result that are one object; what is larger has its files beside it.
_TOGETHER = 8 << 20
_SEGMENT = re.compile(r"(\d+)/events/(\d+)-(\d+)")
_PLACE_FILE = ".place"
_RESULT = "result"
# Seconds for which this process believes what it was told about versions.
_KNOWN_FOR = 1.0
# Milliseconds of the year 5138: later runs come first in the order of names.
_FAR = 99_999_999_999_999


class LiveEvents(Protocol):
    """Tells listeners what happens now; a lost message loses nothing."""

    def publish(self, tenant: str, key: str, first: int, lines: list[bytes], *, fence: int) -> None: ...

    def ended(self, tenant: str, key: str) -> None: ...


class _Files(msgspec.Struct):
    """The files of a run; those in `apart` are objects of their own."""

    files: Mapping[str, bytes]
    apart: tuple[str, ...] = ()


class _Superseding(msgspec.Struct):
    """The version of an ontology that counts, since a moment."""

    version: str
    at: str


_rows = msgspec.json.Decoder(tuple[UsageRow, ...])
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Files).decode
_decode_superseding = msgspec.msgpack.Decoder(_Superseding).decode


class JournalSegment(NamedTuple):
    """A part of a journal, with the fence of its writer."""

    first: int
    last: int
    fence: int
    name: str


class RunObjects:
    """The objects of one tenant's runs. Blocking."""

    def __init__(self, objects: Objects, *, tenant: str, live: LiveEvents | None = None) -> None:
        self._objects = objects
        self._tenant = tenant
        self._folder = tenant_folder(tenant)
        self._live = live
        self._known_ontologies: set[str] = set()
        # By the ontology's id: until when it is believed, and what was told.
        self._superseding: dict[str, tuple[float, _Superseding | None]] = {}

    def begin(self, folder: RunFolder, fence: int, *, is_lost: Callable[[], bool]) -> "AttemptUpload":
        """Publish an attempt from now on."""
        return AttemptUpload(self, folder, fence, is_lost=is_lost)

    def refresh(self, folder: RunFolder, *, place: str = "", anew: bool = False) -> None:
        """Bring the folder up to date with a place, or with the newest attempt; with `anew`, even if it seems to be."""
        key = folder.key
        if place:
            if anew or not _is_copy_of(folder, f"{place}/{_RESULT}"):
                self._fetch_result(folder, place)
            return
        names = self.names(key)
        places = sorted({name.partition("/")[0] for name in names if "/" in name}, reverse=True)
        if not places:
            if read_place(folder):
                # The run was deleted elsewhere, and this is its copy.
                folder.remove()
            return
        newest = places[0]
        if f"{newest}/{_RESULT}" in names:
            if anew or not _is_copy_of(folder, f"{newest}/{_RESULT}"):
                self._fetch_result(folder, newest)
        else:
            self._fetch_under_way(folder, newest, names)

    def names(self, key: str) -> set[str]:
        """The names of all objects of a run, relative to its own."""
        root = self._root(key)
        return {one.name.removeprefix(root) for one in self._objects.list(root.rstrip("/"))}

    def lines(self, key: str, *, after: int = 0, names: Iterable[str] | None = None) -> Iterator[JournalLine]:
        """The lines of the journal after this number, as far as they were published."""
        root, number = self._root(key), after
        found = self.names(key) if names is None else set(names)
        places = sorted({name.partition("/")[0] for name in found if "/" in name}, reverse=True)
        if places and f"{places[0]}/{_RESULT}" in found:
            yield from self._ended_lines(key, places[0], after)
            return
        journal = SegmentedJournal(segment for name in found if (segment := _segment(name)) is not None)
        while (segment := journal.at(number + 1)) is not None:
            data = self._objects.get(root + segment.name)
            if data is None:
                return
            for place, line in enumerate(data.splitlines(), segment.first):
                if place > number:
                    number = place
                    yield JournalLine(number, line)

    def remove(self, key: str) -> bool:
        """Delete all objects of a run; returns whether there were any."""
        root = self._root(key)
        names = [one.name for one in self._objects.list(root.rstrip("/"))]
        started = [f"started/{self._folder}/{mark}" for mark in self._started() if mark.endswith(key)]
        helped = [one.name for one in self._objects.list(f"helpers/{self._folder}/{key}")]
        self._objects.delete([*names, *started, *helped])
        return bool(names)

    def tell_spending(self, key: str, name: str, rows: Iterable[UsageRow]) -> None:
        """Write what a helper of a run has spent so far."""
        self._objects.put(f"helpers/{self._folder}/{key}/{name}", msgspec.json.encode(tuple(rows)))

    def take_spending(self, key: str) -> tuple[UsageRow, ...]:
        """Take what helpers of a run have spent and was not counted yet; the caller must count it."""
        names = [one.name for one in self._objects.list(f"helpers/{self._folder}/{key}")]
        told = [data for name in names if (data := self._objects.get(name)) is not None]
        self._objects.delete(names)
        return joined(*map(_rows.decode, told))

    def add_mark(self, mark: Mark) -> None:
        """Note when a run began."""
        earlier = _FAR - round(seconds_of(mark.started_at) * 1000)
        self._objects.put(f"started/{self._folder}/{earlier:014d}~{mark.started_at}~{mark.key}", b"")

    def marks(self) -> list[Mark]:
        """When each run began, newest first."""
        parted = (name.split("~") for name in sorted(self._started()))
        return [Mark(parts[1], parts[2]) for parts in parted if len(parts) == 3 and is_key(parts[2])]

    def keep_ontology(self, file: Path) -> None:
        """Upload an ontology from this machine."""
        name = f"ontologies/{self._folder}/{file.name}"
        if name not in self._known_ontologies and not self._objects.has(name):
            self._objects.put(name, file.read_bytes())
        self._known_ontologies.add(name)

    def fetch_ontology(self, file: Path) -> None:
        """Download an ontology to this machine."""
        if file.exists():
            return
        data = self._objects.get(f"ontologies/{self._folder}/{file.name}")
        if data is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            write_copy(file, data)

    def forget_ontologies(self, *, needed: Container[str]) -> None:
        """Delete the ontologies with all other names."""
        names = [one.name for one in self._objects.list(f"ontologies/{self._folder}")]
        gone = [name for name in names if name.rpartition("/")[2] not in needed]
        self._objects.delete(gone)
        self._known_ontologies.difference_update(gone)

    def decisions(self, document: str) -> list[bytes]:
        """The decisions about a document, in the order in which they were made."""
        names = sorted(one.name for one in self._objects.list(f"reviews/{self._folder}/{document}"))
        return [data for name in names if (data := self._objects.get(name)) is not None]

    def add_decision(self, document: str, id_: str, data: bytes) -> None:
        self._objects.put(f"reviews/{self._folder}/{document}/{id_}", data)

    def forget_decisions(self, document: str) -> None:
        self._objects.delete([one.name for one in self._objects.list(f"reviews/{self._folder}/{document}")])

    def _started(self) -> Iterator[str]:
        root = f"started/{self._folder}/"
        for one in self._objects.list(root.rstrip("/")):
            yield one.name.removeprefix(root)

    def put_result(self, folder: RunFolder, place: str, metadata: RunMetadata) -> None:
        """Upload every file of a run that has ended."""
        files = {METADATA: metadata.to_json()}
        for name in (*metadata.files, TEXT, EVENTS):
            with suppress(FileNotFoundError):
                files[name] = (folder.path / name).read_bytes()
        apart: list[str] = []
        together = sum(map(len, files.values()))
        for name in sorted(files, key=lambda one: -len(files[one])):
            if together <= _TOGETHER or name == METADATA:
                continue
            together -= len(files[name])
            self._objects.put(f"{self._root(folder.key)}{place}/files/{name}", files.pop(name))
            apart.append(name)
        self._objects.put(f"{self._root(folder.key)}{place}/{_RESULT}", _encode(_Files(files, tuple(apart))))
        _write_place(folder, f"{place}/{_RESULT}")

    def supersede(self, ontology_id: str, *, version: str, at: str) -> None:
        """Have the results of an ontology's other versions marked, wherever they are fetched from now on."""
        self._objects.put(self._superseded_name(ontology_id), _encode(_Superseding(version, at)))
        self._superseding.pop(ontology_id, None)

    def put(self, key: str, place: str, name: str, data: bytes) -> None:
        self._objects.put(f"{self._root(key)}{place}/{name}", data)

    def publish(self, key: str, lines: list[JournalLine], *, fence: int) -> None:
        """Tell whoever listens now; what they miss they find here."""
        if self._live is not None and lines:
            self._live.publish(self._tenant, key, lines[0].number, [line.data for line in lines], fence=fence)

    def say_ended(self, key: str) -> None:
        if self._live is not None:
            self._live.ended(self._tenant, key)

    def _fetch_result(self, folder: RunFolder, place: str) -> None:
        files = self._result(folder.key, place)
        if files is None:
            return
        metadata = RunMetadata.from_json(files[METADATA])
        if (at := self._superseded_at(metadata)) is not None:
            files[METADATA] = replace(metadata, superseded_at=at).to_json()
        folder.prepare()
        for name in sorted(files, key=lambda one: one == METADATA):
            write_copy(folder.path / name, files[name])
        _write_place(folder, f"{place}/{_RESULT}")

    def _superseded_at(self, metadata: RunMetadata) -> str | None:
        id_, now = metadata.ontology_id, time.monotonic()
        known = self._superseding.get(id_)
        if known is None or known[0] < now:
            data = self._objects.get(self._superseded_name(id_))
            known = now + _KNOWN_FOR, None if data is None else _decode_superseding(data)
            self._superseding[id_] = known
        newest = known[1]
        if newest is None or metadata.ontology_version == newest.version or (metadata.completed_at or "") > newest.at:
            return None
        return newest.at

    def _superseded_name(self, ontology_id: str) -> str:
        return f"superseded/{self._folder}/{hashlib.sha256(ontology_id.encode()).hexdigest()}"

    def _result(self, key: str, place: str) -> dict[str, bytes] | None:
        data = self._objects.get(f"{self._root(key)}{place}/{_RESULT}")
        if data is None:
            return None
        kept = _decode(data)
        files = dict(kept.files)
        for name in kept.apart:
            apart = self._objects.get(f"{self._root(key)}{place}/files/{name}")
            if apart is None:
                return None
            files[name] = apart
        return files

    def _fetch_under_way(self, folder: RunFolder, place: str, names: set[str]) -> None:
        """Fetch what was published of an attempt that has not ended, or never will."""
        data = self._objects.get(f"{self._root(folder.key)}{place}/{METADATA}")
        if data is None:
            return
        folder.prepare()
        lines = b"".join(line.data + b"\n" for line in self.lines(folder.key, names=names))
        write_copy(folder.path / EVENTS, lines)
        spending = self._objects.get(f"{self._root(folder.key)}{place}/{SPENDING}")
        if spending is not None:
            write_copy(folder.path / SPENDING, spending)
        write_copy(folder.path / METADATA, data)
        _write_place(folder, place)

    def _ended_lines(self, key: str, place: str, after: int) -> Iterator[JournalLine]:
        files = self._result(key, place) or {}
        for number, line in enumerate(files.get(EVENTS, b"").splitlines(), 1):
            if number > after:
                yield JournalLine(number, line)

    def _root(self, key: str) -> str:
        return f"runs/{self._folder}/{key}/"


class AttemptUpload:
    """Publishes one attempt while it goes on, in a thread of its own."""

    def __init__(self, run_objects: RunObjects, folder: RunFolder, fence: int, *, is_lost: Callable[[], bool]) -> None:
        self.place = f"{fence:020d}"
        self._fence = fence
        self._objects = run_objects
        self._folder = folder
        self._is_lost = is_lost
        self._tail = JournalTail(folder.journal_path)
        self._tail.skip()
        self._metadata: RunMetadata | None = None
        self._metadata_at = 0.0
        self._spending = b""
        self._stop = threading.Event()
        # Metadata is uploaded before the attempt runs: the next attempt must find where this one began.
        self._thread = threading.Thread(target=self._run, name="sameas-upload", daemon=True)
        self._thread.start()

    def note(self, metadata: RunMetadata) -> None:
        """How the attempt stands now."""
        self._metadata = metadata

    def finish(self, metadata: RunMetadata) -> None:
        """Upload all files and mark the attempt as ended; raises ObjectsUnavailable if that fails."""
        self.close()
        self._objects.put_result(self._folder, self.place, metadata)
        self._objects.publish(self._folder.key, self._tail.lines(), fence=self._fence)

    def spent_by_helpers(self) -> tuple[UsageRow, ...]:
        """Take what helpers have spent on this run, to be counted now."""
        return self._objects.take_spending(self._folder.key)

    def close(self) -> None:
        """Publish nothing more."""
        self._stop.set()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(_EVERY):
            if self._is_lost():
                return
            try:
                self._tell()
            except ObjectsUnavailable as trouble:
                _LOG.warning("what the run %s tells could not be kept yet: %s", self._folder.key, trouble)
            except OSError as trouble:
                _LOG.warning("the journal of the run %s could not be read: %s", self._folder.key, trouble)

    def _tell(self) -> None:
        key, metadata = self._folder.key, self._metadata
        if metadata is not None and time.monotonic() >= self._metadata_at:
            self._objects.put(key, self.place, METADATA, metadata.to_json())
            self._metadata_at = time.monotonic() + _METADATA_EVERY
            if self._metadata is metadata:
                self._metadata = None
        with suppress(FileNotFoundError):
            spending = (self._folder.path / SPENDING).read_bytes()
            if spending != self._spending:
                self._objects.put(key, self.place, SPENDING, spending)
                self._spending = spending
        position = self._tail.number
        lines = self._tail.lines()
        if not lines:
            return
        data = b"".join(line.data + b"\n" for line in lines)
        try:
            self._objects.put(key, self.place, f"events/{lines[0].number:09d}-{lines[-1].number:09d}", data)
        except ObjectsUnavailable:
            self._tail = JournalTail(self._folder.journal_path, after=position)
            raise
        self._objects.publish(key, lines, fence=self._fence)


class SegmentedJournal:
    """Which segment a line of a run is read from: that of the latest attempt that has begun by then, and of no earlier
    one. A long run has thousands of them.
    """

    def __init__(self, segments: Iterable[JournalSegment]) -> None:
        self._of: dict[int, list[JournalSegment]] = {}
        for one in sorted(segments):
            self._of.setdefault(one.fence, []).append(one)

    def at(self, number: int) -> JournalSegment | None:
        fence = max((fence for fence, own in self._of.items() if own[0].first <= number), default=None)
        if fence is None:
            return None
        own = self._of[fence]
        found = own[bisect_right(own, number, key=attrgetter("first")) - 1]
        return found if number <= found.last else None


def _segment(name: str) -> JournalSegment | None:
    found = _SEGMENT.fullmatch(name)
    return None if found is None else JournalSegment(int(found[2]), int(found[3]), int(found[1]), name)


def read_place(folder: RunFolder) -> str:
    """The place of the objects that a folder is a copy of; empty if there is none."""
    try:
        return (folder.path / _PLACE_FILE).read_text()
    except (FileNotFoundError, NotADirectoryError):
        return ""


def _is_copy_of(folder: RunFolder, place: str) -> bool:
    """Whether a folder is a copy of a result, as far as that is seen without reading it: a power cut may have emptied
    its files.
    """
    metadata = folder.peek() if read_place(folder) == place else None
    if metadata is None:
        return False
    try:
        return all((folder.path / name).stat().st_size == file.size for name, file in metadata.files.items())
    except FileNotFoundError:
        return False


def _write_place(folder: RunFolder, place: str) -> None:
    with suppress(FileNotFoundError):
        write_copy(folder.path / _PLACE_FILE, place.encode())
