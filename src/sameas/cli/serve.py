"""`sameas serve`: the service on this machine, on embedded stores unless the settings name others; and `sameas worker`,
more hands for the servers of the same home folder and store.
"""

from __future__ import annotations

from typing import Annotated

import typer
from msgspec.structs import replace

from sameas.settings import SettingsError, load_settings


def command(
    *,
    host: Annotated[str | None, typer.Option(help="The address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="The port; 0 takes a free one.")] = None,
    min_confidence: Annotated[
        float | None, typer.Option(help="Answer without what is less sure; 0.5 for the reader, else 0.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No line for each request.")] = False,
) -> None:
    """Serve REST, WebSocket RPC and event streams until SIGTERM or Ctrl-C."""
    settings = load_settings()
    given = {"host": host, "port": port, "min_confidence": min_confidence}
    changes = {name: value for name, value in given.items() if value is not None}
    from sameas.server.serving import serve

    try:
        chosen = replace(settings, **changes)
    except ValueError as error:
        raise SettingsError(str(error)) from error
    serve(chosen, quiet=quiet)


def worker() -> None:
    """Work on promised runs that wait or were left, until SIGTERM or Ctrl-C."""
    from sameas.server.worker import work

    work(load_settings())
