"""When two names can be one: normal forms, initials, and a careful eye for slips of the pen.

Rule: a name's normal form ignores case, accents, punctuation, articles, titles and legal forms. Two different
words are a slip only if they are long, begin alike, hold no digit and differ by one letter: `Micorsoft`,
never `Anna` and `Anne`, `North` and `South`, `Boeing 747` and `Boeing 777`.
"""

# ruff: noqa: SIM905 (word lists and the marks of other scripts are the data here)

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

_NOT_WORDS = re.compile(r"[^\w]+")
_ARTICLES = frozenset("the a an der die das le la les l el los las il lo gli".split())
_TITLES = frozenset(
    (
        "mr mrs ms mx miss dr prof professor sir dame lady lord herr frau monsieur madame señor señora sra mme mlle dra"
    ).split()
)
_LEGAL = frozenset(
    (
        "inc ltd limited llc plc corp corporation company co gmbh ag se kg sa sas sarl spa bv nv ab oy as pty "
        "incorporated"
    ).split()
)
_LINKS = frozenset("of the and for de la du des del di da do van von der den y e et und &".split())
_SHORTEST_SLIP_WORD = 7
_LONGEST_ACRONYM = 8
_COMMA_NAME = re.compile(r"([^,]+),\s*([^,]+)\Z")


@lru_cache(maxsize=65536)
def name_key(name: str) -> str:
    """The normal form of a name: equal keys, equal names."""
    swapped = _COMMA_NAME.match(name)
    if swapped and not _LEGAL & set(swapped[2].lower().rstrip(".").split()):
        name = f"{swapped[2]} {swapped[1]}"
    plain = "".join(sign for sign in unicodedata.normalize("NFKD", name.casefold()) if not unicodedata.combining(sign))
    words = [word for word in _NOT_WORDS.sub(" ", plain.replace("'s ", " ")).split() if word]
    while len(words) > 1 and (words[0] in _ARTICLES or words[0] in _TITLES):
        words = words[1:]
    while len(words) > 1 and words[-1] in _LEGAL:
        words = words[:-1]
    return " ".join(words) or plain.strip() or name


def initials(key: str) -> str:
    """The initials of a normal form, without its small link words; empty for a single word."""
    words = [word for word in key.split() if word not in _LINKS]
    return "".join(word[0] for word in words) if len(words) > 1 else ""


def is_acronym(name: str) -> bool:
    """Whether a name is written like an acronym: two to eight capitals, dots allowed."""
    bare = name.replace(".", "").removesuffix("s") if name[:-1].isupper() else name.replace(".", "")
    return 2 <= len(bare) <= _LONGEST_ACRONYM and bare.isupper() and bare.isalpha()


def is_slip(one: str, other: str) -> bool:
    """Whether two normal forms are one name with a slip in it."""
    words = differing_word(one.split(), other.split())
    if words is None:
        return False
    a, b = words
    if min(len(a), len(b)) < _SHORTEST_SLIP_WORD or a[0] != b[0] or _has_digit(a + b):
        return False
    from rapidfuzz.distance import OSA  # slow to load, and most documents and all replays have no slips

    # A plural or another ending is another word.
    return OSA.distance(a, b) == 1 and a.removesuffix("s") != b.removesuffix("s")


def differing_word(left: Sequence[str], right: Sequence[str]) -> tuple[str, str] | None:
    """The one word in which two names of as many words differ, as each has it; None if that is not all."""
    if len(left) != len(right):
        return None
    differing = [(a, b) for a, b in zip(left, right, strict=True) if a != b]
    return differing[0] if len(differing) == 1 else None


def _has_digit(text: str) -> bool:
    return any(map(str.isdigit, text))


def neighbours(key: str) -> list[str]:
    """Forms that a key shares with every key one slip away: itself, and with one letter of a long word left
    out.
    """
    found = [key]
    start = 0
    for word in key.split(" "):
        if len(word) >= _SHORTEST_SLIP_WORD and not _has_digit(word):
            # The first letter is never left out: it must be the same. Numbers that differ are never a slip.
            found.extend(key[:at] + key[at + 1 :] for at in range(start + 1, start + len(word)))
        start += len(word) + 1
    return found
