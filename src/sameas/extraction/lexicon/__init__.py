"""The extractor that works from an ontology's own words."""

from sameas.extraction.lexicon.extractor import LexiconExtractor

__all__ = ["LexiconExtractor"]
