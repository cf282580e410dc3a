"""What the service says of an ontology without holding it: its version, its names and counts, what a reviewer finds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from sameas.ontology.differences import TermChange, compare_ontologies
from sameas.ontology.load import load_ontology, read_ontology
from sameas.ontology.outline import outline_of
from sameas.ontology.review import review_ontology

# An ontology of so many bytes is worked on in tens of milliseconds at a time; a larger one in another process.
LARGE_ONTOLOGY = 256 * 1024
# Of a whole new ontology nobody reads every change.
CHANGES_LISTED = 1_000


class Described(msgspec.Struct, frozen=True, kw_only=True):
    """An ontology that was read."""

    version: str
    iri: str
    label: str
    classes: int
    properties: int
    findings: tuple[dict[str, str], ...] = ()
    changes: tuple[TermChange, ...] = ()
    """What differs from another version, the first of it."""
    changes_left_out: int = 0
    outline: bytes = b""
    """Its terms as JSON, where they were asked for."""


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """Where an ontology is to be read: bytes, or a file."""

    data: bytes = b""
    file: str = ""
    is_reviewed: bool = False
    before: bytes = b""
    """Another version, to say what has changed since."""
    is_outlined: bool = False

    @property
    def size(self) -> int:
        return Path(self.file).stat().st_size if self.file else len(self.data) + len(self.before)


# In this process, or in another where the ontology is large.
DescribeSource = Callable[[Source], Awaitable[Described]]


def describe(source: Source, *, cache: Path) -> Described:
    """Read an ontology, or raise an OntologyError that says what is wrong with it; blocking. One that is only reviewed
    leaves nothing in the cache.
    """
    if source.file:
        ontology = load_ontology(source.file, cache_dir=cache)
    else:
        ontology = read_ontology(source.data, cache_dir=None if source.is_reviewed else cache)
    findings = review_ontology(ontology) if source.is_reviewed else ()
    changes: list[TermChange] = []
    if source.before:
        changes = [*compare_ontologies(read_ontology(source.before, cache_dir=cache), ontology)]
    return Described(
        version=ontology.version,
        iri=ontology.iri,
        label=ontology.titles[0].value if ontology.titles else "",
        classes=len(ontology.classes),
        properties=len(ontology.properties),
        findings=tuple(msgspec.to_builtins(finding) for finding in findings),
        changes=tuple(changes[:CHANGES_LISTED]),
        changes_left_out=max(0, len(changes) - CHANGES_LISTED),
        outline=msgspec.json.encode(outline_of(ontology)) if source.is_outlined else b"",
    )
