"""One entity for each thing that a document mentions.

Rule: the outcome depends on the mentions and their places, never on the order they arrive in. What is one thing is
decided in `clusters.py`. An entity has its mentions in memory only while somebody looks at it.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

import msgspec

from sameas.extraction.graph.clusters import Cluster, Clusterer
from sameas.extraction.graph.mentioned_names import MentionedNames, NameForm, Place, Types
from sameas.extraction.graph.model import Entity, Evidence, Mention, entity_id
from sameas.extraction.graph.name_forms import name_key
from sameas.ontology.index import OntologyIndex
from sameas.ontology.vocabulary import TOP


class _Thing:
    """An entity without its mentions, and the forms that stand for it."""

    __slots__ = ("entity", "forms", "is_merged")

    def __init__(self, entity: Entity, forms: Iterable[NameForm]) -> None:
        self.entity = entity
        self.forms = list(forms)
        self.is_merged = False

    def merge(self, other: Entity, forms: Iterable[NameForm]) -> None:
        """The other is the same after all."""
        self.entity = _entity_of_both(self.entity, other)
        self.forms.extend(forms)
        self.is_merged = True

    def attach(self, form: NameForm) -> None:
        name, entity = " ".join(form.text.split()), self.entity
        self.entity = msgspec.structs.replace(entity, aliases=tuple(sorted({*entity.aliases, name} - {entity.name})))
        self.forms.append(form)
        self.is_merged = True

    def whole(self, names: MentionedNames) -> Entity:
        said = sorted((*place, form.text) for form in self.forms for place in names.places(form))
        # What was put together from several sides may have the same place from each of them.
        places = dict.fromkeys(said) if self.is_merged else said
        return msgspec.structs.replace(self.entity, mentions=tuple(Evidence(*place) for place in places))


class EntitiesThere:
    """Which entities the mentions of a stretch of the text belong to."""

    def __init__(
        self, said: Mapping[Place, list[NameForm]], owner: Callable[[Iterable[NameForm], str], str | None]
    ) -> None:
        self._said = said
        self._owner = owner

    def at(self, place: Place, *, form: str = "") -> str | None:
        return self._owner(self._said.get(place, ()), form)


class Resolution:
    """The entities, and which of them the place of a mention belongs to."""

    def __init__(self, clusters: Iterable[Cluster], *, names: MentionedNames, index: OntologyIndex) -> None:
        self._names = names
        # Where two have claimed a place, the later has it.
        self._owners: dict[int, tuple[int, str]] = {}
        things: dict[str, _Thing] = {}
        for rank, cluster in enumerate(clusters):
            entity = _entity(cluster, index)
            if entity.id in things:
                things[entity.id].merge(entity, cluster.forms)
            else:
                things[entity.id] = _Thing(entity, cluster.forms)
            self._owners.update((form.number, (rank, entity.id)) for form in cluster.forms)
        self._things = {name: things[name] for name in sorted(things)}

    @property
    def entities(self) -> Collection[Entity]:
        """In the order of their ids; each is made with its mentions when its turn comes."""
        return _Entities(self._things, self._names)

    def entity_at(self, place: Place, *, form: str = "") -> str | None:
        """The id of the entity that a mention with a class names at this place; `form` tells two of one place apart."""
        return self._owner(self._names.at(place), form)

    def entities_between(self, start: int, end: int) -> EntitiesThere:
        """The same for every mention that begins in a stretch of the text, looked up at once."""
        return EntitiesThere(self._names.between(start, end), self._owner)

    def _owner(self, said: Iterable[NameForm], form: str) -> str | None:
        owners = [
            self._owners[one.number] for one in said if one.number in self._owners and (not form or one.name == form)
        ]
        return max(owners)[1] if owners else None

    def is_named(self, place: Place) -> bool:
        """Whether an entity has a mention at this place, with a class or attached."""
        return bool(self._names.at(place))

    def attach(self, untyped: Iterable[Mention]) -> None:
        """Put names that no class was known for where they stand on the one entity of that name.

        Only an equal normal form counts, and only where a single entity has it.
        """
        owners: dict[str, str] = {}
        for name, thing in self._things.items():
            for key in {name_key(text) for form in thing.forms for text in (form.text, form.name)}:
                owners[key] = "" if owners.get(key, name) != name else name
        forms: dict[str, NameForm] = {}
        for mention in untyped:
            owner, place = owners.get(name_key(mention.text)), (mention.start, mention.end)
            if not owner or self.entity_at(place) is not None:
                continue
            form = forms.get(mention.text)
            if form is None:
                form = forms[mention.text] = self._names.new_form((mention.text, (), "", 1.0, "rule", ""))
                self._things[owner].attach(form)
            self._names.add(form, place)


def resolve(mentions: Iterable[Mention], *, index: OntologyIndex, untyped: Iterable[Mention] = ()) -> Resolution:
    """The entities behind the mentions; literals are not things and are left out.

    `untyped` are names without a class: they make no entity and are attached to those that there are.
    """
    names = MentionedNames(mention for mention in mentions if mention.kind != "literal")
    resolution = Resolution(Clusterer(index, names).clusters(), names=names, index=index)
    resolution.attach(untyped)
    return resolution


class _Entities(Collection[Entity]):
    def __init__(self, things: Mapping[str, _Thing], names: MentionedNames) -> None:
        self._things = things
        self._names = names

    def __len__(self) -> int:
        return len(self._things)

    def __iter__(self) -> Iterator[Entity]:
        return (thing.whole(self._names) for thing in self._things.values())

    def __contains__(self, entity: object) -> bool:
        return any(one == entity for one in self)


def _entity(cluster: Cluster, index: OntologyIndex) -> Entity:
    said: Counter[str] = Counter()
    for form in cluster.forms:
        said[form.name] += form.count
    # The fullest name, then the most frequent form of it.
    name = min(said, key=lambda text: (-len(name_key(text).split()), -said[text], -len(text), text))
    confidence, confidence_from = max(form.confidence for form in cluster.forms)
    types = _most_specific({iri for form in cluster.forms for iri in form.types}, index)
    return Entity(
        id=entity_id(name_key(name), types[0] if types else ""),
        name=" ".join(name.split()),
        types=types,
        aliases=tuple(sorted(_spelled(cluster.forms) - {" ".join(name.split())})),
        individual=cluster.individual,
        confidence=confidence,
        confidence_from=confidence_from,
    )


def _spelled(forms: Iterable[NameForm]) -> set[str]:
    return {" ".join(text.split()) for form in forms for text in (form.text, form.name)}


def _most_specific(types: set[str], index: OntologyIndex) -> Types:
    """The classes that have no other of them below, the deepest first."""
    kept = index.narrowest(types)
    if len(kept) > 1:
        kept = tuple(iri for iri in kept if iri not in TOP)
    return tuple(sorted(kept, key=lambda iri: (-len(index.class_tree.above(iri)), iri)))


def _entity_of_both(one: Entity, other: Entity) -> Entity:
    surest = max(one, other, key=lambda entity: (entity.confidence, entity.confidence_from))
    return Entity(
        id=one.id,
        name=one.name,
        types=tuple(dict.fromkeys((*one.types, *other.types))),
        aliases=tuple(sorted({*one.aliases, *other.aliases, other.name} - {one.name})),
        individual=one.individual or other.individual,
        confidence=surest.confidence,
        confidence_from=surest.confidence_from,
    )
