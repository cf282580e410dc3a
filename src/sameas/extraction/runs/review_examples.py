"""Examples from what reviewers looked at, for `sameas learn` and for the prompts of models.

Rule: an example is a stretch of the text that a decision was about, with every fact that stands in the reviewed graph
and rests on it; one whose facts were all rejected has none. Ends are written as the text writes them there.
"""

import msgspec

from sameas.extraction.extractors.confidence import least_confidence
from sameas.extraction.graph.model import Entity, Evidence, Relation
from sameas.extraction.runs.library import Run
from sameas.extraction.runs.review import Reviewed
from sameas.extraction.runs.view import reviewed_graph


def examples_of(reviewed: Reviewed, *, least_confidence: float = 0.0) -> list[dict[str, object]]:
    """The examples in the order of the text: `{"text": ..., "triples": [[subject, property, object], ...]}`."""
    entities = {entity.id: entity for entity in reviewed.graph.entities}
    places = sorted(
        {
            evidence
            for one in reviewed.standing
            if one.state == "applied"
            for statement in (one.decision.wish.statement, one.decision.wish.becomes)
            if statement is not None
            for evidence in statement.evidence
        }
    )
    found: list[dict[str, object]] = []
    for place in places:
        triples = [
            _triple(relation, entities, place)
            for relation in reviewed.graph.relations
            if (relation.confidence >= least_confidence or relation.triple in reviewed.decided)
            and any(one.start == place.start and one.end == place.end for one in relation.evidence)
        ]
        found.append({"text": place.text, "triples": triples})
    return found


def examples_of_run(run: Run) -> bytes:
    """The examples that the decisions on a run give, as lines of JSON; blocking."""
    least = least_confidence(run.metadata.extractor.name, None)
    examples = examples_of(reviewed_graph(run), least_confidence=least)
    return b"".join(msgspec.json.encode(example) + b"\n" for example in examples)


def _triple(relation: Relation, entities: dict[str, Entity], place: Evidence) -> list[str]:
    subject = _name(entities[relation.subject], place)
    value = relation.value
    target = (value.written or value.value) if value is not None else _name(entities[relation.object], place)
    return [subject, relation.predicate, target]


def _name(entity: Entity, place: Evidence) -> str:
    """The longest of its names in that stretch, or the one it has."""
    inside = [one.text for one in entity.mentions if place.start <= one.start and one.end <= place.end]
    return max(inside, key=len, default=entity.name)
