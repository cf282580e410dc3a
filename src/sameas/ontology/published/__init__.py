"""Well-known ontologies as their authors published them, so that `foaf` or `schema` can be named at once.

Rule: the files are unchanged. README.md beside them names their sources and licences.
"""

from __future__ import annotations

from pathlib import Path

_FOLDER = Path(__file__).parent
_FILES = {"foaf": "foaf.rdf", "prov": "prov.ttl", "schema": "schema.ttl", "skos": "skos.rdf"}


def published_names() -> tuple[str, ...]:
    return tuple(_FILES)


def find_published(name: str) -> Path | None:
    """The file of a well-known ontology, or None if the name is not one."""
    return _FOLDER / _FILES[name] if name in _FILES else None
