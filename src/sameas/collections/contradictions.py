"""What documents say that cannot all be true: two values of a functional property, classes that exclude each other.

Rule: every side is told with its evidence, and nothing is resolved silently. That goes for one thing, and for two of
one name that just such a conflict keeps apart: they may be one, of which documents disagree, until somebody decides.
"""

from collections.abc import Iterator
from itertools import islice

import msgspec

from sameas.collections.model import CollectionEvidence, Contradiction
from sameas.collections.views import Reader

_REASONS = msgspec.json.Decoder(tuple[tuple[str, float, str], ...])
_TEXTS = msgspec.json.Decoder(tuple[str, ...])
_PARTING = frozenset({"other-value", "other-thing", "types-disjoint"})
_EVIDENCE = 3


def contradictions(reader: Reader) -> Iterator[Contradiction]:
    """All of them, always in the same order."""
    yield from _values(reader)
    yield from _classes(reader)
    yield from _parted(reader)


def _values(reader: Reader) -> Iterator[Contradiction]:
    for predicate in sorted(reader.traits.functional):
        for number, _ in reader.session.run("many_values", collection=reader.collection, predicate=predicate):
            entity = reader.by_number(number)
            sides = [one for one in reader.statements_of(entity.id) if one.predicate == predicate]
            yield Contradiction(kind="functional", entity=entity, predicate=predicate, sides=tuple(sides))


def _classes(reader: Reader) -> Iterator[Contradiction]:
    types = [row[0] for row in reader.session.run("types_in_use", collection=reader.collection)]
    for one, other in reader.traits.disjoint_pairs(types):
        rows = reader.session.run("entities_of_types", collection=reader.collection, one=one, other=other)
        for (number,) in rows:
            evidence = tuple(tuple(_said_to_be(reader, number, type_)) for type_ in (one, other))
            yield Contradiction(
                kind="disjoint", entity=reader.by_number(number), predicate="", classes=(one, other), evidence=evidence
            )


def _parted(reader: Reader) -> Iterator[Contradiction]:
    """Between two of one name."""
    decided = reader.decided_pairs()
    told: set[tuple[int, int, str]] = set()
    for reasons, low, high, *digests in reader.session.run("parted_pairs", collection=reader.collection):
        pair = (min(low, high), max(low, high))
        # The order of digests, unlike that of numbers, is the same whoever came first.
        one, other = (low, high) if digests[0] < digests[1] else (high, low)
        for kind, _, detail in _REASONS.decode(reasons):
            predicate = detail.split(" ", 1)[0]
            if pair not in decided and kind in _PARTING and (*pair, predicate) not in told:
                told.add((*pair, predicate))
                yield from _parted_by(reader, one, other, predicate)


def _parted_by(reader: Reader, one: int, other: int, predicate: str) -> Iterator[Contradiction]:
    """What keeps two apart: the values of a property, or classes where none is given."""
    a, b = reader.by_number(one), reader.by_number(other)
    if predicate:
        sides = [said for id_ in (a.id, b.id) for said in reader.statements_of(id_) if said.predicate == predicate]
        yield Contradiction(kind="functional", entity=a, other=b, predicate=predicate, sides=tuple(sides))
        return
    for pair in reader.traits.disjoint_pairs((*a.types, *b.types)):
        for mine, theirs in (pair, pair[::-1]):
            if mine in a.types and theirs in b.types:
                evidence = tuple(_said_to_be(reader, one, mine)), tuple(_said_to_be(reader, other, theirs))
                yield Contradiction(
                    kind="disjoint", entity=a, other=b, predicate="", classes=(mine, theirs), evidence=evidence
                )


def _said_to_be(reader: Reader, number: int, type_: str) -> Iterator[CollectionEvidence]:
    for atom in reader.session.run("atoms_of_entity", collection=reader.collection, entity=number):
        for row in reader.session.run("nodes_of_atom", collection=reader.collection, atom=atom[0]):
            if type_ in _TEXTS.decode(row[4]):
                yield from islice(reader.evidence(row[1], row[5]), _EVIDENCE)
