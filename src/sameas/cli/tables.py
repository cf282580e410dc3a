"""Rows for people: aligned columns, which on a terminal fit its width.

Rule: what does not fit is folded, never cut, and neither numbers nor columns that must stay whole are broken. Rich
draws finer tables, but loading it takes longer than a whole replay.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from itertools import zip_longest
from typing import TextIO

_USUAL_COLUMNS = 80
# A column that is folded keeps room for a short word.
_LEAST = 6


def print_table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    to: TextIO,
    title: str = "",
    whole: Collection[str] = (),
) -> None:
    """Print rows; on a terminal the columns named `whole` are never broken."""
    if title:
        print(title, file=to)
    widths = [max(_width(row[column]) for row in (head, *rows)) for column in range(len(head))]
    numbers = [bool(rows) and all(_is_number(row[column]) for row in rows) for column in range(len(head))]
    gap, room = 2, _columns(to) if to.isatty() else None
    if room is not None:
        if sum(widths) + gap * (len(head) - 1) > room:
            gap = 1
        fixed = [number or name in whole for number, name in zip(numbers, head, strict=True)]
        widths = _fitted(widths, fixed, room - gap * (len(head) - 1))
    for index, row in enumerate((head, *rows)):
        folded = [[*_folded(cell, width)] for cell, width in zip(row, widths, strict=True)]
        for line in zip_longest(*folded, fillvalue=""):
            cells = map(_padded, line, widths, numbers)
            print((" " * gap).join(cells).rstrip(), file=to)
        if index == 0 and room is not None:
            print("─" * min(room, sum(widths) + gap * (len(head) - 1)), file=to)


def _fitted(widths: Sequence[int], fixed: Sequence[bool], room: int) -> list[int]:
    """The widths with which a table has so much room, as far as columns may be folded."""
    found = list(widths)
    while sum(found) > room:
        foldable = [column for column, is_fixed in enumerate(fixed) if not is_fixed and found[column] > _LEAST]
        if not foldable:
            break
        found[max(foldable, key=lambda column: found[column])] -= 1
    return found


def _folded(cell: str, width: int) -> Iterator[str]:
    """The lines of a cell, broken at blanks where there are any."""
    while _width(cell) > width > 0:
        end = 1
        while end < len(cell) and _width(cell[: end + 1]) <= width:
            end += 1
        blank = cell.rfind(" ", 1, end + 1)
        at = blank if blank > 0 else end
        yield cell[:at].rstrip()
        cell = cell[at:].lstrip(" ")
    yield cell


def _padded(cell: str, width: int, stands_right: bool) -> str:
    blanks = " " * (width - _width(cell))
    return blanks + cell if stands_right else cell + blanks


def _columns(to: TextIO) -> int:
    """How many the terminal has."""
    wanted = os.environ.get("COLUMNS", "")
    if wanted.isdigit() and int(wanted) > 0:
        return int(wanted)
    try:
        return os.get_terminal_size(to.fileno()).columns or _USUAL_COLUMNS
    except (OSError, ValueError):
        return _USUAL_COLUMNS


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
