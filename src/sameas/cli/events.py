"""`sameas events`: what a run's events look like to a program."""

from __future__ import annotations

import typer

app = typer.Typer(help="The events of a run.", no_args_is_help=True)


@app.callback()
def group() -> None:
    """The events of a run; those of a finished one are shown by `sameas runs events KEY`."""


@app.command()
def schema() -> None:
    """Print the JSON schema of all events."""
    import msgspec

    from sameas.extraction.events.events import event_schema

    print(msgspec.json.format(msgspec.json.encode(event_schema()), indent=2).decode())
