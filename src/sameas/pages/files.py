"""The files of the web app by name, the policy under which a browser runs them, and one HTML file with the viewer and
something to view: to be mailed and opened without a server.

Rule: only what lies in `static/` is ever given, and the names are collected once, so that no path from outside meets a
folder. Nothing is built: a file is handed out as it was written. The one HTML file holds the app's own files, unchanged
but for the names of their imports, and JSON as data. It asks nobody for anything: its policy forbids every request.
Text is data in it and never markup.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Iterable, Iterator
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

_IMPORT = re.compile(r"""(\bfrom\s+|\bimport\s+)"(\.{1,2}/[^"]+)";""")
_SCRIPTS = ("app/theme.js", "vendor/force-graph.min.js")


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


def single_file(data: Iterable[bytes], *, start: str, styles: tuple[str, ...], title: str) -> Iterator[bytes]:
    """The pieces of the file; `start` is the module that shows the data, of which `data` are the pieces of JSON."""
    app = files()
    imports = {name: _url(_renamed(name, app[name].data)) for name in sorted(_modules(start))}
    first = f'import "{start}";'.encode()
    map_ = json.dumps({"imports": imports}).encode()
    scripts = [app[name].data for name in _SCRIPTS]
    hashes = [hash_source(script) for script in (map_, first, *scripts)]
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src data: {' '.join(hashes)}",
            f"style-src {' '.join(hash_source(app[name].data) for name in styles)} {' '.join(FORCE_GRAPH_STYLES)}",
            "img-src data: blob:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    yield b'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    yield f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'.encode()
    yield b'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    yield b"<title>" + _escaped(title) + b"</title>\n"
    yield from (b"<style>" + app[name].data + b"</style>\n" for name in styles)
    yield b'<script type="importmap">' + map_ + b"</script>\n"
    yield from (b"<script>" + script + b"</script>\n" for script in scripts)
    yield b'</head>\n<body>\n<div id="app"></div>\n<script type="application/json" id="sameas-data">'
    # Of JSON only `<` could end the element that holds it.
    yield from (piece.replace(b"<", b"\\u003c") for piece in data)
    yield b'</script>\n<script type="module">' + first + b"</script>\n</body>\n</html>\n"


def _modules(start: str) -> set[str]:
    """A module and everything that it imports."""
    app, found, left = files(), set[str](), [start]
    while left:
        name = left.pop()
        if name in found:
            continue
        found.add(name)
        left.extend(_absolute(name, match[2]) for match in _IMPORT.finditer(app[name].data.decode()))
    return found


def _renamed(name: str, data: bytes) -> bytes:
    """The module with the names of the import map: a module in a data URL has no place to be relative to."""
    return _IMPORT.sub(lambda match: f'{match[1]}"{_absolute(name, match[2])}";', data.decode()).encode()


def _absolute(name: str, relative: str) -> str:
    folder = name.split("/")[:-1]
    for part in relative.split("/"):
        if part == "..":
            folder.pop()
        elif part != ".":
            folder.append(part)
    return "/".join(folder)


def _url(data: bytes) -> str:
    return f"data:text/javascript;base64,{base64.b64encode(data).decode()}"


def _escaped(text: str) -> bytes:
    return text.replace("&", "&amp;").replace("<", "&lt;").encode("utf-8", "replace")
