"""The version of an ontology: a digest of what extraction uses of it, and of nothing else.

Equal for every notation, order of statements and blank-node name, because it is taken from the model, which
has none of these. Not part of it: the ontology's own name, title, imports and place; annotations that are
not read.
"""

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import rfc8785

from sameas.ontology.limits import DEFAULT_LIMITS, Limits
from sameas.ontology.model import Ontology

MODEL_VERSION = 1
"""Goes up when the model means something else for the same file."""

USED_GROUPS = ("classes", "properties", "individuals", "datatypes")
# What only collections use: results do not depend on it.
_NOT_USED = frozenset({"keys"})


def compute_ontology_version(
    source: Ontology | Path | str | bytes, *, imports_dir: Path | None = None, limits: Limits = DEFAULT_LIMITS
) -> str:
    """`sha256:` and 64 hex digits; a string is a path, bytes are a file's content. Raises OntologyError."""
    if isinstance(source, Ontology):
        return version_of(source)
    from sameas.ontology.load import load_ontology, read_ontology  # load uses version_of

    if isinstance(source, bytes):
        return read_ontology(source, imports_dir=imports_dir, limits=limits).version
    return load_ontology(source, imports_dir=imports_dir, limits=limits).version


def version_of(ontology: Ontology) -> str:
    """The version of a model that is already there."""
    content = {group: [_content(term) for term in getattr(ontology, group)] for group in USED_GROUPS}
    canonical = rfc8785.dumps({"model": MODEL_VERSION, **content})
    return "sha256:" + hashlib.sha256(canonical).hexdigest()


def _content(term: msgspec.Struct) -> dict[str, Any]:
    """Fields by name, without those at their default: a new field leaves older files' versions alone."""
    return {name: _plain(value) for name, default in _defaults(type(term)) if (value := getattr(term, name)) != default}


def _plain(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        return _content(value)
    return [_plain(one) for one in value] if isinstance(value, tuple) else value


@cache
def _defaults(kind: type[msgspec.Struct]) -> tuple[tuple[str, Any], ...]:
    return tuple((one.name, one.default) for one in msgspec.structs.fields(kind) if one.name not in _NOT_USED)
