"""`sameas serve`: the service on this machine, on embedded stores unless the settings name others."""

from __future__ import annotations

from typing import Annotated

import typer
from msgspec.structs import replace

from sameas.settings import load_settings


def command(
    *,
    host: Annotated[str | None, typer.Option(help="The address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="The port; 0 takes a free one.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No line for each request.")] = False,
) -> None:
    """Serve REST, WebSocket RPC and event streams until SIGTERM or Ctrl-C."""
    settings = load_settings()
    changes = {name: value for name, value in (("host", host), ("port", port)) if value is not None}
    from sameas.server.serving import serve

    serve(replace(settings, **changes), quiet=quiet)
