"""One entity for each thing that a document mentions.

Rule: the outcome depends on the mentions and their places, never on the order they arrive in. Names are one
thing if their normal forms are equal and their classes agree; then acronyms, short forms of a name that
stands before them, and slips of the pen are joined to the one name that they fit. Where two names fit,
nothing is joined. Never quadratic: names meet only in blocks that they share.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import permutations
from typing import NamedTuple

import msgspec

from sameas.extraction.graph import Entity, Evidence, Mention, entity_id
from sameas.extraction.kinds import ClassKinds
from sameas.extraction.naming import initials, is_acronym, is_slip, name_key, neighbours
from sameas.ontology.index import OntologyIndex
from sameas.ontology.vocabulary import TOP

Types = tuple[str, ...]


class Resolution(NamedTuple):
    """The entities, and which of them each mention's place belongs to."""

    entities: tuple[Entity, ...]
    entity_of: Mapping[tuple[int, int], str]


class _Cluster:
    """Mentions that are one thing, so far."""

    __slots__ = ("individual", "key", "mentions", "types")

    def __init__(self, key: str, types: Types, individual: str) -> None:
        self.key = key
        self.types = types
        self.individual = individual
        self.mentions: list[Mention] = []

    @property
    def order(self) -> tuple[str, Types, str]:
        return (self.key, self.types, self.individual)


def resolve(mentions: Iterable[Mention], *, index: OntologyIndex) -> Resolution:
    """The entities behind the mentions; literals are not things and are left out."""
    things = sorted((m for m in mentions if m.kind != "literal"), key=lambda mention: mention.order)
    clusters = _Resolver(index).clusters(things)
    entities: dict[str, Entity] = {}
    entity_of: dict[tuple[int, int], str] = {}
    for cluster in clusters:
        entity = _entity(cluster, index)
        twin = entities.get(entity.id)
        if twin is not None:
            entity = _entity_of_both(twin, entity)
        entities[entity.id] = entity
        for mention in cluster.mentions:
            entity_of[(mention.start, mention.end)] = entity.id
    return Resolution(tuple(sorted(entities.values(), key=lambda entity: entity.id)), entity_of)


def attach(resolution: Resolution, untyped: Iterable[Mention]) -> Resolution:
    """The resolution with names that no class was known for where they stand, each on the one entity of that name.

    Only an equal normal form counts, and only where a single entity has it.
    """
    owners: dict[str, str] = {}
    for entity in resolution.entities:
        for text in {said.text for said in entity.mentions}:
            key = name_key(text)
            owners[key] = "" if owners.get(key, entity.id) != entity.id else entity.id
    added: dict[str, set[Evidence]] = defaultdict(set)
    for mention in untyped:
        owner = owners.get(name_key(mention.text))
        if owner and (mention.start, mention.end) not in resolution.entity_of:
            added[owner].add(Evidence(mention.start, mention.end, mention.text))
    if not added:
        return resolution
    entities = tuple(_with_mentions(one, added[one.id]) if one.id in added else one for one in resolution.entities)
    # Their places are not noted: no claim has such an end, and a long text has very many of them.
    return Resolution(entities, resolution.entity_of)


class _Resolver:
    def __init__(self, index: OntologyIndex) -> None:
        self._index = index
        self._kinds = ClassKinds(index)
        self._agreeing: dict[tuple[Types, Types], bool] = {}

    def clusters(self, mentions: Sequence[Mention]) -> list[_Cluster]:
        by_key: dict[str, list[Mention]] = defaultdict(list)
        for mention in mentions:
            by_key[name_key(mention.text)].append(mention)
        clusters = [cluster for key in sorted(by_key) for cluster in self._by_class(key, by_key[key])]
        clusters = self._join(clusters, self._same_individual(clusters))
        clusters = self._join(clusters, self._acronyms(clusters))
        clusters = self._short_forms(clusters)
        return self._join(clusters, self._slips(clusters))

    def _by_class(self, key: str, mentions: list[Mention]) -> Iterable[_Cluster]:
        """Mentions of one name: those whose classes agree together, the most specific classes first."""
        groups: dict[tuple[Types, str], list[Mention]] = defaultdict(list)
        for mention in mentions:
            groups[(mention.types, mention.individual)].append(mention)
        known = sorted(groups, key=lambda group: (-self._depth(group[0]), -len(groups[group]), group))
        clusters: list[_Cluster] = []
        for types, individual in known:
            fitting = [
                cluster
                for cluster in clusters
                if self._agree(cluster.types, types) and not (individual and cluster.individual not in ("", individual))
            ]
            # A general class fits several specific ones: the most mentioned of them has it.
            home = min(fitting, key=lambda cluster: (-len(cluster.mentions), cluster.order), default=None)
            if home is None:
                home = _Cluster(key, types, individual)
                clusters.append(home)
            home.individual = home.individual or individual
            home.mentions.extend(groups[(types, individual)])
        return clusters

    def _same_individual(self, clusters: list[_Cluster]) -> list[tuple[_Cluster, _Cluster]]:
        first: dict[str, _Cluster] = {}
        pairs = []
        for cluster in clusters:
            if cluster.individual:
                home = first.setdefault(cluster.individual, cluster)
                if home is not cluster:
                    pairs.append((cluster, home))
        return pairs

    def _acronyms(self, clusters: list[_Cluster]) -> list[tuple[_Cluster, _Cluster]]:
        full: dict[str, list[_Cluster]] = defaultdict(list)
        for cluster in clusters:
            letters = initials(cluster.key)
            if letters:
                full[letters].append(cluster)
        pairs = []
        for cluster in clusters:
            if " " in cluster.key or cluster.individual or not is_acronym(cluster.mentions[0].text):
                continue
            homes = [home for home in full.get(cluster.key, ()) if self._agree(home.types, cluster.types)]
            if len(homes) == 1:
                pairs.append((cluster, homes[0]))
        return pairs

    def _short_forms(self, clusters: list[_Cluster]) -> list[_Cluster]:
        """`Ms Stone` after `Alice Stone`, `Acme` after `Acme Robotics`: each mention goes to the nearest
        name before it.
        """
        by_word: dict[str, list[_Cluster]] = defaultdict(list)
        for cluster in clusters:
            for word in self._short_words(cluster):
                by_word[word].append(cluster)
        kept: list[_Cluster] = []
        for cluster in clusters:
            homes = (
                [home for home in by_word.get(cluster.key, ()) if self._agree(home.types, cluster.types)]
                if " " not in cluster.key and not cluster.individual
                else []
            )
            if not homes:
                kept.append(cluster)
                continue
            places = sorted((m.start, number) for number, home in enumerate(homes) for m in home.mentions)
            left: list[Mention] = []
            for mention in cluster.mentions:
                before = bisect_left(places, (mention.start, 0))
                if before:
                    homes[places[before - 1][1]].mentions.append(mention)
                else:
                    left.append(mention)
            if left:
                cluster.mentions = left
                kept.append(cluster)
        for cluster in kept:
            cluster.mentions.sort(key=lambda mention: mention.order)
        return kept

    def _short_words(self, cluster: _Cluster) -> set[str]:
        """The words that can stand for a whole name: a person's first or last, an organisation's first, no
        place's.
        """
        words = cluster.key.split()
        if len(words) == 1 or not cluster.types:
            return set()
        match self._kinds.kind_of(cluster.types[0]):
            case "person":
                return {words[0], words[-1]}
            case "organisation":
                return {words[0]}
            case _:
                return set()

    def _slips(self, clusters: list[_Cluster]) -> list[tuple[_Cluster, _Cluster]]:
        first: dict[str, _Cluster] = {}
        blocks: dict[str, list[_Cluster]] = {}
        for cluster in clusters:
            for form in neighbours(cluster.key):
                # Nearly every form is met once: only the others need a list.
                known = first.setdefault(form, cluster)
                if known is not cluster:
                    blocks.setdefault(form, [known]).append(cluster)
        candidates: dict[tuple[str, Types, str], dict[tuple[str, Types, str], _Cluster]] = defaultdict(dict)
        for block in blocks.values():
            if len(block) <= _LARGEST_BLOCK:
                for one, other in permutations(block, 2):
                    if _rarer(one, other) and is_slip(one.key, other.key):
                        candidates[one.order][other.order] = other
        by_order = {cluster.order: cluster for cluster in clusters}
        pairs = []
        for order in sorted(candidates):
            one = by_order[order]
            homes = [home for home in candidates[order].values() if self._agree(home.types, one.types)]
            if len(homes) == 1 and not (one.individual and homes[0].individual):
                pairs.append((one, homes[0]))
        return pairs

    def _join(self, clusters: list[_Cluster], pairs: list[tuple[_Cluster, _Cluster]]) -> list[_Cluster]:
        moved: dict[int, _Cluster] = {}
        for one, home in pairs:
            while id(home) in moved:
                home = moved[id(home)]
            if home is one:
                continue
            home.mentions.extend(one.mentions)
            home.mentions.sort(key=lambda mention: mention.order)
            home.individual = home.individual or one.individual
            if self._depth(one.types) > self._depth(home.types):
                home.types = one.types
            moved[id(one)] = home
        return [cluster for cluster in clusters if id(cluster) not in moved]

    def _agree(self, one: Types, other: Types) -> bool:
        """Whether a thing can have both: some class of one is, or is below or above, some class of the
        other.
        """
        if one == other or not one or not other:
            return True
        asked = (one, other)
        known = self._agreeing.get(asked)
        if known is None:
            sub = self._index.is_subclass
            known = self._agreeing[asked] = any(sub(a, b) or sub(b, a) for a in one for b in other)
        return known

    def _depth(self, types: Types) -> int:
        return max((len(self._index.class_tree.above(iri)) for iri in types), default=0)


# Beyond this a block says nothing: a long list of names that differ in one letter.
_LARGEST_BLOCK = 50


def _rarer(one: _Cluster, other: _Cluster) -> bool:
    """A slip is the rarer form; of two equally rare ones, the later in the text."""
    left, right = len(one.mentions), len(other.mentions)
    return (left, -one.mentions[0].start) < (right, -other.mentions[0].start)


def _entity(cluster: _Cluster, index: OntologyIndex) -> Entity:
    said = Counter(mention.text for mention in cluster.mentions)
    # The fullest name, then the most frequent form of it.
    name = min(said, key=lambda text: (-len(name_key(text).split()), -said[text], -len(text), text))
    surest = max(cluster.mentions, key=lambda mention: (mention.confidence, mention.confidence_from))
    types = _most_specific({iri for mention in cluster.mentions for iri in mention.types}, index)
    return Entity(
        id=entity_id(name_key(name), types[0] if types else ""),
        name=" ".join(name.split()),
        types=types,
        aliases=tuple(sorted({" ".join(text.split()) for text in said} - {" ".join(name.split())})),
        mentions=tuple(Evidence(m.start, m.end, m.text) for m in cluster.mentions),
        individual=cluster.individual,
        confidence=surest.confidence,
        confidence_from=surest.confidence_from,
    )


def _with_mentions(entity: Entity, more: set[Evidence]) -> Entity:
    names = {" ".join(said.text.split()) for said in more}
    return msgspec.structs.replace(
        entity,
        aliases=tuple(sorted({*entity.aliases, *names} - {entity.name})),
        mentions=tuple(sorted({*entity.mentions, *more})),
    )


def _most_specific(types: set[str], index: OntologyIndex) -> Types:
    """The classes that have no other of them below, the deepest first."""
    above = {iri: index.class_tree.above(iri) for iri in types}
    kept = [iri for iri in types if not any(iri in above[other] and other not in above[iri] for other in types)]
    if len(kept) > 1:
        kept = [iri for iri in kept if iri not in TOP]
    return tuple(sorted(kept, key=lambda iri: (-len(above[iri]), iri)))


def _entity_of_both(one: Entity, other: Entity) -> Entity:
    surest = max(one, other, key=lambda entity: (entity.confidence, entity.confidence_from))
    return Entity(
        id=one.id,
        name=one.name,
        types=tuple(dict.fromkeys((*one.types, *other.types))),
        aliases=tuple(sorted({*one.aliases, *other.aliases, other.name} - {one.name})),
        mentions=tuple(sorted({*one.mentions, *other.mentions})),
        individual=one.individual or other.individual,
        confidence=surest.confidence,
        confidence_from=surest.confidence_from,
    )
