"""Examples to learn from: a text and the triples that it states. One JSON object a line, in any of three
forms.

- `{"text": ..., "triples": [[subject, property, object], ...]}`;
- Text2KGBench with one triple a line: `sent`, `sub_label`, `rel_label`, `obj_label`; lines of one sentence
  are joined;
- Text2KGBench with several: `sent` and `triples` of `{"sub": ..., "rel": ..., "obj": ...}`.

A property is given by its id or its label. A line that cannot be read, or names an unknown property, is
refused with its number.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from sameas.extraction.learning.schema import Schema

Unknown = Literal["refuse", "keep"]
_ENDS = 3


class ExamplesError(ValueError):
    """The examples cannot be read."""


@dataclass(frozen=True, slots=True)
class Triple:
    """A fact as the example states it; the property by its id."""

    subject: str
    property: str
    object: str


@dataclass(frozen=True, slots=True)
class Example:
    """A text and what it says."""

    text: str
    triples: tuple[Triple, ...]


def _text(data: Mapping[str, Any], name: str) -> str:
    value = data.get(name)
    if not isinstance(value, str) or not value.strip():
        raise ExamplesError(f"the field {name!r} must be a text that is not empty")
    return value


def _triple(item: object) -> tuple[str, str, str]:
    if isinstance(item, dict):
        item = [item.get("sub"), item.get("rel"), item.get("obj")]
    if isinstance(item, list) and len(item) == _ENDS and all(isinstance(part, str) for part in item):
        return item[0], item[1], item[2]
    raise ExamplesError("a triple must be [subject, property, object], all texts")


def _read_line(line: str) -> tuple[str, list[tuple[str, str, str]]]:
    data = json.loads(line)
    try:
        json.dumps(data, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise ExamplesError("half of a surrogate pair stands alone; write the character whole") from error
    if not isinstance(data, dict):
        raise ExamplesError("a line must be a JSON object")
    if "sub_label" in data:
        return _text(data, "sent"), [(_text(data, "sub_label"), _text(data, "rel_label"), _text(data, "obj_label"))]
    triples = data.get("triples")
    if not isinstance(triples, list):
        raise ExamplesError("neither 'triples' nor 'sub_label' is there; see the documented forms of examples")
    return _text(data, "text" if "text" in data else "sent"), [_triple(item) for item in triples]


def _property(name: str, schema: Schema, unknown: Unknown) -> str:
    known = schema.find(name)
    if known is not None:
        return known.id
    if unknown == "refuse":
        raise ExamplesError(f"the property {name!r} is not in the ontology; give its id or its label")
    return name


def parse_examples(
    lines: Iterable[str], schema: Schema, *, source: str = "examples", unknown: Unknown = "refuse"
) -> list[Example]:
    """Read examples from lines; those of one text become one example, in order of first appearance.

    A triple of a property that the schema lacks is refused, or kept under the name that it came with:
    learning skips it, scoring counts it as missed.
    """
    found: dict[str, dict[Triple, None]] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            text, triples = _read_line(line)
            for subject, name, value in triples:
                found.setdefault(text, {})[Triple(subject, _property(name, schema, unknown), value)] = None
            found.setdefault(text, {})
        except json.JSONDecodeError as error:
            raise ExamplesError(f"{source}, line {number}: not JSON: {error}") from error
        except ExamplesError as error:
            raise ExamplesError(f"{source}, line {number}: {error}") from error
    return [Example(text, tuple(triples)) for text, triples in found.items()]


def read_examples(path: Path, schema: Schema, *, unknown: Unknown = "refuse") -> list[Example]:
    """Read a file of examples."""
    try:
        with path.open(encoding="utf-8") as lines:
            return parse_examples(lines, schema, source=path.name, unknown=unknown)
    except UnicodeDecodeError as error:
        raise ExamplesError(f"{path.name} is not UTF-8 text: {error}") from error
