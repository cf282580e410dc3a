"""Extraction by prompting a language model."""

from sameas.extraction.extractors.prompted.control import ModelControl
from sameas.extraction.extractors.prompted.extractor import ModelExtractor
from sameas.extraction.extractors.prompted.settings import PromptSettings

__all__ = ["ModelControl", "ModelExtractor", "PromptSettings"]
