"""The atoms of a collection while one change is made: which node belongs to which, and what must be judged anew.

An atom is what several documents name alike and describe without conflict: name, family and signature are the same. It
stands for one thing unless several things are known to have the name; then, and where a name is written with initials,
a node without any trait is an atom of its own document.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from sameas.collections.drafts import Node
from sameas.collections.names import (
    MOST_UNDER_A_KEY,
    Key,
    hashed,
    is_initialed,
    normal_name,
    own_keys,
    signed_key,
    sought_keys,
)
from sameas.collections.scoring import Atom, Trait
from sameas.databases import Row, Session

# Of a thing with very many connections, so many are looked at.
MOST_LOOKED_AT = 200
_MOST_OF_A_NAME = 5000
_IS_TYPE = 2
_TRAITS = msgspec.json.Decoder(tuple[Trait, ...])

Group = tuple[str, str]
"""A name and a family."""
Connection = tuple[Literal["says", "is_said"], str, str]
"""A predicate and the token of its other end: of a claim that begins with an atom, or ends with it."""


class Atoms:
    """Reads and changes atoms inside one transaction."""

    def __init__(self, session: Session, collection: int, *, next_id: int) -> None:
        self._session = session
        self._collection = collection
        self.next_id = next_id
        self.touched: set[int] = set()
        """Atoms that are other than before: all their pairs are to be found and judged anew."""
        self.met: set[int] = set()
        """Atoms that documents name once more."""
        self.news: dict[int, set[Connection] | None] = {}
        """What these are connected with and were not before; None where more than that is new. Of what else is met,
        nothing is new.
        """
        self.gone: dict[int, Atom] = {}
        """Atoms that went, as they were."""
        self._cache: dict[int, Atom] = {}
        self._names: dict[int, set[tuple[int, str]]] = {}
        self.used: dict[int, set[str]] = {}
        """By which names the nodes call their atoms that came in."""
        self._before: dict[int, set[Key]] = {}
        """The keys of atoms when they were first touched."""
        self._are_namesakes: dict[Group, bool] = {}

    def new_id(self) -> int:
        self.next_id += 1
        return self.next_id - 1

    def get(self, atom: int) -> Atom | None:
        """An atom with its names and classes."""
        if atom not in self._cache:
            row = self._session.one("atom", collection=self._collection, atom=atom)
            if row is None:
                return None
            self._cache[atom] = self._read(row)
        return self._cache[atom]

    def of_name(self, group: Group) -> list[Atom]:
        return self._several("atoms_of_name", name_key=group[0], family=group[1], most=_MOST_OF_A_NAME)

    def of_entity(self, entity: int) -> list[Atom]:
        return self._several("atoms_of_entity", entity=entity)

    def by_digest(self, digest: str) -> Atom | None:
        row = self._session.one("atom_by_digest", collection=self._collection, digest=digest)
        return None if row is None else self.get(row[0])

    def _several(self, statement: str, **values: object) -> list[Atom]:
        found = []
        for row in self._session.run(statement, collection=self._collection, **values):
            if row[0] not in self._cache:
                self._cache[row[0]] = self._read(row)
            found.append(self._cache[row[0]])
        return found

    def _read(self, row: Row) -> Atom:
        told = self._session.run("names_and_types_of_atom", collection=self._collection, atom=row[0])
        names = self._names[row[0]] = {(kind, text) for kind, text in told if kind != _IS_TYPE}
        aliases = {normal_name(name) for alias, name in names if alias} - {row[2]}
        id_, digest, name, family, signature, scope, nodes, entity = row
        return Atom(
            id_, digest, name, family, _TRAITS.decode(signature), scope, nodes, entity,
            tuple(sorted(text for kind, text in told if kind == _IS_TYPE)), frozenset(aliases),
        )  # fmt: skip

    def names(self, atoms: Iterable[Atom]) -> list[tuple[int, str, int]]:
        """Whether it is an alias, the name, and how often it is used."""
        found: dict[tuple[int, str], int] = {}
        for atom in atoms:
            for alias, name, uses in self._session.run("names_of_atom", collection=self._collection, atom=atom.id):
                found[alias, name] = found.get((alias, name), 0) + uses
        return [(alias, name, uses) for (alias, name), uses in found.items()]

    def are_namesakes(self, group: Group) -> bool:
        """Whether several things are known to have the name."""
        if group not in self._are_namesakes:
            row = self._session.one("namesakes", collection=self._collection, name_key=group[0], family=group[1])
            self._are_namesakes[group] = row is not None
        return self._are_namesakes[group]

    def set_namesakes(self, group: Group, are: bool) -> None:
        statement = "add_namesakes" if are else "remove_namesakes"
        self._session.run(statement, collection=self._collection, name_key=group[0], family=group[1])
        self._are_namesakes[group] = are

    def place(self, key: str, family: str, signature: tuple[Trait, ...], *, document: int, document_digest: str) -> int:
        """The atom that such a node of a document belongs to; it is made where it is not there."""
        is_alone = not signature and (is_initialed(key) or self.are_namesakes((key, family)))
        text = msgspec.json.encode(signature).decode()
        parts = (key, family, text, document_digest if is_alone else "")
        joined = "".join(f"{len(part)}:{part}" for part in parts).encode("utf-8", "surrogatepass")
        digest = hashlib.sha256(joined).hexdigest()
        row = self._session.one("atom_by_digest", collection=self._collection, digest=digest)
        if row is not None:
            if row[0] not in self._cache:
                self._cache[row[0]] = self._read(row)
            self.met.add(row[0])
            return int(row[0])
        atom = self.new_id()
        self._session.run(
            "add_atom", collection=self._collection, atom=atom, digest=digest, name_key=key, family=family,
            signature=text, scope=document if is_alone else 0,
        )  # fmt: skip
        self._before[atom] = set()
        self.touched.add(atom)
        return atom

    def touch(self, atom: int) -> None:
        """Something of it changes or is to be judged anew."""
        if atom not in self._before and (known := self.get(atom)) is not None:
            self._before[atom] = keys_of(known)
        self.touched.add(atom)

    def count(self, uses: Sequence[tuple[int, Node]], more: int) -> None:
        """So many nodes more, or fewer, of these atoms."""
        rows: list[dict[str, Any]] = []
        names: list[dict[str, Any]] = []
        types: list[dict[str, Any]] = []
        for atom, node in uses:
            if more < 0 or not self._has(atom, node):
                self.touch(atom)
            self.used.setdefault(atom, set()).add(node.name)
            own = {"collection": self._collection, "atom": atom, "more": more}
            rows.append(own)
            names.append({**own, "alias": 0, "name": node.name})
            names.extend({**own, "alias": 1, "name": alias} for alias in set(node.aliases) - {node.name})
            types.extend({**own, "type": type_} for type_ in set(node.types))
            known = self._cache.get(atom)
            if known is not None and atom not in self.touched:
                self._cache[atom] = replace(known, nodes=known.nodes + more)
                if self._cache[atom].magnitude != known.magnitude:
                    self.news[atom] = None
            else:
                self._cache.pop(atom, None)
        self._session.run_many("count_atom", rows)
        self._session.run_many("use_name", names)
        self._session.run_many("use_type", types)

    def _has(self, atom: int, node: Node) -> bool:
        """Whether a node says nothing new of its atom."""
        known = self.get(atom)
        names = {(0, node.name), *((1, alias) for alias in set(node.aliases) - {node.name})}
        return known is not None and names <= self._names[atom] and set(known.types).issuperset(node.types)

    def settle(self) -> None:
        """Bring keys up to date, and let go of atoms that are nowhere any more."""
        changed: dict[Key, int] = {}
        for atom in sorted(self._before):
            own = {"collection": self._collection, "atom": atom}
            self._session.run("drop_unused_names", **own)
            self._session.run("drop_unused_types", **own)
            self._cache.pop(atom, None)
            now = self.get(atom)
            keys = keys_of(now) if now is not None and now.nodes > 0 else set()
            if now is not None and now.nodes <= 0:
                self.gone[atom] = now
                self.touched.discard(atom)
                self.met.discard(atom)
                self._remove(now)
            before = self._before[atom]
            self._session.run_many("add_key", [{**own, "hash": key.hash} for key in keys - before])
            self._session.run_many("remove_key", [{**own, "hash": key.hash} for key in before - keys])
            for key in keys ^ before:
                changed[key] = changed.get(key, 0) + (1 if key in keys else -1)
        self._before.clear()
        self._touch_crossed(changed)

    def _touch_crossed(self, changed: dict[Key, int]) -> None:
        """A key under which there are too many now, or not any more, concerns everybody under it."""
        for key, more in changed.items():
            if more == 0:
                continue
            now = self._under(key, most=key.most + abs(more) + 1)
            if (len(now) > key.most) != (len(now) - more > key.most):
                self.touched.update(now)

    def under(self, key: Key) -> list[int]:
        """Who is found under a key; nobody where there are too many."""
        found = self._under(key, most=key.most + 1)
        return [] if len(found) > key.most else found

    def are_too_many(self, key: Key) -> bool:
        return len(self._under(key, most=key.most + 1)) > key.most

    def _under(self, key: Key, *, most: int) -> list[int]:
        rows = self._session.run("atoms_of_key", collection=self._collection, hash=key.hash, most=most)
        return [row[0] for row in rows]

    def connects(self, atom: int, connection: Connection, *, elsewhere_than: int = 0) -> bool:
        """Whether some document says this of an atom; of all but one, if that is given."""
        statement, predicate, token = connection
        asked = {"atom": atom, "predicate": predicate, "token": token, "document": elsewhere_than}
        return self._session.one(statement, collection=self._collection, **asked) is not None

    def note_connection(self, atom: int, connection: Connection, *, document: int) -> None:
        """A document says this of an atom; that is news, unless another says so too."""
        if atom not in self.met or atom in self.touched:
            return
        news = self.news.get(atom, set())
        if news is None or connection in news or self.connects(atom, connection, elsewhere_than=document):
            return
        self.news[atom] = {*news, connection}

    def is_looked_at_whole(self, atom: int) -> bool:
        """Whether an atom is connected in so few ways that all of them count."""
        asked = {"collection": self._collection, "atom": atom, "most": MOST_LOOKED_AT + 1}
        ((out, into),) = self._session.run("count_said", **asked)
        return int(max(out, into)) <= MOST_LOOKED_AT

    def forget(self, atom: int) -> None:
        """Read it anew next time."""
        self._cache.pop(atom, None)

    def _remove(self, atom: Atom) -> None:
        own = {"collection": self._collection, "atom": atom.id}
        for statement in ("pairs_below", "pairs_above"):
            for low, high, *_ in self._session.run(statement, **own):
                # Who was torn between it and another is not any more.
                self.touched.add(high if low == atom.id else low)
                self._session.run("remove_pair", collection=self._collection, low=low, high=high)
        self._session.run("remove_atom", **own)
        self._cache.pop(atom.id, None)
        self.touched.discard(atom.id)


def keys_of(atom: Atom) -> set[Key]:
    """The keys under which an atom is found."""
    return {*own_keys(atom.name, atom.aliases, atom.family), *_trait_keys(atom)}


def keys_sought(atom: Atom) -> set[Key]:
    """The keys under which it looks for others."""
    return {*sought_keys(atom.name, atom.aliases, atom.family), *_trait_keys(atom)}


def _trait_keys(atom: Atom) -> Iterator[Key]:
    """Where things with a key or known IRI are found, whatever their names, and those of a name that differ."""
    if atom.signature:
        yield signed_key(atom.name, atom.family)
    for trait in atom.signature:
        if trait.kind != "one":
            yield Key(hashed(trait.kind, trait.property, trait.token), MOST_UNDER_A_KEY)
