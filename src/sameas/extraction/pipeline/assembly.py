"""From resolved entities and grounded claims to the relations of the graph, each stated once with all of its evidence.

Rule: relations and their evidence lie in a scratch database, so that memory does not grow with their number. A relation
is in memory only while it is looked at.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import groupby

import msgspec

from sameas.extraction.graph.model import Claim, Evidence, Rejection, RejectionCode, Relation, Value
from sameas.extraction.graph.rejections import Ledger
from sameas.extraction.graph.resolution import EntitiesThere, Resolution
from sameas.extraction.graph.scratch import Scratch
from sameas.extraction.pipeline.stages import ChunkSupport, Supported
from sameas.extraction.text.document import Span

_TABLES = (
    """
    CREATE TABLE relation (
        number INTEGER PRIMARY KEY,
        subject TEXT, predicate TEXT, object TEXT, value TEXT, datatype TEXT, unit TEXT, written TEXT,
        status TEXT, confidence REAL, confidence_from TEXT,
        UNIQUE (subject, predicate, object, value, datatype, unit)
    )
    """,
    """
    CREATE TABLE evidence (
        relation INTEGER, start INTEGER, stop INTEGER, text TEXT,
        subject_start INTEGER, subject_stop INTEGER, object_start INTEGER, object_stop INTEGER
    )
    """,
    "CREATE INDEX by_relation ON evidence (relation)",
)
# Grounded if any statement of it is, with the highest confidence of all. `min` of the two words is `grounded`.
_STATE = """
INSERT INTO relation VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET
    status = min(status, excluded.status),
    confidence = max(confidence, excluded.confidence),
    confidence_from = CASE
        WHEN (excluded.confidence, excluded.confidence_from) > (confidence, confidence_from)
        THEN excluded.confidence_from ELSE confidence_from END
"""
_SUPPORT = """
INSERT INTO evidence SELECT number, ?, ?, ?, ?, ?, ?, ? FROM relation
WHERE subject = ? AND predicate = ? AND object = ? AND value = ? AND datatype = ? AND unit = ?
"""
_RELATIONS = """
SELECT relation.*, start, stop, text, subject_start, subject_stop, object_start, object_stop
FROM relation CROSS JOIN evidence ON evidence.relation = relation.number
ORDER BY subject, predicate, object, value, datatype, unit
"""
_HEAD = 11
_DEFAULTS = {field.name: field.default for field in msgspec.structs.fields(Relation)}


class AssembledRelations(Collection[Relation]):
    """The relations in the order of their triples, each made with its evidence when its turn comes."""

    def __init__(self) -> None:
        self._scratch = Scratch(*_TABLES)
        self.evidence_count = 0

    def add(self, stated: Iterable[tuple[Relation, Claim, Evidence]]) -> None:
        """Add relations with their evidence, in the offsets of the text; a relation that is there gets the evidence."""
        heads, places = [], []
        for relation, claim, evidence in stated:
            triple, written = relation.triple, "" if relation.value is None else relation.value.written
            heads.append((*triple, written, relation.status, relation.confidence, relation.confidence_from))
            subject, target = claim.subject, claim.object
            ends = (subject.start, subject.end, target.start, target.end)
            places.append((evidence.start, evidence.end, evidence.text, *ends, *triple))
        self._scratch.fill(_STATE, heads)
        self._scratch.fill(_SUPPORT, places)
        self.evidence_count += len(places)

    def __len__(self) -> int:
        ((count,),) = self._scratch.rows("SELECT count(*) FROM relation")
        return int(count)

    def __iter__(self) -> Iterator[Relation]:
        for head, lines in groupby(self._scratch.read(_RELATIONS), key=lambda line: line[:_HEAD]):
            _, subject, predicate, target, *literal, status, confidence, origin = head
            rows = [line[_HEAD:] for line in lines]
            about = {"status": status, "confidence": confidence, "confidence_from": origin}
            yield Relation(
                subject=subject,
                predicate=predicate,
                object=target,
                # An object has an id; without one, it is a value.
                value=None if target else Value(*literal),
                evidence=tuple(Evidence(*place) for place in sorted({row[:3] for row in rows})),
                subject_spans=tuple(Span(*place) for place in sorted({row[3:5] for row in rows})),
                object_spans=tuple(Span(*place) for place in sorted({row[5:] for row in rows})),
                # Only the default itself, not an equal object, is left out of the JSON form.
                **{name: value for name, value in about.items() if value != _DEFAULTS[name]},
            )

    def __contains__(self, relation: object) -> bool:
        return any(one == relation for one in self)


def assemble(
    support: Iterable[ChunkSupport], *, starts: Iterable[int], resolution: Resolution, ledger: Ledger
) -> AssembledRelations:
    """One relation for each triple, in the document's offsets; what cannot be one goes to the ledger."""
    relations = AssembledRelations()
    for chunk, start in zip(support, starts, strict=True):
        ledger.add(chunk.rejected, start=start)
        relations.add(_relations(chunk.supported, start, resolution, ledger))
    return relations


def _relations(
    supported: Sequence[Supported], start: int, resolution: Resolution, ledger: Ledger
) -> Iterator[tuple[Relation, Claim, Evidence]]:
    claims = [one.grounded.claim.shifted(start) for one in supported]
    ends = [end for claim in claims for end in (claim.subject, claim.object)]
    there = resolution.entities_between(
        min((end.start for end in ends), default=0), max((end.end for end in ends), default=0)
    )
    for one, claim in zip(supported, claims, strict=True):
        evidence = Evidence(one.evidence.start + start, one.evidence.end + start, one.evidence.text)
        relation = _relation(claim, one, there)
        if isinstance(relation, Relation):
            yield relation, claim, evidence
        else:
            ledger.add([_refusal(claim, evidence, relation)])


def _relation(claim: Claim, one: Supported, there: EntitiesThere) -> Relation | RejectionCode:
    end = claim.object
    subject = there.at((claim.subject.start, claim.subject.end), form=claim.subject.form)
    if subject is None:
        return "unresolved_end"
    target, value = "", None
    if end.kind == "literal":
        value = Value(end.value, end.datatype, end.unit, end.form)
    else:
        target = there.at((end.start, end.end), form=end.form) or ""
        if not target:
            return "unresolved_end"
        if target == subject:
            return "self_relation"
    return Relation(
        subject,
        claim.predicate,
        target,
        value,
        status=one.grounded.status,
        confidence=claim.confidence,
        confidence_from=claim.confidence_from,
    )


def _refusal(claim: Claim, evidence: Evidence, code: RejectionCode) -> Rejection:
    stated = (claim.subject.text, claim.predicate, claim.object.text)
    return Rejection(evidence.start, evidence.end, code, "relation_extraction", *stated)
