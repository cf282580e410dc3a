"""Examples to learn from: a text and the triples that it states. One JSON object a line, in any of three
forms.

- `{"text": ..., "triples": [[subject, property, object], ...]}`;
- Text2KGBench with one triple a line: `sent`, `sub_label`, `rel_label`, `obj_label`; lines of one sentence
  are joined;
- Text2KGBench with several: `sent` and `triples` of `{"sub": ..., "rel": ..., "obj": ...}`, or of `subject`,
  `predicate` (or `property`) and `object`.

A property is given by its id, its label or the last part of its id; an object may be a number. `New_York` is read as
`New York` where the text does not write it so. A line that cannot be read, or names an unknown property, is refused
with its number.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from sameas.extraction.extractors.learning.schema import Schema
from sameas.identity.errors import SameasError

Unknown = Literal["refuse", "keep"]
Answers: TypeAlias = Mapping[str, list[Any]]
_ENDS = 3
_NAMES = (("sub", "rel", "obj"), ("subject", "predicate", "object"), ("subject", "property", "object"))


class ExamplesError(SameasError, ValueError):
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


class _Number(str):
    """A number as the line writes it."""

    __slots__ = ()


def _text(data: Mapping[str, Any], name: str) -> str:
    value = data.get(name)
    if not isinstance(value, str) or isinstance(value, _Number) or not value.strip():
        raise ExamplesError(f"the field {name!r} must be a text that is not empty")
    return value


def _triple(item: object) -> tuple[str, str, str]:
    if isinstance(item, dict):
        item = next(([item[name] for name in names] for names in _NAMES if item.keys() >= set(names)), None)
    if isinstance(item, list) and len(item) == _ENDS and all(isinstance(part, str) for part in item):
        subject, name, value = item
        if not isinstance(subject, _Number) and not isinstance(name, _Number):
            return subject, name, str(value)
    raise ExamplesError("a triple must be [subject, property, object], all texts, or a number as the object")


def _spaced(name: str, text: str) -> str:
    """A name with blanks where a corpus has underscores and its text has not."""
    return name.replace("_", " ").strip() if "_" in name and " " not in name and name not in text else name


def _load(line: str) -> Any:
    return json.loads(line, parse_int=_Number, parse_float=_Number, parse_constant=_refuse_constant)


def _refuse_constant(name: str) -> None:
    raise ExamplesError(f"{name} is no number of JSON")


def _read_line(line: str, answers: Answers | None) -> tuple[str, list[tuple[str, str, str]]]:
    data = _load(line)
    try:
        json.dumps(data, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise ExamplesError("half of a surrogate pair stands alone; write the character whole") from error
    if not isinstance(data, dict):
        raise ExamplesError("a line must be a JSON object")
    if "sub_label" in data:
        value = data.get("obj_label")
        said = str(value) if isinstance(value, _Number) else _text(data, "obj_label")
        return _text(data, "sent"), [(_text(data, "sub_label"), _text(data, "rel_label"), said)]
    triples = data.get("triples")
    if triples is None and answers is not None:
        number = str(data.get("id", ""))
        if number not in answers:
            raise ExamplesError(f"the ground truth has no answer for the id {number!r}")
        triples = answers[number]
    if not isinstance(triples, list):
        raise ExamplesError("neither 'triples' nor 'sub_label' is there; see the documented forms of examples")
    return _text(data, "text" if "text" in data else "sent"), [_triple(item) for item in triples]


def _property(name: str, schema: Schema, unknown: Unknown) -> str:
    known = schema.find(name)
    if known is not None:
        return known.id
    if unknown == "refuse":
        raise ExamplesError(
            f"the property {name!r} is not in the ontology; give its id, its label or the last part of its id"
        )
    return name


def parse_examples(
    lines: Iterable[str],
    schema: Schema,
    *,
    source: str = "examples",
    unknown: Unknown = "refuse",
    answers: Answers | None = None,
) -> list[Example]:
    """Read examples from lines; those of one text become one example, in order of first appearance.

    A triple of a property that the schema lacks is refused, or kept under the name that it came with:
    learning skips it, scoring counts it as missed. `answers` has the triples of lines that are sentences alone.
    """
    found: dict[str, dict[Triple, None]] = {}
    for number, line in _numbered(lines):
        try:
            text, triples = _read_line(line, answers)
            known = found.setdefault(text, {})
            for subject, name, value in triples:
                known[Triple(_spaced(subject, text), _property(name, schema, unknown), _spaced(value, text))] = None
        except json.JSONDecodeError as error:
            raise ExamplesError(f"{source}, line {number}: not JSON: {error}") from error
        except ExamplesError as error:
            raise ExamplesError(f"{source}, line {number}: {error}") from error
    return [Example(text, tuple(triples)) for text, triples in found.items()]


def read_examples(
    path: Path, schema: Schema, *, unknown: Unknown = "refuse", answers: Answers | None = None
) -> list[Example]:
    """Read a file of examples."""
    with _opened(path) as lines:
        return parse_examples(lines, schema, source=path.name, unknown=unknown, answers=answers)


def read_answers(path: Path) -> Answers:
    """The triples of a file of answers, by the id of their sentence."""
    found: dict[str, list[Any]] = {}
    with _opened(path) as lines:
        for number, line in _numbered(lines):
            try:
                data = _load(line)
            except ValueError as error:
                raise ExamplesError(f"{path.name}, line {number}: {error}") from error
            if not isinstance(data, dict) or "id" not in data or not isinstance(data.get("triples"), list):
                raise ExamplesError(f"{path.name}, line {number}: an answer has an 'id' and 'triples'")
            found.setdefault(str(data["id"]), []).extend(data["triples"])
    return found


@contextmanager
def _opened(path: Path) -> Iterator[Iterable[str]]:
    try:
        with path.open(encoding="utf-8-sig") as lines:
            yield lines
    except UnicodeDecodeError as error:
        raise ExamplesError(f"{path.name} is not UTF-8 text: {error}") from error


def _numbered(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """The lines that are not empty, with their numbers; a mark of the byte order is no part of the first."""
    for number, line in enumerate(lines, 1):
        read = line.removeprefix("\ufeff") if number == 1 else line
        if read.strip():
            yield number, read
