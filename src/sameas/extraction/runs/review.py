"""What reviewers decided about the graph of a document, and the graph that comes out.

Rule: a decision names things by what they are (a name, a statement, the words that support it), so that it holds for
every run of the document. Applying is pure and in the order of time. A new decision that the ontology or the text does
not allow is refused with a reason; an old one that fits no longer, because a run found other things, changes nothing
and is listed. Nothing is ever taken out of the list: undoing is a decision, too.
"""

from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias, TypeVar

import msgspec
from msgspec.structs import replace

from sameas.extraction.graph.model import Entity, Evidence, KnowledgeGraph, Rejection, Relation, Value, entity_id
from sameas.extraction.text.document import Span
from sameas.identity.errors import SameasError
from sameas.ontology.index import OntologyIndex, Verdict
from sameas.ontology.vocabulary import THING, XSD

Action: TypeAlias = Literal["accept", "reject", "correct", "add", "retype", "merge", "split", "undo"]
Triple: TypeAlias = tuple[str, str, str, str, str, str]
T = TypeVar("T")
STAGE = "review"
_SHOWN = 3


class ReviewRefusedError(SameasError, ValueError):
    """The text or the ontology does not allow a decision."""


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """A part of a decision."""


class EntityRef(_Part, frozen=True, kw_only=True):
    """An entity: by its id in the run that was reviewed, by its name in any other. Without an id it is a new entity
    with these types at this place.
    """

    name: str
    id: str = ""
    types: tuple[str, ...] = ()
    mention: Evidence | None = None


class Statement(_Part, frozen=True, kw_only=True):
    """A statement, and the words of the text that support it."""

    subject: EntityRef
    predicate: str
    object: EntityRef | None = None
    value: Value | None = None
    evidence: tuple[Evidence, ...] = ()


class Wish(_Part, frozen=True, kw_only=True):
    """What a reviewer asks for; which fields are needed depends on the action."""

    action: Action
    statement: Statement | None = None
    becomes: Statement | None = None
    """The statement as it should be, for `correct`."""
    entity: EntityRef | None = None
    into: EntityRef | None = None
    """The thing that stays, for `merge`."""
    types: tuple[str, ...] = ()
    mentions: tuple[Evidence, ...] = ()
    """The places that belong to another thing, for `split`."""
    name: str = ""
    undoes: str = ""
    reason: str = ""


class Decision(_Part, frozen=True, kw_only=True):
    """An accepted wish: by whom, when, and on which run."""

    id: str
    at: str
    by: str
    run: str
    wish: Wish


class Standing(_Part, frozen=True, kw_only=True):
    """A decision and its effect in this run."""

    decision: Decision
    state: Literal["applied", "undone", "stale"]
    why: str = ""


class Reviewed(msgspec.Struct, frozen=True, kw_only=True):
    """The graph after all decisions. `decided` has the statements that a reviewer looked at and kept."""

    graph: KnowledgeGraph
    decided: dict[Triple, Action]
    standing: tuple[Standing, ...]


def apply_decisions(
    graph: KnowledgeGraph, decisions: Sequence[Decision], *, index: OntologyIndex | None, text: str | None
) -> Reviewed:
    """The graph after these decisions, in the order of time."""
    undone = undone_ids(decisions)
    desk = _Desk(graph, index, text)
    standing = []
    for decision in decisions:
        if decision.wish.action == "undo" or decision.id in undone:
            state: Literal["applied", "undone"] = "undone" if decision.id in undone else "applied"
            standing.append(Standing(decision=decision, state=state))
            continue
        try:
            desk.do(decision.wish)
        except ReviewRefusedError as refusal:
            standing.append(Standing(decision=decision, state="stale", why=str(refusal)))
        else:
            standing.append(Standing(decision=decision, state="applied"))
    return Reviewed(graph=desk.graph(), decided=dict(desk.decided), standing=tuple(standing))


def check_wish(
    graph: KnowledgeGraph,
    decisions: Sequence[Decision],
    wish: Wish,
    *,
    index: OntologyIndex | None,
    text: str | None,
) -> None:
    """Raise ReviewRefusedError if a new wish cannot be accepted after these decisions."""
    if wish.action == "undo":
        if wish.undoes not in {decision.id for decision in decisions} - undone_ids(decisions):
            raise ReviewRefusedError("there is no such decision, or it was undone before")
        return
    so_far = apply_decisions(graph, decisions, index=index, text=text)
    _Desk(so_far.graph, index, text).do(wish)


def undone_ids(decisions: Iterable[Decision]) -> frozenset[str]:
    """The ids of undone decisions; an undo that was itself undone does not count."""
    undone: set[str] = set()
    for decision in reversed([*decisions]):
        if decision.wish.action == "undo" and decision.id not in undone:
            undone.add(decision.wish.undoes)
    return frozenset(undone)


class _Desk:
    """A graph on which decisions are carried out one after the other."""

    def __init__(self, graph: KnowledgeGraph, index: OntologyIndex | None, text: str | None) -> None:
        self._entities = {entity.id: entity for entity in graph.entities}
        self._relations = {relation.triple: relation for relation in graph.relations}
        self._rejected = [*graph.rejected]
        self._notes = graph.notes
        self._merged: dict[str, str] = {}
        self._index = index
        self._text = text
        self.decided: dict[Triple, Action] = {}

    def graph(self) -> KnowledgeGraph:
        return KnowledgeGraph.of(
            entities=self._entities.values(),
            relations=self._relations.values(),
            rejected=self._rejected,
            notes=self._notes,
        )

    def do(self, wish: Wish) -> None:
        match wish.action:
            case "accept":
                self._accept(self._relation(_needed(wish.statement, "statement")))
            case "reject":
                self._reject(self._relation(_needed(wish.statement, "statement")), wish.reason)
            case "correct":
                self._correct(wish)
            case "add":
                self._add(_needed(wish.statement, "statement"))
            case "retype":
                self._retype(self._entity(_needed(wish.entity, "entity")), wish.types)
            case "merge":
                self._merge(self._entity(_needed(wish.entity, "entity")), self._entity(_needed(wish.into, "into")))
            case "split":
                self._split(wish)
            case "undo":
                raise ReviewRefusedError("an undo names a decision and changes nothing itself")

    def _accept(self, relation: Relation) -> None:
        self._put(replace(relation, status="grounded", confidence=1.0, confidence_from="reviewer"), "accept")

    def _reject(self, relation: Relation, reason: str) -> None:
        del self._relations[relation.triple]
        self.decided.pop(relation.triple, None)
        first = relation.evidence[0] if relation.evidence else Evidence(0, 0, "")
        self._rejected.append(
            Rejection(
                first.start,
                first.end,
                "rejected_in_review",
                STAGE,
                self._entities[relation.subject].name,
                relation.predicate,
                self._entities[relation.object].name if relation.value is None else relation.value.value,
                reason,
            )
        )

    def _correct(self, wish: Wish) -> None:
        before = self._relation(_needed(wish.statement, "statement"))
        becomes = _needed(wish.becomes, "becomes")
        made = self._made(becomes if becomes.evidence else replace(becomes, evidence=before.evidence))
        del self._relations[before.triple]
        self.decided.pop(before.triple, None)
        self._put(made, "correct")

    def _add(self, statement: Statement) -> None:
        made = self._made(statement)
        if made.triple in self._relations:
            raise ReviewRefusedError("this fact is there already; accept it instead")
        self._put(made, "add")

    def _made(self, statement: Statement) -> Relation:
        """The relation of a statement, checked against text and ontology; its new entities are added."""
        if not statement.evidence:
            raise ReviewRefusedError("a fact needs the words of the text that say it; select them")
        for evidence in statement.evidence:
            self._check_place(evidence)
        if (statement.object is None) == (statement.value is None):
            raise ReviewRefusedError("a fact has one object: a thing, or a value")
        subject, new = self._end(statement.subject)
        target, new_target = self._end(statement.object) if statement.object is not None else (None, None)
        if target is not None and target.id == subject.id:
            raise ReviewRefusedError("a fact has two different ends")
        value = statement.value
        kinds = target.types if target is not None else (value.datatype if value is not None else "",)
        self._check_allowed(subject.types, statement.predicate, kinds)
        for entity in (new, new_target):
            if entity is not None:
                self._entities[entity.id] = entity
        return Relation(
            subject=subject.id,
            predicate=statement.predicate,
            object="" if target is None else target.id,
            value=value,
            evidence=tuple(sorted(statement.evidence)),
            subject_spans=_spans_in(subject, statement.evidence),
            object_spans=() if target is None else _spans_in(target, statement.evidence),
            confidence=1.0,
            confidence_from="reviewer",
        )

    def _end(self, ref: EntityRef) -> tuple[Entity, Entity | None]:
        """An entity that is there, or a new one, which is given twice."""
        try:
            return self._entity(ref), None
        except ReviewRefusedError:
            if ref.id or not ref.types or ref.mention is None:
                raise
        self._check_place(ref.mention)
        self._check_types(ref.types)
        made = Entity(
            id=entity_id(ref.name.casefold(), ref.types[0]),
            name=ref.name,
            types=ref.types,
            mentions=(ref.mention,),
            confidence_from="reviewer",
        )
        return made, made

    def _retype(self, entity: Entity, types: tuple[str, ...]) -> None:
        self._check_types(types)
        changed = replace(entity, types=types, confidence=1.0, confidence_from="reviewer")
        self._check_relations({entity.id: changed})
        self._entities[entity.id] = changed

    def _merge(self, gone: Entity, kept: Entity) -> None:
        if gone.id == kept.id:
            raise ReviewRefusedError("these are one thing already")
        for one in gone.types:
            for other in kept.types:
                if self._index is not None and self._index.are_disjoint(one, other):
                    raise ReviewRefusedError(
                        f"the ontology says that nothing is both {_short(one)} and {_short(other)}"
                    )
        names = {gone.name, *gone.aliases, *kept.aliases} - {kept.name}
        mentions = tuple(sorted({*gone.mentions, *kept.mentions}))
        whole = replace(kept, aliases=tuple(sorted(names)), mentions=mentions, confidence_from="reviewer")
        self._check_relations({gone.id: whole, kept.id: whole})
        self._entities[kept.id] = whole
        del self._entities[gone.id]
        self._merged[gone.id] = kept.id
        for relation in [one for one in self._relations.values() if gone.id in (one.subject, one.object)]:
            moved = replace(
                relation,
                subject=kept.id if relation.subject == gone.id else relation.subject,
                object=kept.id if relation.object == gone.id else relation.object,
            )
            self._move(relation, moved)

    def _split(self, wish: Wish) -> None:
        entity = self._entity(_needed(wish.entity, "entity"))
        there = {(one.start, one.end) for one in entity.mentions}
        chosen = tuple(sorted(one for one in wish.mentions if (one.start, one.end) in there))
        if not chosen or len(chosen) == len(entity.mentions):
            raise ReviewRefusedError("choose some of the places that name it, and not all")
        types = wish.types or entity.types
        self._check_types(types)
        name = wish.name or chosen[0].text
        made = Entity(
            # Another entity has the same name: the place tells them apart.
            id=entity_id(f"{name.casefold()} {chosen[0].start}", types[0]),
            name=name,
            types=types,
            mentions=chosen,
            confidence_from="reviewer",
        )
        left = tuple(one for one in entity.mentions if one not in chosen)
        spans = [Span(one.start, one.end) for one in chosen]
        moved = []
        for relation in self._relations.values():
            subject = made.id if relation.subject == entity.id and _all_in(relation.subject_spans, spans) else None
            target = made.id if relation.object == entity.id and _all_in(relation.object_spans, spans) else None
            if subject or target:
                changed = replace(relation, subject=subject or relation.subject, object=target or relation.object)
                moved.append((relation, changed))
        self._check_relations({made.id: made}, [changed for _, changed in moved])
        self._entities[entity.id] = replace(entity, mentions=left)
        self._entities[made.id] = made
        for before, after in moved:
            self._move(before, after)

    def _move(self, before: Relation, after: Relation) -> None:
        """Give a relation its new ends; if that relation exists already, it gets the evidence."""
        del self._relations[before.triple]
        how = self.decided.pop(before.triple, None)
        if after.value is None and after.subject == after.object:
            return
        same = self._relations.get(after.triple)
        if same is not None:
            after = replace(
                same,
                evidence=tuple(sorted({*same.evidence, *after.evidence})),
                subject_spans=tuple(sorted({*same.subject_spans, *after.subject_spans})),
                object_spans=tuple(sorted({*same.object_spans, *after.object_spans})),
                confidence=max(same.confidence, after.confidence),
            )
        self._relations[after.triple] = after
        if how is not None:
            self.decided[after.triple] = how

    def _put(self, relation: Relation, how: Action) -> None:
        self._relations[relation.triple] = relation
        self.decided[relation.triple] = how

    def _entity(self, ref: EntityRef) -> Entity:
        known = self._entities.get(self._merged.get(ref.id, ref.id))
        if known is not None:
            return known
        name = ref.name.casefold()
        named = [
            one for one in self._entities.values() if name in {one.name.casefold(), *map(str.casefold, one.aliases)}
        ]
        if ref.types and len(named) > 1:
            named = [one for one in named if set(ref.types) & set(one.types)]
        if len(named) != 1:
            raise ReviewRefusedError(f"{len(named) or 'nothing'} here is called {ref.name!r}")
        return named[0]

    def _relation(self, statement: Statement) -> Relation:
        subject = self._entity(statement.subject)
        target = None if statement.object is None else self._entity(statement.object)
        for relation in self._relations.values():
            if relation.subject != subject.id or relation.predicate != statement.predicate:
                continue
            if target is not None and relation.object != target.id:
                continue
            if target is None and (relation.value is None or not _same_value(relation.value, statement.value)):
                continue
            if _supported(relation.evidence, statement.evidence):
                return relation
        raise ReviewRefusedError("this run does not say so, or not with these words")

    def _check_place(self, evidence: Evidence) -> None:
        if self._text is None:
            raise ReviewRefusedError("the text of this run is not kept here; extract it again first")
        if not evidence.text.strip() or self._text[evidence.start : evidence.end] != evidence.text:
            raise ReviewRefusedError(f"the text does not say {evidence.text[:80]!r} at that place")

    def _check_types(self, types: tuple[str, ...]) -> None:
        if not types:
            raise ReviewRefusedError("a thing needs a class")
        for iri in types:
            if iri != THING and self._known.classes.get(iri) is None:
                raise ReviewRefusedError(f"the ontology has no class {_short(iri)}")

    def _check_allowed(self, subjects: tuple[str, ...], predicate: str, kinds: tuple[str, ...]) -> None:
        index = self._known
        if predicate not in index.properties:
            raise ReviewRefusedError(f"the ontology has no property {_short(predicate)}")
        if any(index.allows(one, predicate, other) is Verdict.OK for one in subjects for other in kinds):
            return
        wanted = sorted({_short(name) for group in index.domain(predicate) for name in group}) or ["anything"]
        reach = sorted({_short(name) for group in index.expected_range(predicate) for name in group}) or ["anything"]
        raise ReviewRefusedError(
            f"{_short(predicate)} leads from {' or '.join(wanted)} to {' or '.join(reach)}, "
            f"not from {_listed(subjects)} to {_listed(kinds)}"
        )

    def _check_relations(self, changed: dict[str, Entity], moved: Sequence[Relation] | None = None) -> None:
        """Raise ReviewRefusedError if a relation of a changed entity would no longer be allowed."""
        broken = []
        for relation in moved if moved is not None else self._relations.values():
            if relation.subject not in changed and relation.object not in changed:
                continue
            subject = changed.get(relation.subject) or self._entities[relation.subject]
            value = relation.value
            kinds = (
                (value.datatype,)
                if value is not None
                else (changed.get(relation.object) or self._entities[relation.object]).types
            )
            try:
                self._check_allowed(subject.types, relation.predicate, kinds)
            except ReviewRefusedError as refusal:
                target = value.value if value is not None else self._name(relation.object, changed)
                broken.append(
                    f"{self._name(relation.subject, changed)} {_short(relation.predicate)} {target}: {refusal}"
                )
        if broken:
            more = f", and {len(broken) - _SHOWN} more" if len(broken) > _SHOWN else ""
            raise ReviewRefusedError(f"first reject or correct what would not fit: {'; '.join(broken[:_SHOWN])}{more}")

    def _name(self, entity: str, changed: dict[str, Entity]) -> str:
        return (changed.get(entity) or self._entities[entity]).name

    @property
    def _known(self) -> OntologyIndex:
        if self._index is None:
            raise ReviewRefusedError("the ontology of this run is not kept here; extract again first")
        return self._index


def _needed(part: T | None, name: str) -> T:
    if part is None:
        raise ReviewRefusedError(f"this action needs the field {name!r}")
    return part


def _same_value(one: Value, other: Value | None) -> bool:
    return other is not None and (one.value, one.datatype, one.unit) == (other.value, other.datatype, other.unit)


def _supported(found: tuple[Evidence, ...], wanted: tuple[Evidence, ...]) -> bool:
    """Whether some evidence has the same words, or contains them; offsets move when a document is edited."""
    if not wanted:
        return True
    texts = [_plain(one.text) for one in found]
    return any(text in other or other in text for one in wanted if (text := _plain(one.text)) for other in texts)


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def _spans_in(entity: Entity, evidence: tuple[Evidence, ...]) -> tuple[Span, ...]:
    return tuple(
        Span(one.start, one.end)
        for one in entity.mentions
        if any(place.start <= one.start and one.end <= place.end for place in evidence)
    )


def _all_in(spans: tuple[Span, ...], chosen: Sequence[Span]) -> bool:
    return bool(spans) and all(any(one.covers(span) or span.covers(one) for one in chosen) for span in spans)


def _listed(iris: tuple[str, ...]) -> str:
    return " or ".join(map(_short, iris)) or "nothing"


def _short(iri: str) -> str:
    if iri.startswith(XSD):
        return f"xsd:{iri[len(XSD) :]}"
    return iri.rstrip("/#").replace("#", "/").rpartition("/")[2] or iri
