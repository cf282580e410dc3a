"""Features as 32-bit numbers: the same on every machine and under every hash seed, and no text is kept.

`salt` makes the number of a template, `word` that of a word; `lead(one) ^ other` is the number of both, and the order
matters. What leads often is kept as its `lead`: a sentence has thousands of features.
"""

from __future__ import annotations

import zlib
from functools import lru_cache

_MASK = 0xFFFFFFFF


def salt(template: str) -> int:
    """The number of a feature template."""
    return zlib.crc32(template.encode()) * 2654435761 & _MASK


@lru_cache(maxsize=65536)
def word(text: str) -> int:
    """The number of a word."""
    return zlib.crc32(text.encode("utf-8", "surrogatepass"))


def lead(number: int) -> int:
    """A number as the first of two that are joined."""
    return number * 1000003 & _MASK


def slot(name: str) -> int:
    """A feature template, ready to be joined with what fills it."""
    return lead(salt(name))
