"""Ontologies that are files, those of the home folder and those that everybody knows, and what is said of any ontology
without holding it: its version, its names and counts, what a reviewer finds.

Rule: a file is described once, and again when its time or its size has changed. A name is looked for among those that
are there; it never becomes part of a path.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from sameas.extraction.runs.metadata import instant
from sameas.extraction.runs.service import results_id
from sameas.identity.errors import SameasError
from sameas.ontology.errors import OntologyError
from sameas.ontology.load import load_ontology, read_ontology
from sameas.ontology.notation import EXTENSIONS
from sameas.ontology.published import find_published, published_names
from sameas.ontology.review import review_ontology
from sameas.ontology.show import outline_of
from sameas.ontology.version import TermChange, compare_ontologies
from sameas.server.schemas import OntologyEntry
from sameas.server.tenants.ontology_registry import Registered

_LOG = logging.getLogger("sameas.server")


class SeveralVersions(SameasError, LookupError):
    """Several files have this id and differ."""

    def __init__(self, ontology_id: str, names: list[str]) -> None:
        super().__init__(f"the files {', '.join(names)} have the id {ontology_id} and differ; give the name of one")


class OntologyFiles:
    """Files by name. `known` may be called from anywhere, the rest in the background loop."""

    def __init__(
        self,
        list_files: Callable[[], Mapping[str, Path]],
        describe: DescribeSource,
        *,
        source: Literal["folder", "published"],
    ) -> None:
        self._list_files = list_files
        self._describe = describe
        self._source: Literal["folder", "published"] = source
        # By name: a file as it was when it was last read.
        self._read: dict[str, tuple[tuple[int, int], Registered]] = {}

    def known(self, named: str) -> Registered | None:
        """What was read of a file that has not changed since; None also where nobody has looked yet."""
        found = self._unchanged(named)
        if found is not None:
            return found
        return _only(named, [one for name in self.names(named) if (one := self._unchanged(name)) is not None])

    def names(self, ontology_id: str) -> list[str]:
        """The names of the files that were read and have this id."""
        return [name for name, (_, one) in list(self._read.items()) if one.entry.id == ontology_id]

    def has(self, name: str) -> bool:
        return name in self._list_files()

    async def find(self, named: str) -> Registered | None:
        files = await asyncio.to_thread(self._list_files)
        if named in files:
            return await self._described(named, files[named])
        if ":" not in named:
            # An id is an IRI.
            return None
        found = []
        for name, path in files.items():
            try:
                found.append(await self._described(name, path))
            except (OntologyError, OSError) as trouble:
                # Another file's trouble: it is told to whoever names it.
                _LOG.warning("the ontology %s could not be looked at: %s", name, trouble)
        return _only(named, [one for one in found if one.entry.id == named])

    async def all(self) -> dict[str, Registered]:
        """Every file, by name."""
        found = {}
        for name, path in (await asyncio.to_thread(self._list_files)).items():
            try:
                found[name] = await self._described(name, path)
            except FileNotFoundError:
                # It went meanwhile, or the whole folder did.
                continue
        return found

    async def _described(self, name: str, path: Path) -> Registered:
        known = self._unchanged(name)
        if known is not None:
            return known
        about = await asyncio.to_thread(path.stat)
        ontology = await self._describe(Source(file=str(path)))
        entry = OntologyEntry(
            id=results_id(ontology.iri, ontology.version),
            names=(name,),
            version=ontology.version,
            iri=ontology.iri,
            label=ontology.label,
            classes=ontology.classes,
            properties=ontology.properties,
            size=about.st_size,
            updated_at=instant(about.st_mtime),
            source=self._source,
        )
        found = Registered(entry, "", f"{path}:{ontology.version}", path)
        self._read[name] = ((about.st_mtime_ns, about.st_size), found)
        return found

    def _unchanged(self, name: str) -> Registered | None:
        stamp, found = self._read.get(name, (None, None))
        if found is None or found.file is None:
            return None
        try:
            about = found.file.stat()
        except OSError:
            return None
        return found if stamp == (about.st_mtime_ns, about.st_size) else None


def files_of(folder: Path) -> dict[str, Path]:
    """The ontologies of a folder, by name."""
    try:
        paths = sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return {}
    fitting = (path for path in paths if path.suffix in EXTENSIONS and not path.name.startswith("."))
    return {path.stem: path for path in fitting if path.is_file()}


def published_files() -> dict[str, Path]:
    """The ontologies that everybody knows, by name."""
    return {name: path for name in published_names() if (path := find_published(name)) is not None}


def _only(ontology_id: str, found: list[Registered]) -> Registered | None:
    if len({one.entry.version for one in found}) > 1:
        raise SeveralVersions(ontology_id, sorted(name for one in found for name in one.entry.names))
    return found[0] if found else None


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


def say_unused(folder: Path) -> None:
    """With a broker every node must see the same ontologies, and a folder is one node's: say so where it has files."""
    if folder.is_dir() and any(path.is_file() for path in folder.iterdir()):
        _LOG.warning("the files in %s are not used with a broker: put ontologies over the API", folder)
