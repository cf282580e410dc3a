"""SQL in files: named statements, one line of purpose each, one file per dialect."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from types import MappingProxyType

_NAME = re.compile(r"^-- name: (\w+)\n(?:-- purpose: .+\n)", re.MULTILINE)
_COMMENT = re.compile(r"^--.*\n", re.MULTILINE)


@lru_cache
def statements(dialect: str) -> Mapping[str, str]:
    """The statements of a dialect, by name."""
    text = files("sameas.stores").joinpath("sql", f"{dialect}.sql").read_text("utf-8")
    _, *parts = _NAME.split(text)
    named = {name: _COMMENT.sub("", sql).strip() for name, sql in zip(parts[::2], parts[1::2], strict=True)}
    return MappingProxyType(named)


def migrations(dialect: str) -> list[str]:
    """The statements `schema_1`, `schema_2`, ... that make the tables, in order."""
    named = statements(dialect)
    numbers = sorted(int(name.removeprefix("schema_")) for name in named if name.startswith("schema_"))
    if numbers != list(range(1, len(numbers) + 1)):
        raise ValueError(f"the migrations of {dialect} have a gap: {numbers}")
    return [named[f"schema_{number}"] for number in numbers]
