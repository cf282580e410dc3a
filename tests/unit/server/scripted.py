"""An extractor that finds the names it is told to, wherever they stand, one inside the other too."""

from collections.abc import Mapping, Sequence
from typing import Any

from sameas.extraction.extractors.contract import Found
from sameas.extraction.graph.model import Claim, Mention
from sameas.extraction.text.chunking import Chunk
from sameas.extraction.text.document import Span
from sameas.ontology.focus import Focus

COMPANY = "https://sameas.dev/example/company#"


class Scripted:
    """Names with their classes, and facts between names that stand in one chunk."""

    name = "scripted"
    settings: Mapping[str, Any] = {}

    def __init__(
        self, names: Mapping[str, str], facts: Sequence[tuple[str, str, str, float]], version: str = "1"
    ) -> None:
        self._names = names
        self._facts = facts
        self.version = version

    async def extract_entities(self, chunk: Chunk, focus: Focus) -> Found[Mention]:
        found = []
        for name, kind in self._names.items():
            start = chunk.text.find(name)
            while start >= 0:
                found.append(Mention(start, start + len(name), name, types=(COMPANY + kind,), confidence=0.9))
                start = chunk.text.find(name, start + 1)
        return Found(tuple(found))

    async def extract_relations(self, chunk: Chunk, mentions: Sequence[Mention], focus: Focus) -> Found[Claim]:
        at: dict[str, list[Mention]] = {}
        for mention in mentions:
            at.setdefault(mention.text, []).append(mention)
        claims = []
        for subject, predicate, target, confidence in self._facts:
            for one in at.get(subject, []):
                near = min(at.get(target, []), key=lambda other: abs(other.start - one.start), default=None)
                if near is not None:
                    places = sorted((one.span, near.span))
                    evidence = Span(places[0].start, max(one.end, near.end))
                    claims.append(Claim(one, COMPANY + predicate, near, evidence, confidence=confidence))
                    break
        return Found(tuple(claims))


def scripted_models(**by_name: Scripted) -> Any:
    """What `open_entry(models=...)` takes: a scripted extractor for each name of a model."""
    return lambda wish: by_name[wish.params.named_model]
