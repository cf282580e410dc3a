"""SQL in files: named statements, one line of purpose each, one file per dialect.

Values are written `:name`; a driver that wants them otherwise is given the statement in its own style.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

_NAME = re.compile(r"^-- name: (\w+)\n(?:-- purpose: .+\n)", re.MULTILINE)
_COMMENT = re.compile(r"^ *--.*\n", re.MULTILINE)
_PARAMETER = re.compile(r"(?<![\w:]):([a-z]\w*)")

_STYLES = {"pyformat": "%({})s", "named": ":{}", "format": "%s", "qmark": "?", "numeric_dollar": "${}"}


def statements(dialect: str) -> Mapping[str, str]:
    """The statements of a dialect, by name."""
    return read_statements("sameas.stores", dialect)


@lru_cache
def read_statements(package: str, file: str) -> Mapping[str, str]:
    """The statements of `sql/{file}.sql` in a package, by name."""
    text = files(package).joinpath("sql", f"{file}.sql").read_text("utf-8")
    _, *parts = _NAME.split(text)
    named = {name: _COMMENT.sub("", sql).strip() for name, sql in zip(parts[::2], parts[1::2], strict=True)}
    return MappingProxyType(named)


def migrations(dialect: str) -> list[str]:
    """The statements `schema_1`, `schema_2`, ... that make the tables, in order."""
    return numbered(statements(dialect), "schema_")


def numbered(named: Mapping[str, str], prefix: str) -> list[str]:
    """The statements whose names are a prefix and 1, 2, ..., in order."""
    numbers = sorted(int(name.removeprefix(prefix)) for name in named if name.startswith(prefix))
    if not numbers or numbers != list(range(1, len(numbers) + 1)):
        raise ValueError(f"the statements {prefix}N have the numbers {numbers}; they must be 1, 2, ...")
    return [named[f"{prefix}{number}"] for number in numbers]


def parameters(sql: str) -> list[str]:
    """The names of a statement's values, each time they occur."""
    return _PARAMETER.findall(sql)


@lru_cache(maxsize=512)
def styled(sql: str, paramstyle: str) -> tuple[str, tuple[str, ...] | None]:
    """A statement as a driver wants it, with the order of its values where they go by position."""
    if paramstyle == "named":
        return sql, None
    form = _STYLES[paramstyle]
    escaped = sql.replace("%", "%%") if "%" in form else sql
    if paramstyle == "pyformat":
        return _PARAMETER.sub(lambda found: form.format(found[1]), escaped), None
    if paramstyle == "numeric_dollar":
        names = tuple(dict.fromkeys(parameters(sql)))
        return _PARAMETER.sub(lambda found: form.format(names.index(found[1]) + 1), escaped), names
    return _PARAMETER.sub(form, escaped), tuple(parameters(sql))


def bound(sql: str, values: Mapping[str, Any], paramstyle: str) -> tuple[str, Any]:
    """A statement and its values as a driver wants them."""
    text, order = styled(sql, paramstyle)
    return text, dict(values) if order is None else tuple(values[name] for name in order)
