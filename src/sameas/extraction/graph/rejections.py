"""What a run refuses, as it goes: the same thing refused again is counted, not kept.

Rule: the lines are those of `merge_rejections` over everything that was added, in whatever order it came. They lie in a
scratch database, so that memory does not grow with their number.
"""

from collections.abc import Callable, Collection, Iterable, Iterator

from sameas.extraction.graph.model import Rejection, RejectionCode
from sameas.extraction.graph.scratch import Scratch

_TABLE = """
CREATE TABLE line (
    code TEXT, stage TEXT, subject TEXT, predicate TEXT, object TEXT, detail TEXT,
    start INTEGER, stop INTEGER, count INTEGER,
    PRIMARY KEY (code, stage, subject, predicate, object, detail)
) WITHOUT ROWID
"""
_ADD = """
INSERT INTO line VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET
    count = count + excluded.count,
    start = min(start, excluded.start),
    stop = CASE WHEN (excluded.start, excluded.stop) < (start, stop) THEN excluded.stop ELSE stop END
"""
_LINES = """
SELECT start, stop, code, stage, subject, predicate, object, detail, count FROM line
ORDER BY start, stop, code, stage, subject, predicate, object, detail
"""


class Ledger(Collection[Rejection]):
    """Rejections of many chunks, in the document's offsets."""

    def __init__(self) -> None:
        self._scratch = Scratch(_TABLE)

    def add(self, rejections: Iterable[Rejection], *, start: int = 0) -> None:
        """Note what was refused in a chunk that begins at `start`."""
        self._scratch.fill(
            _ADD,
            (
                (
                    *(one.code, one.stage, one.subject, one.predicate, one.object, one.detail),
                    *(one.start + start, one.end + start, one.count),
                )
                for one in rejections
            ),
        )

    def forgive(self, code: RejectionCode, *, where: Callable[[tuple[int, int]], bool]) -> None:
        """Strike out the lines of this code whose place is one that something else was made of after all."""
        places = self._scratch.read("SELECT DISTINCT start, stop FROM line WHERE code = ?", code)
        for place in [place for place in places if where(place)]:
            self._scratch.do("DELETE FROM line WHERE code = ? AND start = ? AND stop = ?", code, *place)

    def __len__(self) -> int:
        ((count,),) = self._scratch.rows("SELECT count(*) FROM line")
        return int(count)

    def __iter__(self) -> Iterator[Rejection]:
        return (Rejection(*line) for line in self._scratch.read(_LINES))

    def __contains__(self, rejection: object) -> bool:
        return any(one == rejection for one in self)
