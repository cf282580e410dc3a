"""The commands besides `extract`, as one Typer application that loads only the one that is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Annotated

import typer

from sameas import __version__
from sameas.cli.errors import ExitCode

# A module with `command` is one command, one with `app` is a group of them.
COMMANDS = {
    "runs": "sameas.cli.runs",
    "keys": "sameas.cli.keys",
    "ontology": "sameas.cli.ontology",
    "learn": "sameas.cli.learn",
    "eval": "sameas.cli.evaluate",
    "events": "sameas.cli.events",
    "tenants": "sameas.cli.tenants",
    "serve": "sameas.cli.serve",
    "worker": "sameas.cli.worker",
    "remote": "sameas.cli.remote",
    "doctor": "sameas.cli.doctor",
}
_HELP = (
    "Documents to knowledge graphs true to an ontology, and never the same work twice.\n\n"
    "Settings are SAMEAS_* variables or sameas.toml; `sameas doctor` shows them. Exit codes: 0 done, 1 failed, 2 wrong "
    "usage, 3 partial result, 4 bad input, 5 store or work not available now, 6 shapes not met. --debug shows "
    "tracebacks."
)


def build_app(arguments: Sequence[str]) -> typer.Typer:
    """The application for these arguments; all commands are in it where none is asked for."""
    root = typer.Typer(
        name="sameas", help=_HELP, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None
    )
    root.callback(invoke_without_command=True)(_begin)
    asked = arguments[0] if arguments else ""
    if asked not in COMMANDS:
        from sameas.cli.extract_options import SHORT

        root.command("extract", help=SHORT)(_listed)
    for name in [asked] if asked in COMMANDS else COMMANDS:
        module = import_module(COMMANDS[name])
        if hasattr(module, "app"):
            root.add_typer(module.app, name=name)
        else:
            root.command(name)(module.command)
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
    """Stands in the list of commands; `extract` is run before this application is built."""
