"""Rows for people: a Rich table on a terminal, aligned columns elsewhere."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import TextIO


def print_table(
    head: Sequence[str], rows: Sequence[Sequence[str]], *, to: TextIO, title: str = "", plain: bool = False
) -> None:
    """Print rows; `plain` keeps Rich out even on a terminal."""
    if to.isatty() and not plain:
        _rich(head, rows, to, title)
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


def _rich(head: Sequence[str], rows: Sequence[Sequence[str]], to: TextIO, title: str) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title or None, title_justify="left")
    for column, name in enumerate(head):
        right = bool(rows) and all(_is_number(row[column]) for row in rows)
        table.add_column(name, justify="right" if right else "left", overflow="fold")
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
