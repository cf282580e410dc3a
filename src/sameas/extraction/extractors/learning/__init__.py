"""The extractor that learns from examples: give it sentences with the facts they state, get a small model of
them.
"""

from sameas.extraction.extractors.learning.container import ContainerError
from sameas.extraction.extractors.learning.decoding import LearnedMention, LearnedTriple, Thresholds
from sameas.extraction.extractors.learning.examples import Example, ExamplesError, Triple, parse_examples, read_examples
from sameas.extraction.extractors.learning.model import LearnedModel
from sameas.extraction.extractors.learning.schema import Property, Schema, SchemaError, read_text2kgbench_schema

__all__ = [
    "ContainerError",
    "Example",
    "ExamplesError",
    "LearnedMention",
    "LearnedModel",
    "LearnedTriple",
    "Property",
    "Schema",
    "SchemaError",
    "Thresholds",
    "Triple",
    "parse_examples",
    "read_examples",
    "read_text2kgbench_schema",
]
