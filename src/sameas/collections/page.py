"""A collection as one self-contained HTML file, with the viewer of the web app.

Rule: it is written piece by piece from one state of the tables, like every export. The file has every entity and every
relation, and of each relation the first sentences; it draws what somebody asks to see and never all at once.
"""

from collections.abc import Iterable, Iterator
from typing import IO

import msgspec

from sameas.collections.exports import all_documents
from sameas.collections.model import CollectionInfo
from sameas.collections.views import Reader
from sameas.ontology.outline import Outline
from sameas.pages.single_file import single_file

_STYLES = ("app/style.css", "app/studio.css", "app/console.css", "app/collections.css")
# Sentences of a relation that go along.
_EVIDENCE = 5


def write_page(reader: Reader, target: IO[bytes], *, info: CollectionInfo, outline: Outline) -> None:
    """Write the file."""
    data = _data(reader, info, outline)
    for piece in single_file(data, start="app/collection_file.js", styles=_STYLES, title=info.name):
        target.write(piece)


def _data(reader: Reader, info: CollectionInfo, outline: Outline) -> Iterator[bytes]:
    encode = msgspec.json.encode
    # What the reader of a mailed file may do in the service is nobody's business.
    yield b'{"collection":' + encode(msgspec.structs.replace(info, role=None))
    yield b',"outline":' + encode(outline)
    yield b',"documents":'
    yield from _list(all_documents(reader))
    yield b',"entities":'
    yield from _list(reader.all_entities())
    yield b',"statements":'
    yield from _list(one for _, one in reader.all_statements(evidence=_EVIDENCE))
    yield b"}"


def _list(items: Iterable[object]) -> Iterator[bytes]:
    before = b"["
    for one in items:
        yield before + msgspec.json.encode(one)
        before = b","
    yield b"[]" if before == b"[" else b"]"
