"""The ways to write one candidate: as the text stands, a date or number in a style, or with words added
around it.
"""

from __future__ import annotations

from collections.abc import Iterator

from sameas.extraction.learning import dates, quantities
from sameas.extraction.learning.dates import Date
from sameas.extraction.learning.quantities import Quantity
from sameas.extraction.learning.spans import Span
from sameas.extraction.learning.tokens import Tokens, fold

AS_IS = "as is"
AFFIX = "affix"
SEPARATOR = "\x1f"
DATE_SORTS = ("day", "month", "year")
SORTS = (*DATE_SORTS, "form", "number", "text")


def sort_of(span: Span) -> str:
    """What a candidate says: a day, month, year, number, a normal form, or text."""
    if span.form is not None:
        return "form"
    if isinstance(span.value, Date):
        return "day" if span.value.day else "month" if span.value.month else "year"
    return "number" if isinstance(span.value, Quantity) else "text"


def write_span(span: Span, text: str, style: str) -> str | None:
    """The candidate in a style, or None where it cannot be written so."""
    if style == AS_IS:
        return text
    if style.startswith(AFFIX):
        _, before, after = style.split(SEPARATOR)
        folded = fold(text)
        if (before and folded.startswith(fold(before))) or (after and folded.endswith(fold(after))):
            return text
        return f"{before}{text}{after}"
    if isinstance(span.value, Date):
        return dates.write_date(span.value, style=style)
    if isinstance(span.value, Quantity):
        return quantities.write_quantity(span.value, style=style)
    return None


def writings(span: Span, tokens: Tokens, affixes: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """Every style in which a candidate can be written, with the result."""
    if span.form is not None:
        yield AS_IS, span.form
        return
    text = tokens.slice(span.first, span.last)
    yield AS_IS, text
    styles: tuple[str, ...] = affixes
    if isinstance(span.value, Date):
        styles += dates.STYLES
    elif isinstance(span.value, Quantity):
        styles += quantities.STYLES
    for style in styles:
        written = write_span(span, text, style)
        if written is not None:
            yield style, written
