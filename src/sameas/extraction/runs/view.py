"""A run as people see it: for the viewer of the web app, as one HTML file, and as examples for learning.

Rule: everything is made from what lies in the folder of the run. What is not kept there is null, and the viewer says
so.
"""

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import msgspec

from sameas.extraction.extractors.confidence import least_confidence
from sameas.extraction.graph.model import Entity, Evidence, KnowledgeGraph, Rejection, Relation
from sameas.extraction.runs.library import Run
from sameas.extraction.runs.metadata import RunMetadata
from sameas.extraction.runs.review import Action, Reviewed, Standing, apply_decisions
from sameas.ontology.index import OntologyIndex
from sameas.ontology.show import Outline, outline_of
from sameas.pages.files import single_file

Version: TypeAlias = int | Literal["found", "reviewed"]
"""A run as it was found, as reviewers left it, or after so many decisions."""

_INSIDE = ("fence", "layout", "firstEvent", "files", "auditMeta")


class RunView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What the viewer shows of a run. `decided` maps the number of a relation to the reviewer's action."""

    run: Mapping[str, Any]
    text: str | None
    ontology: Outline | None
    entities: tuple[Entity, ...]
    relations: tuple[Relation, ...]
    rejected: tuple[Rejection, ...]
    notes: tuple[str, ...] = ()
    least_confidence: float = 0.0
    version: Version = "found"
    decisions: tuple[Standing, ...] = ()
    decided: Mapping[int, Action] = {}


def shown_metadata(metadata: RunMetadata) -> dict[str, Any]:
    """The metadata without what belongs to workers and their files."""
    shown: dict[str, Any] = msgspec.to_builtins(metadata)
    for name in _INSIDE:
        shown.pop(name, None)
    return shown


def reviewed_graph(run: Run, version: Version = "reviewed") -> Reviewed:
    """The graph of a finished run in one of its versions; blocking."""
    graph = run.graph()
    if version == "found":
        return Reviewed(graph=graph, decided={}, standing=())
    ontology = run.ontology()
    decisions = run.review().read(up_to=None if version == "reviewed" else version)
    index = None if ontology is None else OntologyIndex(ontology)
    return apply_decisions(graph, decisions, index=index, text=run.text())


def view_of(run: Run, version: Version = "reviewed") -> RunView:
    """The view of a run; one that is under way has a text and nothing found yet. Blocking."""
    metadata, ontology = run.metadata, run.ontology()
    if metadata.is_under_way:
        reviewed = Reviewed(graph=KnowledgeGraph(), decided={}, standing=())
    else:
        reviewed = reviewed_graph(run, version)
    graph = reviewed.graph
    numbers = {relation.triple: number for number, relation in enumerate(graph.relations)}
    return RunView(
        run=shown_metadata(metadata),
        text=run.text(),
        ontology=None if ontology is None else outline_of(ontology),
        entities=graph.entities,
        relations=graph.relations,
        rejected=graph.rejected,
        notes=graph.notes,
        least_confidence=least_confidence(metadata.extractor.name, None),
        version=version,
        decisions=reviewed.standing,
        decided={numbers[triple]: action for triple, action in reviewed.decided.items() if triple in numbers},
    )


_STYLES = ("app/style.css", "app/studio.css")


def run_page(view: RunView) -> bytes:
    """A run as one self-contained HTML file, with the viewer of the web app."""
    data, title = msgspec.json.encode(view), str(view.run.get("document") or "sameas")
    return b"".join(single_file((data,), start="app/file.js", styles=_STYLES, title=title))


def examples_of(reviewed: Reviewed, *, least_confidence: float = 0.0) -> list[dict[str, object]]:
    """Examples from what reviewers looked at, in the order of the text, for `sameas learn` and for prompts of models:
    `{"text": ..., "triples": [[subject, property, object], ...]}`.

    An example is a stretch of the text that a decision was about, with every fact of the reviewed graph that rests on
    it; if all were rejected, it has none. Ends are written as the text writes them there.
    """
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
    """The examples that the decisions on a run give, one line of JSON each. Blocking."""
    least = least_confidence(run.metadata.extractor.name, None)
    examples = examples_of(reviewed_graph(run), least_confidence=least)
    return b"".join(msgspec.json.encode(example) + b"\n" for example in examples)


def _triple(relation: Relation, entities: dict[str, Entity], place: Evidence) -> list[str]:
    subject = _name(entities[relation.subject], place)
    value = relation.value
    target = (value.written or value.value) if value is not None else _name(entities[relation.object], place)
    return [subject, relation.predicate, target]


def _name(entity: Entity, place: Evidence) -> str:
    """The longest of its names in that stretch; otherwise its own name."""
    inside = [one.text for one in entity.mentions if place.start <= one.start and one.end <= place.end]
    return max(inside, key=len, default=entity.name)
