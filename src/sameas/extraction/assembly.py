"""From resolved entities and grounded claims to the relations of the graph, each said once with all of its
evidence.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from sameas.extraction.graph import Claim, Evidence, Rejection, RejectionCode, Relation, Value
from sameas.extraction.resolution import Resolution
from sameas.extraction.stages.grounded import ChunkSupport, Supported

_Placed = tuple[Claim, Evidence, Supported]


class Assembled:
    """The relations and what was refused while they were put together."""

    def __init__(self) -> None:
        self.relations: list[Relation] = []
        self.rejected: list[Rejection] = []


def assemble(support: Iterable[ChunkSupport], *, starts: Iterable[int], resolution: Resolution) -> Assembled:
    """One relation for each triple, in the document's offsets."""
    assembled = Assembled()
    groups: dict[tuple[str, ...], list[tuple[Relation, _Placed]]] = defaultdict(list)
    for claim, evidence, one in _placed(support, starts):
        subject = resolution.entity_of.get((claim.subject.start, claim.subject.end))
        relation = _relation(subject, claim, resolution) if subject else "unresolved_end"
        if isinstance(relation, Relation):
            groups[relation.triple].append((relation, (claim, evidence, one)))
        else:
            assembled.rejected.append(
                Rejection(
                    evidence.start,
                    evidence.end,
                    relation,
                    "relation_extraction",
                    claim.subject.text,
                    claim.predicate,
                    claim.object.text,
                )
            )
    for triple in sorted(groups):
        group = groups[triple]
        relation = group[0][0]
        places = [placed for _, placed in group]
        surest = max((claim for claim, _, _ in places), key=lambda claim: (claim.confidence, claim.confidence_from))
        assembled.relations.append(
            Relation(
                subject=relation.subject,
                predicate=relation.predicate,
                object=relation.object,
                value=relation.value,
                evidence=tuple(sorted({evidence for _, evidence, _ in places})),
                subject_spans=tuple(sorted({claim.subject.span for claim, _, _ in places})),
                object_spans=tuple(sorted({claim.object.span for claim, _, _ in places})),
                status="grounded" if any(one.grounded.status == "grounded" for _, _, one in places) else "unverified",
                confidence=surest.confidence,
                confidence_from=surest.confidence_from,
            )
        )
    return assembled


def _placed(support: Iterable[ChunkSupport], starts: Iterable[int]) -> Iterator[_Placed]:
    for chunk, start in zip(support, starts, strict=True):
        for one in chunk.supported:
            evidence = one.evidence
            yield (
                one.grounded.claim.shifted(start),
                Evidence(evidence.start + start, evidence.end + start, evidence.text),
                one,
            )


def _relation(subject: str, claim: Claim, resolution: Resolution) -> Relation | RejectionCode:
    end = claim.object
    if end.kind == "literal":
        return Relation(subject, claim.predicate, value=Value(end.value, end.datatype, end.unit))
    target = resolution.entity_of.get((end.start, end.end))
    if target is None:
        return "unresolved_end"
    return "self_relation" if target == subject else Relation(subject, claim.predicate, target)
