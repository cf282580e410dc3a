"""One HTML file with the viewer of the web app and something to view: to be mailed and opened without a server.

Rule: it holds the app's own files, unchanged but for the names of their imports, and JSON as data. It asks nobody for
anything: its policy forbids every request. Text is data in it and never markup.
"""

import base64
import json
import re
from collections.abc import Iterable, Iterator

from sameas.pages.files import FORCE_GRAPH_STYLES, files, hash_source

_IMPORT = re.compile(r"""(\bfrom\s+|\bimport\s+)"(\.{1,2}/[^"]+)";""")
_SCRIPTS = ("app/theme.js", "vendor/force-graph.min.js")


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
