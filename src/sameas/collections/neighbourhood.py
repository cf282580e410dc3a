"""A small part of a collection's graph to look at: where to begin, and what a thing is connected with.

Rule: never more than was asked for, however large the collection; what was left out is counted.
"""

from collections.abc import Iterable

from sameas.collections.collection import Collection
from sameas.collections.model import EntityInfo, Statement, Told
from sameas.collections.views import Reader

# Sentences of a fact that are brought along; the thing's own page has all of them.
_EVIDENCE = 5


class Neighbourhood(Told, frozen=True, kw_only=True):
    """Things and the statements between them. `opened` are the things whose statements were looked for, `left_out`
    counts those of their statements that are not here.
    """

    opened: tuple[str, ...] = ()
    entities: tuple[EntityInfo, ...] = ()
    statements: tuple[Statement, ...] = ()
    left_out: int = 0


def around(reader: Reader, ids: Iterable[str], *, limit: int) -> Neighbourhood:
    """What some things are connected with: of each the facts that most documents tell, up to a limit."""
    entities: dict[str, EntityInfo] = {}
    statements: dict[tuple[object, ...], Statement] = {}
    opened: list[str] = []
    left_out = 0
    for id_ in ids:
        _, now, _ = reader.resolve_id(id_)
        opened.append(now)
        entities[now] = reader.entity(now)
        found = [*reader.statements_of(now, evidence=_EVIDENCE), *reader.statements_about(now, evidence=_EVIDENCE)]
        found.sort(key=lambda one: (-one.documents, not one.object))
        left_out += max(0, len(found) - limit)
        for one in found[:limit]:
            statements[one.subject, one.predicate, one.object, one.value] = one
            for end in filter(None, (one.subject, one.object)):
                if end not in entities:
                    entities[end] = reader.entity(end)
    return Neighbourhood(
        opened=tuple(opened),
        entities=tuple(entities.values()),
        statements=tuple(statements.values()),
        left_out=left_out,
    )


def most_connected(collection: Collection, *, limit: int) -> list[str]:
    """The ids of the things that most claims begin or end with."""
    with collection.reading() as reader:
        rows = reader.session.run("most_connected", collection=collection.number, most=limit)
    return [row[1] for row in rows]
