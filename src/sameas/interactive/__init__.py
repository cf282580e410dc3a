"""sameas from Python and in a notebook: documents in, one object out that can be looked at."""

from sameas.interactive.collection import OpenCollection, open_collection
from sameas.interactive.extraction import aextract, extract
from sameas.interactive.findings import FoundEntity, FoundRelation, Place, Refusal
from sameas.interactive.result import DocumentResult, Result

__all__ = [
    "DocumentResult",
    "FoundEntity",
    "FoundRelation",
    "OpenCollection",
    "Place",
    "Refusal",
    "Result",
    "aextract",
    "extract",
    "open_collection",
]
