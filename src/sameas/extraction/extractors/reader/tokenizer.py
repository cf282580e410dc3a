"""Byte-pair tokens of SmolLM2 in plain Python, with the characters each token stands for.

Each digit is a token of its own. Words are remembered, so that a text costs a look-up per word.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

_WORDS = re.compile(r"'(?:s|t|re|ve|m|ll|d)| ?[^\W\d_]+| ?[^\s\w]+|\d| ?_+|\s+(?!\S)|\s+|.", re.DOTALL)


class SubwordTokens(NamedTuple):
    """The ids of a text's tokens, and the characters [start, end) of each without the blank before a word."""

    ids: list[int]
    starts: list[int]
    ends: list[int]


@lru_cache(maxsize=1)
def _byte_letters() -> list[str]:
    """GPT-2's visible letter for each byte."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters = {byte: chr(byte) for byte in shown}
    hidden = (byte for byte in range(256) if byte not in letters)
    letters |= {byte: chr(256 + number) for number, byte in enumerate(hidden)}
    return [letters[byte] for byte in range(256)]


class Tokenizer:
    """Splits a text into tokens of a vocabulary by its merges."""

    def __init__(self, vocabulary: Sequence[str], merges: Sequence[str]) -> None:
        self._ids = {token: number for number, token in enumerate(vocabulary)}
        self._ranks = {merge: rank for rank, merge in enumerate(merges)}
        self._known: dict[str, tuple[tuple[int, int, int], ...]] = {}

    def encode(self, text: str) -> SubwordTokens:
        """The tokens of a text; offsets count its characters."""
        tokens = SubwordTokens([], [], [])
        for match in _WORDS.finditer(text):
            word, at = match.group(), match.start()
            pieces = self._known.get(word)
            if pieces is None:
                pieces = self._split(word)
                if len(self._known) < 200_000:
                    self._known[word] = pieces
            for number, start, end in pieces:
                tokens.ids.append(number)
                tokens.starts.append(at + start)
                tokens.ends.append(at + end)
        return tokens

    def _split(self, word: str) -> tuple[tuple[int, int, int], ...]:
        letters = _byte_letters()
        parts = [letters[byte] for byte in word.encode("utf-8", "replace")]
        owners = [at for at, character in enumerate(word) for _ in character.encode("utf-8", "replace")]
        while len(parts) > 1:
            ranked = ((self._ranks.get(f"{a} {b}"), at) for at, (a, b) in enumerate(pairwise(parts)))
            best = min(((rank, at) for rank, at in ranked if rank is not None), default=None)
            if best is None:
                break
            at = best[1]
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
        pieces: list[tuple[int, int, int]] = []
        byte = 0
        for part in parts:
            start, last = owners[byte], owners[byte + len(part) - 1]
            byte += len(part)
            if word[start] == " " and last > start:
                start += 1
            known = self._ids.get(part)
            if known is None:
                raise ValueError(f"the vocabulary lacks the token {part!r}; it is not the one of these merges")
            pieces.append((known, start, last + 1))
        return tuple(pieces)
