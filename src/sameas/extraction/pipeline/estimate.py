"""What a run over a text will ask and cost, before anything is spent.

Rule: questions about names are written out and counted; those about relations are guessed from the names that the text
seems to hold, and written out where the memo knows the answer before them. What the memo knows is not counted. Each
stage has the model that it asks, with its own counter, price and memory. Beside the guess stands a bound: every
question that may be asked, as often as it may be tried, each reply as long as allowed and each repaired.
"""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Generic, NamedTuple, TypeVar

import msgspec

from sameas.extraction.extractors.lexicon.dates import find_dates
from sameas.extraction.extractors.lexicon.names import find_names
from sameas.extraction.extractors.lexicon.quantities import find_quantities
from sameas.extraction.extractors.prompted.asking import question, repaired
from sameas.extraction.extractors.prompted.extractor import ModelExtractor
from sameas.extraction.extractors.prompted.reading import read_things
from sameas.extraction.extractors.prompted.replies import (
    EntityReply,
    GroundingReply,
    JointReply,
    RelationReply,
    read_reply,
)
from sameas.extraction.extractors.prompted.settings import PromptSettings
from sameas.extraction.extractors.prompted.signatures import Menu
from sameas.extraction.graph.grounding import Grounded, ground
from sameas.extraction.graph.guard import Guard
from sameas.extraction.graph.model import Claim, Mention
from sameas.extraction.pipeline.settings import PipelineSettings
from sameas.extraction.text.chunking import Chunk, iter_chunks
from sameas.extraction.text.document import normalized_pieces
from sameas.llm.ledger import cost_of, most_cost_of
from sameas.llm.memo import CallMemo
from sameas.llm.models import Ask, Message, Model, Reply, Usage
from sameas.llm.supervisor import AROUND_REPAIR
from sameas.llm.tokens import count_input, counter_of_most, most_input
from sameas.ontology.focus import Focus, Focuser
from sameas.ontology.index import OntologyIndex

R = TypeVar("R", bound=msgspec.Struct)

# Tokens of JSON around a name, of a relation, and around a whole reply; measured on compact replies.
_AROUND_NAME, _RELATION, _AROUND = 9, 16, 12
# The least that a name, and a relation, take of a reply, and the most that a thing's line adds to its name and class.
_LEAST_NAME, _LEAST_RELATION, _LINE = 7, 12, 6
# A name that is as long as a sentence is refused before it can be part of a fact.
_LONGEST_NAME = 24


class StageEstimate(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The calls of one stage; `known` ones cost nothing. What begins with `most` is a bound, repairs and retries
    included.

    Costs are in US dollars, None where the price of the model is not known.
    """

    stage: str
    model: str = ""
    calls: int = 0
    known: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    most_calls: int = 0
    most_input_tokens: int = 0
    most_output_tokens: int = 0
    cost: Decimal | None = Decimal(0)
    most_cost: Decimal | None = Decimal(0)

    def bounded(self, most: "_Most", model: Model) -> "StageEstimate":
        """The same with a bound."""
        return msgspec.structs.replace(
            self,
            most_calls=most.calls,
            most_input_tokens=most.input_tokens,
            most_output_tokens=most.output_tokens,
            most_cost=most_cost_of(most.input_tokens, most.output_tokens, model.price),
        )

    def plus(self, other: "StageEstimate") -> "StageEstimate":
        return StageEstimate(
            stage=self.stage,
            model=self.model,
            calls=self.calls + other.calls,
            known=self.known + other.known,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            most_calls=self.most_calls + other.most_calls,
            most_input_tokens=self.most_input_tokens + other.most_input_tokens,
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

    @classmethod
    def together(cls, estimates: Sequence["Estimate"]) -> "Estimate":
        """That of several documents with one model."""
        stages: dict[tuple[str, str], StageEstimate] = {}
        for stage in (stage for estimate in estimates for stage in estimate.stages):
            key = stage.stage, stage.model
            stages[key] = stages[key].plus(stage) if key in stages else stage
        chunks = sum(estimate.chunks for estimate in estimates)
        return cls.of(estimates[0].model, chunks=chunks, stages=tuple(stages.values()))

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
            estimates.extend(await self._checks(second, chunk, menu, claims, names))
        return estimates

    async def _joint(
        self, chunk: Chunk, menu: Menu, names: int
    ) -> tuple[list[StageEstimate], tuple[Claim, ...] | None]:
        """The estimate, and the claims where they are known already."""
        messages = self._extractor.questions.entities(chunk, menu)
        reply_tokens = _AROUND + names * (_AROUND_NAME + 3 + 2 * _RELATION)
        entities = await self._asked("entity_extraction", messages, JointReply, reply_tokens)
        if entities.replies is None:
            return [entities.estimate], None
        read, offered = self._extractor.understanding.joint(chunk, menu, entities.replies)
        mentions = self._guard.mentions(chunk, read.mentions).kept
        return [entities.estimate], self._guard.claims(chunk, offered, mentions=mentions).kept

    async def _two_stages(
        self, chunk: Chunk, menu: Menu, guessed: list[Mention]
    ) -> tuple[list[StageEstimate], tuple[Claim, ...] | None]:
        extractor = self._extractor
        messages = extractor.questions.entities(chunk, menu)
        reply_tokens = _AROUND + _names(guessed) * (_AROUND_NAME + 3)
        entities = await self._asked("entity_extraction", messages, EntityReply, reply_tokens)
        mentions: Sequence[Mention] = guessed
        if entities.replies is not None:
            # The answer is known, so the next question is known too.
            read = extractor.understanding.mentions(chunk, menu, entities.replies)
            mentions = self._guard.mentions(chunk, read.mentions).kept
        things = read_things(mentions)
        may_relate = bool(menu.properties) and entities.replies is None
        will_relate = bool(menu.properties) and len(things) >= 2 and _names(mentions) > 0
        if not (may_relate or will_relate):
            return [entities.estimate], None if entities.replies is None else ()
        messages = extractor.questions.relations(chunk, menu, things if will_relate else [])
        reply_tokens = _AROUND + len(things) * _RELATION
        relations = await self._asked(
            "relation_extraction", messages, RelationReply, reply_tokens, is_likely=will_relate
        )
        if may_relate:
            bare = extractor.questions.relations(chunk, menu, [])
            most = self._most(RelationReply, bare, more=self._most_things(chunk, menu))
            relations = _Asked(relations.estimate.bounded(most, extractor.model), None)
        estimates = [entities.estimate, relations.estimate]
        if entities.replies is None or relations.replies is None:
            return estimates, None
        offered, _ = extractor.understanding.claims(chunk, menu, things, relations.replies)
        return estimates, self._guard.claims(chunk, offered, mentions=mentions).kept

    def _most(self, kind: type[R], messages: tuple[Message, ...], *, more: int) -> "_Most":
        """The bound of a question whose words are not known: these, and so many tokens more."""
        settings, model = self._extractor.prompt_settings, self._extractor.model
        ask = question(messages, kind, settings=settings)
        one = _most_of(ask, model, tries=self._extractor.tries, settings=settings, more=more)
        return one.times(settings.samples)

    def _most_things(self, chunk: Chunk, menu: Menu) -> int:
        """The tokens of all things that a chunk can hold: places do not overlap, and a reply has only so much room."""
        count = counter_of_most(self._extractor.model)
        named = self._most_stated(_LEAST_NAME)
        return (_LINE + 2) * count(chunk.text) + named * self._extractor.longest_label(menu.classes, count)

    def _most_stated(self, least: int) -> int:
        """How much replies can state that take so many tokens for each; several samples agree on it."""
        settings = self._extractor.prompt_settings
        once = settings.repair_output_tokens // least
        return once if settings.samples == 1 else int(once / settings.minimum_agreement)

    async def _checks(
        self, second: Model, chunk: Chunk, menu: Menu, claims: tuple[Claim, ...] | None, names: int
    ) -> list[StageEstimate]:
        """What the second model is asked about the claims, or about as many as names let expect."""
        extractor = self._extractor
        settings = extractor.prompt_settings.of_second
        if claims is None:
            ask = question(extractor.questions.grounding(chunk, ()), GroundingReply, settings=settings)
            label = extractor.longest_label(menu.properties, counter_of_most(second))
            lines = self._most_stated(_LEAST_RELATION)
            statement_tokens = lines * (_LINE + label + 2 * _LONGEST_NAME)
            most = _most_of(ask, second, tries=extractor.tries, settings=settings, more=statement_tokens)
            asks = [ask] if names else []
            return [
                _stage("grounding", second, asks, [None] * len(asks), _AROUND + names, most, more=names * _RELATION)
            ]
        grounded = (ground(chunk, claim, settings=self._settings.grounding) for claim in claims)
        claims = tuple(one.claim for one in grounded if isinstance(one, Grounded))
        if not claims:
            return []
        ask = question(extractor.questions.grounding(chunk, claims), GroundingReply, settings=settings)
        known = await self._known(second, ask, GroundingReply)
        most = _most_of(ask, second, tries=extractor.tries, settings=settings) if known is None else _Most()
        return [_stage("grounding", second, [ask], [known], _AROUND + len(claims), most)]

    async def _asked(
        self, stage: str, messages: tuple[Message, ...], kind: type[R], reply_tokens: int, *, is_likely: bool = True
    ) -> "_Asked[R]":
        settings, model = self._extractor.prompt_settings, self._extractor.model
        if not is_likely:
            return _Asked(StageEstimate(stage=stage, model=model.name), None)
        asks = [question(messages, kind, settings=settings, sample=sample) for sample in range(settings.samples)]
        known = [await self._known(model, ask, kind) for ask in asks]
        texts = [reply.text for reply in known if reply is not None]
        replies = [read_reply(text, kind) for text in texts] if len(texts) == len(asks) else None
        open_asks = [ask for ask, reply in zip(asks, known, strict=True) if reply is None]
        most = _Most()
        for ask in open_asks:
            most = most.plus(_most_of(ask, model, tries=self._extractor.tries, settings=settings))
        return _Asked(_stage(stage, model, asks, known, reply_tokens, most), replies)

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


class _Most(NamedTuple):
    """What questions take at most."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    def plus(self, other: "_Most") -> "_Most":
        return _Most(*(one + more for one, more in zip(self, other, strict=True)))

    def times(self, count: int) -> "_Most":
        return _Most(*(count * one for one in self))


def _most_of(ask: Ask, model: Model, *, tries: int, settings: PromptSettings, more: int = 0) -> _Most:
    """A question and its repair, both tried as often as they may fail, and each time answered in full."""
    goes_in = most_input(ask, model) + more
    # A repair shows the reply again and says what is wrong with it.
    again = goes_in + ask.max_output_tokens + AROUND_REPAIR
    comes_out = ask.max_output_tokens + settings.repair_output_tokens
    return _Most(2 * tries, tries * (goes_in + again), tries * comes_out)


def _stage(
    stage: str,
    model: Model,
    asks: list[Ask],
    replies: Sequence[Reply | None],
    reply_tokens: int,
    most: _Most,
    *,
    more: int = 0,
) -> StageEstimate:
    open_asks = [ask for ask, reply in zip(asks, replies, strict=True) if reply is None]
    goes_in = sum(count_input(ask, count=model.count_tokens) + more for ask in open_asks)
    comes_out = sum(min(reply_tokens, ask.max_output_tokens) for ask in open_asks)
    return StageEstimate(
        stage=stage,
        model=model.name,
        calls=len(open_asks),
        known=len(asks) - len(open_asks),
        input_tokens=goes_in,
        output_tokens=comes_out,
        cost=cost_of(Usage(goes_in, comes_out, reported=False), model.price),
    ).bounded(most, model)


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
