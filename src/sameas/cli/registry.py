"""The ontologies that were added, as files in the home folder; an ontology is named by its path or by its name here.

Rule: a path wins over a name. Files are copied as they are and written atomically.
"""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

from sameas.cli.errors import CliError, ExitCode
from sameas.extraction.embedded import SUFFIX
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
    """The file that a path or a registered name stands for."""
    path = Path(named)
    if path.is_file():
        return path
    known = registered(settings)
    if named in known:
        return known[named]
    names = f"; added ones are {', '.join(known)}" if known else ""
    raise CliError(f"{named}: there is no such ontology file{names}", todo="Give the path of a file")


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
