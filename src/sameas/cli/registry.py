"""The ontologies that were added, as files in the home folder; an ontology is named by its path, by a name or by its
id.

Rule: a path wins over a name, and what was added over what everybody knows. An id is the ontology's IRI, or comes from
its content where it has none; results belong to it, whatever the names. Files are copied as they are and written
atomically.
"""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

from sameas.cli.errors import CliError, ExitCode
from sameas.extraction.extractors.embedded import SUFFIX
from sameas.ontology.load import load_ontology
from sameas.ontology.published import find_published, published_names
from sameas.settings import Settings

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z")
_NOT_ONTOLOGIES = (SUFFIX, ".tmp")


def check_name(name: str) -> str:
    """The name, if it can be a file's."""
    if not _NAME.match(name):
        raise CliError(
            f"{name!r} cannot be the name of an ontology",
            todo="Use letters, digits and ._- only, such as company",
            code=ExitCode.USAGE,
        )
    return name


def registered(settings: Settings) -> dict[str, Path]:
    """The ontologies that were added, by name."""
    if not settings.ontologies.is_dir():
        return {}
    files = sorted(path for path in settings.ontologies.iterdir() if path.is_file())
    return {path.stem: path for path in files if path.suffix not in _NOT_ONTOLOGIES and not path.name.startswith(".")}


def find_ontology(named: str, settings: Settings) -> Path:
    """The file that a path, an added name or the name of a well-known ontology stands for."""
    path = Path(named)
    if path.is_file():
        return path
    known = registered(settings)
    if named in known:
        return known[named]
    published = find_published(named)
    if published is not None:
        return published
    found = _find_by_id(named, known, settings) if ":" in named else None
    if found is not None:
        return found
    names = f"; known by name are {', '.join([*known, *published_names()])}"
    raise CliError(f"{named}: there is no such ontology file{names}", todo="Give the path of a file")


def ontology_id(path: Path, settings: Settings, imports: Path | None = None) -> str:
    """The id of the ontology in a file."""
    from sameas.extraction.runs.service import results_id

    ontology = load_ontology(path, imports_dir=imports, cache_dir=settings.cache / "ontologies")
    return results_id(ontology.iri, ontology.version)


def versions_of(named: str, settings: Settings) -> dict[str, str]:
    """The version of every added name that stands for an ontology with this id."""
    found: dict[str, str] = {}
    for name, path in registered(settings).items():
        if ontology_id(path, settings) == named:
            found[name] = load_ontology(path, cache_dir=settings.cache / "ontologies").version
    return found


def _find_by_id(named: str, known: dict[str, Path], settings: Settings) -> Path | None:
    versions = versions_of(named, settings)
    if len(set(versions.values())) > 1:
        raise CliError(f"{named} is the id of {', '.join(versions)}, which differ", todo="Give the name of one")
    if versions:
        return known[next(iter(versions))]
    published = (path for name in published_names() if (path := find_published(name)) is not None)
    return next((path for path in published if ontology_id(path, settings) == named), None)


def add_file(source: Path, *, name: str, settings: Settings) -> Path:
    """Copy a file under a name; an older one of the name is replaced."""
    settings.ontologies.mkdir(parents=True, exist_ok=True)
    target = settings.ontologies / f"{check_name(name)}{source.suffix}"
    handle, temporary = tempfile.mkstemp(dir=settings.ontologies, prefix=".", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(source.read_bytes())
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(target)
    finally:
        Path(temporary).unlink(missing_ok=True)
    for other in settings.ontologies.glob(f"{name}.*"):
        if other != target and other.suffix not in _NOT_ONTOLOGIES:
            other.unlink()
    return target
