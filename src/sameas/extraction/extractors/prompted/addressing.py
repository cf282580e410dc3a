"""Words of a document that speak to whoever reads it by machine: orders, roles, replies that it puts into the mouth.

Rule: a document is about the world. What it says to an assistant is no statement about the world, whether or not a
model obeys it, so a sentence that does so is evidence of nothing. Whoever says that all earlier instructions are void
speaks to the assistant until the paragraph ends, and so does whoever announces with a colon what is to be put out.
"""

import base64
import re
from functools import lru_cache

from sameas.extraction.extractors.prompted.order_patterns import (
    ANYWHERE,
    ANYWHERE_BEGINS,
    BEGIN,
    BEGIN_BEGINS,
    BEGINS_WITH_ORDER,
    BEGINS_WITH_ORDER_ELSEWHERE,
    CALLS,
    MARKS,
    ORDERS,
    ORDERS_ELSEWHERE,
    ORDERS_IN_CHINESE,
    TAKES_OVER,
)
from sameas.extraction.text.document import Span

_CHINESE = re.compile("[\u3400-\u9fff]")
_ENCODED = re.compile(r"(?<![A-Za-z0-9+/=])[A-Za-z0-9+/]{24,}={0,2}(?![A-Za-z0-9+/=])")
_WORDS = re.compile(r"[^\W\d_]+")
_BEGINNING = 8
_AT_THE_BEGINNING = (BEGINS_WITH_ORDER, BEGINS_WITH_ORDER_ELSEWHERE)
_IN_ANY_PLACE = (ORDERS, ORDERS_ELSEWHERE)
_ANNOUNCES = re.compile(r":[^\S\n]*(?:\n|\Z)")
_PARAGRAPH = re.compile(r"\n\s*\n")

NOTE = (
    "Some sentences speak to an assistant and not about the world: orders, roles or replies. They are evidence of "
    "nothing; rejected.json lists as addressed_to_model what was read in them."
)


@lru_cache(maxsize=32)
def addressed(text: str, sentences: tuple[Span, ...]) -> tuple[Span, ...]:
    """The sentences of a chunk that speak to an assistant, in their order."""
    found: list[Span] = []
    goes_on_until = 0
    may_hide = _ENCODED.search(text) is not None
    for sentence in sentences:
        said = text[sentence.start : sentence.end]
        takes_over, orders = _speaks_to_assistant(said)
        if may_hide and not orders and (hidden := decoded(said)):
            orders = any(_speaks_to_assistant(hidden))
        if takes_over or (orders and _ANNOUNCES.search(said)):
            end = _PARAGRAPH.search(text, sentence.start)
            goes_on_until = max(goes_on_until, len(text) if end is None else end.start())
        if takes_over or orders or sentence.start < goes_on_until:
            found.append(sentence)
    return tuple(found)


def decoded(said: str) -> str:
    """What words say that are written in base64, which people do not read and models do."""
    return " ".join(
        text for token in _ENCODED.findall(said) if (text := _text_of(token)) is not None and text.isprintable()
    )


def _text_of(token: str) -> str | None:
    try:
        return base64.b64decode(token + "=" * (-len(token) % 4), validate=True).decode()
    except ValueError:
        return None


def _speaks_to_assistant(said: str) -> tuple[bool, bool]:
    """Whether a sentence makes all that follows an order, and whether it is one."""
    in_chinese = not said.isascii() and _CHINESE.search(said) is not None and ORDERS_IN_CHINESE.search(said) is not None
    low = said.lower()
    words = _WORDS.findall(low)
    begins = [word[:4] for word in words]
    may_name = not (ANYWHERE.isdisjoint(words) and ANYWHERE_BEGINS.isdisjoint(begins))
    orders = in_chinese or (_may_begin(low, words) and any(pattern.search(said) for pattern in _AT_THE_BEGINNING))
    if not may_name and not any(mark in low for mark in MARKS):
        return False, orders
    takes_over = TAKES_OVER.search(said) is not None or CALLS.search(said) is not None
    return takes_over, orders or any(pattern.search(said) for pattern in _IN_ANY_PLACE)


def _may_begin(low: str, words: list[str]) -> bool:
    first = words if ":" in low or ";" in low else words[:_BEGINNING]
    return not (BEGIN.isdisjoint(first) and BEGIN_BEGINS.isdisjoint([word[:5] for word in first]))


def is_within(span: Span, stretches: tuple[Span, ...]) -> bool:
    """Whether any part of a stretch is in one of these."""
    return any(span.start < one.end and one.start < span.end for one in stretches)
