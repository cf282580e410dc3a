"""How likely two atoms are one thing: a sum of weights in log-odds, each a reason for or against.

Rule: the score is a function of the two atoms and of what they share, and of nothing else in the collection, so that
it does not depend on the order in which documents came. `Traits` is what the ontology says that tells things apart:
functional properties, keys, families of classes, disjointness. `bench/collections` measures how the probabilities come
true.
"""

import math
from collections.abc import Iterable
from functools import cached_property
from typing import Literal, TypeAlias

import msgspec

from sameas.collections.names import NameRelation, is_initialed, relate
from sameas.ontology.index import OntologyIndex
from sameas.ontology.model import Ontology

TypeRelation: TypeAlias = Literal["fits", "siblings", "disjoint"]


class Traits:
    """Look-ups for the resolution of one collection."""

    def __init__(self, ontology: Ontology) -> None:
        self.index = OntologyIndex(ontology)
        self._families: dict[str, str] = {}

    @cached_property
    def functional(self) -> frozenset[str]:
        """Properties with at most one value, those below one too."""
        return self._with_trait("functional")

    @cached_property
    def inverse_functional(self) -> frozenset[str]:
        """Properties whose value belongs to one thing only."""
        return self._with_trait("inverse_functional")

    @cached_property
    def keys(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Class and properties of every `owl:hasKey`."""
        return tuple((one.iri, key) for one in self.index.ontology.classes for key in one.keys)

    def _with_trait(self, trait: str) -> frozenset[str]:
        named = {one.iri for one in self.index.ontology.properties if getattr(one, trait)}
        return frozenset(iri for iri in self.index.properties if not named.isdisjoint(self._above(iri)))

    def _above(self, iri: str) -> frozenset[str]:
        return self.index.property_tree.above(iri)

    def family(self, types: Iterable[str]) -> str:
        """The class near the top that a thing's first class is below; things of two families do not share a name."""
        first = next(iter(types), "")
        if first not in self._families:
            self._families[first] = self._family(first)
        return self._families[first]

    def _family(self, iri: str) -> str:
        above = self.index.class_tree.above(iri) if iri else frozenset()
        return min(above & self._tops, default=iri)

    @cached_property
    def _tops(self) -> frozenset[str]:
        """The uppermost classes that tell something: below a single root they are its children."""
        tops = set(self.index.roots)
        seen: set[str] = set()
        while len(tops) == 1 and (children := self.index.children(next(iter(tops)))) and not tops & seen:
            seen |= tops
            tops = set(children)
        return frozenset(tops)

    def relation(self, one: Iterable[str], other: Iterable[str]) -> TypeRelation:
        """How the classes of two things go together."""
        left, right = tuple(one), tuple(other)
        if not left or not right:
            return "fits"
        if any(self.index.are_disjoint(a, b) for a in left for b in right):
            return "disjoint"
        subclass = self.index.is_subclass
        return "fits" if any(subclass(a, b) or subclass(b, a) for a in left for b in right) else "siblings"

    def disjoint_pairs(self, types: Iterable[str]) -> list[tuple[str, str]]:
        """Which of these classes exclude each other."""
        ordered = sorted(set(types))
        return [
            (one, other)
            for place, one in enumerate(ordered)
            for other in ordered[place + 1 :]
            if self.index.are_disjoint(one, other)
        ]

    def is_under(self, types: Iterable[str], broad: str) -> bool:
        return any(self.index.is_subclass(one, broad) for one in types)


Bond: TypeAlias = Literal["strong", "weak", "apart"]
"""Weak: by a name that several things may have. Apart: never to be put together by what documents say."""

MERGED = math.log(0.9 / 0.1)
"""From here on two are one."""
DOUBTFUL = math.log(0.2 / 0.8)
"""Below, a pair is not worth anybody's time."""
_NAME_WEIGHTS: dict[NameRelation, float] = {
    "exact": 4.0,
    "alias": 3.2,
    "middle": 1.6,
    "initial": 0.6,
    "acronym": 0.3,
    "slip": 1.0,
    "none": -2.5,
}
# A name that is known to be several things' says little more than its initials would.
_NAMESAKE_NAME = 1.0
# Few letters are the short name of many.
_SHORT_ALIAS = 1.2
_LONG_ALIAS_LETTERS = 5
# One letter of a long word is a slip rather than another name; so is a spelling that hardly anybody uses.
_LONG_WORD = 0.8
_LONG_WORD_LETTERS = 8
_RARE_SPELLING = 0.9
_RARE_MAGNITUDES = 3
_WEAK = frozenset({"middle", "initial", "acronym", "slip"})
_SAME_VALUE = 1.6
_SAME_KEY = 9.0
_OTHER_VALUE = -5.5
_OTHER_THING = -3.0
_SHARED = 1.4
_MOST_SHARED = 4
_SIBLINGS = -1.5
_DISJOINT = -8.0
_TOLD_APART = -20.0


class Trait(msgspec.Struct, frozen=True, array_like=True, order=True):
    """One part of an atom's signature: a value of a functional property (`one`), of an inverse-functional one (`key`),
    or the IRI of a known thing (`known`). `token` begins with `v:` for a value, with `e:` for a thing's name.
    """

    kind: Literal["key", "known", "one"]
    property: str
    token: str


class Atom(msgspec.Struct, frozen=True):
    """What resolution knows of one atom."""

    id: int
    digest: str
    name: str
    """The normal form."""
    family: str
    signature: tuple[Trait, ...]
    scope: int
    nodes: int
    entity: int
    types: tuple[str, ...] = ()
    aliases: frozenset[str] = frozenset()
    """Normal forms of its other names."""

    @property
    def magnitude(self) -> tuple[int, str]:
        """About how often it is named, and who comes first of two that are named about as often."""
        return self.nodes.bit_length(), self.digest


class Score(msgspec.Struct, frozen=True):
    logit: float
    bond: Bond
    reasons: tuple[tuple[str, float, str], ...]


def relate_names(one: Atom, other: Atom) -> NameRelation:
    """The relation of their names, or that of their aliases."""
    found = relate(one.name, other.name)
    if found == "exact":
        return found
    # That two have the same few letters for short says nothing.
    both = any(len(name) >= _LONG_ALIAS_LETTERS for name in one.aliases & other.aliases)
    return "alias" if both or one.name in other.aliases or other.name in one.aliases else found


def score(one: Atom, other: Atom, shared: Iterable[tuple[str, str]], *, traits: Traits, ambiguous: bool) -> Score:
    """Judge a pair. `shared` is what both are connected with; `ambiguous` says that several have their common name."""
    names = relate_names(one, other)
    reasons: list[tuple[str, float, str]] = []
    plain = _NAME_WEIGHTS[names]
    weight = min(plain, _NAMESAKE_NAME) if ambiguous or (is_initialed(one.name) and names == "exact") else plain
    is_short = names == "alias" and max(map(len, _common_names(one, other)), default=0) < _LONG_ALIAS_LETTERS
    if is_short:
        weight = plain = _SHORT_ALIAS
    reasons.append((f"name-{names}", weight, f"{one.name} / {other.name}" if names != "exact" else one.name))
    if names == "slip":
        reasons.extend(_slip_reasons(one, other))
    agreeing, conflicts = _compare(one.signature, other.signature, reasons)
    unlike = {prop for _, prop in conflicts}
    context = sorted({about for about in shared if about[0] not in agreeing and about[0] not in unlike})
    for predicate, detail in context[:_MOST_SHARED]:
        reasons.append(("shared", _SHARED, f"{predicate} {detail}".strip()))
    match traits.relation(one.types, other.types):
        case "disjoint":
            reasons.append(("types-disjoint", _DISJOINT, ""))
        case "siblings":
            reasons.append(("types-differ", _SIBLINGS, ""))
        case "fits":
            pass
    logit = round(sum(weight for _, weight, _ in reasons), 6)
    as_if_rare = logit - weight + plain
    conflict = any(kind != "shared" and one_weight < 0 for kind, one_weight, _ in reasons[1:])
    # What speaks against it must be outweighed by the two themselves, not by a third that fits both.
    are_apart = conflict and as_if_rare < MERGED
    bond: Bond = "apart" if are_apart else "weak" if names in _WEAK or is_short or ambiguous else "strong"
    if any(kind in ("same-key", "same-known") for kind, _, _ in reasons) and bond == "weak":
        bond = "strong"
    return Score(logit, bond, tuple(reasons))


def _common_names(one: Atom, other: Atom) -> set[str]:
    return ({one.name} | one.aliases) & ({other.name} | other.aliases)


def _slip_reasons(one: Atom, other: Atom) -> Iterable[tuple[str, float, str]]:
    words = [(a, b) for a, b in zip(one.name.split(), other.name.split(), strict=True) if a != b]
    if all(min(len(a), len(b)) >= _LONG_WORD_LETTERS for a, b in words):
        yield "long-word", _LONG_WORD, ""
    few, many = sorted((one, other), key=lambda atom: atom.magnitude)
    if many.magnitude[0] >= few.magnitude[0] + _RARE_MAGNITUDES:
        yield "rare-spelling", _RARE_SPELLING, few.name


def _compare(
    one: tuple[Trait, ...], other: tuple[Trait, ...], reasons: list[tuple[str, float, str]]
) -> tuple[set[str], list[tuple[str, str]]]:
    """Add what the signatures say; gives the properties that agree, and the conflicts."""
    agreeing: set[str] = set()
    conflicts: list[tuple[str, str]] = []
    left, right = _by_property(one), _by_property(other)
    for kind, prop in sorted(left.keys() & right.keys()):
        mine, theirs = left[kind, prop], right[kind, prop]
        common = sorted(mine & theirs)
        if kind == "known":
            reasons.append(("same-known", _SAME_KEY, common[0]) if common else ("known-differ", _TOLD_APART, ""))
        elif kind == "key":
            if common:
                agreeing.add(prop)
                reasons.append(("same-key", _SAME_KEY, f"{prop} {common[0][2:]}"))
        elif common:
            agreeing.add(prop)
            reasons.append(("same-value", _SAME_VALUE, f"{prop} {common[0][2:]}"))
        elif not any(_may_be_same(a, b) for a in mine for b in theirs):
            conflicts.append((kind, prop))
            are_things = min(mine)[0] == "e" and min(theirs)[0] == "e"
            detail = f"{prop} {min(mine)[2:]} / {min(theirs)[2:]}"
            reasons.append(
                ("other-thing", _OTHER_THING, detail) if are_things else ("other-value", _OTHER_VALUE, detail)
            )
    return agreeing, conflicts


def _by_property(signature: tuple[Trait, ...]) -> dict[tuple[str, str], set[str]]:
    found: dict[tuple[str, str], set[str]] = {}
    for trait in signature:
        found.setdefault((trait.kind, trait.property), set()).add(trait.token)
    return found


def _may_be_same(one: str, other: str) -> bool:
    """Whether two tokens can stand for one value: a year and a day of it, a name and its short form."""
    if one[0] != other[0]:
        return True
    a, b = one[2:], other[2:]
    if one[0] == "v":
        return len(min(a, b, key=len)) >= 4 and (a.startswith(b) or b.startswith(a))
    words, others = set(a.split()), set(b.split())
    return relate(a, b) != "none" or words <= others or others <= words


def probability(logit: float) -> float:
    return 1 / (1 + math.exp(-logit)) if logit > -30 else 0.0
