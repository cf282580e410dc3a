"""Numbers with and without units. A mention is read into an exact value and can be written in any known
style.

Reads `2,777 metres`, `$2 million`, `3.5 km`, `US$ 10.5 billion`, `98 minutes`, `45%`, `-12.5`. A number that
is part of a name (`Boeing 747-400`) is read as well: what it means is for the learner to say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from sameas.extraction.learning.tokens import word_set

_SCALES = {"hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12, "bn": 9}
_NUMBER = re.compile(
    "(?P<sign>(?<![\\w.])[-\u2212])?"
    r"(?<![\w.])(?P<number>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)"
    r"(?P<percent>\s?%)?(?:[\s-](?P<scale>hundred|thousand|million|billion|trillion|bn)\b)?"
    r"(?:(?P<gap>\s?-?\s?)(?P<unit>[^\W\d_]{1,14}(?:/[^\W\d_]{1,6}|[²³23](?!\w))?))?"
)
# Words after a number that are no unit: they begin the next phrase.
_NO_UNIT = word_set(
    "a an and are as at because but by during for from had has have he if in into is it its million of on or "
    "she since so than that the their then there they this to until was were when where which while who with "
    "january february march april may june july august september october november december st nd rd th s bc "
    "ad ce bce"
)
_NAMES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen twenty"
)
_WORDS = {word: value for value, word in enumerate(_NAMES.split())}
_WORD = re.compile(r"\b(" + "|".join(sorted(_WORDS, key=lambda word: (-len(word), word))) + r")\b", re.IGNORECASE)
STYLES = ("plain", "decimal", "grouped", "unit", "decimal-unit")


@dataclass(frozen=True, slots=True)
class Quantity:
    """An exact value and the unit's word, if one follows."""

    value: Decimal
    unit: str | None = None


@dataclass(frozen=True, slots=True)
class QuantityMention:
    """A quantity and the characters that say it; `number_end` is where the number ends and the unit
    begins.
    """

    quantity: Quantity
    start: int
    number_end: int
    end: int


def find_quantities(text: str) -> Iterator[QuantityMention]:
    """Every number said in the text in digits, and the small ones said in words."""
    for found in _NUMBER.finditer(text):
        value = Decimal(found["number"].replace(",", ""))
        number_end = found.end("number")
        if found["scale"]:
            value = value.scaleb(_SCALES[found["scale"]])
            number_end = found.end("scale")
        if found["percent"]:
            number_end = found.end("percent")
        if found["sign"]:
            value = -value
        unit = found["unit"]
        unit = unit if unit and unit.lower() not in _NO_UNIT and unit[0].islower() else None
        end = found.end("unit") if unit else number_end
        yield QuantityMention(Quantity(value, unit), found.start(), number_end, end)
    for found in _WORD.finditer(text):
        value = Decimal(_WORDS[found.group().lower()])
        yield QuantityMention(Quantity(value), found.start(), found.end(), found.end())


def _plain(value: Decimal) -> str:
    text = format(value, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _decimal(value: Decimal) -> str:
    text = _plain(value)
    return text if "." in text else text + ".0"


def write_quantity(quantity: Quantity, *, style: str) -> str | None:
    """The quantity in a style, or None where it has no unit and the style wants one."""
    match style:
        case "plain":
            return _plain(quantity.value)
        case "decimal":
            return _decimal(quantity.value)
        case "grouped":
            whole, dot, rest = _plain(quantity.value).partition(".")
            return f"{int(whole):,}{dot}{rest}"
        case "unit":
            return f"{_plain(quantity.value)} {quantity.unit}" if quantity.unit else None
        case "decimal-unit":
            return f"{_decimal(quantity.value)} {quantity.unit}" if quantity.unit else None
        case _:
            raise ValueError(f"unknown number style {style!r}; the known ones are {', '.join(STYLES)}")
