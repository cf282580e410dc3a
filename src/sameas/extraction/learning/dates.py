"""Dates as people write them. A mention is read into year, month and day, and can be written in any known
style.

Reads `1 May 1999`, `May 1, 1999`, `1st of May, 1999`, `May 1999`, `1999-05-01`, `01/05/1999`, `5.1.1999`,
`44 BC` and a year alone. A day that no calendar has is not a date.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_NAMES = "January February March April May June July August September October November December"
MONTHS = tuple(_NAMES.split())
_NUMBERS = {name.lower(): i for i, name in enumerate(MONTHS, 1)}
_NUMBERS |= {name[:3].lower(): i for i, name in enumerate(MONTHS, 1)}
_NUMBERS["sept"] = 9
_LENGTHS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)

_MONTH = r"(?P<{0}>" + "|".join(sorted(_NUMBERS, key=lambda name: (-len(name), name))) + r")\b\.?"
_DAY = r"(?P<{0}>\d{{1,2}})(?:st|nd|rd|th)?"
_YEAR = r"(?P<{0}>\d{{4}})"
_DATE = re.compile(
    r"\b(?:"
    + "|".join(
        (
            r"(?P<iy>\d{4})-(?P<im>\d{1,2})-(?P<id>\d{1,2})(?:T[\d:.]+Z?)?",
            _DAY.format("ad") + r"(?:\s+of)?\s+" + _MONTH.format("am") + r",?\s+" + _YEAR.format("ay"),
            _MONTH.format("bm") + r"\s+(?:the\s+)?" + _DAY.format("bd") + r"(?:\s*,\s*|\s+)" + _YEAR.format("by"),
            _MONTH.format("cm") + r"(?:\s+of)?,?\s+" + _YEAR.format("cy"),
            _YEAR.format("fy") + r"\s+" + _MONTH.format("fm") + r"\s+" + _DAY.format("fd"),
            r"(?P<dd>\d{1,2})[/.](?P<dm>\d{1,2})[/.](?P<dy>\d{4})",
            r"(?P<ey>1[0-9]{3}|20[0-9]{2}|21[0-9]{2})",
        )
    )
    + r")(?![\w%])(?!,\d{3})",
    re.IGNORECASE,
)
_GROUPS = (("iy", "im", "id"), ("ay", "am", "ad"), ("by", "bm", "bd"), ("fy", "fm", "fd"))


@dataclass(frozen=True, slots=True)
class Date:
    """A day, a month or a year; what is not said is None."""

    year: int
    month: int | None = None
    day: int | None = None


@dataclass(frozen=True, slots=True)
class DateMention:
    """A date and the characters that say it."""

    date: Date
    start: int
    end: int


def _possible(date: Date) -> bool:
    if date.month is None:
        return True
    if not 1 <= date.month <= len(MONTHS):
        return False
    return date.day is None or 1 <= date.day <= _LENGTHS[date.month - 1]


def _month(text: str) -> int:
    return _NUMBERS[text.lower()] if not text.isdigit() else int(text)


def _read(found: re.Match[str]) -> Date | None:
    got = found.groupdict()
    for year, month, day in _GROUPS:
        if got[year]:
            return Date(int(got[year]), _month(got[month]), int(got[day]))
    if got["cy"]:
        return Date(int(got["cy"]), _month(got["cm"]))
    if got["dy"]:
        first, second = int(got["dd"]), int(got["dm"])
        # Day first, as most of the world writes it, unless only month first is possible.
        turned = second > len(MONTHS)
        return Date(int(got["dy"]), first if turned else second, second if turned else first)
    return Date(int(got["ey"]))


def find_dates(text: str) -> Iterator[DateMention]:
    """Every date said in the text, from left to right, the longest reading of each."""
    for found in _DATE.finditer(text):
        date = _read(found)
        if date is not None and _possible(date):
            yield DateMention(date, found.start(), found.end())


def _iso(date: Date) -> str | None:
    return f"{date.year:04d}-{date.month:02d}-{date.day:02d}" if date.month and date.day else None


def _words(date: Date, *, pad: bool) -> str | None:
    if not (date.month and date.day):
        return None
    day = f"{date.day:02d}" if pad else str(date.day)
    return f"{day} {MONTHS[date.month - 1]} {date.year}"


def _american(date: Date) -> str | None:
    return f"{MONTHS[date.month - 1]} {date.day}, {date.year}" if date.month and date.day else None


def _filled(date: Date) -> Date:
    return Date(date.year, date.month or 1, date.day or 1)


STYLES = (
    "iso",
    "iso-filled",
    "padded",
    "padded-filled",
    "plain",
    "american",
    "year",
    "year-month",
    "month-year",
)


def write_date(date: Date, *, style: str) -> str | None:
    """The date in a style, or None where it does not say enough for that style."""
    match style:
        case "iso":
            return _iso(date)
        case "iso-filled":
            return _iso(_filled(date))
        case "padded":
            return _words(date, pad=True)
        case "padded-filled":
            return _words(_filled(date), pad=True)
        case "plain":
            return _words(date, pad=False)
        case "american":
            return _american(date)
        case "year":
            return str(date.year)
        case "year-month":
            return f"{date.year:04d}-{date.month:02d}" if date.month else None
        case "month-year":
            return f"{MONTHS[date.month - 1]} {date.year}" if date.month else None
        case _:
            raise ValueError(f"unknown date style {style!r}; the known ones are {', '.join(STYLES)}")
