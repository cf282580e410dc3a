"""`sameas ontology`: look at an ontology, and keep some by name in the home folder."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Annotated

import typer

from sameas.cli.errors import CliError, ExitCode
from sameas.cli.registry import add_file, check_name, find_ontology, registered, versions_of
from sameas.cli.tables import print_table
from sameas.extraction.extractors.embedded import beside
from sameas.ontology.load import load_ontology
from sameas.ontology.model import Ontology
from sameas.settings import Settings, load_settings

app = typer.Typer(help="Ontologies: show, version, validate, suggest, add, list, rm.", no_args_is_help=True)
Named = Annotated[str, typer.Argument(help="A file, or the name or id of one that was added.")]
Imports = Annotated[Path | None, typer.Option(help="A folder that answers owl:imports.")]


@app.command()
def show(
    named: Named, *, imports: Imports = None, lang: Annotated[str, typer.Option(help="Of labels.")] = "en"
) -> None:
    """The class tree with own and inherited properties, and what a reviewer would say."""
    from sameas.ontology.review import review_ontology
    from sameas.ontology.show import show_ontology

    ontology = _load(find_ontology(named, settings := load_settings()), settings, imports)
    for line in show_ontology(ontology, lang=lang):
        print(line)
    for finding in review_ontology(ontology):
        print(f"note: {finding.iri}: {finding.message}", file=sys.stderr)


@app.command()
def validate(
    graph: Annotated[Path, typer.Argument(help="A graph in any notation.")],
    *,
    ontology: Annotated[str, typer.Option("--ontology", "-o", help="A file, or the name of one that was added.")],
    shapes: Annotated[Path | None, typer.Option(help="SHACL shapes; by default those that follow from it.")] = None,
    imports: Imports = None,
) -> None:
    """A graph against SHACL shapes; exit code 6 where it does not conform."""
    from sameas.cli.summary import print_report
    from sameas.ontology.parse import read_bounded
    from sameas.ontology.validate import validate_graph

    loaded = _load(find_ontology(ontology, settings := load_settings()), settings, imports)
    report = validate_graph(read_bounded(graph), ontology=loaded, shapes=shapes, extension=graph.suffix)
    print_report(report, str(graph))
    print("conforms" if report.conforms else "does not conform", file=sys.stderr)
    if not report.conforms:
        raise typer.Exit(ExitCode.NOT_CONFORMING)


@app.command()
def suggest(
    texts: Annotated[list[str], typer.Argument(help="Files, '-' or texts in quotes.")],
    *,
    ontology: Annotated[str, typer.Option("--ontology", "-o", help="A file, or the name of one that was added.")],
    examples: Annotated[
        Path | None, typer.Option(help="Write sentences with the facts they may state here, for `sameas learn`.")
    ] = None,
    imports: Imports = None,
) -> None:
    """Other labels for properties (Turtle) and examples, from texts whose names no relation joins."""
    from sameas.cli.suggest import print_suggestions

    settings = load_settings()
    path = find_ontology(ontology, settings)
    print_suggestions(texts, _load(path, settings, imports), path=path, examples=examples, settings=settings)


@app.command()
def version(named: Named, *, imports: Imports = None) -> None:
    """The version: a digest of what extraction uses, whatever the notation."""
    settings = load_settings()
    print(_load(find_ontology(named, settings), settings, imports).version)


@app.command()
def add(
    file: Annotated[Path, typer.Argument(help="A file in any notation.")],
    *,
    name: Annotated[str | None, typer.Option(help="By default the file's own name.")] = None,
    imports: Imports = None,
) -> None:
    """Keep a copy under a name; a changed ontology replaces the old one and forgets its results."""
    settings = load_settings()
    chosen = check_name(name or file.stem)
    before = registered(settings).get(chosen)
    old = _load(before, settings, imports) if before is not None else None
    new = _load(file, settings, imports)
    add_file(file, name=chosen, settings=settings)
    if old is None:
        print(f"added {chosen} {new.version}", file=sys.stderr)
    elif old.version == new.version:
        print(f"{chosen} is unchanged: {new.version}", file=sys.stderr)
    else:
        # The results of an ontology without an IRI hang on its version, which has changed. Those of a version that
        # another name stands for belong to it.
        if old.iri and old.version not in versions_of(old.iri, settings).values():
            asyncio.run(_supersede(old, new, settings))
        print(f"updated {chosen} from {old.version} to {new.version}", file=sys.stderr)


@app.command("list")
def list_ontologies() -> None:
    """The ontologies that were added."""
    settings = load_settings()
    known = registered(settings)
    if not known:
        print("none yet: `sameas ontology add FILE` keeps one", file=sys.stderr)
        return
    rows = []
    for name, path in known.items():
        ontology = _load(path, settings, None)
        learned = "yes" if beside(path).is_file() else ""
        counts = [str(len(ontology.classes)), str(len(ontology.properties))]
        rows.append([name, *counts, learned, ontology.version[:19], ontology.iri])
    print_table(("name", "classes", "properties", "learned", "version", "iri"), rows, to=sys.stdout)


@app.command("rm")
def remove(name: Annotated[str, typer.Argument(help="A name of `sameas ontology list`.")]) -> None:
    """Forget a name and delete its copy and model; runs stay."""
    settings = load_settings()
    path = registered(settings).get(name)
    if path is None:
        raise CliError(f"no ontology was added as {name!r}", todo="`sameas ontology list` shows them")
    beside(path).unlink(missing_ok=True)
    path.unlink()
    print(f"removed {name}", file=sys.stderr)


def _load(path: Path, settings: Settings, imports: Path | None) -> Ontology:
    return load_ontology(path, imports_dir=imports, cache_dir=settings.cache / "ontologies")


async def _supersede(old: Ontology, new: Ontology, settings: Settings) -> None:
    """What hangs on the old version is not given out again."""
    from sameas.cli.service import open_service

    async with open_service(settings) as service:
        await service.invalidate_ontology(old.iri, old.version, new.version)
