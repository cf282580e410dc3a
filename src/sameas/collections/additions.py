"""Filling a collection: documents are read, extracted from side by side, and put in one by one.

Rule: equal texts are extracted once, whoever asks; what is in the collection already is not done again; one document
that cannot be read does not cost the others, and its name is kept with the reason. What was put in when the program is
killed stays, and the next call does what is missing.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Literal, Protocol, TypeAlias

import msgspec

from sameas.collections.collection import Collection, Source, text_digest
from sameas.collections.model import Told
from sameas.extraction.events.events import Event
from sameas.extraction.extractors.contract import Extractor
from sameas.extraction.pipeline.settings import PipelineSettings
from sameas.extraction.runs.service import Extraction, ExtractionService
from sameas.extraction.text.document import Document, Span
from sameas.extraction.text.inputs.reader import guess_media_type, read_bytes, read_document
from sameas.identity.canonical import instant

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
