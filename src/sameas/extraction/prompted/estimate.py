"""What a run over a text will ask and cost, before anything is spent.

Rule: questions about names are written out and counted; those about relations are guessed from the names that the text
seems to hold, and written out where the memo knows the answer before them. What the memo knows is not counted. Each
stage has the model that it asks, with its own counter, price and memory. Replies are guessed, and bounded by what they
may have at most. Repairs and retries come on top of the guess, never of the bound of a budget.
"""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Generic, NamedTuple, TypeVar

import msgspec

from sameas.extraction.chunking import Chunk, iter_chunks
from sameas.extraction.document import normalized_pieces
from sameas.extraction.graph import Claim, Mention
from sameas.extraction.grounding import Grounded, ground
from sameas.extraction.guard import Guard
from sameas.extraction.lexicon.dates import find_dates
from sameas.extraction.lexicon.names import find_names
from sameas.extraction.lexicon.quantities import find_quantities
from sameas.extraction.pipeline_settings import PipelineSettings
from sameas.extraction.prompted.asking import question, repaired
from sameas.extraction.prompted.extractor import ModelExtractor
from sameas.extraction.prompted.reading import read_things
from sameas.extraction.prompted.replies import EntityReply, GroundingReply, JointReply, RelationReply, read_reply
from sameas.extraction.prompted.signatures import Menu
from sameas.llm.ledger import cost_of
from sameas.llm.memo import CallMemo
from sameas.llm.models import Ask, Message, Model, Reply, Usage
from sameas.llm.usage import count_input
from sameas.ontology.focus import Focus, Focuser
from sameas.ontology.index import OntologyIndex

R = TypeVar("R", bound=msgspec.Struct)

# Tokens of JSON around a name, of a relation, and around a whole reply; measured on compact replies.
_AROUND_NAME, _RELATION, _AROUND = 9, 16, 12


class StageEstimate(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The calls of one stage; `known` ones cost nothing. `most_output_tokens` is what replies may have at most.

    Costs are in US dollars, None where the price of the model is not known.
    """

    stage: str
    model: str = ""
    calls: int = 0
    known: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    most_output_tokens: int = 0
    cost: Decimal | None = Decimal(0)
    most_cost: Decimal | None = Decimal(0)

    def plus(self, other: "StageEstimate") -> "StageEstimate":
        return StageEstimate(
            stage=self.stage,
            model=self.model,
            calls=self.calls + other.calls,
            known=self.known + other.known,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            most_output_tokens=self.most_output_tokens + other.most_output_tokens,
            cost=_sum(self.cost, other.cost),
            most_cost=_sum(self.most_cost, other.most_cost),
        )


class Estimate(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a run will take, by stage; costs in US dollars, None where the price is not known."""

    model: str
    chunks: int
    stages: tuple[StageEstimate, ...]
    cost: Decimal | None
    most_cost: Decimal | None

    @classmethod
    def of(cls, model: str, *, chunks: int, stages: tuple[StageEstimate, ...]) -> "Estimate":
        whole = cls(model=model, chunks=chunks, stages=stages, cost=None, most_cost=None)
        total = whole.total
        return msgspec.structs.replace(whole, cost=total.cost, most_cost=total.most_cost)

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
        return Estimate.of(self._extractor.model.name, chunks=chunks, stages=tuple(stages.values()))

    async def _chunk(self, chunk: Chunk, focus: Focus) -> list[StageEstimate]:
        menu = self._extractor.menu(focus)
        if not menu.classes:
            return []
        guessed = _guessed(chunk, menu.classes[0])
        names = _names(guessed)
        if self._extractor.prompt_settings.mode == "joint":
            estimates, claims = await self._joint(chunk, menu, names)
        else:
            estimates, claims = await self._two_stages(chunk, menu, guessed)
        second = self._extractor.second_model
        if second is not None:
            estimates.extend(await self._checks(second, chunk, claims, names))
        return estimates

    async def _joint(
        self, chunk: Chunk, menu: Menu, names: int
    ) -> tuple[list[StageEstimate], tuple[Claim, ...] | None]:
        """The estimate, and the claims where they are known already."""
        messages = self._extractor.questions.entities(chunk, menu)
        said = _AROUND + names * (_AROUND_NAME + 3 + 2 * _RELATION)
        entities = await self._asked("entity_extraction", messages, JointReply, said)
        if entities.replies is None:
            return [entities.estimate], None
        read, offered = self._extractor.joint(chunk, menu, entities.replies)
        mentions = self._guard.mentions(chunk, read.mentions).kept
        return [entities.estimate], self._guard.claims(chunk, offered, mentions=mentions).kept

    async def _two_stages(
        self, chunk: Chunk, menu: Menu, guessed: list[Mention]
    ) -> tuple[list[StageEstimate], tuple[Claim, ...] | None]:
        extractor = self._extractor
        messages = extractor.questions.entities(chunk, menu)
        said = _AROUND + _names(guessed) * (_AROUND_NAME + 3)
        entities = await self._asked("entity_extraction", messages, EntityReply, said)
        mentions: Sequence[Mention] = guessed
        if entities.replies is not None:
            # The answer is known, so the next question is known too.
            read = extractor.mentions(chunk, menu, entities.replies)
            mentions = self._guard.mentions(chunk, read.mentions).kept
        things = read_things(mentions)
        if not menu.properties or len(things) < 2 or not _names(mentions):
            return [entities.estimate], None if entities.replies is None else ()
        messages = extractor.questions.relations(chunk, menu, things)
        relations = await self._asked("relation_extraction", messages, RelationReply, _AROUND + len(things) * _RELATION)
        estimates = [entities.estimate, relations.estimate]
        if entities.replies is None or relations.replies is None:
            return estimates, None
        offered = extractor.claims(chunk, menu, things, relations.replies)
        return estimates, self._guard.claims(chunk, offered, mentions=mentions).kept

    async def _checks(
        self, second: Model, chunk: Chunk, claims: tuple[Claim, ...] | None, names: int
    ) -> list[StageEstimate]:
        """What the second model is asked about the claims, or about as many as names let expect."""
        settings, more = self._extractor.prompt_settings.of_second, 0
        if claims is None:
            claims, more = (), names * _RELATION
        else:
            grounded = (ground(chunk, claim, settings=self._settings.grounding) for claim in claims)
            claims = tuple(one.claim for one in grounded if isinstance(one, Grounded))
            names = len(claims)
        if not names:
            return []
        ask = question(self._extractor.questions.grounding(chunk, claims), GroundingReply, settings=settings)
        known = None if more else await self._known(second, ask, GroundingReply)
        return [_stage("grounding", second, [ask], [known], _AROUND + names, more=more)]

    async def _asked(self, stage: str, messages: tuple[Message, ...], kind: type[R], said: int) -> "_Asked[R]":
        settings, model = self._extractor.prompt_settings, self._extractor.model
        asks = [question(messages, kind, settings=settings, sample=sample) for sample in range(settings.samples)]
        known = [await self._known(model, ask, kind) for ask in asks]
        texts = [reply.text for reply in known if reply is not None]
        replies = [read_reply(text, kind) for text in texts] if len(texts) == len(asks) else None
        return _Asked(_stage(stage, model, asks, known, said), replies)

    async def _known(self, model: Model, ask: Ask, kind: type[R]) -> Reply | None:
        """The usable reply that the memo has to a question, or to its repair."""
        if self._memo is None:
            return None
        reply = await self._memo.find(model.name, ask)
        second = None if reply is None else repaired(ask, reply, kind, settings=self._extractor.prompt_settings)
        return reply if second is None else await self._memo.find(model.name, second)


class _Asked(NamedTuple, Generic[R]):
    """A stage of a chunk, and its answers where all of them are known."""

    estimate: StageEstimate
    replies: list[R] | None


def _stage(
    stage: str, model: Model, asks: list[Ask], replies: list[Reply | None], said: int, *, more: int = 0
) -> StageEstimate:
    open_asks = [ask for ask, reply in zip(asks, replies, strict=True) if reply is None]
    goes_in = sum(count_input(ask, count=model.count_tokens) + more for ask in open_asks)
    comes_out = sum(min(said, ask.max_output_tokens) for ask in open_asks)
    at_most = sum(ask.max_output_tokens for ask in open_asks)
    return StageEstimate(
        stage=stage,
        model=model.name,
        calls=len(open_asks),
        known=len(asks) - len(open_asks),
        input_tokens=goes_in,
        output_tokens=comes_out,
        most_output_tokens=at_most,
        cost=cost_of(Usage(goes_in, comes_out, reported=False), model.price),
        most_cost=cost_of(Usage(goes_in, at_most, reported=False), model.price),
    )


def _names(mentions: Iterable[Mention]) -> int:
    return sum(mention.kind != "literal" for mention in mentions)


def _guessed(chunk: Chunk, iri: str) -> list[Mention]:
    """What looks like a name, a date or a number; good enough to count tokens."""
    text = chunk.text
    names = [
        Mention(shape.start, shape.end, text[shape.start : shape.end], types=(iri,))
        for shape in find_names(text, chunk.sentences)
    ]
    return [*names, *find_dates(text), *find_quantities(text)]


def _sum(one: Decimal | None, other: Decimal | None) -> Decimal | None:
    return None if one is None or other is None else one + other
