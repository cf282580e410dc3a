"""Resolution: after a change, judge the pairs that it touches and say which atoms are one thing.

Rule: the result is a function of what the documents say and people decided, whatever the order; only what a change
touches is looked at. Ids of things are kept: of two that become one the older id stays and the other leads to it, and
when they are parted again each gets its own back.
"""

from collections.abc import Iterable
from itertools import chain

import msgspec

from sameas.collections.atoms import MOST_LOOKED_AT, Atoms, Connection, Group, keys_of, keys_sought
from sameas.collections.clustering import Edge, cluster
from sameas.collections.drafts import Node
from sameas.collections.names import Key, relate, signed_key
from sameas.collections.scoring import MERGED, Atom, Bond, Score, relate_names, score
from sameas.collections.traits import Traits
from sameas.databases import Row, Session
from sameas.extraction.graph.model import entity_id

_BONDS: tuple[Bond, ...] = ("strong", "weak", "apart", "strong", "weak", "weak", "weak")
_APART = _BONDS.index("apart")
# Bonds that no further connection of the two can change. A rare spelling stays one however often the usual one is
# met; whether it is rare must be asked again when it is met itself.
_CLEAR = 3
_CLEAR_LOW_IS_RARE = 4
_CLEAR_HIGH_IS_RARE = 5
_CLEAR_WEAK = 6
_MOST_SHARED = 16


class Resolution:
    """One change of a collection, from touched atoms to things."""

    def __init__(self, session: Session, collection: int, atoms: Atoms, *, traits: Traits) -> None:
        self._session = session
        self._collection = collection
        self._atoms = atoms
        self._traits = traits
        self.former: dict[int, int] = {}
        """What a new atom was before its document changed: the number of a thing."""
        self.seeds: set[int] = set()
        """Atoms whose thing is to be decided anew, though no pair has changed."""
        self.met: set[int] = set()
        """Atoms that are said to be more than before, though what they are has not changed."""
        self.changed: set[str] = set()
        """Ids of things that are not as before."""
        self.more_entities = 0
        self._decided = session.one("any_decisions", collection=collection) is not None
        self._verdicts: dict[Group, list[tuple[str, str]]] = {}

    def resolve(self) -> None:
        """Bring everything that was touched up to date."""
        while True:
            self._atoms.settle()
            touched = self._alive(self._atoms.touched)
            met = self._alive(self._atoms.met - touched.keys())
            judged = self._judge(touched, met)
            self.seeds |= touched.keys()
            # How often it is met may say which of two names leaves open which thing is meant.
            self.seeds |= {id_ for id_ in met if self._atoms.news.get(id_, ()) is None}
            self.met |= met.keys()
            self._atoms.touched.clear()
            self._atoms.met.clear()
            atoms = (*touched.values(), *self._alive(judged).values(), *self._atoms.gone.values())
            groups = {(atom.name, atom.family) for atom in atoms}
            news = [self._part_namesakes(group) for group in sorted(groups)]
            if not any(news):
                break
        self._group()

    def _alive(self, ids: Iterable[int]) -> dict[int, Atom]:
        return {id_: atom for id_ in sorted(ids) if (atom := self._atoms.get(id_)) is not None}

    def note_decision(self, decision: str) -> None:
        """Somebody decided about two things, or took it back."""
        self._decided = True
        self._verdicts.clear()
        for side in self.anchored(decision):
            self.seeds.update(side)

    def _judge(self, touched: dict[int, Atom], met: dict[int, Atom]) -> set[int]:
        """Score the pairs of these: all that can be found of the touched; of the others those that are known and that
        something new may change. Whose pairs are not as before.
        """
        old: dict[tuple[int, int], tuple[float, int]] = {}
        wanted: set[tuple[int, int]] = set()
        for id_ in (*touched, *(id_ for id_ in met if id_ in self._atoms.news)):
            news = None if id_ in touched or not self._atoms.is_looked_at_whole(id_) else self._atoms.news[id_]
            for low, high, logit, bond in self._pairs(id_):
                old[low, high] = (logit, bond)
                rare = {_CLEAR_LOW_IS_RARE: low, _CLEAR_HIGH_IS_RARE: high}.get(bond, 0)
                if (bond < _CLEAR or rare == id_) and self._concerns(news, high if low == id_ else low):
                    wanted.add((low, high))
        wanted = {pair for pair in wanted if touched.keys().isdisjoint(pair)}
        wanted |= self._candidates(touched)
        rows, lost = [], []
        judged: set[int] = set()
        for pair in sorted(wanted | {pair for pair in old if not touched.keys().isdisjoint(pair)}):
            # A pair that was found before there were too many under its keys is none any more.
            found = self._score(*pair) if pair in wanted else None
            if found is None:
                if pair in old:
                    lost.append({"collection": self._collection, "low": pair[0], "high": pair[1]})
            elif old.get(pair) == (found[0].logit, found[1]):
                continue
            else:
                rows.append(
                    {
                        "collection": self._collection, "low": pair[0], "high": pair[1], "logit": found[0].logit,
                        "apart": found[1], "reasons": msgspec.json.encode(found[0].reasons).decode(),
                    }
                )  # fmt: skip
            # Who lost a neighbour or has another one may belong elsewhere now.
            judged.update(pair)
        self.seeds |= judged
        self._session.run_many("add_pair", rows)
        self._session.run_many("remove_pair", lost)
        return judged

    def _concerns(self, news: set[Connection] | None, other: int) -> bool:
        """Whether what is new of an atom may change its pair with another: they share it, or more than that is new."""
        return news is None or any(self._atoms.connects(other, one) for one in sorted(news))

    def _pairs(self, atom: int) -> Iterable[Row]:
        for statement in ("pairs_below", "pairs_above"):
            yield from self._session.run(statement, collection=self._collection, atom=atom)

    def _bonds(self, atom: int) -> Iterable[Row]:
        """The pairs of an atom that say what it is one with, and what it is not."""
        for statement in ("bonds_below", "bonds_above"):
            yield from self._session.run(statement, collection=self._collection, atom=atom, least=MERGED)

    def _candidates(self, touched: dict[int, Atom]) -> set[tuple[int, int]]:
        """The pairs in which each of the two finds the other, so that it does not matter which of them came first."""
        under: dict[Key, list[int]] = {}

        def found_under(key: Key) -> list[int]:
            if key not in under:
                under[key] = self._atoms.under(key)
            return under[key]

        pairs: set[tuple[int, int]] = set()
        for id_, atom in touched.items():
            own, sought = keys_of(atom), keys_sought(atom)
            mutual = {other for key in own & sought for other in found_under(key)}
            one_way = {other for key in sought - own for other in found_under(key)} - mutual
            for other, known in self._alive(one_way).items():
                if any(id_ in found_under(key) for key in keys_sought(known) & own):
                    mutual.add(other)
            pairs.update((min(id_, other), max(id_, other)) for other in mutual if other != id_)
        return pairs

    def _score(self, low: int, high: int) -> tuple[Score, int] | None:
        """The score of a pair and its bond, or None where nothing makes it one."""
        a, b = self._atoms.get(low), self._atoms.get(high)
        if a is None or b is None:
            return None
        one, other = (a, b) if a.digest < b.digest else (b, a)
        names = relate_names(one, other)
        if names == "none" and not _share_a_key(one, other):
            return None
        ambiguous = names == "exact" and self._atoms.are_namesakes((one.name, one.family))
        bare = score(one, other, (), traits=self._traits, ambiguous=ambiguous)
        if bare.bond != "apart" and bare.logit >= MERGED and all(weight > 0 for _, weight, _ in bare.reasons):
            return bare, _clear_bond(a, b, bare)
        shared = self._shared(one, other)
        found = score(one, other, shared, traits=self._traits, ambiguous=ambiguous) if shared else bare
        return found, _BONDS.index(found.bond)

    def _shared(self, one: Atom, other: Atom) -> list[tuple[str, str]]:
        """What both are connected with, as predicate and, for people, direction and token."""
        few, many = (one, other) if one.magnitude <= other.magnitude else (other, one)
        asked = {"collection": self._collection, "one": few.id, "other": many.id}
        bounds = {"looked_at": MOST_LOOKED_AT, "most": _MOST_SHARED}
        found = [
            (predicate, f"{direction} {token}")
            for statement, direction in (("shared_objects", ">"), ("shared_subjects", "<"))
            for predicate, token in self._session.run(statement, **asked, **bounds)
        ]
        return [about for about in found if about[0] not in self._traits.functional or about[1][0] == "<"]

    def _part_namesakes(self, group: Group) -> bool:
        """Note whether several things have a name; whether that is news."""
        row = self._session.one("any_namesakes", collection=self._collection, name_key=group[0], family=group[1])
        are = row is not None or self._atoms.are_too_many(signed_key(*group)) or self._stands_for_several(group)
        if are == self._atoms.are_namesakes(group):
            return False
        atoms = self._atoms.of_name(group)
        self._atoms.set_namesakes(group, are)
        for atom in atoms:
            self._atoms.touch(atom.id)
        for atom in atoms:
            if not atom.signature:
                self._place_anew(atom)
        return True

    def _stands_for_several(self, group: Group) -> bool:
        """Whether documents say of one acronym that it is short for names that have nothing to do with each other."""
        if " " in group[0]:
            return False
        atoms = self._atoms.of_name(group)
        long = sorted({name for atom in atoms for name in atom.aliases if relate(group[0], name) == "acronym"})
        return any(relate(one, other) == "none" for one in long for other in long)

    def _place_anew(self, atom: Atom) -> None:
        """Give the nodes of an atom without traits the atoms that they belong to now."""
        rows = self._session.run("nodes_of_atom", collection=self._collection, atom=atom.id)
        for node, document, name, aliases, types, _, known, individual in rows:
            (digest, *_) = self._session.run("document", collection=self._collection, document=document)[0]
            target = self._atoms.place(atom.name, atom.family, (), document=document, document_digest=digest)
            if target == atom.id:
                continue
            self._atoms.news[target] = None
            said = Node(
                local_id="", name=name, key=atom.name, family=atom.family, types=msgspec.json.decode(types, type=tuple),
                aliases=msgspec.json.decode(aliases, type=tuple), individual=individual, known=known, mentions=(),
                signature=(),
            )  # fmt: skip
            self._atoms.count([(atom.id, said)], -1)
            self._atoms.count([(target, said)], 1)
            self.former.setdefault(target, atom.entity)
            own = {"collection": self._collection, "atom": target, "node": node}
            self._session.run("move_node", **own)
            self._session.run("move_subjects", **own, document=document)
            self._session.run("move_objects", **own, document=document)

    def _group(self) -> None:
        """Decide which atoms are one thing, as far as the seeds reach."""
        left = {id_ for id_ in self.seeds if self._atoms.get(id_) is not None}
        entities = {atom.entity for atom in self._atoms.gone.values()} - {0}
        for entity in entities:
            left.update(atom.id for atom in self._atoms.of_entity(entity))
        reached: set[int] = set()
        assigning = _Assignment(self._session, self._collection, self._atoms, self.former)
        while left:
            component, edges, same, different = self._reach(left.pop())
            left -= component.keys()
            reached |= component.keys()
            entities |= {atom.entity for atom in component.values()} - {0}
            assigning.groups.extend(
                [component[id_] for id_ in members]
                for members in cluster(component, edges, same=same, different=different)
            )
        assigning.met = {id_ for id_ in self.met if id_ not in reached}
        assigning.former_entities |= entities | (set(self.former.values()) - {0})
        assigning.assign()
        self.changed |= assigning.changed
        self.changed.update(self._told_apart((*assigning.moved, *self._atoms.gone.values())))
        self.more_entities += assigning.more

    def _reach(self, seed: int) -> tuple[dict[int, Atom], list[Edge], set[tuple[int, int]], set[tuple[int, int]]]:
        """Everything that a seed may be one with, directly or through others, and what stands between."""
        component: dict[int, Atom] = {}
        edges: dict[tuple[int, int], Edge] = {}
        same: set[tuple[int, int]] = set()
        different: set[tuple[int, int]] = set()
        waiting = [seed]
        entities: set[int] = set()
        while waiting:
            id_ = waiting.pop()
            atom = None if id_ in component else self._atoms.get(id_)
            if atom is None:
                continue
            component[id_] = atom
            for low, high, logit, apart in self._bonds(id_):
                edges[low, high] = (low, high, logit, _BONDS[apart])
                if logit >= MERGED and apart != _APART:
                    waiting.append(high if low == id_ else low)
            if atom.entity and atom.entity not in entities:
                entities.add(atom.entity)
                waiting.extend(member.id for member in self._atoms.of_entity(atom.entity))
            if self._decided:
                links, barred = self._decisions(atom)
                same |= links
                different |= barred
                waiting.extend(one for pair in links for one in pair)
        return component, list(edges.values()), same, different

    def _told_apart(self, atoms: Iterable[Atom]) -> Iterable[str]:
        """The things that somebody told apart from atoms that are, or were, of another thing than before."""
        if not self._decided:
            return
        for atom in atoms:
            for decision, verdict in self._verdicts_of(atom):
                if verdict == "different":
                    for other in chain.from_iterable(self.anchored(decision)):
                        known = self._atoms.get(other)
                        row = known and self._session.one(
                            "entity_by_number", collection=self._collection, entity=known.entity
                        )
                        if row:
                            yield row[1]

    def _verdicts_of(self, atom: Atom) -> list[tuple[str, str]]:
        """The decisions about a name."""
        group = (atom.name, atom.family)
        if group not in self._verdicts:
            rows = self._session.run(
                "decisions_of_name", collection=self._collection, name_key=group[0], family=group[1]
            )
            self._verdicts[group] = [(row[0], row[1]) for row in rows]
        return self._verdicts[group]

    def _decisions(self, atom: Atom) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
        same: set[tuple[int, int]] = set()
        different: set[tuple[int, int]] = set()
        for decision, verdict in self._verdicts_of(atom):
            a, b = self.anchored(decision)
            if verdict == "same" and a and b:
                same.add((a[0], b[0]))
            elif verdict == "different":
                different |= {(one, other) for one in a for other in b}
        return same, different

    def anchored(self, decision: str) -> tuple[list[int], list[int]]:
        """The atoms on both sides of a decision: those that it was made about, else others of their names."""
        sides: dict[str, list[int]] = {"a": [], "b": []}
        named: dict[str, list[Group]] = {"a": [], "b": []}
        for side, digest, name, family in self._session.run("anchors", collection=self._collection, decision=decision):
            named[side].append((name, family))
            atom = self._atoms.by_digest(digest)
            if atom is not None:
                sides[side].append(atom.id)
        for side, groups in named.items():
            if not sides[side]:
                found = {atom.id: atom for group in groups for atom in self._atoms.of_name(group)}
                sides[side] = sorted(found, key=lambda id_: (-found[id_].nodes, found[id_].digest))
        common = set(sides["a"]) & set(sides["b"])
        return [id_ for id_ in sides["a"] if id_ not in common], [id_ for id_ in sides["b"] if id_ not in common]


def _clear_bond(low: Atom, high: Atom, found: Score) -> int:
    """The bond of a pair that is one without looking at what both are connected with."""
    if found.bond == "strong":
        return _CLEAR
    kinds = {kind for kind, _, _ in found.reasons}
    if "rare-spelling" in kinds:
        return _CLEAR_LOW_IS_RARE if low.nodes < high.nodes else _CLEAR_HIGH_IS_RARE
    # How often each is met may still make one of them rare.
    return _BONDS.index("weak") if "name-slip" in kinds else _CLEAR_WEAK


class _Assignment:
    """Gives groups of atoms the numbers of things."""

    def __init__(self, session: Session, collection: int, atoms: Atoms, former: dict[int, int]) -> None:
        self._session = session
        self._collection = collection
        self._atoms = atoms
        self._former = former
        self.groups: list[list[Atom]] = []
        self.former_entities: set[int] = set()
        self.met: set[int] = set()
        self.changed: set[str] = set()
        self.moved: list[Atom] = []
        """Atoms that are of another thing than before, as they were."""
        self.more = 0

    def assign(self) -> None:
        chosen = self._choose()
        alive = {entity for entity in chosen.values() if entity}
        moved: dict[int, set[int]] = {}
        rows = []
        for place, members in enumerate(self.groups):
            entity = chosen.get(place) or self._revive_or_make(members, alive)
            alive.add(entity)
            for atom in members:
                if atom.entity != entity:
                    rows.append({"collection": self._collection, "entity": entity, "atom": atom.id})
                    self._atoms.forget(atom.id)
                    self.moved.append(atom)
                    before = atom.entity or self._former.get(atom.id, 0)
                    if before and before != entity:
                        moved.setdefault(before, set()).add(entity)
            self._name(entity, self._atoms.names(members))
        self._session.run_many("set_entity", rows)
        self._rename_met(alive)
        for entity in sorted(self.former_entities - alive):
            self._end(entity, moved.get(entity, set()))
        for atom in self.moved:
            # What is said of others ends with another thing now. A new atom has new claims only.
            if atom.entity:
                ends = self._session.run("entities_before", collection=self._collection, atom=atom.id)
                self.changed.update(id_ for (id_,) in ends)

    def _rename_met(self, alive: set[int]) -> None:
        """Things that are named once more may have another name now, unless it was the one they have."""
        named: dict[int, set[str]] = {}
        for id_ in self.met:
            atom = self._atoms.get(id_)
            if atom is not None and atom.entity not in alive:
                named.setdefault(atom.entity, set()).update(self._atoms.used.get(id_, ()))
        for entity, names in sorted(named.items()):
            row = self._session.one("entity_by_number", collection=self._collection, entity=entity)
            assert row is not None
            if names <= {row[2]}:
                self.changed.add(row[1])
            else:
                self._name(entity, self._session.run("names_of_entity", collection=self._collection, entity=entity))

    def _choose(self) -> dict[int, int]:
        """For each group the oldest of the things that its atoms were; each goes to one group."""
        claims: dict[int, list[tuple[bool, int, str, int]]] = {}
        for place, members in enumerate(self.groups):
            weights: dict[int, int] = {}
            for atom in members:
                was = atom.entity or self._former.get(atom.id, 0)
                if was:
                    weights[was] = weights.get(was, 0) + atom.nodes
            for entity, weight in weights.items():
                row = self._session.one("entity_by_number", collection=self._collection, entity=entity)
                if row is None:
                    continue
                is_home = any(home_id(atom) == row[1] for atom in members)
                claims.setdefault(entity, []).append((not is_home, -weight, min(a.digest for a in members), place))
        chosen: dict[int, int] = {}
        for entity in sorted(claims):
            for *_, place in sorted(claims[entity]):
                if place not in chosen:
                    chosen[place] = entity
                    break
        return chosen

    def _revive_or_make(self, members: list[Atom], alive: set[int]) -> int:
        known = []
        for atom in members:
            row = self._session.one("entity_by_id", collection=self._collection, id=home_id(atom))
            if row is not None and row[0] not in alive:
                known.append(row)
        merged = [row for row in known if row[3] is not None]
        if merged:
            # Its name is set with the others', and that it leads elsewhere is taken back.
            self.more += 1
            return int(min(merged)[0])
        entity = self._atoms.new_id()
        free = [atom for atom in members if self._is_free(home_id(atom))]
        first = min(free or members, key=lambda atom: (len(atom.signature), -atom.nodes, atom.digest))
        id_ = home_id(first) if free else f"{home_id(first)}-{entity}"
        self._session.run("add_entity", collection=self._collection, entity=entity, id=id_, name="")
        self.more += 1
        return entity

    def _is_free(self, id_: str) -> bool:
        return self._session.one("entity_by_id", collection=self._collection, id=id_) is None

    def _name(self, entity: int, names: Iterable[Row]) -> None:
        _, _, name = max(((uses, len(name), name) for alias, name, uses in names if not alias), default=(0, 0, ""))
        self._session.run("set_entity_name", collection=self._collection, entity=entity, name=name)
        row = self._session.one("entity_by_number", collection=self._collection, entity=entity)
        assert row is not None
        self.changed.add(row[1])

    def _end(self, entity: int, into: set[int]) -> None:
        """A thing is no more of its own: it leads to where its atoms went, or is gone with the last of them."""
        row = self._session.one("entity_by_number", collection=self._collection, entity=entity)
        if row is None or row[3] is not None:
            return
        self.changed.add(row[1])
        # What led to it leads elsewhere from now on, or nowhere.
        merged = self._session.run("merged_into", collection=self._collection, entity=entity)
        self.changed.update(id_ for _, id_ in merged)
        self.more -= 1
        if into:
            target = min(into)
            self._session.run("redirect_merged", collection=self._collection, entity=entity, into=target)
            self._session.run("merge_entity", collection=self._collection, entity=entity, into=target)
        else:
            self._session.run("remove_merged", collection=self._collection, entity=entity)
            self._session.run("remove_entity", collection=self._collection, entity=entity)


def home_id(atom: Atom) -> str:
    """The id of a thing that is this atom alone."""
    is_plain = not atom.signature and not atom.scope
    return entity_id(atom.name, atom.family if is_plain else f"{atom.family} {atom.digest}")


def _share_a_key(one: Atom, other: Atom) -> bool:
    mine = {trait for trait in one.signature if trait.kind != "one"}
    return not mine.isdisjoint(other.signature)
