"""`sameas serve`: the service on this machine, on embedded stores unless the settings name others; `sameas worker`,
more hands for the servers of the same home folder and store; and `sameas extract --open`, the finished run in the web
app.

Rule of `--open`: a service that is up and knows the run is used; otherwise one is started on loopback, for as long as
this program runs. A machine without a browser is told the address.
"""

from __future__ import annotations

import socket
import sys
import threading
import time
import webbrowser
from typing import Annotated
from urllib.error import URLError
from urllib.request import urlopen

import typer
from msgspec.structs import replace

from sameas.settings import Settings, SettingsError, load_settings
from sameas.settings_rules import SINGLE

_LOOPBACK = "127.0.0.1"
_WITHIN = 60.0


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
    """Do accepted runs that wait, or that another process left, until SIGTERM or Ctrl-C."""
    from sameas.server.worker import work

    work(load_settings())


def show_run(key: str, settings: Settings) -> None:
    """Open a browser at the run; returns when the service that it needs has ended, or at once where one was up."""
    there = f"http://{settings.host}:{settings.port}"
    if _answers(f"{there}/api/v1/runs/{key}"):
        _open(f"{there}/#/studio/{key}")
        return
    from sameas.server.serving import serve

    port = _free_port()
    here = f"http://{_LOOPBACK}:{port}"
    threading.Thread(target=_open_when_up, args=(here, f"{here}/#/studio/{key}"), daemon=True).start()
    serve(replace(settings, host=_LOOPBACK, port=port, auth=SINGLE), quiet=True)


def _open_when_up(service: str, address: str) -> None:
    ends_at = time.monotonic() + _WITHIN
    while time.monotonic() < ends_at:
        if _answers(f"{service}/health/live"):
            _open(address)
            return
        time.sleep(0.1)


def _open(address: str) -> None:
    print(f"the run is at {address}", file=sys.stderr, flush=True)
    webbrowser.open(address)


def _answers(address: str) -> bool:
    try:
        # An address of this machine, put together here.
        with urlopen(address, timeout=2.0) as reply:  # noqa: S310
            return bool(reply.status == 200)
    except (URLError, OSError, ValueError):
        return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port
