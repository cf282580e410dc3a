"""The extractor that works from an ontology's own words."""

from sameas.extraction.extractors.lexicon.extractor import LexiconExtractor

__all__ = ["LexiconExtractor"]
