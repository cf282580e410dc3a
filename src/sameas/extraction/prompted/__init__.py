"""Extraction by prompting a language model."""

from sameas.extraction.prompted.control import ModelControl
from sameas.extraction.prompted.extractor import ModelExtractor
from sameas.extraction.prompted.settings import PromptSettings

__all__ = ["ModelControl", "ModelExtractor", "PromptSettings"]
