"""The formats that a graph is printed in, with the endings of their files."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

Format: TypeAlias = Literal["turtle", "jsonld", "nquads", "graphml", "csv", "cypher", "json", "html"]
FORMATS: tuple[Format, ...] = get_args(Format)
EXTENSIONS: dict[Format, str] = {
    "turtle": ".ttl", "jsonld": ".jsonld", "nquads": ".nq", "graphml": ".graphml", "csv": ".csv", "cypher": ".cypher",
    "json": ".json", "html": ".html",
}  # fmt: skip
# Files of these formats can follow each other on one stream.
STREAMS: tuple[Format, ...] = ("turtle", "nquads", "cypher")
