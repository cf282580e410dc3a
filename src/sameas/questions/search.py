"""Finding things by a name that is nearly theirs.

Three letters in a row are looked up in the index of names; what shares most of them is compared letter by letter.
"""

import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec

_LOOKED_AT = 400
_LEAST = 55.0


class FoundName(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A thing whose name is near."""

    id: str
    name: str
    matched: str
    """The name or alias that is near."""
    type: str = ""
    score: float


def find_names(names: Path, text: str, *, limit: int = 20, least: float = _LEAST) -> list[FoundName]:
    """The things whose names are nearest, best first."""
    from rapidfuzz import fuzz
    from rapidfuzz.utils import default_process

    wanted = default_process(text)
    if not wanted:
        return []
    with closing(sqlite3.connect(f"{names.resolve().as_uri()}?mode=ro", uri=True)) as database:
        rows = _candidates(database, wanted)
    best: dict[str, FoundName] = {}
    shown: dict[str, str] = {}
    for name, id_, kind in rows:
        shown.setdefault(id_, name)
        said = default_process(name)
        score = max(fuzz.token_sort_ratio(wanted, said), 0.9 * fuzz.WRatio(wanted, said))
        known = best.get(id_)
        if score >= least and (known is None or score > known.score):
            best[id_] = FoundName(id=id_, name=shown[id_], matched=name, type=kind, score=score)
    found = sorted(best.values(), key=lambda one: (-one.score, one.matched, one.id))[:limit]
    return [msgspec.structs.replace(one, score=round(one.score / 100, 3)) for one in found]


def _candidates(database: sqlite3.Connection, wanted: str) -> list[tuple[str, str, str]]:
    pieces = sorted({wanted[at : at + 3] for at in range(len(wanted) - 2)})
    if not pieces:
        # Shorter than three letters: only what begins so.
        pattern = wanted.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
        return database.execute(
            "SELECT name, id, type FROM names WHERE name LIKE ? ESCAPE '\\' LIMIT ?", (pattern, _LOOKED_AT)
        ).fetchall()
    query = " OR ".join('"' + piece.replace('"', '""') + '"' for piece in pieces)
    return database.execute(
        "SELECT name, id, type FROM names WHERE names MATCH ? ORDER BY bm25(names) LIMIT ?", (query, _LOOKED_AT)
    ).fetchall()
