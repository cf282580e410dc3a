"""Words of a document that speak to whoever reads it by machine: orders, roles, replies that it puts into the mouth.

Rule: a document is about the world. What it says to an assistant is no statement about the world, whether or not a
model obeys it, so a sentence that does so is evidence of nothing. Whoever says that all earlier instructions are void
speaks to the assistant until the paragraph ends, and so does whoever announces with a colon what is to be put out.
"""

import base64
import codecs
import html
import re
import unicodedata
from functools import lru_cache
from urllib.parse import unquote

from sameas.extraction.extractors.prompted.order_cues import cues_order
from sameas.extraction.extractors.prompted.order_grammar import orders_by_grammar
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
    ORDERS_IN_JAPANESE,
    POINTS_BACK,
    TAKES_OVER,
)
from sameas.extraction.text.document import Span

_CHINESE = re.compile("[\u3400-\u9fff]")
_JAPANESE = re.compile("[\u3040-\u30ff]")
_BASE64 = re.compile(r"(?<![A-Za-z0-9+/=])[A-Za-z0-9+/]{24,}={0,2}(?![A-Za-z0-9+/=])")
_HEX = re.compile(r"(?<![0-9A-Za-z])(?:[0-9a-fA-F]{2}[ :]?){12,}(?![0-9A-Za-z])")
_PERCENT = re.compile(r"%[0-9a-fA-F]{2}")
_WORDS = re.compile(r"[^\W\d_]+")
_BEGINNING = 8
_AT_THE_BEGINNING = (BEGINS_WITH_ORDER, BEGINS_WITH_ORDER_ELSEWHERE)
_IN_ANY_PLACE = (ORDERS, ORDERS_ELSEWHERE)
_ANNOUNCES = re.compile(
    r""":[^\S\n]*(?:\n|\Z)
    | \b(?:following|as\s+follows|below|next\s+(?:line|sentence|paragraph)|folgende\w*|suivant\w*|siguiente\w*
        |seguent\w*|seguinte\w*|volgende|följande|następując\w*|следующ\w*|наступн\w*)\b
    | \u4ee5\u4e0b | \u5982\u4e0b | \u4e0b\u8a18 | \u6b21\u306e | \ub2e4\uc74c""",
    re.IGNORECASE | re.VERBOSE,
)
_PARAGRAPH = re.compile(r"\n\s*\n")
# Soft hyphens, joiners, marks of direction.
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")
_ESCAPED = re.compile(r"\\u([0-9a-fA-F]{4})")
_BASE32 = re.compile(r"(?<![A-Z2-7=])[A-Z2-7]{24,}={0,6}(?![A-Z2-7=])")
# Digits and signs that stand for letters, inside of words.
_DIGITS_AS_LETTERS = re.compile(r"\b[a-zA-Z013457@$]*(?:[a-zA-Z][013457@$]|[013457@$][a-zA-Z])[a-zA-Z013457@$]*\b")
_DIGIT_IN_WORD = re.compile(r"[a-zA-Z][013457@$]|[013457@$][a-zA-Z]")
_LETTERS_MEANT = str.maketrans("013457@$", "oleastas")
_SPELLED_OUT = re.compile(r"(?<!\w)\w(?:[ .*_-]\w){3,}(?!\w)")
_BETWEEN_LETTERS = re.compile(r"[ .*_-]")
_OF_TWO_ALPHABETS = re.compile("\\w{0,30}(?:[A-Za-z][\u0370-\u04ff]|[\u0370-\u04ff][A-Za-z])\\w{0,30}")
_LIKE_LATIN = str.maketrans(
    "АВЕКМНОРСТХІЅасеорхуіѕтΑΒΕΖΗΙΚΜΝΟΡΤΥΧο",
    "ABEKMHOPCTXISaceopxyistABEZHIKMNOPTYXo",
)
# English that was turned round has these; what only looks like it has not.
_ENGLISH = frozenset(
    ("the", "that", "fact", "output", "for", "and", "to", "your", "all", "of", "add", "reply", "answer")
)
_ENGLISH_IN_ROT13 = frozenset(codecs.encode(word, "rot13") for word in _ENGLISH)
_ENGLISH_BACKWARDS = frozenset(word[::-1] for word in _ENGLISH)
_ENOUGH_ENGLISH = 2
_ACCENT = re.compile("[\u0300-\u036f]")

NOTE = (
    "Some sentences speak to an assistant and not about the world: orders, roles or replies. They are evidence of "
    "nothing; rejected.json lists as addressed_to_model what was read in them."
)


@lru_cache(maxsize=32)
def addressed(text: str, sentences: tuple[Span, ...]) -> tuple[Span, ...]:
    """The sentences of a chunk that speak to an assistant, in their order."""
    found: list[Span] = []
    goes_on_until = 0
    for number, sentence in enumerate(sentences):
        sentence_text = text[sentence.start : sentence.end]
        takes_over, orders = _speaks_to_assistant(_undisguised(sentence_text))
        orders = orders or any(any(_speaks_to_assistant(hidden)) for hidden in _decodings(sentence_text))
        if takes_over or (orders and _ANNOUNCES.search(sentence_text)):
            end = _PARAGRAPH.search(text, sentence.start)
            goes_on_until = max(goes_on_until, len(text) if end is None else end.start())
        if orders and POINTS_BACK.search(sentence_text) and number and sentences[number - 1] not in found:
            found.append(sentences[number - 1])
        if takes_over or orders or sentence.start < goes_on_until:
            found.append(sentence)
    return tuple(found)


def decoded(sentence_text: str) -> str:
    """What words say that people do not read and models do."""
    return " ".join(_decodings(sentence_text))


def _decodings(sentence_text: str) -> list[str]:
    """By base64, base32, hexadecimal, percent signs, escapes, rot13, backwards, with digits or accents for letters."""
    found = [_of_base64(token) for token in _BASE64.findall(sentence_text)]
    found += [_of_base32(token) for token in _BASE32.findall(sentence_text)]
    found += [_of_hex(token) for token in _HEX.findall(sentence_text)]
    if _PERCENT.search(sentence_text):
        found.append(unquote(sentence_text))
    if _ESCAPED.search(sentence_text):
        found.append(_ESCAPED.sub(lambda code: chr(int(code[1], 16)), sentence_text))
    if _DIGIT_IN_WORD.search(sentence_text):
        found.append(_DIGITS_AS_LETTERS.sub(lambda word: word[0].translate(_LETTERS_MEANT), sentence_text))
    if not sentence_text.isascii():
        found.append(_INVISIBLE.sub(" ", sentence_text) if _INVISIBLE.search(sentence_text) else None)
    found += _turned(sentence_text)
    return [text for text in found if text is not None and text.isprintable()]


def _turned(sentence_text: str) -> list[str]:
    """A sentence turned round in the ways that leave English words, if it was English."""
    words = frozenset(sentence_text.lower().split())
    found: list[str] = []
    if len(words & _ENGLISH_IN_ROT13) >= _ENOUGH_ENGLISH:
        found.append(codecs.encode(sentence_text, "rot13"))
    if len(words & _ENGLISH_BACKWARDS) >= _ENOUGH_ENGLISH:
        found += [sentence_text[::-1], " ".join(word[::-1] for word in sentence_text.split())]
    if not sentence_text.isascii():
        plain = _OF_TWO_ALPHABETS.sub(lambda word: word[0].translate(_LIKE_LATIN), sentence_text)
        plain = _ACCENT.sub("", unicodedata.normalize("NFD", plain))
        if len(_ENGLISH.intersection(plain.lower().split())) >= _ENOUGH_ENGLISH:
            found.append(plain)
    return found


def _of_base32(token: str) -> str | None:
    try:
        return base64.b32decode(token.rstrip("=") + "=" * (-len(token.rstrip("=")) % 8)).decode()
    except ValueError:
        return None


def _of_base64(token: str) -> str | None:
    try:
        return base64.b64decode(token + "=" * (-len(token) % 4), validate=True).decode()
    except ValueError:
        return None


def _of_hex(token: str) -> str | None:
    try:
        return bytes.fromhex(token.replace(":", " ")).decode()
    except ValueError:
        return None


def _undisguised(sentence_text: str) -> str:
    """A sentence as a model reads it: without invisible signs, foreign letters and blanks between letters."""
    plain = sentence_text
    if not plain.isascii():
        plain = unicodedata.normalize("NFKC", _INVISIBLE.sub("", plain))
        plain = _OF_TWO_ALPHABETS.sub(lambda word: word[0].translate(_LIKE_LATIN), plain)
    if "&" in plain:
        plain = html.unescape(plain)
    return _SPELLED_OUT.sub(lambda letters: _BETWEEN_LETTERS.sub("", letters[0]), plain)


def _speaks_to_assistant(sentence_text: str) -> tuple[bool, bool]:
    """Whether a sentence makes all that follows an order, and whether it is one."""
    takes_over, orders = cues_order(sentence_text)
    return (True, True) if takes_over else _has_pattern(sentence_text, orders or orders_by_grammar(sentence_text))


def _has_pattern(sentence_text: str, orders: bool) -> tuple[bool, bool]:
    """The same by whole phrases."""
    if not sentence_text.isascii():
        for script, pattern in ((_CHINESE, ORDERS_IN_CHINESE), (_JAPANESE, ORDERS_IN_JAPANESE)):
            orders = orders or (script.search(sentence_text) is not None and pattern.search(sentence_text) is not None)
    lowered = sentence_text.lower()
    words = _WORDS.findall(lowered)
    begins = [word[:4] for word in words]
    may_name = not (ANYWHERE.isdisjoint(words) and ANYWHERE_BEGINS.isdisjoint(begins))
    orders = orders or (
        _may_begin(lowered, words) and any(pattern.search(sentence_text) for pattern in _AT_THE_BEGINNING)
    )
    if not may_name and not any(mark in lowered for mark in MARKS):
        return False, orders
    takes_over = TAKES_OVER.search(sentence_text) is not None or CALLS.search(sentence_text) is not None
    return takes_over, orders or any(pattern.search(sentence_text) for pattern in _IN_ANY_PLACE)


def _may_begin(lowered: str, words: list[str]) -> bool:
    first = words if ":" in lowered or ";" in lowered else words[:_BEGINNING]
    return not (BEGIN.isdisjoint(first) and BEGIN_BEGINS.isdisjoint([word[:5] for word in first]))


def is_within(span: Span, stretches: tuple[Span, ...]) -> bool:
    """Whether any part of a stretch is in one of these."""
    return any(span.start < one.end and one.start < span.end for one in stretches)
