"""A run as one self-contained HTML file, with the viewer of the web app."""

import msgspec

from sameas.extraction.runs.view import RunView
from sameas.pages.single_file import single_file

_STYLES = ("app/style.css", "app/studio.css")


def run_page(view: RunView) -> bytes:
    """The file."""
    data, title = msgspec.json.encode(view), str(view.run.get("document") or "sameas")
    return b"".join(single_file((data,), start="app/file.js", styles=_STYLES, title=title))
