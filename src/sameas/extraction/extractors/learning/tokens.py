"""The words of a sentence, with their places. A token is a run of letters or digits, or one other sign.

Marks belong to the letter before them, as in Hindi; where a script sets no blanks between words, as in Chinese, each
sign is a token.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
# Signs that change a letter, most of them no letters themselves: of Latin, Hebrew and Arabic, of India and beyond.
_MARKS = (
    "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0900-\u0963\u0966-\u0dff\u0e00-\u0fff\u1000-\u109f"
    "\u1780-\u17d3\u200c\u200d"
)
_TOKEN = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}](?:[{_MARKS}]|[^\W_{_UNSPACED}])*|[^\w\s]|_")
_SIGN = re.compile(f"[{_UNSPACED}]")


@dataclass(frozen=True, slots=True)
class Tokens:
    """A sentence cut into tokens: `words[i]` is the text from `starts[i]` to `ends[i]`."""

    text: str
    words: tuple[str, ...]
    lower: tuple[str, ...]
    starts: tuple[int, ...]
    ends: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.words)

    def slice(self, first: int, last: int) -> str:
        """The text of tokens first to last, the last not included."""
        return self.text[self.starts[first] : self.ends[last - 1]]


def tokenize(text: str) -> Tokens:
    """Cut a sentence into tokens; nothing is changed, so that offsets hold in the text as given."""
    places = [match.span() for match in _TOKEN.finditer(text)]
    words = tuple([text[start:end] for start, end in places])
    lower = tuple(map(str.lower, words))
    return Tokens(text, words, lower, tuple([start for start, _ in places]), tuple([end for _, end in places]))


def is_unspaced(sign: str) -> bool:
    """Whether a sign is of a script without blanks between words."""
    return _SIGN.match(sign) is not None


def word_set(text: str) -> frozenset[str]:
    """The words of a text, as a set."""
    return frozenset(text.split())


def fold(text: str) -> str:
    """The form in which two names are compared: lower case, without spaces and underscores."""
    return "".join(text.replace("_", " ").split()).lower()
