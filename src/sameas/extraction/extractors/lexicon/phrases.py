"""Finding any of many phrases in a text at once, whole words only, the longest at each place.

Rule: a text is folded without changing its length, so that a place in the folded text is the place in the
text. Scripts that are written without blanks need no word ends.
"""
# ruff: noqa: RUF001 (word lists and the marks of other scripts are the data here)

import re
from collections.abc import Iterable
from typing import Generic, NamedTuple, TypeVar

import ahocorasick_rs


def plain_case(said: str) -> str:
    """As it stands in a list; the length may change."""
    return said if said.isascii() and said.islower() else said.casefold().replace("\u0307", "").replace("\u0131", "i")


T = TypeVar("T")

_BLANKS = re.compile(r"[\n\t\u00a0\u2009\u202f]")
_UNSPACED = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff]")
_RUNS = re.compile(r"\s+")
_SHORT = 20_000


class Match(NamedTuple, Generic[T]):
    """A phrase in the text and what it stands for; one in two pieces has `head` where its first piece ends."""

    start: int
    end: int
    payload: tuple[T, ...]
    head: int = 0


def fold(text: str) -> str:
    """Small letters and plain blanks, as many characters as before."""
    lower = text.lower()
    if len(lower) != len(text):
        lower = "".join(sign if len(sign.lower()) != 1 else sign.lower() for sign in text)
    return _BLANKS.sub(" ", lower).replace("’", "'")


def is_unspaced(sign: str) -> bool:
    """Whether a character belongs to a script that is written without blanks."""
    return bool(_UNSPACED.match(sign))


def fold_phrase(phrase: str) -> str:
    """A phrase in the form that is searched for."""
    return _RUNS.sub(" ", fold(phrase)).strip()


class Phrases(Generic[T]):
    """Phrases with what each stands for; several things can share one phrase."""

    def __init__(self, entries: Iterable[tuple[str, T]]) -> None:
        meanings: dict[str, list[T]] = {}
        for phrase, payload in entries:
            folded = fold_phrase(phrase)
            if folded and payload not in meanings.setdefault(folded, []):
                meanings[folded].append(payload)
        self._payloads = [tuple(payloads) for payloads in meanings.values()]
        self._numbers = {phrase: number for number, phrase in enumerate(meanings)}
        self._loose = [
            (
                is_unspaced(phrase[0]) or not phrase[0].isalnum(),
                is_unspaced(phrase[-1]) or not phrase[-1].isalnum(),
            )
            for phrase in meanings
        ]
        # What it would choose by itself for a few phrases takes time with the square of their length.
        chosen = None if sum(map(len, meanings)) <= _SHORT else ahocorasick_rs.Implementation.ContiguousNFA
        self._automaton = ahocorasick_rs.AhoCorasick(list(meanings), implementation=chosen) if meanings else None

    def __len__(self) -> int:
        return len(self._payloads)

    def get(self, folded: str) -> tuple[T, ...]:
        """What a folded phrase stands for, if it is one of these."""
        number = self._numbers.get(folded)
        return () if number is None else self._payloads[number]

    def find(self, folded: str, *, with_inner: bool = False) -> list[Match[T]]:
        """The phrases in a folded text, from left to right, the longest where they overlap.

        With inner ones, a shorter phrase inside a longer one is found too: `born` and `in` in `born in`.
        """
        if self._automaton is None:
            return []
        size = len(folded)
        found: list[tuple[int, int, int]] = []
        for number, start, end in self._automaton.find_matches_as_indexes(folded, overlapping=True):
            loose_start, loose_end = self._loose[number]
            if (loose_start or start == 0 or not folded[start - 1].isalnum()) and (
                loose_end or end == size or not folded[end].isalnum()
            ):
                found.append((start, -end, number))
        found.sort()
        matches: list[Match[T]] = []
        taken = 0
        for start, minus_end, number in found:
            if start >= taken or (with_inner and -minus_end <= taken):
                taken = max(taken, -minus_end)
                matches.append(Match(start, -minus_end, self._payloads[number]))
        return matches
