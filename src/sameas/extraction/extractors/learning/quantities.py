"""Numbers as the learner sees them: read by the lexicon's reader, with any word behind them as a unit, and written in
any known style.

Where the reader knows no unit, a plain word that follows is taken for one (`12 islands`, `20 mg/day`). Digits that the
reader leaves aside because they are part of something (`Boeing 747-400`, `10-12 people`) are read as well: what they
mean is for the learner to say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from sameas.extraction.extractors.learning.tokens import word_set
from sameas.extraction.extractors.lexicon import quantities as reader
from sameas.extraction.graph.model import Mention

_DIGITS = re.compile(
    r"\b(?=\d)(?<![\w.])(?P<number>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)(?P<thousand>k\b)?", re.ASCII
)
_PIECE = re.compile("\\d(?:[\\d.,'\\s\u00a0\u202f\u2009]*\\d)?|[^\\W\\d_]+")
_UNIT = re.compile(r"\s?-?\s?(?P<unit>[^\W\d_]{1,14}(?:/[^\W\d_]{1,6}|[²³23](?!\w))?)")
_BETWEEN = " -\u00a0\u202f"
# Words after a number that are no unit: they begin the next phrase.
_NO_UNIT = word_set(
    "a an and are as at because but by during for from had has have he if in into is it its million of on or "
    "she since so than that the their then there they this to until was were when where which while who with "
    "january february march april may june july august september october november december st nd rd th s bc "
    "ad ce bce"
)
STYLES = ("plain", "decimal", "grouped", "scientific", "unit", "decimal-unit")


@dataclass(frozen=True, slots=True)
class Quantity:
    """An exact value and the unit's word, if one is said."""

    value: Decimal
    unit: str | None = None


@dataclass(frozen=True, slots=True)
class QuantityMention:
    """A quantity and the characters that say it; the number alone may be fewer of them."""

    quantity: Quantity
    start: int
    end: int
    number_start: int
    number_end: int


def find_quantities(text: str) -> Iterator[QuantityMention]:
    """Every number said in the text, in digits or words."""
    taken: set[int] = set()
    for mention in reader.find_quantities(text):
        taken.update(range(mention.start, mention.end))
        yield _united(mention, text)
    for found in _DIGITS.finditer(text):
        if found.start() not in taken and found.end() - 1 not in taken:
            value = Decimal(found["number"].replace(",", "")).scaleb(3 if found["thousand"] else 0)
            yield _followed(value, text, found.start(), found.end())


def _united(mention: Mention, text: str) -> QuantityMention:
    value, start, end = Decimal(mention.value), mention.start, mention.end
    if not mention.unit:
        return _followed(value, text, start, end)
    if reader.is_money(mention):
        digit = next((at for at, sign in enumerate(mention.text) if sign.isdigit()), 0)
        return QuantityMention(Quantity(value, mention.unit), start, end, start + digit, end)
    number_end = start + _number_length(mention)
    unit = text[number_end:end].strip(_BETWEEN)
    return QuantityMention(Quantity(value, unit or mention.unit), start, end, start, number_end)


def _number_length(mention: Mention) -> int:
    """How much of a mention is its number: the least that says the same value."""
    for piece in _PIECE.finditer(mention.text):
        read = next(reader.find_quantities(mention.text[: piece.end()]), None)
        if read is not None and read.value == mention.value and (read.start, read.end) == (0, piece.end()):
            return piece.end()
    return len(mention.text)


def _followed(value: Decimal, text: str, start: int, end: int) -> QuantityMention:
    # Behind a number in words the next word is seldom a unit.
    found = _UNIT.match(text, end) if any(sign.isdigit() for sign in text[start:end]) else None
    unit = found["unit"] if found and found["unit"].lower() not in _NO_UNIT and found["unit"][0].islower() else None
    return QuantityMention(Quantity(value, unit), start, found.end() if found and unit else end, start, end)


def _plain(value: Decimal) -> str:
    text = format(value, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _decimal(value: Decimal) -> str:
    text = _plain(value)
    return text if "." in text else text + ".0"


def _scientific(value: Decimal) -> str:
    """As XML Schema writes a double: `1.75E7`."""
    power = value.adjusted() if value else 0
    return f"{_decimal(value.scaleb(-power))}E{power}"


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
        case "scientific":
            return _scientific(quantity.value)
        case "unit":
            return f"{_plain(quantity.value)} {quantity.unit}" if quantity.unit else None
        case "decimal-unit":
            return f"{_decimal(quantity.value)} {quantity.unit}" if quantity.unit else None
        case _:
            raise ValueError(f"unknown number style {style!r}; the known ones are {', '.join(STYLES)}")
