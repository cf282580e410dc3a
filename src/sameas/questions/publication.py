"""What has to be sent to another database so that it holds a collection as it is now.

Rule: the other database says which revision it has, so a push that was broken off, or made twice, is made good by the
next one: everything that is sent replaces what was there of the same thing or document.
"""

import msgspec

from sameas.collections.collection import Collection
from sameas.collections.errors import DocumentNotFoundError, EntityNotFoundError
from sameas.collections.model import EntityInfo, Statement
from sameas.collections.views import Reader


class Pushed(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a push did."""

    before: int
    """The revision that was there; -1 where nothing was."""
    revision: int
    entities: int = 0
    documents: int = 0
    removed: int = 0


class Outgoing(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be sent: the ids of the things and documents that changed, or all of it. Then `documents` are those
    that ever were, because what is gone may be there still.
    """

    revision: int
    is_whole: bool
    entities: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()


def outgoing(collection: Collection, *, before: int) -> Outgoing:
    """What to send to a database that has this revision."""
    revision = collection.info().revision
    is_known = 0 <= before <= revision
    changes = collection.changes_since(before if is_known else -1)
    # Of what was erased the ids are not told.
    if changes.erased or not is_known:
        ever = collection.changes_since(-1).documents
        return Outgoing(revision=revision, is_whole=True, documents=tuple(sorted(ever)))
    documents = set(changes.documents)
    with collection.reading() as reader:
        for id_ in changes.entities:
            thing = current(reader, id_)
            if thing is not None:
                # A document's facts change with the things that they are about.
                for one in (*reader.statements_of(id_), *reader.statements_about(id_)):
                    documents.update(evidence.document for evidence in one.evidence)
    return Outgoing(
        revision=revision, is_whole=False, entities=tuple(sorted(changes.entities)), documents=tuple(sorted(documents))
    )


def current(reader: Reader, id_: str) -> EntityInfo | None:
    """A thing, if there is one of this id and it is still one of its own."""
    try:
        number, now, name = reader.resolve_id(id_)
    except EntityNotFoundError:
        return None
    return reader.entity_info(number, now, name) if now == id_ else None


def redirect(reader: Reader, id_: str) -> str:
    """The id that an id leads to, if that is another."""
    try:
        now = reader.resolve_id(id_)[1]
    except EntityNotFoundError:
        return ""
    return now if now != id_ else ""


def facts_of(reader: Reader, digest: str) -> list[Statement] | None:
    """What a document says; None where it is gone."""
    try:
        return reader.statements_in(digest)
    except DocumentNotFoundError:
        return None
