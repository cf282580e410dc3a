"""Where graphs go: to stdout, to a file, one file each into a folder; or a JSON object for each document.

Rule: two documents never share a file, and whatever is on stdout can be told apart.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from sameas.cli.documents import Source
from sameas.cli.errors import CliError, ExitCode
from sameas.cli.extract_options import ENDINGS, EXTENSIONS, STREAMS, Format
from sameas.extraction.graph.model import KnowledgeGraph
from sameas.extraction.runs.durable_file import sweep_beside, write_durably
from sameas.extraction.runs.library import Run
from sameas.extraction.runs.service import Extraction, ExtractionService
from sameas.extraction.text.document import Document, DocumentPlaces, DocumentSource, Span

if TYPE_CHECKING:
    from sameas.ontology.validate import ShapeReport


class Delivery:
    """What becomes of the graphs of a command's documents."""

    def __init__(
        self, sources: Sequence[Source], *, form: Format, out: Path | None, as_json: bool, in_folder: bool = False
    ) -> None:
        several = len(sources) > 1
        in_folder = in_folder or (out is not None and out.is_dir())
        is_file = out is not None and (out.is_file() or (not in_folder and out.suffix.lower() in ENDINGS))
        if is_file and (several or in_folder):
            raise CliError(
                f"{out} is one file" + (", but there are several documents" if several else " and no folder"),
                todo="Give a folder",
                code=ExitCode.USAGE,
            )
        if several and out is None and not as_json and form not in STREAMS:
            raise CliError(
                f"several graphs as {form} do not fit on one stream",
                todo="Give --out FOLDER, or --json",
                code=ExitCode.USAGE,
            )
        self._format: Format = form
        self._as_json = as_json
        self._targets: dict[str, Path] = {}
        if out is not None:
            self._targets = _in_folder(sources, out, form) if several or in_folder else {sources[0].name: out}

    @property
    def to_stdout(self) -> bool:
        return self._as_json or not self._targets

    def deliver(
        self,
        service: ExtractionService,
        extraction: Extraction,
        *,
        source: Source,
        document: Document | None,
        shapes: ShapeReport | None,
    ) -> None:
        """Write a graph; `document` is what it was read from, where that is at hand."""
        target = self._targets.get(source.name)
        known = [source_of(source, document)]
        places = None if document is None else DocumentPlaces(document)
        if target is not None:
            save(target, render(service, extraction, self._format, sources=known, places=places))
        if self._as_json:
            emit(msgspec.json.encode(_as_json(extraction, source, document, target, shapes)) + b"\n")
        elif target is None:
            emit(render(service, extraction, self._format, sources=known, places=places))


def render(
    service: ExtractionService,
    extraction_or_run: Extraction | Run,
    form: Format,
    *,
    sources: Sequence[DocumentSource] = (),
    places: DocumentPlaces | None = None,
) -> bytes:
    """A run in a format; as HTML it comes with its viewer, and as reviewers left it."""
    if form != "html":
        return service.render(extraction_or_run, form, sources=sources, places=places)
    from sameas.extraction.runs.view import run_page, view_of

    return run_page(view_of(service.runs.find(extraction_or_run.metadata.idempotency_key)))


def source_of(source: Source, document: Document | None) -> DocumentSource:
    """What is known of a document of the command line."""
    if source.path is not None:
        return DocumentSource.of_file(source.path, document)
    size = None if document is None else len(document.text.encode("utf-8", "replace"))
    return DocumentSource(name=source.name, media_type="text/plain", size=size)


def save(target: Path, data: bytes) -> None:
    """To a file, whole or not at all; what was there before stays if it cannot be written."""
    try:
        if target.exists() and not target.is_file():
            # A pipe or a device cannot be replaced, only written to.
            target.write_bytes(data)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            sweep_beside(target)
            write_durably(target, data)
    except OSError as error:
        raise CliError(
            f"{target} cannot be written: {error.strerror or error}",
            todo="What was there before is untouched, and the result is kept: make room and run the command again",
            code=ExitCode.FAILED,
        ) from error


def emit(data: bytes) -> None:
    """To stdout, at once."""
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def _in_folder(sources: Sequence[Source], folder: Path, form: Format) -> dict[str, Path]:
    """A file for each document, by its name; where two have one name, the later ones get a number."""
    targets: dict[str, Path] = {}
    taken: set[str] = set()
    for source in sources:
        stem = source.path.stem if source.path is not None else source.name.replace(" ", "-")
        name, number = stem, 1
        # Some file systems do not tell Report from report.
        while name.casefold() in taken:
            number += 1
            name = f"{stem}-{number}"
        taken.add(name.casefold())
        targets[source.name] = folder / f"{name}{EXTENSIONS[form]}"
    return targets


def _as_json(
    extraction: Extraction,
    source: Source,
    document: Document | None,
    target: Path | None,
    shapes: ShapeReport | None,
) -> dict[str, Any]:
    metadata, graph = extraction.metadata, extraction.graph
    return {
        "document": source.name,
        "idempotencyKey": str(extraction.key),
        "status": metadata.status,
        "outcome": metadata.outcome,
        "cacheHit": extraction.replayed,
        "shared": extraction.shared,
        "computedAt": metadata.completed_at,
        "folder": str(extraction.folder),
        "out": None if target is None else str(target),
        "entities": graph.entities,
        "relations": graph.relations,
        "places": None if document is None else _places(graph, document),
        "rejectedCount": len(graph.rejected),
        "missing": metadata.missing,
        "usage": metadata.usage,
        "notes": graph.notes,
        **({} if shapes is None else {"shapes": shapes}),
    }


def _places(graph: KnowledgeGraph, document: Document) -> dict[str, Any]:
    """Where each span that the graph names stands in the source: start, end, then part, start and end there."""
    spans = {(each.start, each.end) for entity in graph.entities for each in entity.mentions}
    for relation in graph.relations:
        for found in (relation.evidence, relation.subject_spans, relation.object_spans):
            spans |= {(each.start, each.end) for each in found}
    offsets = document.offsets()
    rows = [
        (start, end, place.part, place.start, place.end)
        for start, end in sorted(spans)
        for place in document.places(Span(start, end), offsets=offsets)
    ]
    return {"unit": document.unit, "spans": rows}
