"""The words of a sentence, with their places. A token is a run of letters or digits, or one other sign."""

from __future__ import annotations

import re
from dataclasses import dataclass

_TOKEN = re.compile(r"[^\W_]+|[^\w\s]|_")


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
    words: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    for match in _TOKEN.finditer(text):
        words.append(match.group())
        starts.append(match.start())
        ends.append(match.end())
    lower = tuple(word.lower() for word in words)
    return Tokens(text, tuple(words), lower, tuple(starts), tuple(ends))


def word_set(text: str) -> frozenset[str]:
    """The words of a text, as a set."""
    return frozenset(text.split())


def fold(text: str) -> str:
    """The form in which two names are compared: lower case, without spaces and underscores."""
    return "".join(text.replace("_", " ").split()).lower()
