"""Stage 4, entity resolution: from the mentions of all chunks to one entity for each thing."""

from collections.abc import Iterable, Iterator

from sameas.extraction.graph.model import Mention
from sameas.extraction.graph.resolution import Resolution, resolve
from sameas.extraction.pipeline.stages.entities import ChunkMentions
from sameas.llm.timeouts import StageName
from sameas.ontology.index import OntologyIndex


class ResolutionStage:
    """Resolves over the whole document, in the document's offsets; `found` and `starts` are walked twice."""

    name: StageName = "entity_resolution"

    def __init__(self, index: OntologyIndex) -> None:
        self._index = index

    def run(self, found: Iterable[ChunkMentions], *, starts: Iterable[int]) -> Resolution:
        return resolve(_in_document(found, starts), index=self._index, untyped=_untyped(found, starts))


def _in_document(found: Iterable[ChunkMentions], starts: Iterable[int]) -> Iterator[Mention]:
    for chunk, start in zip(found, starts, strict=True):
        for mention in chunk.mentions:
            if mention.kind != "literal":
                yield mention.shifted(start)


def _untyped(found: Iterable[ChunkMentions], starts: Iterable[int]) -> Iterator[Mention]:
    """The names that a chunk alone gave no class to; another chunk may have."""
    for chunk, start in zip(found, starts, strict=True):
        for one in chunk.rejected:
            if one.code == "no_type":
                yield Mention(one.start + start, one.end + start, one.subject)
