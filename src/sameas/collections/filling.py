"""Filling a collection: documents are read, extracted from side by side, and put in one by one; and keeping it in step
with a folder.

Rule: equal texts are extracted once, whoever asks; what is in the collection already is not done again; one document
that cannot be read does not cost the others, and its name is kept with the reason. What was put in when the program is
killed stays, and the next call does what is missing.

Of a folder, what is new is added, what changed is done again, what is gone goes. A file whose size and time are as they
were is not read again. One process at a time works on a folder of a collection, under a lease of the once engine: a
second one waits and then looks for itself. A folder that is not there, or is empty all at once, is an error and takes
nothing out. A file that goes away while the folder is read is told, and is gone as others are.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Literal, Protocol, TypeAlias

import msgspec

from sameas.collections.collection import Collection, text_digest
from sameas.collections.errors import CollectionError, DocumentNotFoundError
from sameas.collections.model import Source, Told
from sameas.extraction.events.events import Event
from sameas.extraction.extractors.contract import Extractor
from sameas.extraction.pipeline.settings import PipelineSettings
from sameas.extraction.runs.library import RunNotFoundError
from sameas.extraction.runs.service import Extraction, ExtractionService
from sameas.extraction.text.document import Document, Span, readable_path
from sameas.extraction.text.inputs.reader import guess_media_type, read_bytes, read_document, readable_files
from sameas.identity.canonical import instant, sha256_hex
from sameas.once.async_engine import AsyncEngine

Outcome: TypeAlias = Literal["added", "changed", "unchanged", "partial", "failed"]


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """A document to be put in: a file, or a text that is already there."""

    source: Source
    file: Path | None = None
    text: str = ""
    content: bytes = b""


class Done(msgspec.Struct, frozen=True):
    """What became of one document."""

    name: str
    outcome: Outcome
    entities: int = 0
    claims: int = 0
    error: str = ""
    extraction: Extraction | None = None


class Summary(Told, frozen=True, kw_only=True):
    """What filling a collection did."""

    added: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0
    partial: int = 0
    failed: int = 0
    vanished: int = 0
    """Files of a folder that went away while it was read."""
    errors: Mapping[str, str] = MappingProxyType({})

    @classmethod
    def of(
        cls, done: Sequence[Done], *, removed: int = 0, unchanged: int = 0, vanished: Sequence[Done] = ()
    ) -> "Summary":
        counts = dict.fromkeys(("added", "changed", "unchanged", "partial", "failed"), 0)
        for one in done:
            counts[one.outcome] += 1
        counts["unchanged"] += unchanged
        errors = {one.name: one.error for one in (*done, *vanished) if one.error}
        return cls(**counts, removed=removed, vanished=len(vanished), errors=errors)


class Watch(Protocol):
    """Is told how filling goes."""

    def show(self, document: str, event: Event) -> None: ...

    def note(self, document: str, text: str) -> None: ...

    def done(self, done: Done) -> None: ...


class Unwatched:
    def show(self, document: str, event: Event) -> None:
        pass

    def note(self, document: str, text: str) -> None:
        pass

    def done(self, done: Done) -> None:
        pass


class Filler:
    """Puts documents into a collection, so many at a time."""

    def __init__(
        self,
        collection: Collection,
        service: ExtractionService,
        *,
        extractor: Extractor,
        settings: PipelineSettings | None = None,
        at_once: int = 4,
        min_confidence: float | None = None,
        watch: Watch | None = None,
        explain: Callable[[Exception], str] = str,
    ) -> None:
        self._collection = collection
        self._service = service
        self._extractor = extractor
        self._settings = settings or PipelineSettings()
        self._slots = asyncio.Semaphore(at_once)
        self._min_confidence = min_confidence
        self._watch: Watch = watch or Unwatched()
        self._explain = explain

    async def add(self, given: Sequence[Given]) -> list[Done]:
        """Put them in, side by side; what became of each, in their order."""
        tasks = [asyncio.create_task(self._to_its_end(one)) for one in given]
        try:
            return list(await asyncio.gather(*tasks))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _to_its_end(self, given: Given) -> Done:
        done = await self._do(given)
        self._watch.done(done)
        return done

    async def _do(self, given: Given) -> Done:
        name = given.source.name
        try:
            # Only reading holds a slot: the next question goes out while an answer is put in.
            async with self._slots:
                document, source = await asyncio.to_thread(_read, given)
                extraction = await self._service.extract(
                    document.text,
                    ontology=self._collection.ontology,
                    extractor=self._extractor,
                    settings=self._settings,
                    document=Path(name).name,
                    base=self._collection.base,
                    on_event=lambda event: self._watch.show(name, event),
                    on_wait=lambda: self._watch.note(name, "it is being read already; waiting for the result"),
                )
            # What was begun is finished, though the caller is told to stop.
            putting = asyncio.ensure_future(asyncio.to_thread(self._put, source, document, extraction))
            return await asyncio.shield(putting)
        except (KeyboardInterrupt, BrokenPipeError):
            raise
        except Exception as error:
            if getattr(error, "ends_run", False):
                raise
            message = self._explain(error)
            await asyncio.to_thread(self._collection.note_failure, given.source, message)
            return Done(name, "failed", error=message)

    def _put(self, source: Source, document: Document, extraction: Extraction) -> Done:
        known = self._collection.has_name(source.name)
        sure = extraction.sure(self._min_confidence)
        complete = extraction.metadata.status == "complete"
        change = self._collection.put_document(
            source,
            digest=text_digest(document.text),
            said=sure.found,
            run=extraction.key.key,
            complete=complete,
            locate=Places(document),
        )
        if change.names_erased:
            with suppress(RunNotFoundError):
                self._service.remove(extraction.key.key)
        outcome: Outcome = "changed" if change.added and known else "added" if not known else "unchanged"
        if not complete:
            outcome = "partial"
        return Done(source.name, outcome, change.entities, change.claims, extraction=extraction)


def _read(given: Given) -> tuple[Document, Source]:
    """The document and what is known of its source."""
    if given.file is not None:
        status = given.file.stat()
        document = read_document(given.file)
        seen = {"size": status.st_size, "source_time": file_time(status.st_mtime)}
    elif given.content:
        kind = given.source.media_type or guess_media_type(given.source.name, data=given.content)
        document = read_bytes(given.content, name=given.source.name, media_type=kind)
        seen = {"size": len(given.content)}
    else:
        document = Document(given.text)
        seen = {"size": len(given.text.encode("utf-8", "surrogatepass"))}
    if not document.text.strip():
        raise ValueError(f"{given.source.name} is empty. Give a document with some text in it")
    return document, msgspec.structs.replace(given.source, media_type=document.media_type, **seen)


def file_time(seconds: float) -> str:
    """When a file was last changed, as the tables have it."""
    from datetime import UTC, datetime

    return instant(datetime.fromtimestamp(seconds, UTC))


class Places:
    """Page and paragraph of a stretch of the text, where the source has them."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._offsets = document.offsets() if document.unit != "text" else None

    def __call__(self, start: int, end: int, /) -> tuple[int | None, int | None]:
        if self._offsets is None:
            return None, None
        places = self._document.places(Span(start, end), offsets=self._offsets)
        if not places:
            return None, None
        number = places[0].part + 1
        return (number, None) if self._document.unit == "page" else (None, number)


SCOPE = "collection-sync"
_LEASE = 30.0


class FolderError(CollectionError):
    """A folder cannot be kept in step."""


class Plan(msgspec.Struct, frozen=True):
    """What a folder has and a collection has not, and the reverse."""

    to_add: tuple[Given, ...]
    gone: tuple[str, ...]
    unchanged: int
    skipped: int
    """Failed before, and not changed since."""


def plan_sync(
    collection: Collection, folder: Path, *, named: str = "", retry_failed: bool = False, allow_empty: bool = False
) -> Plan:
    """Compare; nothing is changed. `named` is how names begin, the folder as it was given."""
    if not folder.is_dir():
        raise FolderError(f"{folder} is not a folder. Nothing was taken out of the collection")
    place = readable_path(folder.resolve())
    known = collection.folder(place)
    to_add: list[Given] = []
    seen: set[str] = set()
    unchanged = skipped = 0
    for file in sorted(readable_files(folder)):
        name = readable_path(f"{named or folder.name}/{file.relative_to(folder).as_posix()}")
        try:
            stat = file.stat()
        except FileNotFoundError:
            # It went while we looked: it is gone as others are.
            continue
        seen.add(name)
        if collection.is_erased_source(name):
            continue
        status, size, time = known.get(name, ("", 0, ""))
        is_same = (size, time) == (stat.st_size, file_time(stat.st_mtime))
        if is_same and status == "complete":
            unchanged += 1
        elif is_same and status == "failed" and not retry_failed:
            skipped += 1
        else:
            source = Source(
                name=name, path=readable_path(file.resolve()), folder=place, size=stat.st_size,
                source_time=file_time(stat.st_mtime),
            )  # fmt: skip
            to_add.append(Given(source=source, file=file))
    gone = tuple(sorted(known.keys() - seen))
    if known and not seen and not allow_empty:
        raise FolderError(
            f"{folder} is empty, and {len(known)} documents were read from it. If that is meant, say --allow-empty"
        )
    return Plan(tuple(to_add), gone, unchanged, skipped)


async def sync(
    collection: Collection,
    folder: Path,
    *,
    filler: Filler,
    engine: AsyncEngine,
    named: str = "",
    retry_failed: bool = False,
    allow_empty: bool = False,
) -> Summary:
    """Bring a collection in step with a folder."""

    async def work(_: object) -> None:
        plan = await asyncio.to_thread(
            plan_sync, collection, folder, named=named, retry_failed=retry_failed, allow_empty=allow_empty
        )
        done = await filler.add(plan.to_add)
        vanished = await asyncio.to_thread(_vanished, folder, plan.to_add, done)
        removed = 0
        for name in (*plan.gone, *(one.name for one in vanished)):
            removed += await asyncio.to_thread(_remove, collection, name)
        stayed = [one for one in done if one not in vanished]
        summary = Summary.of(stayed, removed=removed, unchanged=plan.unchanged, vanished=vanished)
        # Raised, so that the claim is given back: whoever waits, or comes later, looks for themselves.
        raise _InStep(msgspec.structs.replace(summary, failed=summary.failed + plan.skipped))

    place = readable_path(await asyncio.to_thread(folder.resolve))
    key = sha256_hex(f"{collection.id} {place}".encode())
    try:
        await engine.record(work, scope=SCOPE, key=key, lease=_LEASE)
    except _InStep as end:
        return end.summary
    raise FolderError(f"the claim on {folder} was completed by somebody else; try again")


class _InStep(Exception):
    """A folder and its collection are in step."""

    def __init__(self, summary: Summary) -> None:
        super().__init__("in step")
        self.summary = summary


def _vanished(folder: Path, given: Sequence[Given], done: Sequence[Done]) -> list[Done]:
    """What could not be read because its file went away meanwhile."""
    found = [
        one
        for one, asked in zip(done, given, strict=True)
        if one.outcome == "failed" and asked.file is not None and not asked.file.exists()
    ]
    if found and not folder.is_dir():
        raise FolderError(f"{folder} went away while it was read. Nothing was taken out of the collection")
    return found


def _remove(collection: Collection, name: str) -> int:
    """Take a name out, also of what could not be read; how many documents it stood for."""
    stood_for = collection.has_name(name)
    try:
        collection.remove_name(name)
    except DocumentNotFoundError:
        return 0
    return int(stood_for)
