"""A bound on the size of a folder, kept by many processes that know nothing of each other.

Rule: nobody counts. A writer looks at the whole folder once in a while, by chance that grows with what it
wrote, so that a look costs little for each write and the bound is passed by a small part of itself at most.
The dice are the digits of the written thing's own digest: the same writes make the same looks.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

# So many looks are made, on average, while as much is written as the bound allows.
_LOOKS = 64
# After a look that finds too much this share stays, so that the next one does not follow at once.
_KEEP = 0.9
_DIGITS = 8


class Kept(NamedTuple):
    """Something on the disk, when it was last used and how large it is."""

    used_at: float
    size: int
    path: Path


def is_look_due(digest: str, *, size: int, bound: int) -> bool:
    """Whether the writer of these bytes should look."""
    dice: float = int(digest[-_DIGITS:], 16) / 16.0**_DIGITS
    return dice < size * _LOOKS / max(1, bound)


def least_recent(kept: Iterable[Kept], *, bound: int) -> list[Kept]:
    """What has to go, least recently used first; nothing while the bound is kept."""
    known = sorted(kept)
    total = sum(one.size for one in known)
    if total <= bound:
        return []
    going: list[Kept] = []
    for one in known:
        if total <= bound * _KEEP:
            break
        total -= one.size
        going.append(one)
    return going
