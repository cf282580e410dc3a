"""The ways to write one candidate: as the text stands, a date or number in a style, or with words added
around it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from sameas.extraction.extractors.learning import dates, quantities
from sameas.extraction.extractors.learning.dates import Date
from sameas.extraction.extractors.learning.quantities import Quantity
from sameas.extraction.extractors.learning.spans import WordSpan
from sameas.extraction.extractors.learning.tokens import Tokens, fold

AS_IS = "as is"
AFFIX = "affix"
SEPARATOR = "\x1f"
DATE_SORTS = ("day", "month", "year")
SORTS = (*DATE_SORTS, "form", "number", "text")


def sort_of(span: WordSpan) -> str:
    """What a candidate says: a day, month, year, number, a normal form, or text."""
    if span.form is not None:
        return "form"
    if isinstance(span.value, Date):
        return "day" if span.value.day else "month" if span.value.month else "year"
    return "number" if isinstance(span.value, Quantity) else "text"


def write_span(span: WordSpan, text: str, style: str) -> str | None:
    """The candidate in a style, or None where it cannot be written so."""
    if style == AS_IS:
        return text
    if style.startswith(AFFIX):
        _, before, after, *inner = style.split(SEPARATOR)
        said = write_span(span, text, inner[0]) if inner else text
        if said is None:
            return None
        folded = fold(said)
        if (before and folded.startswith(fold(before))) or (after and folded.endswith(fold(after))):
            return said
        return f"{before}{said}{after}"
    if isinstance(span.value, Date):
        return dates.write_date(span.value, style=style)
    if isinstance(span.value, Quantity):
        return quantities.write_quantity(span.value, style=style)
    return None


def writings(span: WordSpan, tokens: Tokens, affixes: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """Every style in which a candidate can be written, with the result; words are added to each of them."""
    if span.form is not None:
        yield AS_IS, span.form
        return
    text = tokens.slice(span.first, span.last)
    yield AS_IS, text
    inner: tuple[str, ...] = ()
    if isinstance(span.value, Date):
        inner = dates.shown_styles(span.value)
    elif isinstance(span.value, Quantity):
        inner = quantities.STYLES
    for style in (*inner, *affixes, *(f"{affix}{SEPARATOR}{style}" for affix in affixes for style in inner)):
        written = write_span(span, text, style)
        if written is not None:
            yield style, written


def settle_order(counts: Counter[tuple[str, str, str]]) -> Counter[tuple[str, str, str]]:
    """The counts of styles without those of the order of day and month that the examples do not have.

    Dates that show no order speak for both alike; day first, as most of the world writes it, where no date shows one.
    """
    day = sum(count for (_, _, style), count in counts.items() if _has_twin(style))
    month = sum(count for (_, _, style), count in counts.items() if _is_month_first(style))
    dropped = _has_twin if month > day else _is_month_first
    return Counter({key: count for key, count in counts.items() if not dropped(key[2])})


def _has_twin(style: str) -> bool:
    return style.rsplit(SEPARATOR, 1)[-1] + dates.MONTH_FIRST in dates.STYLES


def _is_month_first(style: str) -> bool:
    return style.endswith(dates.MONTH_FIRST)
