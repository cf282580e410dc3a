"""What an extraction gave: things, facts and refusals, and ways to take them elsewhere.

Rule: pandas, networkx and rdflib are loaded when they are asked for, and named where they are missing.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from sameas.cli.extract_options import ENDINGS
from sameas.extraction.graph.model import KnowledgeGraph
from sameas.extraction.outputs import FORMATS, OutputFormat
from sameas.extraction.runs.durable_file import write_durably
from sameas.extraction.runs.metadata import RunMetadata
from sameas.extraction.text.document import Document, DocumentPlaces, DocumentSource
from sameas.identity.errors import SameasError
from sameas.interactive.findings import (
    FoundEntity,
    FoundRelation,
    Refusal,
    entities_of,
    refusals_of,
    relations_of,
)

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd
    import rdflib

Render: TypeAlias = Callable[[OutputFormat], bytes]
_BY_SUFFIX: dict[str, OutputFormat] = {ending: name for ending, name in ENDINGS.items() if name != "html"}
# One after the other they are one graph.
_JOINED: tuple[OutputFormat, ...] = ("turtle", "nquads", "cypher")


class OutputError(SameasError, ValueError):
    """A result cannot be written so."""


class DocumentResult:
    """What one document gave."""

    def __init__(
        self,
        document: Document,
        source: DocumentSource,
        *,
        graph: KnowledgeGraph,
        metadata: RunMetadata,
        replayed: bool,
        render: Render,
    ) -> None:
        self.document = document
        self.source = source
        self.graph = graph
        self.metadata = metadata
        self.replayed = replayed
        """The result was there: nothing was extracted."""
        self.render = render
        self.base = metadata.base
        self.name = source.name
        self.text = document.normalized
        """The text that the places count in."""

    @cached_property
    def places(self) -> DocumentPlaces:
        return DocumentPlaces(self.document)

    @property
    def is_complete(self) -> bool:
        return self.metadata.status == "complete"

    def __repr__(self) -> str:
        return f"<{self.name}: {len(self.graph.entities)} entities, {len(self.graph.relations)} relations>"


class Result:
    """What the documents gave together.

    Methods raise MissingLibraryError (an ImportError) if they need a library that is not installed, OutputError for an
    unknown format and ValueError for an unknown table.
    """

    def __init__(self, documents: Sequence[DocumentResult]) -> None:
        self.documents = list(documents)

    @cached_property
    def entities(self) -> list[FoundEntity]:
        """Every thing, once."""
        return entities_of(self.documents)

    @cached_property
    def relations(self) -> list[FoundRelation]:
        """Every fact, once, with all of its evidence."""
        return relations_of(self.documents)

    @cached_property
    def rejected(self) -> list[Refusal]:
        """What was offered and refused, with the reason."""
        return refusals_of(self.documents)

    @property
    def is_complete(self) -> bool:
        """Whether every document was worked on to its end."""
        return all(document.is_complete for document in self.documents)

    def to_pandas(self, what: Literal["relations", "entities", "rejected"] = "relations") -> pd.DataFrame:
        """A table with a row for each relation, or for each entity or refusal."""
        from sameas.interactive.forms import frame_of

        return frame_of(self, what)

    def to_networkx(self) -> nx.MultiDiGraph[Any]:
        """A graph whose nodes are entities and values."""
        from sameas.interactive.forms import network_of

        return network_of(self)

    def to_rdflib(self) -> rdflib.Graph:
        """The facts with their provenance."""
        from sameas.interactive.forms import rdf_of

        return rdf_of(self)

    def render(self, output: OutputFormat = "turtle") -> bytes:
        """The graph in a format."""
        if output not in FORMATS:
            raise OutputError(f"{output!r} is not a format; the formats are {', '.join(FORMATS)}")
        parts = [document.render(output) for document in self.documents]
        if len(parts) == 1 or output in _JOINED:
            return b"".join(parts)
        if output == "csv":
            # One heading is enough.
            return b"".join([parts[0], *(part.partition(b"\n")[2] for part in parts[1:])])
        if output == "json":
            return b"[\n" + b",\n".join(part.rstrip() for part in parts) + b"\n]\n"
        if output == "jsonld":
            return _jsonld(self.render("nquads"))
        raise OutputError(
            f"several documents do not fit into one {output}. Save each of `documents`, or to another format"
        )

    def save(self, path: str | os.PathLike[str], output: OutputFormat | None = None) -> Path:
        """Write the graph to a file, whole or not at all; the format is what the file is called unless it is given."""
        target = Path(path)
        chosen = output or _BY_SUFFIX.get(target.suffix.lower())
        if chosen is None:
            raise OutputError(
                f"{target.name} does not say its format. Name it {', '.join(_BY_SUFFIX)}, or give output="
            )
        target.parent.mkdir(parents=True, exist_ok=True)
        write_durably(target, self.render(chosen))
        return target

    def __repr__(self) -> str:
        parts = [f"{len(self.entities)} entities", f"{len(self.relations)} relations", f"{len(self.rejected)} refused"]
        of = self.documents[0].name if len(self.documents) == 1 else f"{len(self.documents)} documents"
        ended = "" if self.is_complete else ", partial"
        return f"<sameas.Result of {of}: {', '.join(parts)}{ended}>"

    def _repr_html_(self) -> str:
        from sameas.interactive.forms import page_of

        return page_of(self)


def _jsonld(nquads: bytes) -> bytes:
    import pyoxigraph

    out = io.BytesIO()
    quads = pyoxigraph.parse(nquads, format=pyoxigraph.RdfFormat.N_QUADS)
    pyoxigraph.serialize(quads, out, format=pyoxigraph.RdfFormat.JSON_LD)
    return out.getvalue()
