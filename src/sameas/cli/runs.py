"""`sameas runs`: what was extracted before, from the folders in `runs/`; and the schema of events."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec
import typer

from sameas.cli.delivery import render, save
from sameas.cli.errors import CliError
from sameas.cli.extract_options import ENDINGS, Format, format_for
from sameas.cli.registry import find_ontology, ontology_id
from sameas.cli.service import delete_run, open_configured, open_service
from sameas.cli.tables import print_table, short_key
from sameas.extraction.extractors.confidence import least_confidence
from sameas.extraction.outputs.context import local_name
from sameas.extraction.runs.library import Run
from sameas.extraction.runs.service import ExtractionService
from sameas.settings import load_settings

T = TypeVar("T")
app = typer.Typer(
    help="Runs: list, show, events, examples, rm. A key may be cut to its first 8 hex digits.", no_args_is_help=True
)
Key = Annotated[str, typer.Argument(help="A key, or at least 8 hex digits of one.")]


@app.command("list")
def list_runs(
    *,
    limit: Annotated[int, typer.Option(min=1, help="At most so many, newest first.")] = 20,
    ontology: Annotated[
        str | None, typer.Option("--ontology", "-o", help="Only of this ontology: a file, a name or an id.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """The runs, newest first."""
    of = None if ontology is None else _ontology_id(ontology)
    found = _with_service(lambda service: service.runs.list(limit=limit, ontology=of))
    if json:
        for metadata in found:
            print(msgspec.json.encode(metadata).decode())
        return
    if not found:
        print("no runs yet: `sameas extract FILE --ontology FILE` makes one", file=sys.stderr)
        return
    rows = [
        [
            short_key(metadata.idempotency_key),
            metadata.status + (", superseded" if metadata.superseded_at else ""),
            str(metadata.entity_count),
            str(metadata.relation_count),
            metadata.started_at[:19].replace("T", " "),
            metadata.extractor.name,
            metadata.document,
        ]
        for metadata in found
    ]
    print_table(
        ("key", "status", "entities", "relations", "started (UTC)", "extractor", "document"),
        rows,
        to=sys.stdout,
        whole=("key",),
    )


@app.command()
def show(
    key: Key,
    *,
    format_: Annotated[
        Format | None,
        typer.Option("--format", "-f", help="Print the graph in this format; --out alone says it, too."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write to this file.")] = None,
    json: Annotated[bool, typer.Option("--json", help="The metadata as JSON.")] = False,
) -> None:
    """A run's metadata and what it found, or its graph in any format."""
    chosen = format_ if out is None or json else format_for(out, format_, endings=ENDINGS, default="turtle")

    def work(service: ExtractionService) -> bytes | None:
        run = _find(service, key)
        if chosen is not None:
            return render(service, run, chosen)
        if json:
            return run.metadata.to_json()
        _print_run(run)
        return None

    data = _with_service(work)
    if data is not None and out is not None:
        save(out, data)
    elif data is not None:
        sys.stdout.buffer.write(data)


@app.command()
def events(key: Key, *, after: Annotated[int, typer.Option(min=0, help="Only those after this number.")] = 0) -> None:
    """The journal of a run, one JSON object a line."""

    def work(service: ExtractionService) -> None:
        for event in _find(service, key).events(after):
            print(event.to_json().decode())

    _with_service(work)


@app.command()
def examples(key: Key, *, out: Annotated[Path | None, typer.Option(help="Write to this file.")] = None) -> None:
    """What reviewers decided about a run's document, as examples for `sameas learn` and for --examples."""

    def work(service: ExtractionService) -> bytes:
        from sameas.extraction.runs.view import examples_of_run

        return examples_of_run(_find(service, key))

    data = _with_service(work)
    if not data:
        raise CliError("nobody has decided anything about this run", todo="Review it in the web app: `sameas serve`")
    if out is not None:
        save(out, data)
    else:
        sys.stdout.buffer.write(data)


@app.command("rm")
def remove(
    keys: Annotated[list[str], typer.Argument(help="Keys, or at least 8 hex digits of each.")],
) -> None:
    """Delete runs, also as answers under keys of a service's clients; the same work is then done again."""
    asyncio.run(_remove(keys))


async def _remove(keys: list[str]) -> None:
    settings = load_settings()
    async with open_service(settings) as service, open_configured(settings) as store:
        for whole in [(await asyncio.to_thread(_find, service, key)).key for key in keys]:
            await delete_run(service, store, whole, settings=settings)
            print(f"removed {whole}", file=sys.stderr)


def _with_service(work: Callable[[ExtractionService], T]) -> T:
    async def go() -> T:
        async with open_service(load_settings()) as service:
            return await asyncio.to_thread(work, service)

    return asyncio.run(go())


def _find(service: ExtractionService, key: str) -> Run:
    try:
        return service.runs.find(key)
    except ValueError as error:
        raise CliError(str(error), todo="`sameas runs list` shows them") from error


def _print_run(run: Run) -> None:
    metadata, graph = run.metadata, run.graph()
    facts = [
        ("key", metadata.idempotency_key),
        ("status", f"{metadata.status} ({metadata.outcome})" if metadata.outcome else metadata.status),
        ("document", metadata.document or "(a text)"),
        ("ontology", f"{metadata.ontology_id} {metadata.ontology_version}"),
        ("extractor", f"{metadata.extractor.name} {metadata.extractor.version}"),
        ("started", metadata.started_at),
        ("took", f"{(metadata.duration_ms or 0) / 1000:.2f} s, attempt {metadata.attempt}"),
        ("chunks", f"{metadata.chunks}, {metadata.chunks_from_checkpoints} pieces of work reused"),
        (
            "found",
            f"{len(graph.entities)} entities, {len(graph.relations)} relations, {len(graph.rejected)} rejected",
        ),
        ("folder", str(run.folder)),
    ]
    facts += [("error", f"{error.type}: {error.message}") for error in metadata.errors]
    facts += [("note", note) for note in metadata.notes]
    for name, value in facts:
        print(f"{name:<10} {value}")
    names = {entity.id: entity.name for entity in graph.entities}
    print()
    rows = [
        [
            names.get(relation.subject, relation.subject),
            local_name(relation.predicate),
            names.get(relation.object, relation.object)
            if relation.value is None
            else f"{relation.value.value} {relation.value.unit}".strip(),
            relation.status,
            f"{relation.confidence:.2f}",
        ]
        for relation in graph.relations
    ]
    print_table(("subject", "property", "object", "status", "confidence"), rows, to=sys.stdout)
    least = least_confidence(metadata.extractor.name, load_settings().min_confidence)
    doubtful = sum(relation.confidence < least for relation in graph.relations)
    if doubtful:
        print(f"note: `extract` leaves {doubtful} of these out, below confidence {least:g}", file=sys.stderr)


def _ontology_id(named: str) -> str:
    """The id that a file, a name or an id stands for; an id of an ontology that is gone stays itself."""
    settings = load_settings()
    try:
        return ontology_id(find_ontology(named, settings), settings)
    except CliError:
        if ":" not in named:
            raise
        return named


schema_app = typer.Typer(help="The events of a run.", no_args_is_help=True)


@schema_app.callback()
def events_group() -> None:
    """The events of a run; those of a finished one are shown by `sameas runs events KEY`."""


@schema_app.command()
def schema() -> None:
    """Print the JSON schema of all events."""
    import msgspec

    from sameas.extraction.events.events import event_schema

    print(msgspec.json.format(msgspec.json.encode(event_schema()), indent=2).decode())
