"""Collections: many documents, one ontology, one graph."""

from sameas.collections.collection import Collection, Source, text_digest
from sameas.collections.registry import Caller, Collections, collections_url, local_caller, open_tables

__all__ = [
    "Caller",
    "Collection",
    "Collections",
    "Source",
    "collections_url",
    "local_caller",
    "open_tables",
    "text_digest",
]
