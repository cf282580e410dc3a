"""How two names may be one, and the keys under which names that may be one meet.

Rule: a relation between names is a question of the two normal forms alone. Every name that stands in a relation with a
second one finds it under a key; the number of names under a key is bounded by whoever looks.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

from sameas.extraction.graph.name_forms import differing_word, initials, name_key

NameRelation: TypeAlias = Literal["exact", "alias", "middle", "initial", "acronym", "slip", "none"]

# A shorter word with another letter is usually another word.
_SHORTEST_SLIP_WORD = 5
# Forms take room with the square of a name's length.
_LONGEST_SLIP_NAME = 200
_LONGEST_ACRONYM = 8
MOST_UNDER_A_KEY = 24
# Those of a name that several have, and of `J. Smith`, are one for each document, and so many.
_MOST_ALONE = 100
_INITIAL = re.compile(r"[^\W\d_]\.")


def normal_name(name: str) -> str:
    """The normal form of a name; an initial at its beginning is none of the articles that it looks like."""
    return name_key(f"x {name}")[2:] if _INITIAL.match(name) else name_key(name)


def hashed(kind: str, *parts: str) -> int:
    """A number of 63 bits for a key or a token; the parts cannot run into each other."""
    joined = "".join([kind, *(f"{len(part)}:{part}" for part in parts)]).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(joined, digest_size=8).digest(), "big") >> 1


@lru_cache(maxsize=65536)
def is_initialed(key: str) -> bool:
    """Whether a name has an initial for a word: many things may be meant."""
    words = key.split()
    return len(words) > 1 and any(len(word) == 1 and word.isalpha() for word in words)


@lru_cache(maxsize=65536)
def relate(one: str, other: str) -> NameRelation:
    """How two normal forms are related; nothing is said of their aliases."""
    if one == other:
        return "exact"
    left, right = one.split(), other.split()
    if _initials_fit(left, right):
        return "initial"
    if _middle_fits(left, right):
        return "middle"
    if _is_acronym_of(left, other) or _is_acronym_of(right, one):
        return "acronym"
    return "slip" if _is_slip(left, right) else "none"


def _initials_fit(left: list[str], right: list[str]) -> bool:
    """`J. Smith` and `John Smith`: the last word is the same, and every other is the same or begins the other."""
    if len(left) != len(right) or len(left) < 2 or left[-1] != right[-1] or len(left[-1]) == 1:
        return False
    short = 0
    for a, b in zip(left[:-1], right[:-1], strict=True):
        if a == b:
            continue
        if a[0] != b[0] or min(len(a), len(b)) > 1:
            return False
        short += 1
    return short > 0


def _middle_fits(left: list[str], right: list[str]) -> bool:
    """`John Q. Smith` and `John Smith`."""
    if len(left) > len(right):
        left, right = right, left
    return len(left) == 2 and len(right) == 3 and left[0] == right[0] and left[-1] == right[-1] and len(left[0]) > 1


def _is_acronym_of(short: list[str], long: str) -> bool:
    return len(short) == 1 and 2 <= len(short[0]) <= _LONGEST_ACRONYM and short[0] == initials(long)


def _is_slip(left: list[str], right: list[str]) -> bool:
    """One word with one letter more, less, other, or two turned round."""
    words = differing_word(left, right)
    if words is None:
        return False
    a, b = words
    if min(len(a), len(b)) < _SHORTEST_SLIP_WORD or a[0] != b[0] or not (a + b).isalpha():
        return False
    from rapidfuzz.distance import OSA

    # A plural is another word.
    return OSA.distance(a, b) == 1 and a.removesuffix("s") != b.removesuffix("s")


class Key(NamedTuple):
    """A key, and how many may be under it: of more, none is looked at for its sake."""

    hash: int
    most: int


def own_keys(name: str, aliases: Iterable[str], family: str) -> Iterator[Key]:
    """The keys under which a thing with these names is found."""
    for key in {name, *aliases}:
        yield _key("name", family, key, most=_MOST_ALONE)
    yield from (_key("slip", family, form) for form in _forms(name))
    words = name.split()
    if len(words) > 1:
        yield (
            _key("initialed", family, _short(words), most=_MOST_ALONE)
            if is_initialed(name)
            else _key("full", family, _short(words))
        )
        if short := initials(name):
            yield _key("long", family, short)
    elif 2 <= len(name) <= _LONGEST_ACRONYM:
        yield _key("acronym", family, name)
    if len(words) in (2, 3):
        yield _key(f"words{len(words)}", family, words[0], words[-1])


def sought_keys(name: str, aliases: Iterable[str], family: str) -> Iterator[Key]:
    """The keys under which a thing with these names looks for others."""
    for key in {name, *aliases}:
        yield _key("name", family, key, most=_MOST_ALONE)
    yield from (_key("slip", family, form) for form in _forms(name))
    words = name.split()
    if len(words) > 1:
        if is_initialed(name):
            yield _key("full", family, _short(words))
        yield _key("initialed", family, _short(words), most=_MOST_ALONE)
        if short := initials(name):
            yield _key("acronym", family, short)
    elif 2 <= len(name) <= _LONGEST_ACRONYM:
        yield _key("long", family, name)
    if len(words) in (2, 3):
        yield _key(f"words{5 - len(words)}", family, words[0], words[-1])


def signed_key(name: str, family: str) -> Key:
    """The key of those that documents tell apart by more than this name."""
    return _key("signed", family, name)


def _key(kind: str, *parts: str, most: int = MOST_UNDER_A_KEY) -> Key:
    return Key(hashed(kind, *parts), most)


def _short(words: list[str]) -> str:
    return "".join([*(word[0] for word in words[:-1]), " ", words[-1]])


def _forms(name: str) -> list[str]:
    """What a name shares with every name one slip away: itself, and without one letter of a long word."""
    found = [name]
    if len(name) > _LONGEST_SLIP_NAME:
        return found
    start = 0
    for word in name.split(" "):
        if len(word) >= _SHORTEST_SLIP_WORD and word.isalpha():
            found.extend(name[:at] + name[at + 1 :] for at in range(start + 1, start + len(word)))
        start += len(word) + 1
    return found
