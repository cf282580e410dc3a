"""Which atoms are one thing, from the scores of pairs and what people decided. Pure; the order of the input is nothing.

Rule: pairs are joined from the surest down. Never joined are two that are apart, whoever stands between; and a weak
bond does not join two groups whose full names have nothing to do with each other. An atom that would fit two sides
which are apart goes to neither, unless one of them is clearly better.
"""

from collections.abc import Iterable, Mapping, Sequence

from sameas.collections.names import is_initialed, relate
from sameas.collections.scoring import MERGED, Atom, Bond

# So much better, in log-odds, is clearly better: about one shared neighbour.
_MARGIN = 1.0

Edge = tuple[int, int, float, Bond]


def cluster(
    atoms: Mapping[int, Atom],
    edges: Iterable[Edge],
    *,
    same: Iterable[tuple[int, int]] = (),
    different: Iterable[tuple[int, int]] = (),
) -> list[list[int]]:
    """Groups of atom ids. `same` and `different` were decided by people and win over every score."""
    known = [edge for edge in edges if edge[0] in atoms and edge[1] in atoms]
    apart = {_pair(a, b) for a, b in different}
    decided = {_pair(a, b) for a, b in same} - apart
    apart |= {_pair(a, b) for a, b, _, bond in known if bond == "apart"} - decided
    merging: dict[tuple[int, int], tuple[float, Bond]] = {
        _pair(a, b): (logit, bond)
        for a, b, logit, bond in known
        if logit >= MERGED and bond != "apart" and _pair(a, b) not in apart
    }
    groups = _Groups(atoms, apart)

    def by_digest(pair: tuple[int, int]) -> tuple[str, str]:
        one, other = sorted((atoms[pair[0]].digest, atoms[pair[1]].digest))
        return one, other

    there = [pair for pair in decided if pair[0] in atoms and pair[1] in atoms]
    for pair in sorted(there, key=by_digest):
        groups.join(*pair, weak=False)
    clear = _without_torn(atoms, merging, apart)
    for pair in sorted(clear, key=lambda pair: (-merging[pair][0], by_digest(pair))):
        groups.join(*pair, weak=merging[pair][1] == "weak")
    return groups.listed()


def _without_torn(
    atoms: Mapping[int, Atom], merging: Mapping[tuple[int, int], tuple[float, Bond]], apart: set[tuple[int, int]]
) -> list[tuple[int, int]]:
    """The pairs without those in which an atom fits another one, from which the first is apart, nearly as well."""
    nearby: dict[int, list[tuple[int, float, bool]]] = {}
    for (a, b), (logit, bond) in merging.items():
        for near, far in ((a, b), (b, a)):
            is_open = bond == "weak" and _may_mean_both(atoms[near], atoms[far])
            nearby.setdefault(near, []).append((far, logit, is_open))
    foes: dict[int, set[int]] = {}
    for a, b in apart:
        foes.setdefault(a, set()).add(b)
        foes.setdefault(b, set()).add(a)
    unlike: dict[tuple[int, int], bool] = {}

    def are_unlike(one: int, other: int) -> bool:
        pair = _pair(one, other)
        if pair not in unlike:
            unlike[pair] = not _names_fit({atoms[one]}, {atoms[other]})
        return unlike[pair]

    def is_torn(near: int, far: int, logit: float) -> bool:
        """Whether an atom cannot be with both this one and another that it fits nearly as well."""
        rivals = nearby[near]
        is_open = next(is_open for one, _, is_open in rivals if one == far)
        enemies = foes.get(far, ())
        if not is_open and not enemies:
            return False
        return any(
            other != far
            and logit < rival + _MARGIN
            and (other in enemies or (is_open and is_open_too and are_unlike(far, other)))
            for other, rival, is_open_too in rivals
        )

    return [(a, b) for (a, b), (logit, _) in merging.items() if not (is_torn(a, b, logit) or is_torn(b, a, logit))]


def _may_mean_both(near: Atom, far: Atom) -> bool:
    """Whether the first name is the one that leaves open which is meant."""
    match relate(near.name, far.name):
        case "initial":
            return is_initialed(near.name)
        case "acronym" | "none":
            return len(near.name) < len(far.name)
        case _:
            return near.magnitude <= far.magnitude


class _Groups:
    """Joins atoms, as far as nothing stands between."""

    def __init__(self, atoms: Mapping[int, Atom], apart: set[tuple[int, int]]) -> None:
        self._atoms = atoms
        self._members: dict[int, set[int]] = {one: {one} for one in atoms}
        self._of: dict[int, int] = {one: one for one in atoms}
        self._foes: dict[int, set[int]] = {}
        for a, b in apart:
            self._foes.setdefault(a, set()).add(b)
            self._foes.setdefault(b, set()).add(a)

    def join(self, a: int, b: int, *, weak: bool) -> None:
        one, other = self._of[a], self._of[b]
        if one == other:
            return
        left, right = self._members[one], self._members[other]
        if any(not right.isdisjoint(self._foes.get(member, ())) for member in left):
            return
        if weak and not _names_fit({self._atoms[id_] for id_ in left}, {self._atoms[id_] for id_ in right}):
            return
        if len(left) < len(right):
            one, other, left, right = other, one, right, left
        left |= right
        for member in right:
            self._of[member] = one
        del self._members[other]

    def listed(self) -> list[list[int]]:
        return sorted(sorted(members) for members in self._members.values())


def _names_fit(left: Iterable[Atom], right: Iterable[Atom]) -> bool:
    """Whether some full name of the one side has to do with one of the other, or one side has none."""
    ours, theirs = _full_names(left), _full_names(right)
    return not ours or not theirs or any(relate(one, other) != "none" for one in ours for other in theirs)


def _full_names(atoms: Iterable[Atom]) -> Sequence[str]:
    return sorted({name for atom in atoms for name in (atom.name, *atom.aliases) if not is_initialed(name)})


def _pair(a: int, b: int) -> tuple[int, int]:
    return (a, b) if a < b else (b, a)
