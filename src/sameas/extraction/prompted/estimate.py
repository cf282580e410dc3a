"""What a run over a text will ask and cost, before anything is spent.

Rule: questions about names are written out and counted; those about relations are guessed from the names that the text
seems to hold, and written out where the memo knows the answer before them. What the memo knows is not counted. Replies
are guessed, and bounded by what they may have at most. Repairs and retries come on top of the guess, never of the bound
of a budget.
"""

from collections.abc import Iterable
from decimal import Decimal

import msgspec

from sameas.extraction.chunking import Chunk, iter_chunks
from sameas.extraction.document import normalized_pieces
from sameas.extraction.graph import Mention
from sameas.extraction.guard import Guard
from sameas.extraction.lexicon.dates import find_dates
from sameas.extraction.lexicon.names import find_names
from sameas.extraction.lexicon.quantities import find_quantities
from sameas.extraction.pipeline import PipelineSettings
from sameas.extraction.prompted.asking import question, repaired
from sameas.extraction.prompted.extractor import ModelExtractor
from sameas.extraction.prompted.reading import read_things
from sameas.extraction.prompted.replies import EntityReply, GroundingReply, JointReply, RelationReply
from sameas.llm.ledger import cost_of
from sameas.llm.memo import CallMemo
from sameas.llm.models import Ask, Reply, Usage
from sameas.llm.prices import Price
from sameas.llm.usage import count_input
from sameas.ontology.focus import Focus, Focuser
from sameas.ontology.index import OntologyIndex

# Tokens of JSON around a name, of a relation, and around a whole reply; measured on compact replies.
_AROUND_NAME, _RELATION, _AROUND = 9, 16, 12


class StageEstimate(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The calls of one stage; `known` ones cost nothing. `most_output_tokens` is what replies may have at most."""

    stage: str
    calls: int = 0
    known: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    most_output_tokens: int = 0

    def plus(self, other: "StageEstimate") -> "StageEstimate":
        return StageEstimate(
            stage=self.stage,
            calls=self.calls + other.calls,
            known=self.known + other.known,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            most_output_tokens=self.most_output_tokens + other.most_output_tokens,
        )


class Estimate(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a run will take, by stage; costs in US dollars, None where the price is not known."""

    model: str
    chunks: int
    stages: tuple[StageEstimate, ...]
    cost: Decimal | None
    most_cost: Decimal | None

    @property
    def total(self) -> StageEstimate:
        total = StageEstimate(stage="total")
        for stage in self.stages:
            total = total.plus(stage)
        return total


class Estimator:
    """Estimates for one ontology and one extractor."""

    def __init__(
        self,
        index: OntologyIndex,
        extractor: ModelExtractor,
        *,
        settings: PipelineSettings | None = None,
        memo: CallMemo | None = None,
    ) -> None:
        self._settings = settings or PipelineSettings()
        self._extractor = extractor
        self._focuser = Focuser(index, settings=self._settings.focus)
        self._guard = Guard(index)
        self._memo = memo

    async def estimate(self, text: str | Iterable[str]) -> Estimate:
        """The estimate for a text, whole or in pieces; no model is asked."""
        stages: dict[str, StageEstimate] = {}
        chunks = 0
        pieces = normalized_pieces((text,) if isinstance(text, str) else text)
        for chunk in iter_chunks(pieces, settings=self._settings.chunking):
            chunks += 1
            for one in await self._chunk(chunk, self._focuser.focus(chunk.text)):
                stages[one.stage] = stages[one.stage].plus(one) if one.stage in stages else one
        model = self._extractor.model
        found = tuple(stages.values())
        return Estimate(
            model=model.name,
            chunks=chunks,
            stages=found,
            cost=_cost(found, model.price, at_most=False),
            most_cost=_cost(found, model.price, at_most=True),
        )

    async def _chunk(self, chunk: Chunk, focus: Focus) -> list[StageEstimate]:
        extractor, settings = self._extractor, self._extractor.prompt_settings
        menu = extractor.menu(focus)
        if not menu.classes:
            return []
        guessed = _guessed(chunk, menu.classes[0])
        joint = settings.mode == "joint"
        names = sum(mention.kind != "literal" for mention in guessed)
        said = _AROUND + names * (_AROUND_NAME + 3) + joint * names * 2 * _RELATION
        kind: type[msgspec.Struct] = JointReply if joint else EntityReply
        messages = extractor.questions.entities(chunk, menu)
        asks = [question(messages, kind, settings=settings, sample=sample) for sample in range(settings.samples)]
        replies = [await self._known(ask, kind) for ask in asks]
        estimates = [self._stage("entity_extraction", asks, replies, said)]
        if not joint:
            mentions = guessed
            if all(reply is not None for reply in replies):
                # The answer is known, so the next question is known too.
                read = extractor.read_entities(chunk, menu, [reply.text for reply in replies if reply is not None])
                mentions = list(self._guard.mentions(chunk, read).kept)
            things = read_things(mentions)
            if menu.properties and len(things) > 1:
                messages = extractor.questions.relations(chunk, menu, things)
                asks = [
                    question(messages, RelationReply, settings=settings, sample=sample)
                    for sample in range(settings.samples)
                ]
                replies = [await self._known(ask, RelationReply) for ask in asks]
                estimates.append(self._stage("relation_extraction", asks, replies, _AROUND + len(things) * _RELATION))
        if extractor.has_second_model and names:
            ask = question(extractor.questions.grounding(chunk, ()), GroundingReply, settings=settings)
            estimates.append(self._stage("grounding", [ask], [None], _AROUND + names, more=names * _RELATION))
        return estimates

    def _stage(
        self, stage: str, asks: list[Ask], replies: list[Reply | None], said: int, *, more: int = 0
    ) -> StageEstimate:
        open_asks = [ask for ask, reply in zip(asks, replies, strict=True) if reply is None]
        count = self._extractor.model.count_tokens
        return StageEstimate(
            stage=stage,
            calls=len(open_asks),
            known=len(asks) - len(open_asks),
            input_tokens=sum(count_input(ask, count=count) + more for ask in open_asks),
            output_tokens=sum(min(said, ask.max_output_tokens) for ask in open_asks),
            most_output_tokens=sum(ask.max_output_tokens for ask in open_asks),
        )

    async def _known(self, ask: Ask, kind: type[msgspec.Struct]) -> Reply | None:
        """The reply that the memo has, or that to its repair."""
        if self._memo is None:
            return None
        reply = await self._memo.find(self._extractor.model.name, ask)
        second = None if reply is None else repaired(ask, reply, kind, settings=self._extractor.prompt_settings)
        return reply if second is None else await self._memo.find(self._extractor.model.name, second)


def _guessed(chunk: Chunk, iri: str) -> list[Mention]:
    """What looks like a name, a date or a number; good enough to count tokens."""
    text = chunk.text
    names = [
        Mention(shape.start, shape.end, text[shape.start : shape.end], types=(iri,))
        for shape in find_names(text, chunk.sentences)
    ]
    return [*names, *find_dates(text), *find_quantities(text)]


def _cost(stages: Iterable[StageEstimate], price: Price | None, *, at_most: bool) -> Decimal | None:
    total = Decimal(0)
    for one in stages:
        said = one.most_output_tokens if at_most else one.output_tokens
        cost = cost_of(Usage(one.input_tokens, said, reported=False), price)
        if cost is None:
            return None
        total += cost
    return total
