"""The version of an ontology: a digest of what extraction uses of it, and of nothing else.

Equal for every notation, order of statements and blank-node name, because it is taken from the model, which
has none of these. Not part of it: the ontology's own name, title, imports and place; annotations that are
not read.
"""

import hashlib
from pathlib import Path

import msgspec
import rfc8785

from sameas.ontology.limits import DEFAULT_LIMITS, Limits
from sameas.ontology.model import (
    Datatype,
    Individual,
    Ontology,
    OntologyClass,
    OntologyProperty,
    Restriction,
    Text,
)

MODEL_VERSION = 1
"""Goes up when the model means something else for the same file."""

USED_GROUPS = ("classes", "properties", "individuals", "datatypes")
_NESTED = (Text, Restriction, OntologyClass, OntologyProperty, Individual, Datatype)


def compute_ontology_version(
    source: Ontology | Path | str | bytes, *, imports_dir: Path | None = None, limits: Limits = DEFAULT_LIMITS
) -> str:
    """`sha256:` and 64 hex digits; a string is a path, bytes are a file's content."""
    if isinstance(source, Ontology):
        return version_of(source)
    from sameas.ontology.load import load_ontology, read_ontology  # noqa: PLC0415  # load uses version_of

    if isinstance(source, bytes):
        return read_ontology(source, imports_dir=imports_dir, limits=limits).version
    return load_ontology(source, imports_dir=imports_dir, limits=limits).version


def version_of(ontology: Ontology) -> str:
    """The version of a model that is already there."""
    content = {group: msgspec.to_builtins(getattr(ontology, group)) for group in USED_GROUPS}
    fields = {kind.__name__: list(kind.__struct_fields__) for kind in _NESTED}
    canonical = rfc8785.dumps({"model": MODEL_VERSION, "fields": fields, **content})
    return "sha256:" + hashlib.sha256(canonical).hexdigest()
