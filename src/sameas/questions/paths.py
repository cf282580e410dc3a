"""How two things are connected: the fewest facts that lead from the one to the other, each with its evidence.

Both ends grow by turns, the smaller one first, so that a thing with many facts is looked at late. Names and classes
connect nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from sameas.collections.model import CollectionEvidence
from sameas.extraction.outputs.rdf import OWL, RDF
from sameas.questions.errors import QueryError

if TYPE_CHECKING:
    from sameas.questions.desk import QuestionDesk

_AT_ONCE = 200
# Beyond this many things the two are as good as not connected.
_VISITED = 20_000
_EVIDENCE = 3


class Connection(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One fact of a path. `forward` is false where the path goes from its object to its subject."""

    subject: str
    subject_name: str
    predicate: str
    object: str
    object_name: str
    forward: bool
    evidence: tuple[CollectionEvidence, ...] = ()


class _Edge(msgspec.Struct, frozen=True):
    subject: str
    predicate: str
    object: str


def find_path(desk: QuestionDesk, start: str, end: str, *, longest: int) -> list[Connection]:
    """The facts between two things, by their ids."""
    base = desk.collection.base
    if start == end:
        raise QueryError(f"both are one thing: {start}")
    sides: list[dict[str, tuple[str, _Edge] | None]] = [{base + start: None}, {base + end: None}]
    fringes = [[base + start], [base + end]]
    for _ in range(longest):
        side = 0 if len(fringes[0]) <= len(fringes[1]) else 1
        known, other = sides[side], sides[1 - side]
        grown: list[str] = []
        fringe = set(fringes[side])
        for edge in _edges(desk, fringes[side]):
            for here, there in ((edge.subject, edge.object), (edge.object, edge.subject)):
                if here in fringe and there not in known:
                    known[there] = (here, edge)
                    grown.append(there)
        met = sorted(set(grown) & other.keys())
        if met:
            return _told(desk, sides, met[0])
        if not grown or len(known) > _VISITED:
            return []
        fringes[side] = sorted(set(grown))
    return []


def _edges(desk: QuestionDesk, fringe: list[str]) -> list[_Edge]:
    found: list[_Edge] = []
    for at in range(0, len(fringe), _AT_ONCE):
        values = " ".join(f"<{iri}>" for iri in fringe[at : at + _AT_ONCE])
        query = (
            f"SELECT DISTINCT ?s ?p ?o {{ {{ VALUES ?s {{ {values} }} ?s ?p ?o }} UNION {{ VALUES ?o {{ {values} }} "
            f"?s ?p ?o }} FILTER(isIRI(?o) && ?p != <{RDF}type> && ?p != <{OWL}sameAs>) }} "
            f"ORDER BY ?s ?p ?o LIMIT {desk.limits.rows}"
        )
        # A thing with more facts than one answer may have is read in several.
        for offset in range(0, _VISITED, desk.limits.rows):
            answer = desk.query(f"{query} OFFSET {offset}")
            rows = answer.bindings()
            found += [_Edge(row["s"]["value"], row["p"]["value"], row["o"]["value"]) for row in rows]
            if answer.rows < desk.limits.rows:
                break
    return found


def _told(desk: QuestionDesk, sides: list[dict[str, tuple[str, _Edge] | None]], met: str) -> list[Connection]:
    steps: list[tuple[str, _Edge]] = []
    here = met
    while (step := sides[0][here]) is not None:
        steps.append(step)
        here = step[0]
    steps.reverse()
    here = met
    while (step := sides[1][here]) is not None:
        steps.append((here, step[1]))
        here = step[0]
    base = desk.collection.base
    told = []
    with desk.collection.reading() as reader:
        for begins_at, edge in steps:
            ends = (edge.subject.removeprefix(base), edge.object.removeprefix(base))
            facts = reader.statements_of(ends[0], evidence=_EVIDENCE)
            fact = next((one for one in facts if (one.predicate, one.object) == (edge.predicate, ends[1])), None)
            if fact is None:
                raise QueryError("the collection changed while the path was looked for; ask again")
            told.append(
                Connection(
                    subject=ends[0],
                    subject_name=fact.subject_name,
                    predicate=edge.predicate,
                    object=ends[1],
                    object_name=fact.object_name,
                    forward=begins_at == edge.subject,
                    evidence=fact.evidence,
                )
            )
    return told
