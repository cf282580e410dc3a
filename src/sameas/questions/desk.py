"""Where questions to a collection are asked: it brings the index up to date, has queries run, and reads the rows.

How two things are connected is looked for from both ends by turns, the smaller one first, so that a thing with many
facts is looked at late. Names and classes connect nothing. Blocking: asyncio code calls it in a thread.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

import msgspec
from msgspec.structs import replace

from sameas.collections.collection import Collection
from sameas.collections.model import CollectionEvidence, EntityPage
from sameas.extraction.outputs.rdf import OWL, RDF
from sameas.questions.answers import Answer
from sameas.questions.errors import QueryError
from sameas.questions.graph import prefixes_of
from sameas.questions.index import FoundName, GraphIndex, find_names
from sameas.questions.process import Asked, QueryLimits
from sameas.questions.query_text import read_query
from sameas.questions.runner import QueryRunner


class QuestionDesk:
    """The questions of one caller to one collection. `folder` holds the indexes of all collections."""

    def __init__(
        self, collection: Collection, *, folder: Path, runner: QueryRunner, limits: QueryLimits | None = None
    ) -> None:
        self.collection = collection
        self.limits = limits or QueryLimits()
        self.index = GraphIndex(folder, collection)
        self._runner = runner

    @cached_property
    def prefixes(self) -> dict[str, str]:
        """What a query may use without saying it."""
        return prefixes_of(self.collection.ontology, base=self.collection.base)

    def query(
        self,
        text: str,
        *,
        limits: QueryLimits | None = None,
        default_graphs: tuple[str, ...] = (),
        named_graphs: tuple[str, ...] = (),
    ) -> Answer:
        """The answer to a SPARQL query that reads."""
        read_query(text)
        snapshot, revision = self.index.snapshot()
        asked = Asked(str(snapshot), text, self.prefixes, limits or self.limits, default_graphs, named_graphs)
        return replace(self._runner.run(asked), revision=revision)

    def find(self, text: str, *, limit: int = 20) -> list[FoundName]:
        """Things by a name that is nearly theirs, best first."""
        self.index.snapshot()
        return find_names(self.index.names, text, limit=limit)

    def entity(self, named: str) -> EntityPage:
        """All that is known of a thing, by its id, its IRI or its name."""
        return self.collection.entity(self.collection.find(named))

    def path(self, a: str, b: str, *, longest: int = 6) -> list[Connection]:
        """How two things are connected, by the fewest facts; empty where they are not."""
        return find_path(self, self.collection.find(a), self.collection.find(b), longest=longest)


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
