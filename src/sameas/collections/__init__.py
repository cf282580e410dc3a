"""Collections: many documents, one ontology, one graph."""

from sameas.collections.collection import LIST_PREFIX, Collection, Source, text_digest
from sameas.collections.registry import Caller, Collections, collections_url, local_caller, open_tables

__all__ = [
    "LIST_PREFIX",
    "Caller",
    "Collection",
    "Collections",
    "Source",
    "collections_url",
    "local_caller",
    "open_tables",
    "text_digest",
]
