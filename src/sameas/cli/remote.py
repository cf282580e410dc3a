"""`sameas remote`: the same work, done by a service somewhere else.

Credentials come from `SAMEAS_SERVICE_TOKEN` (a bearer token) or `SAMEAS_SERVICE_KEY` (an API key), never from an
argument, which every user of the machine could read.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from sameas.cli.delivery import save
from sameas.cli.documents import find_sources, read_source
from sameas.cli.errors import CliError, ExitCode
from sameas.cli.extract_options import ENDINGS, FORMATS, format_for
from sameas.cli.progress import open_progress
from sameas.cli.tables import short_key
from sameas.client import Client
from sameas.extraction.text.document import Document
from sameas.settings import service_credentials

app = typer.Typer(help="Use a service that runs elsewhere (sameas serve).", no_args_is_help=True)

Server = Annotated[str, typer.Option("--server", "-s", help="The address of the service.")]
_LOCAL = "http://127.0.0.1:8080"
_MEDIA_TYPES = {
    ".ttl": "text/turtle",
    ".rdf": "application/rdf+xml",
    ".owl": "application/rdf+xml",
    ".xml": "application/rdf+xml",
    ".jsonld": "application/ld+json",
    ".json": "application/ld+json",
    ".nt": "application/n-triples",
    ".nq": "application/n-quads",
    ".trig": "application/trig",
}


@app.command()
def extract(
    document: Annotated[str, typer.Argument(help="A file, '-' for standard input, or a text in quotes.")],
    *,
    ontology: Annotated[str, typer.Option("--ontology", "-o", help="An ontology that the service knows.")],
    server: Server = _LOCAL,
    output: Annotated[
        str | None, typer.Option("--format", "-f", help="How the graph is written; else by --out, else turtle.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write to this file instead of stdout.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Nothing on stderr but errors.")] = False,
) -> None:
    """Extract a document on the service, with its progress; the same text again is a replay."""
    if output is not None and output not in FORMATS:
        raise CliError(f"{output!r} is no format", todo=f"Use one of {', '.join(FORMATS)}", code=ExitCode.USAGE)
    form = format_for(out, output, endings=ENDINGS, default="turtle")
    sources = find_sources([document])
    if len(sources) != 1:
        raise CliError("several documents match", todo="Send one at a time", code=ExitCode.USAGE)
    found = read_source(sources[0])
    text = found.text if isinstance(found, Document) else "".join(found)
    progress = open_progress(1, quiet=quiet)
    with _client(server) as client:
        try:
            for event in client.stream(text, ontology=ontology, document=document):
                progress.show(sources[0].name, event)
        finally:
            progress.close()
        answer = client.extract(text, ontology=ontology, document=document)
        graph = client.graph(answer.idempotency_key, output=form)
    if out is None:
        sys.stdout.buffer.write(graph)
        sys.stdout.buffer.flush()
    else:
        save(out, graph)
    if not quiet:
        counts = f"{len(answer.entities)} entities, {len(answer.relations)} relations"
        print(f"{counts}: {answer.status}, run {short_key(answer.idempotency_key)}", file=sys.stderr)
    if answer.status != "complete":
        raise typer.Exit(ExitCode.PARTIAL)


@app.command()
def put(
    name: Annotated[str, typer.Argument(help="The name under which texts ask for it.")],
    file: Annotated[Path, typer.Argument(help="The ontology.")],
    *,
    server: Server = _LOCAL,
) -> None:
    """Register an ontology with the service, or a new version of it."""
    media_type = _MEDIA_TYPES.get(file.suffix.lower())
    if media_type is None:
        raise CliError(f"{file} has no known extension", todo=f"Name it {', '.join(sorted(_MEDIA_TYPES))}")
    with _client(server) as client:
        done = client.put_ontology(name, file.read_bytes(), media_type=media_type)
    change = "new version" if done.changed else "new name" if done.created else "unchanged"
    print(f"{done.id} {done.version}: {change}, {done.entries_invalidated} results invalidated")


@app.command()
def events(
    key: Annotated[str, typer.Argument(help="The key of a run.")],
    *,
    server: Server = _LOCAL,
    after: Annotated[int, typer.Option(help="Begin after this number.", min=0)] = 0,
) -> None:
    """The events of a run as JSON lines, until its last."""
    with _client(server) as client:
        for event in client.events(key, after=after):
            print(event.to_json().decode(), flush=True)


@app.command()
def cancel(key: Annotated[str, typer.Argument(help="The key of a run.")], *, server: Server = _LOCAL) -> None:
    """End a run; what it has found so far is kept."""
    with _client(server) as client:
        print(client.cancel(key).outcome)


def _client(server: str) -> Client:
    token, api_key = service_credentials()
    if not server.startswith(("http://", "https://")):
        raise CliError(f"{server!r} is no address of a service", todo=f"Such as {_LOCAL}", code=ExitCode.USAGE)
    return Client(server, token=token, api_key=api_key)
