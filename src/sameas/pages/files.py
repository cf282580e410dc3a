"""The files of the web app by name, and the policy under which a browser runs them.

Rule: only what lies in `static/` is ever given, and the names are collected once, so that no path from outside meets a
folder. Nothing is built: a file is handed out as it was written.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
from functools import cache
from pathlib import Path

import msgspec

INDEX = "index.html"
DOCS = "docs.html"
_STATIC = Path(__file__).parent / "static"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
# force-graph puts its few rules into style elements of its own, which are empty at first: these may stand, by their
# digests, and no others.
FORCE_GRAPH_STYLES = (
    "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='",
    "'sha256-jtRRMYY2VbEXuBKbHvqM1/fPT8vazFrEooXdvwUK4y8='",
    "'sha256-9xjtvxMT1ApHlgn9ohbh2FNfvK5Tqtzy94BjfXBeMSY='",
)
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        f"style-src 'self' {' '.join(FORCE_GRAPH_STYLES)}",
        "img-src 'self' data: blob:",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)


class File(msgspec.Struct, frozen=True):
    """A file as it is handed out."""

    name: str
    media_type: str
    data: bytes
    packed: bytes
    etag: str


@cache
def files() -> dict[str, File]:
    """Every file by its name, such as `app/main.js`."""
    found = {}
    for path in sorted(_STATIC.rglob("*")):
        if path.is_file() and path.suffix in _TYPES:
            name, data = path.relative_to(_STATIC).as_posix(), path.read_bytes()
            etag = f'"{hashlib.sha256(data).hexdigest()[:32]}"'
            found[name] = File(name, _TYPES[path.suffix], data, gzip.compress(data, 6, mtime=0), etag)
    return found


def hash_source(data: bytes) -> str:
    """How a policy names a script or a style that stands in the page itself."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(data).digest()).decode()}'"
