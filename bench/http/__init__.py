"""`./run bench http`: the middleware beside the bare application and a middleware written by hand, on one Redis."""

from bench.http.command import main

__all__ = ["main"]
