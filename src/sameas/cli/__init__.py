"""The command line."""

from sameas.cli.entry import main

__all__ = ["main"]
