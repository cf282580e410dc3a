"""Features as 32-bit numbers: the same on every machine and under every hash seed, and no text is kept.

`salt` makes the number of a template, `word` that of a word, `mix` joins two numbers.
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


def mix(left: int, right: int) -> int:
    """One number from two; the order matters."""
    return (left * 1000003 ^ right) & _MASK
