"""One self-contained HTML file of a run, with the viewer of the web app: to be mailed and opened without a server.

Rule: it holds the app's own files, unchanged but for the names of their imports, and the run as data. It asks nobody
for anything: its policy forbids every request. Text is data in it and never markup.
"""

import base64
import re

import msgspec

from sameas.extraction.runs.view import RunView
from sameas.pages.files import FORCE_GRAPH_STYLES, files, hash_source

_IMPORT = re.compile(r"""(\bfrom\s+|\bimport\s+)"(\.{1,2}/[^"]+)";""")
_STYLES = ("app/style.css", "app/studio.css")
_SCRIPTS = ("app/theme.js", "vendor/force-graph.min.js")
_START = "app/file.js"


def run_page(view: RunView) -> bytes:
    """The file."""
    return _page(msgspec.json.encode(view), kind="run", title=str(view.run.get("document") or "sameas"))


def _page(data: bytes, *, kind: str, title: str) -> bytes:
    app = files()
    imports = {name: _url(_renamed(name, file.data)) for name, file in app.items() if name in _modules(_START)}
    start = f'import "{_START}";'.encode()
    map_ = msgspec.json.encode({"imports": imports})
    scripts = [app[name].data for name in _SCRIPTS]
    hashes = [hash_source(script) for script in (map_, start, *scripts)]
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src data: {' '.join(hashes)}",
            f"style-src {' '.join(hash_source(app[name].data) for name in _STYLES)} {' '.join(FORCE_GRAPH_STYLES)}",
            "img-src data: blob:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    # Of JSON only `<` could end the element that holds it.
    shown = data.replace(b"<", b"\\u003c")
    parts = [
        b'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'.encode(),
        b'<meta name="viewport" content="width=device-width, initial-scale=1">\n',
        b"<title>" + _escaped(title) + b"</title>\n",
        *(b"<style>" + app[name].data + b"</style>\n" for name in _STYLES),
        b'<script type="importmap">' + map_ + b"</script>\n",
        *(b"<script>" + script + b"</script>\n" for script in scripts),
        b'</head>\n<body>\n<div id="app"></div>\n',
        f'<script type="application/json" id="sameas-{kind}">'.encode() + shown + b"</script>\n",
        b'<script type="module">' + start + b"</script>\n</body>\n</html>\n",
    ]
    return b"".join(parts)


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
