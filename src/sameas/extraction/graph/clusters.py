"""Which forms of names stand for one thing.

Rule: the outcome depends on the forms and their places, never on the order they arrive in. Names are one thing if their
normal forms are equal and their classes agree; then acronyms, short forms of a name that stands before them, and slips
of the pen are joined to the one name that they fit. Where two names fit, nothing is joined. Never quadratic: names meet
only in blocks that they share.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable
from itertools import permutations

from sameas.extraction.graph.class_kinds import ClassKinds
from sameas.extraction.graph.mentioned_names import MentionedNames, NameForm, Place, Types
from sameas.extraction.graph.name_forms import initials, is_acronym, is_slip, name_key, neighbours
from sameas.ontology.index import OntologyIndex


class Cluster:
    """Forms that are one thing, so far."""

    __slots__ = ("forms", "individual", "key", "lead", "types")

    def __init__(self, key: str, forms: Iterable[NameForm]) -> None:
        self.key = key
        self.forms = list(forms)
        first = min(self.forms, key=lambda form: form.first)
        self.types = first.types
        self.individual = first.individual
        # The name as its own class says it first.
        self.lead = first.name

    @property
    def order(self) -> tuple[str, Types, str]:
        return (self.key, self.types, self.individual)

    @property
    def count(self) -> int:
        return _count(self.forms)

    @property
    def first(self) -> Place:
        return min(form.first for form in self.forms)


class Clusterer:
    """Puts the forms of a text together, by the classes of one ontology."""

    def __init__(self, index: OntologyIndex, names: MentionedNames) -> None:
        self._index = index
        self._names = names
        self._kinds = ClassKinds(index)
        self._agreeing: dict[tuple[Types, Types], bool] = {}

    def clusters(self) -> list[Cluster]:
        by_key: dict[str, list[NameForm]] = defaultdict(list)
        for form in self._names.forms:
            by_key[name_key(form.name)].append(form)
        clusters = [cluster for key in sorted(by_key) for cluster in self._by_class(key, by_key[key])]
        clusters = self._join(clusters, self._same_individual(clusters))
        clusters = self._join(clusters, self._acronyms(clusters))
        clusters = self._short_forms(clusters)
        return self._join(clusters, self._slips(clusters))

    def _by_class(self, key: str, forms: list[NameForm]) -> Iterable[Cluster]:
        """Forms of one name: those whose classes agree together, the most specific classes first."""
        groups: dict[tuple[Types, str], list[NameForm]] = defaultdict(list)
        for form in forms:
            groups[(form.types, form.individual)].append(form)
        known = sorted(groups, key=lambda group: (-self._depth(group[0]), -_count(groups[group]), group))
        clusters: list[Cluster] = []
        for types, individual in known:
            fitting = [
                cluster
                for cluster in clusters
                if self._agree(cluster.types, types) and not (individual and cluster.individual not in ("", individual))
            ]
            # A general class fits several specific ones: the most mentioned of them has it.
            home = min(fitting, key=lambda cluster: (-cluster.count, cluster.order), default=None)
            if home is None:
                home = Cluster(key, groups[(types, individual)])
                clusters.append(home)
                continue
            home.individual = home.individual or individual
            home.forms.extend(groups[(types, individual)])
        return clusters

    def _same_individual(self, clusters: list[Cluster]) -> list[tuple[Cluster, Cluster]]:
        first: dict[str, Cluster] = {}
        pairs = []
        for cluster in clusters:
            if cluster.individual:
                home = first.setdefault(cluster.individual, cluster)
                if home is not cluster:
                    pairs.append((cluster, home))
        return pairs

    def _acronyms(self, clusters: list[Cluster]) -> list[tuple[Cluster, Cluster]]:
        full: dict[str, list[Cluster]] = defaultdict(list)
        for cluster in clusters:
            letters = initials(cluster.key)
            if letters:
                full[letters].append(cluster)
        by_end: dict[int, list[Cluster]] = defaultdict(list)
        for cluster in clusters:
            if " " in cluster.key:
                by_end[cluster.first[1]].append(cluster)
        pairs = []
        for cluster in clusters:
            if " " in cluster.key or cluster.individual or not is_acronym(cluster.lead):
                continue
            homes = [home for home in full.get(cluster.key, ()) if self._agree(home.types, cluster.types)]
            if not homes:
                homes = [
                    home for home in by_end.get(cluster.first[0] - _BRACKET, ()) if _abbreviates(cluster.key, home)
                ]
            if len(homes) == 1:
                pairs.append((cluster, homes[0]))
        return pairs

    def _short_forms(self, clusters: list[Cluster]) -> list[Cluster]:
        """`Ms Stone` after `Alice Stone`, `Acme` after `Acme Robotics`: each mention goes to the nearest
        name before it.
        """
        by_word: dict[str, list[Cluster]] = defaultdict(list)
        for cluster in clusters:
            for word in self._short_words(cluster):
                by_word[word].append(cluster)
        kept: list[Cluster] = []
        for cluster in clusters:
            homes = (
                [home for home in by_word.get(cluster.key, ()) if self._agree(home.types, cluster.types)]
                if " " not in cluster.key and not cluster.individual
                else []
            )
            if not homes:
                kept.append(cluster)
                continue
            self._give_away(cluster, homes)
            if cluster.forms:
                kept.append(cluster)
        return kept

    def _give_away(self, cluster: Cluster, homes: list[Cluster]) -> None:
        """Each mention to the nearest home before it; what has none before it stays."""
        places = sorted(
            (start, number)
            for number, home in enumerate(homes)
            for form in home.forms
            for start, _ in self._names.places(form)
        )
        left: list[NameForm] = []
        for form in cluster.forms:
            given: dict[int, list[Place]] = defaultdict(list)
            for place in self._names.places(form):
                before = bisect_left(places, (place[0], 0))
                given[places[before - 1][1] if before else _NOBODY].append(place)
            for number, said in sorted(given.items()):
                part = self._names.split(form, said)
                (left if number == _NOBODY else homes[number].forms).append(part)
        cluster.forms = left

    def _short_words(self, cluster: Cluster) -> set[str]:
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

    def _slips(self, clusters: list[Cluster]) -> list[tuple[Cluster, Cluster]]:
        first: dict[str, Cluster] = {}
        blocks: dict[str, list[Cluster]] = {}
        for cluster in clusters:
            for form in neighbours(cluster.key):
                # Nearly every form is met once: only the others need a list.
                known = first.setdefault(form, cluster)
                if known is not cluster:
                    blocks.setdefault(form, [known]).append(cluster)
        candidates: dict[tuple[str, Types, str], dict[tuple[str, Types, str], Cluster]] = defaultdict(dict)
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

    def _join(self, clusters: list[Cluster], pairs: list[tuple[Cluster, Cluster]]) -> list[Cluster]:
        moved: dict[int, Cluster] = {}
        for one, home in pairs:
            while id(home) in moved:
                home = moved[id(home)]
            if home is one:
                continue
            home.forms.extend(one.forms)
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
_NOBODY = -1


# "The Farmers' and Merchants' Bank of Duneld (FMB)": what stands in a bracket right behind a name is short for it.
_BRACKET = len(" (")


def _abbreviates(key: str, home: Cluster) -> bool:
    """Whether the letters of a key stand in this order in the initials of a name."""
    letters = iter(initials(home.key))
    return home.key[0] == key[0] and all(letter in letters for letter in key)


def _rarer(one: Cluster, other: Cluster) -> bool:
    """A slip is the rarer form; of two equally rare ones, the later in the text."""
    return (one.count, -one.first[0]) < (other.count, -other.first[0])


def _count(forms: Iterable[NameForm]) -> int:
    return sum(form.count for form in forms)
