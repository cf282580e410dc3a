"""What the replies of a model say of a chunk: agreed on, placed in the text, and asserted by its words."""

from collections.abc import Callable, Sequence
from typing import Any

from sameas.extraction.extractors.prompted.assertion import Assertions
from sameas.extraction.extractors.prompted.reading import Read, ReplyReader, Thing
from sameas.extraction.extractors.prompted.replies import (
    EntityReply,
    JointReply,
    NamedEntity,
    RelationReply,
    SampledItem,
    agree,
    percent_of,
)
from sameas.extraction.extractors.prompted.settings import PromptSettings
from sameas.extraction.extractors.prompted.signatures import Menu
from sameas.extraction.graph.model import Claim, Rejection
from sameas.extraction.text.chunking import Chunk
from sameas.ontology.index import OntologyIndex


class Understanding:
    """Reads the replies about chunks for one ontology, as the settings say."""

    def __init__(self, index: OntologyIndex, settings: PromptSettings) -> None:
        self._settings = settings
        self._reader = ReplyReader(index)
        self._assertions = Assertions(index)

    def mentions(self, chunk: Chunk, menu: Menu, replies: Sequence[EntityReply]) -> Read:
        """What the answers agree on, with places in the text."""
        least = self._settings.minimum_agreement
        names = agree([_typed(reply.entities, menu) for reply in replies], minimum=least)
        values = agree([[SampledItem(_plain(value)) for value in reply.values] for reply in replies], minimum=least)
        return self._reader.mentions(
            chunk, names, [value.what for value in values if value.what], with_values=menu.takes_values
        )

    def claims(
        self, chunk: Chunk, menu: Menu, things: Sequence[Thing], replies: Sequence[RelationReply]
    ) -> tuple[tuple[Claim, ...], tuple[Rejection, ...]]:
        """The facts between things that the answers agree on and the text asserts, with places; and the others."""
        facts = self._agree([_stated(reply.relations, menu) for reply in replies])
        mentions = [place for thing in things for place in thing.places]
        return self._assertions.check(chunk, self._reader.claims(chunk, things, facts), mentions)

    def joint(self, chunk: Chunk, menu: Menu, replies: Sequence[JointReply]) -> tuple[Read, tuple[Claim, ...]]:
        """The names and the facts of answers that give both, as far as the text asserts them."""
        names = self._agree([_typed(reply.entities, menu) for reply in replies])
        facts = self._agree([_stated(reply.relations, menu, end=_plain) for reply in replies])
        read, claims = self._reader.joint(chunk, names, facts)
        kept, refused = self._assertions.check(chunk, claims, read.mentions)
        return Read(read.mentions, (*read.rejected, *refused)), kept

    def _agree(self, samples: list[list[SampledItem[Any]]]) -> list[Any]:
        return agree(samples, minimum=self._settings.minimum_agreement)


def _typed(entities: Sequence[NamedEntity], menu: Menu) -> list[SampledItem[tuple[str, str]]]:
    percent = percent_of(entities)
    return [SampledItem((_plain(one.name), menu.class_at(one.type)), percent(one)) for one in entities]


def _stated(
    relations: Sequence[Any], menu: Menu, *, end: Callable[[Any], Any] = lambda end: end
) -> list[SampledItem[Any]]:
    percent = percent_of(relations)
    return [
        SampledItem((end(one.subject), menu.property_at(one.property), end(one.object)), percent(one))
        for one in relations
    ]


def _plain(text: str) -> str:
    return " ".join(text.split())
