"""Rows for people: a Rich table on a terminal, aligned columns elsewhere."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Sequence
from typing import TextIO


def print_table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    to: TextIO,
    title: str = "",
    plain: bool = False,
    whole: Collection[str] = (),
) -> None:
    """Print rows; `plain` keeps Rich out even on a terminal, where the columns named `whole` are never broken."""
    if to.isatty() and not plain:
        _rich(head, rows, to, title, whole)
        return
    if title:
        print(title, file=to)
    widths = [max(_width(row[column]) for row in (head, *rows)) for column in range(len(head))]
    numbers = [bool(rows) and all(_is_number(row[column]) for row in rows) for column in range(len(head))]
    for row in (head, *rows):
        cells = [
            " " * (width - _width(cell)) + cell if right else cell + " " * (width - _width(cell))
            for cell, width, right in zip(row, widths, numbers, strict=True)
        ]
        print("  ".join(cells).rstrip(), file=to)


def _rich(head: Sequence[str], rows: Sequence[Sequence[str]], to: TextIO, title: str, whole: Collection[str]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    # Lines between the columns would take the room that names need on 80 columns.
    table = Table(title=title or None, title_justify="left", box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for column, name in enumerate(head):
        right = bool(rows) and all(_is_number(row[column]) for row in rows)
        table.add_column(name, justify="right" if right else "left", overflow="fold", no_wrap=right or name in whole)
    for row in rows:
        # Text, not markup: names from documents may hold square brackets.
        table.add_row(*(Text(cell) for cell in row))
    Console(file=to).print(table)


def _width(cell: str) -> int:
    """Columns on a screen: Chinese characters take two, combining marks none."""
    if cell.isascii():
        return len(cell)
    wide = sum(unicodedata.east_asian_width(sign) in "WF" for sign in cell)
    return len(cell) + wide - sum(bool(unicodedata.combining(sign)) for sign in cell)


def _is_number(cell: str) -> bool:
    return cell.replace(".", "", 1).replace(",", "").lstrip("-").isdigit()


def short_key(key: str) -> str:
    """As much of an extraction's key as people need to type; every command takes it."""
    return key.removeprefix("sha256-")[:12]
