"""`sameas worker`: more hands for the servers of the same home folder and store."""

from __future__ import annotations

from sameas.settings import load_settings


def command() -> None:
    """Work on promised runs that wait or were left, until SIGTERM or Ctrl-C."""
    from sameas.server.worker import work

    work(load_settings())
