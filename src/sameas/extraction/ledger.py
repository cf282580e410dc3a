"""What a run refuses, as it goes: the same thing refused again is counted, not kept.

Rule: the lines are those of `merge_rejections` over everything that was added, in whatever order it came. Memory
grows with the number of different lines, not with the length of the text.
"""

from collections.abc import Iterable, Iterator

from sameas.extraction.graph import Rejection, merge_rejections

_MERGE_FROM = 4096


class Ledger:
    """Rejections of many chunks, in the document's offsets."""

    def __init__(self) -> None:
        self._lines: list[Rejection] = []
        self._merge_at = _MERGE_FROM

    def add(self, rejections: Iterable[Rejection], *, start: int = 0) -> None:
        """Note what was refused in a chunk that begins at `start`."""
        self._lines.extend(rejection.shifted(start) for rejection in rejections)
        if len(self._lines) >= self._merge_at:
            self._lines = list(merge_rejections(self._lines))
            # Twice what is left: each line is merged a few times at most, however many there are.
            self._merge_at = max(_MERGE_FROM, 2 * len(self._lines))

    def __iter__(self) -> Iterator[Rejection]:
        return iter(merge_rejections(self._lines))
