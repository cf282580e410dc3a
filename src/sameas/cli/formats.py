"""The formats that a graph is printed in, with the endings of their files.

Rule: what is asked for goes before what a file is called; a file that is called as another format is refused rather
than written as what nobody expects in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar, get_args

from sameas.cli.errors import CliError, ExitCode

Format: TypeAlias = Literal["turtle", "jsonld", "nquads", "graphml", "csv", "cypher", "json", "html"]
T = TypeVar("T", bound=str)
FORMATS: tuple[Format, ...] = get_args(Format)
EXTENSIONS: dict[Format, str] = {
    "turtle": ".ttl", "jsonld": ".jsonld", "nquads": ".nq", "graphml": ".graphml", "csv": ".csv", "cypher": ".cypher",
    "json": ".json", "html": ".html",
}  # fmt: skip
ENDINGS: dict[str, Format] = {
    **{extension: name for name, extension in EXTENSIONS.items()},
    ".turtle": "turtle", ".nquads": "nquads", ".cql": "cypher", ".htm": "html",
}  # fmt: skip
# What no command writes, or not every one.
_OTHER_ENDINGS = {*ENDINGS, ".rdf", ".owl", ".xml", ".nt", ".tsv", ".jsonl", ".xlsx", ".parquet", ".gexf", ".pdf"}
# Files of these formats can follow each other on one stream.
STREAMS: tuple[Format, ...] = ("turtle", "nquads", "cypher")


def format_for(out: Path | None, wanted: T | None, *, endings: Mapping[str, T], default: T) -> T:
    """The format that is asked for, else that of the file's name, else the usual one."""
    if wanted is not None:
        return wanted
    ending = "" if out is None or out.is_dir() else out.suffix.lower()
    if ending in endings:
        return endings[ending]
    if ending in _OTHER_ENDINGS:
        raise CliError(
            f"what is called {ending} is not written here, and --out {out} says no other format",
            todo=f"Name it {', '.join(endings)}, or give --format",
            code=ExitCode.USAGE,
        )
    return default
