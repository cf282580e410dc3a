"""Candidates in scripts without capitals: any short run of words, or of signs where no blanks are set, may be a name.

Where a name begins and ends is for the learner to say, by the words beside it. Japanese tells more: hiragana is what
stands between names, and a word in katakana is not cut.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sameas.extraction.extractors.learning.tokens import Tokens, is_unspaced

_WORDS_JOINED, _SIGNS_JOINED = 4, 8
_HIRAGANA = re.compile("[\u3040-\u309f]")
_KATAKANA = re.compile("[\u30a0-\u30ff]{2}")


def caseless_names(tokens: Tokens) -> Iterator[tuple[int, int]]:
    """The runs that may be names; a text in plain letters has none."""
    if tokens.text.isascii():
        return
    words, count = tokens.words, len(tokens)
    first = 0
    while first < count:
        last = first
        while last < count and _is_caseless(words[last][0]):
            last += 1
        for start in range(first, last):
            longest = _SIGNS_JOINED if is_unspaced(words[start][0]) else _WORDS_JOINED
            for end in range(start + 1, min(last, start + longest) + 1):
                if _may_be_name(words, start, end):
                    yield start, end
        first = last + 1


def _is_caseless(sign: str) -> bool:
    return (sign.isalpha() and sign.lower() == sign.upper()) or is_unspaced(sign)


def _may_be_name(words: tuple[str, ...], first: int, last: int) -> bool:
    if _HIRAGANA.match(words[first]) or _HIRAGANA.match(words[last - 1]):
        return False
    return not any(_KATAKANA.fullmatch("".join(words[max(0, at - 1) : at + 1])) for at in (first, last))
