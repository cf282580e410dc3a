"""What a query gave, in the notations that people and programs ask for.

Rule: a result is kept as SPARQL's JSON, or as N-Triples where it is a graph; the other notations are made of it.
"""

import io
from collections.abc import Iterator
from typing import Any, Literal, TypeAlias

import msgspec

from sameas.questions.errors import QueryError

AnswerFormat: TypeAlias = Literal["json", "xml", "csv", "tsv", "turtle", "ntriples", "rdfxml", "jsonld"]
TABLES: tuple[AnswerFormat, ...] = ("json", "xml", "csv", "tsv")
GRAPHS: tuple[AnswerFormat, ...] = ("turtle", "ntriples", "rdfxml", "jsonld")
MEDIA_TYPES: dict[AnswerFormat, str] = {
    "json": "application/sparql-results+json",
    "xml": "application/sparql-results+xml",
    "csv": "text/csv",
    "tsv": "text/tab-separated-values",
    "turtle": "text/turtle",
    "ntriples": "application/n-triples",
    "rdfxml": "application/rdf+xml",
    "jsonld": "application/ld+json",
}


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a query."""

    kind: Literal["table", "boolean", "graph"]
    body: bytes
    rows: int = 0
    seconds: float = 0.0
    revision: int = 0
    """The state of the collection that was asked."""

    @property
    def boolean(self) -> bool:
        """The answer to an ASK."""
        return bool(msgspec.json.decode(self.body)["boolean"])

    @property
    def variables(self) -> list[str]:
        found: list[str] = msgspec.json.decode(self.body)["head"].get("vars", [])
        return found

    def bindings(self) -> Iterator[dict[str, dict[str, str]]]:
        """The rows of a SELECT: for each variable that is bound its type, value, datatype and language."""
        if self.kind == "table":
            yield from msgspec.json.decode(self.body)["results"]["bindings"]

    def as_format(self, wanted: AnswerFormat | None = None, *, prefixes: dict[str, str] | None = None) -> bytes:
        """The answer in a notation; without one in the usual one of its kind."""
        import pyoxigraph

        chosen: AnswerFormat = wanted or ("turtle" if self.kind == "graph" else "json")
        if self.kind == "graph":
            if chosen not in GRAPHS:
                raise QueryError(f"a graph is not written as {chosen}; CONSTRUCT and DESCRIBE give {', '.join(GRAPHS)}")
            if chosen == "ntriples":
                return self.body
            formats = {
                "turtle": pyoxigraph.RdfFormat.TURTLE,
                "rdfxml": pyoxigraph.RdfFormat.RDF_XML,
                "jsonld": pyoxigraph.RdfFormat.JSON_LD,
            }
            out = io.BytesIO()
            quads: Any = pyoxigraph.parse(self.body, format=pyoxigraph.RdfFormat.N_TRIPLES)
            pyoxigraph.serialize(quads, out, format=formats[chosen], prefixes=prefixes)
            return out.getvalue()
        if chosen not in TABLES:
            raise QueryError(f"a table is not written as {chosen}; SELECT and ASK give {', '.join(TABLES)}")
        if chosen == "json":
            return self.body
        table_formats = {
            "xml": pyoxigraph.QueryResultsFormat.XML,
            "csv": pyoxigraph.QueryResultsFormat.CSV,
            "tsv": pyoxigraph.QueryResultsFormat.TSV,
        }
        parsed = pyoxigraph.parse_query_results(self.body, format=pyoxigraph.QueryResultsFormat.JSON)
        out = io.BytesIO()
        parsed.serialize(out, format=table_formats[chosen])
        return out.getvalue()
