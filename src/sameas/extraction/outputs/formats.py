"""The formats that a graph can be written in, by the names that people type, and a place for what was written."""

import io
import tempfile
import weakref
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import IO, Literal, Protocol, TypeAlias, get_args

from sameas.extraction.graph.model import Graph
from sameas.extraction.outputs.context import OutputContext, Writable
from sameas.extraction.outputs.cypher import write_cypher
from sameas.extraction.outputs.document import write_json
from sameas.extraction.outputs.graphml import write_graphml
from sameas.extraction.outputs.rdf import write_jsonld, write_nquads, write_turtle
from sameas.extraction.outputs.table import write_csv

OutputFormat: TypeAlias = Literal["turtle", "jsonld", "nquads", "graphml", "csv", "cypher", "json"]
FORMATS: tuple[OutputFormat, ...] = get_args(OutputFormat)


class Writer(Protocol):
    def __call__(self, graph: Graph, target: Writable, *, context: OutputContext) -> None: ...


_WRITERS: Mapping[OutputFormat, Writer] = MappingProxyType(
    {
        "turtle": write_turtle,
        "jsonld": write_jsonld,
        "nquads": write_nquads,
        "graphml": write_graphml,
        "csv": write_csv,
        "cypher": write_cypher,
        "json": write_json,
    }
)
MEDIA_TYPES: Mapping[OutputFormat, str] = MappingProxyType(
    {
        "turtle": "text/turtle",
        "jsonld": "application/ld+json",
        "nquads": "application/n-quads",
        "graphml": "application/graphml+xml",
        "csv": "text/csv",
        "cypher": "application/x-cypher-query",
        "json": "application/json",
    }
)


def render(graph: Graph, *, to: OutputFormat, context: OutputContext) -> bytes:
    """The graph in a format."""
    whole = io.BytesIO()
    write_graph(graph, whole, to=to, context=context)
    return whole.getvalue()


def write_graph(graph: Graph, target: Writable, *, to: OutputFormat, context: OutputContext) -> None:
    """The graph in a format, in pieces."""
    writer = _WRITERS.get(to)
    if writer is None:
        raise ValueError(f"{to!r} is not a format; the formats are {', '.join(FORMATS)}")
    writer(graph, target, context=context)


_IN_MEMORY = 512 * 1024
_BLOCK = 1 << 16


class OutputSpool(Mapping[OutputFormat, bytes]):
    """The outputs of a run, by format. Large ones lie in files without a name, which vanish with this object.

    Reading a value brings it into memory whole; `copy` passes it on in pieces.
    """

    def __init__(self, *, in_memory: int = _IN_MEMORY) -> None:
        self._in_memory = max(1, in_memory)
        self._files: dict[OutputFormat, IO[bytes]] = {}

    def add(self, name: OutputFormat) -> Writable:
        """The file to write this format to."""
        # It lives as long as this object, which may end anywhere.
        file = tempfile.SpooledTemporaryFile(self._in_memory, prefix="sameas-output-")  # noqa: SIM115
        weakref.finalize(self, file.close)
        self._files[name] = file
        return file

    def copy(self, name: OutputFormat, target: Writable) -> None:
        for block in self._blocks(name):
            target.write(block)

    def __getitem__(self, name: OutputFormat) -> bytes:
        return b"".join(self._blocks(name))

    def __contains__(self, name: object) -> bool:
        # The mapping's own way to look would read the file.
        return name in self._files

    def __iter__(self) -> Iterator[OutputFormat]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)

    def _blocks(self, name: OutputFormat) -> Iterator[bytes]:
        file = self._files[name]
        file.seek(0)
        while block := file.read(_BLOCK):
            yield block
