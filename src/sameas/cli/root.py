"""The commands besides `extract`, as one Typer application that loads only the one that is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Annotated

import typer

from sameas import __version__
from sameas.cli.errors import ExitCode

# The module of a command and its line in the list: listing loads none of them. A module with `command` is one
# command, one with `app` is a group; `module:name` is one command or group of several in a file.
COMMANDS = {
    "learn": ("sameas.cli.learn", "Learn an extractor from examples."),
    "eval": ("sameas.cli.evaluate", "Score extractors or a model on data with known facts."),
    "serve": ("sameas.cli.serve", "Serve REST, WebSocket RPC and event streams."),
    "worker": ("sameas.cli.serve:worker", "Do accepted runs that wait or were left."),
    "doctor": ("sameas.cli.doctor", "Print what is in force and try everything."),
    "runs": ("sameas.cli.runs", "Runs: list, show, events, examples, rm."),
    "keys": ("sameas.cli.keys", "Records: list, explain, release, forget, prune."),
    "ontology": ("sameas.cli.ontology", "Ontologies: show, suggest, validate, version, add, list, rm."),
    "collection": ("sameas.cli.collections", "Collections: create, list, show, export, link, erase, ..."),
    "add": ("sameas.cli.collection_documents:add", "Add documents to a collection."),
    "sync": ("sameas.cli.collection_documents:sync", "Keep a collection in step with a folder."),
    "remove": ("sameas.cli.collection_documents:remove", "Take documents out of a collection."),
    "same": ("sameas.cli.collections:same", "Decide that two things of a collection are one."),
    "different": ("sameas.cli.collections:different", "Decide that two things of a collection are different."),
    "pairs": ("sameas.cli.collections:pairs", "Things of a collection that may be one, with reasons."),
    "events": ("sameas.cli.runs:schema_app", "The events of a run, and their schema."),
    "tenants": ("sameas.cli.tenants", "Tenants, their users, services, cases and API keys."),
    "query": ("sameas.cli.questions:query", "Ask a collection in SPARQL."),
    "find": ("sameas.cli.questions:find", "Find things of a collection by nearly their name."),
    "entity": ("sameas.cli.questions:entity", "All that a collection knows of one thing, with sources."),
    "path": ("sameas.cli.questions:path", "How two things of a collection are connected."),
    "ask": ("sameas.cli.questions:ask", "Ask a collection in plain words, with a model."),
    "push": ("sameas.cli.questions:push", "Publish a collection to a SPARQL server or a graph database."),
    "remote": ("sameas.cli.remote", "Use a service that runs elsewhere (sameas serve)."),
}
_HELP = (
    "Documents to knowledge graphs true to an ontology, and never the same work twice.\n\n"
    "Settings are SAMEAS_* variables or sameas.toml; `sameas doctor` shows them. Exit codes: 0 done, 1 failed, 2 wrong "
    "usage, 3 partial result, 4 bad input, 5 store or work not available now, 6 shapes not met, 7 port in use. --debug "
    "shows tracebacks."
)


def build_app(arguments: Sequence[str]) -> typer.Typer:
    """The application for these arguments; where none of its commands is asked for, it can only list them."""
    root = typer.Typer(
        name="sameas", help=_HELP, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None
    )
    root.callback(invoke_without_command=True)(_begin)
    asked = arguments[0] if arguments else ""
    if asked not in COMMANDS:
        from sameas.cli.extract_options import SHORT

        root.command("extract", help=SHORT)(_listed)
        for name, (_, line) in COMMANDS.items():
            root.command(name, help=line)(_listed)
        return root
    place, _, name = COMMANDS[asked][0].partition(":")
    module = import_module(place)
    found = getattr(module, name or ("app" if hasattr(module, "app") else "command"))
    if isinstance(found, typer.Typer):
        root.add_typer(found, name=asked)
    else:
        root.command(asked)(found)
    return root


def _begin(
    context: typer.Context,
    *,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        print(f"sameas {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help())
        raise typer.Exit(ExitCode.USAGE)


def _listed() -> None:
    """Stands in the list of commands."""
