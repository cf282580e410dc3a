"""What the learner needs to know of an ontology: its properties, what they join, and the names of both.

Any ontology can be turned into a `Schema`; the learner never sees the ontology itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sameas.identity.errors import SameasError

_LAST = re.compile(r"[#/:]")


class SchemaError(SameasError, ValueError):
    """The ontology has no property that examples could be of, or names one twice."""


@dataclass(frozen=True, slots=True)
class Property:
    """A property: its id, the label people use, and the classes (or the datatype) at its ends where they are
    known.
    """

    id: str
    label: str
    domain: str | None = None
    range: str | None = None
    datatype: str | None = None


@dataclass(frozen=True, slots=True)
class Schema:
    """The properties of an ontology and the labels of its classes."""

    properties: tuple[Property, ...]
    class_labels: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.properties:
            raise SchemaError("the schema has no property: nothing can be learned for it")
        seen: set[str] = set()
        for item in self.properties:
            if item.id in seen:
                raise SchemaError(f"the schema names property {item.id!r} twice")
            seen.add(item.id)

    def find(self, name: str) -> Property | None:
        """The property with this id, or else with this label (spaces, underscores and case aside), or else the one
        whose id ends so.
        """
        for item in self.properties:
            if item.id == name:
                return item
        wanted = _plain(name)
        for item in self.properties:
            if _plain(item.label) == wanted:
                return item
        local = [item for item in self.properties if _LAST.split(item.id)[-1] == name]
        return local[0] if len(local) == 1 else None

    def label_of(self, class_id: str | None) -> str:
        """The label of a class, or its id where it has none."""
        return self.class_labels.get(class_id, class_id) if class_id else ""


def _plain(name: str) -> str:
    return " ".join(name.replace("_", " ").split()).lower()


def _merge(known: Property | None, found: Property) -> Property:
    """One property from two lines that name it: an end is kept where both agree."""
    if known is None:
        return found
    return Property(
        id=known.id,
        label=known.label,
        domain=known.domain if known.domain == found.domain else None,
        range=known.range if known.range == found.range else None,
    )


def read_text2kgbench_schema(path: Path) -> Schema:
    """The schema of one of Text2KGBench's JSON ontologies."""
    try:
        data: Any = json.loads(path.read_text("utf-8"))
        classes = {str(item["qid"]): str(item["label"]) for item in data["concepts"]}
        properties: dict[str, Property] = {}
        for item in data["relations"]:
            found = Property(
                id=str(item["pid"]),
                label=str(item["label"]).strip(),
                domain=str(item["domain"]) or None,
                range=str(item["range"]) or None,
            )
            properties[found.id] = _merge(properties.get(found.id), found)
    except (ValueError, KeyError, TypeError) as error:
        raise SchemaError(f"{path.name} is not an ontology in Text2KGBench's JSON form: {error!r}") from error
    return Schema(tuple(properties.values()), classes)
