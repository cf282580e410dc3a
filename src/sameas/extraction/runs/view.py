"""A run as the viewer shows it: text, ontology, what was found and refused, and what reviewers decided, in one piece.

Rule: it is made from what lies in the run's folder, for the service and for a file to be mailed alike. What is not kept
there is null, and the viewer says so.
"""

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import msgspec

from sameas.extraction.extractors.confidence import least_confidence
from sameas.extraction.graph.model import Entity, KnowledgeGraph, Rejection, Relation
from sameas.extraction.runs.library import Run
from sameas.extraction.runs.metadata import RunMetadata
from sameas.extraction.runs.review import Action, Reviewed, Standing, apply_decisions
from sameas.ontology.index import OntologyIndex
from sameas.ontology.outline import Outline, outline_of

Version: TypeAlias = int | Literal["found", "reviewed"]
"""A run as it was found, as reviewers left it, or after so many decisions."""

_INSIDE = ("fence", "layout", "firstEvent", "files", "auditMeta")


class RunView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Everything about a run that can be looked at. `decided` gives the action by the number of the relation."""

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
