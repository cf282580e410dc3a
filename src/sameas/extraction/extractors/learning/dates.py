"""Dates as the learner sees them: read by the lexicon's reader into year, month and day, and written in any known
style.

Years that the reader leaves aside because they stand in a range (`1901-1902`) or behind a joined word (`mid-1969`)
are read as well, and of a season (`2005-06`) its first year. `02/09/1992` may be meant in two ways: the reading is day
first, and each style has a twin that is month first, so that the examples can say which. A day without a year, or one
that no calendar has, is not a date.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from sameas.extraction.extractors.lexicon import dates as reader
from sameas.extraction.graph.model import Mention

_NAMES = "January February March April May June July August September October November December"
MONTHS = tuple(_NAMES.split())
_DATATYPES = frozenset(reader.XSD + name for name in ("date", "dateTime", "gYearMonth", "gYear"))
_PARTS = re.compile(r"(?P<sign>-?)(?P<year>\d{4,})(?:-(?P<month>\d\d))?(?:-(?P<day>\d\d))?")
_YEAR = re.compile(r"\b(?=[12])(?<!\d[.,/])(?:1\d{3}|20\d\d|21\d\d)(?![\w%]|[.,]\d)")
_SEASON = re.compile(r"\d\d(\d\d)-(\d\d)")
_NUMERIC = re.compile(r"(\d{1,2})[/-](\d{1,2})[/-](?:\d{4}|\d\d)")
_CENTURY = 100
MONTH_FIRST = " month first"


@dataclass(frozen=True, slots=True)
class Date:
    """A day, a month or a year; what is not said is None. Years before our era are negative.

    `order` says what a date in numbers alone shows: `day` or `month` first, or `either`.
    """

    year: int
    month: int | None = None
    day: int | None = None
    order: str | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class DateMention:
    """A date and the characters that say it."""

    date: Date
    start: int
    end: int


def _order(said: str, month: int, day: int) -> str | None:
    found = _NUMERIC.fullmatch(said)
    if found is None or month == day:
        return None
    first, second = int(found[1]), int(found[2])
    if first == month:
        return "month"
    return "either" if max(first, second) <= len(MONTHS) else "day"


def _read(mention: Mention) -> Date | None:
    if mention.datatype not in _DATATYPES:
        return None
    found = _PARTS.match(mention.value)
    if found is None:
        return None
    year = int(found["year"])
    # XML Schema has a year 0, which people call 1 BC.
    year = -year - 1 if found["sign"] or not year else year
    month, day = (int(found[name]) if found[name] else None for name in ("month", "day"))
    return Date(year, month, day, _order(mention.text, month, day) if month and day else None)


def _is_season(said: str) -> bool:
    found = _SEASON.fullmatch(said)
    return found is not None and (int(found[1]) + 1) % _CENTURY == int(found[2])


def find_dates(text: str) -> Iterator[DateMention]:
    """Every date said in the text, from left to right, the longest reading of each."""
    found: list[DateMention] = []
    for mention in reader.find_dates(text):
        date = None if _is_season(mention.text) else _read(mention)
        if date is not None:
            found.append(DateMention(date, mention.start, mention.end))
    taken = {at for mention in found for at in range(mention.start, mention.end)}
    years = [
        DateMention(Date(int(year.group())), *year.span())
        for year in _YEAR.finditer(text)
        if year.start() not in taken and year.end() - 1 not in taken
    ]
    return iter(sorted((*found, *years), key=lambda mention: mention.start))


def _turned(date: Date) -> Date:
    """The other reading of a date that may be meant in two ways."""
    return replace(date, month=date.day, day=date.month) if date.order == "either" else date


def _year(date: Date) -> str:
    return f"{date.year:04d}" if date.year > 0 else f"-{-date.year - 1:04d}"


def _iso(date: Date) -> str | None:
    return f"{_year(date)}-{date.month:02d}-{date.day:02d}" if date.month and date.day else None


def _words(date: Date, *, pad: bool) -> str | None:
    if not (date.month and date.day):
        return None
    day = f"{date.day:02d}" if pad else str(date.day)
    return f"{day} {MONTHS[date.month - 1]} {date.year}"


def _american(date: Date) -> str | None:
    return f"{MONTHS[date.month - 1]} {date.day}, {date.year}" if date.month and date.day else None


def _filled(date: Date) -> Date:
    return Date(date.year, date.month or 1, date.day or 1)


_PLAIN_STYLES = (
    "iso",
    "iso-filled",
    "padded",
    "padded-filled",
    "plain",
    "american",
    "year",
    "year-iso",
    "year-month",
    "month-year",
)
_WITH_DAYS = ("iso", "padded", "plain", "american", "year-month", "month-year")
STYLES = (*_PLAIN_STYLES, *(style + MONTH_FIRST for style in _WITH_DAYS))


def shown_styles(date: Date) -> tuple[str, ...]:
    """The styles that a date in an example may speak for: one that shows its order speaks for that order alone."""
    if date.order == "month":
        return tuple(style for style in STYLES if style + MONTH_FIRST not in STYLES)
    if date.order == "day":
        return _PLAIN_STYLES
    return STYLES


def write_date(date: Date, *, style: str) -> str | None:
    """The date in a style, or None where it does not say enough for that style."""
    if style.endswith(MONTH_FIRST) and style in STYLES:
        return write_date(_turned(date), style=style.removesuffix(MONTH_FIRST))
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
            return str(date.year) if date.year > 0 else f"{-date.year} BC"
        case "year-iso":
            return _year(date)
        case "year-month":
            return f"{_year(date)}-{date.month:02d}" if date.month else None
        case "month-year":
            return f"{MONTHS[date.month - 1]} {date.year}" if date.month else None
        case _:
            raise ValueError(f"unknown date style {style!r}; the known ones are {', '.join(STYLES)}")
