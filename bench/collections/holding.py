"""A collection in a temporary file, filled with generated documents."""

from collections.abc import Iterable
from pathlib import Path

from bench.collections.judging import Mention
from bench.collections.world import Written, ontology
from sameas.collections import Collection, Collections, Source, local_caller, open_tables, text_digest


def new_collection(folder: Path, name: str = "bench", url: str = "") -> Collection:
    tables = open_tables(url or f"sqlite:///{folder / 'collections.db'}")
    return Collections(tables).create(name, ontology=ontology(), caller=local_caller())


def put(collection: Collection, document: Written, *, version: int = 0) -> None:
    digest = text_digest(f"{document.name} {version}")
    collection.put_document(Source(name=document.name), digest=digest, said=document.graph)


def fill(collection: Collection, documents: Iterable[Written]) -> None:
    for document in documents:
        put(collection, document)


def found(collection: Collection) -> dict[Mention, int]:
    """Which thing each entity of each document was taken for."""
    with collection.reading() as reader:
        rows = reader.session.stream("resolved_nodes", collection=collection.number)
        return {(name, local_id): entity for name, local_id, entity in rows}
