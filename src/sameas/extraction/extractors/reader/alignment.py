"""Where the names and values of gold facts stand in a text, in characters."""

import re
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

from sameas.extraction.extractors.lexicon.dates import find_dates
from sameas.extraction.extractors.lexicon.quantities import find_quantities

DATES = frozenset(("date", "dateTime", "gYear", "gYearMonth"))
NUMBERS = frozenset(("integer", "decimal", "double", "float", "int", "long", "nonNegativeInteger", "positiveInteger"))


class StatedValue(NamedTuple):
    """A date or number said in a text."""

    start: int
    end: int
    value: str
    sort: str
    """`date` or `number`."""


def find_values(text: str) -> list[StatedValue]:
    """Dates first, then numbers that are no part of a date."""
    dates = [StatedValue(one.start, one.end, one.value, "date") for one in find_dates(text)]
    numbers = [StatedValue(one.start, one.end, one.value, "number") for one in find_quantities(text)]
    return dates + [one for one in numbers if not any(d.start < one.end and one.start < d.end for d in dates)]


def _number(said: str) -> Decimal | None:
    try:
        return Decimal(said.replace(",", ""))
    except InvalidOperation:
        return None


def same_value(gold: str, found: StatedValue) -> bool:
    """Whether a value said in the text is the gold's; a gold year may be said as a day."""
    if found.sort == "date":
        return found.value == gold or found.value.startswith(gold + "-") or gold == found.value + "-01-01"
    number = _number(gold)
    return number is not None and number == _number(found.value)


def find_name(name: str, text: str) -> list[tuple[int, int]]:
    """The whole-word places of a name, in its own case if there are any."""
    pattern = rf"(?<!\w){re.escape(name)}(?!\w)"
    found = [match.span() for match in re.finditer(pattern, text)]
    return found or [match.span() for match in re.finditer(pattern, text, re.IGNORECASE)]


def find_end(said: str, text: str, values: list[StatedValue], datatype: str) -> list[tuple[int, int]]:
    """The places of a fact's subject or object; values are found in any way of writing them."""
    fitting = [(one.start, one.end) for one in values if same_value(said, one)]
    if datatype in DATES | NUMBERS and fitting:
        return fitting
    return find_name(said, text) or fitting


def without_nested(places: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Places (name, start, end) that lie in no longer place of another name."""
    return [
        one
        for one in places
        if not any(
            other[1] <= one[1] and one[2] <= other[2] and other[2] - other[1] > one[2] - one[1] for other in places
        )
    ]
