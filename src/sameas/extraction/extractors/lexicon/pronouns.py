"""Whom a pronoun, or `the company`, at the beginning of a sentence means.

Rule: the one name of the sentence before that fits: a person for `she`, none for `it`, one of the class for `the
company`. Where two fit, the first if the sentence before is about it alone, else nobody. A sentence that itself began
with that pronoun goes on about the same one: `Anna ... She married Bert. She ...` is all about Anna.
"""

# ruff: noqa: RUF001, SIM905 (word lists and the marks of other scripts are the data here)

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from sameas.extraction.graph.model import Mention

_PERSON = frozenset("he she his her er il él ella seine ihre".split())
_THING = frozenset("it its".split())
_ANY = frozenset("elle sie es son sa sein".split())
_THE = re.compile(r"(?:the|this|der|die|das|le|la|el)\s+(?P<words>[\w-]+(?:\s[\w-]+)?)", re.IGNORECASE)
_TIME = re.compile(r"(?:(?:in|on|since|by|im|en)\s+)?(?:[\w.]+\s+){0,2}\d{4},?\s+", re.IGNORECASE)
_BACK = 2
_FAMILIES = {"he": "he", "his": "he", "she": "she", "her": "she", "it": "it", "its": "it"}
_SAME = re.compile(r"\b(?:he|his|she|her|its?)\b", re.IGNORECASE)


class Antecedents(NamedTuple):
    """Finds whom a sentence's opening word means; `kind_of` tells people from organisations and places."""

    kind_of: Callable[[Mention], str]
    is_class: Callable[[str], bool]

    def of(
        self, opening: str, earlier: Sequence[Sequence[Mention]], *, fits: Callable[[Mention], bool]
    ) -> Mention | None:
        """The name meant by an opening, among those of the sentences before; None if that is not plain."""
        time = _TIME.match(opening)
        said = (opening[time.end() :] if time else opening).strip().lower()
        said = said.removesuffix("'s").removesuffix("’s")
        allowed = self._allowed(said)
        if allowed is None:
            return None
        for names in reversed(earlier[-_BACK:]):
            fitting = [name for name in names if allowed(name) and fits(name)]
            if fitting:
                first = fitting[0]
                one = all(name.text == first.text for name in fitting)
                return first if one or first is names[0] else None
        return None

    def family(self, opening: str) -> str:
        """The pronoun that the words before the first name of a sentence speak of it by: he, she, it or none."""
        found = _SAME.search(opening)
        if found is not None:
            return _FAMILIES[found[0].lower()]
        the = _THE.match(opening)
        words = the["words"] if the is not None else ""
        return "it" if words and (self.is_class(words) or self.is_class(words.split()[0])) else ""

    def _allowed(self, said: str) -> Callable[[Mention], bool] | None:
        if said in _PERSON:
            return lambda name: self.kind_of(name) in ("person", "")
        if said in _THING:
            return lambda name: self.kind_of(name) != "person"
        if said in _ANY:
            return lambda _: True
        the = _THE.fullmatch(said)
        if the is not None and self.is_class(the["words"]):
            return lambda _: True
        return None


def told_on(earlier: Sequence[Sequence[Mention]], families: Sequence[str], family: str) -> Sequence[Sequence[Mention]]:
    """The names before a sentence, where those of sentences that speak of the same one stand behind its own."""
    first = len(earlier) - 1
    while first > 0 and family and families[first] == family:
        first -= 1
    if first < 0 or first == len(earlier) - 1:
        return earlier
    return [*earlier[:first], [name for names in earlier[first:] for name in names]]
