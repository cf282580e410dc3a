"""Where the lexicon may speak beside a learned model: of the properties that it reads well in the examples.

An ontology with good cues makes the lexicon right nearly always, one with bare labels nearly never; the examples tell
which. A property that they hardly show is judged by the others.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from sameas.extraction.extractors.lexicon.extractor import LexiconExtractor
from sameas.extraction.graph.model import Mention
from sameas.extraction.text.chunking import chunk_text
from sameas.identity.key import normalize_text
from sameas.ontology.focus import Focus
from sameas.ontology.index import OntologyIndex

if TYPE_CHECKING:
    from sameas.extraction.extractors.learning.examples import Example

# So much of what it states must be so in the examples; so many statements count as the others' say.
_MOSTLY: Final = 0.7
_OTHERS_SAY: Final = 2
# Fewer statements than this in all examples tell nothing.
_FEW: Final = 5


def trusted_properties(examples: Iterable[Example], index: OntologyIndex) -> list[str]:
    """The properties of an ontology that the lexicon can be trusted with, by what the examples say."""
    stated, right = asyncio.run(_judged(examples, index))
    if sum(stated.values()) < _FEW:
        return []
    usually = sum(right.values()) / sum(stated.values())
    return sorted(
        iri for iri in index.properties if (right[iri] + _OTHERS_SAY * usually) / (stated[iri] + _OTHERS_SAY) >= _MOSTLY
    )


async def _judged(examples: Iterable[Example], index: OntologyIndex) -> tuple[Counter[str], Counter[str]]:
    """How often the lexicon states each property in the examples, and how often they agree."""
    lexicon = LexiconExtractor(index)
    everything = Focus(classes=tuple(sorted(index.classes)), properties=tuple(sorted(index.properties)), is_whole=True)
    stated: Counter[str] = Counter()
    right: Counter[str] = Counter()
    for example in examples:
        for chunk in chunk_text(normalize_text(example.text)):
            mentions = await lexicon.extract_entities(chunk, everything)
            claims = await lexicon.extract_relations(chunk, mentions.items, everything)
            for claim in claims.items:
                stated[claim.predicate] += 1
                right[claim.predicate] += any(
                    triple.property == claim.predicate
                    and _is(claim.subject, triple.subject)
                    and _is(claim.object, triple.object)
                    for triple in example.triples
                )
    return stated, right


def _is(mention: Mention, name: str) -> bool:
    """Whether a mention stands for what an example names: the same words, or some of them."""
    written = name.replace("_", " ").casefold()
    return any(text and (text in written or written in text) for text in (mention.text.casefold(), mention.value))
