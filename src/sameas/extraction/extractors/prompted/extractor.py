"""The extractor that asks a language model, under control.

Rule: it is never trusted. It shows a model one chunk and the part of the ontology that the chunk can be about, reads
what comes back as data, and offers it to the guard. Its identity holds the model's name, the prompts, the examples
and every setting that can change an answer; limits, budgets and memos are not in it. `bind` gives a run its own
accounts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from sameas.extraction.extractors.contract import Found, RunLink
from sameas.extraction.extractors.prompted.addressing import NOTE, addressed
from sameas.extraction.extractors.prompted.agreement import StatedFact, agree
from sameas.extraction.extractors.prompted.asking import Asker
from sameas.extraction.extractors.prompted.assertion import ASSERTION_VERSION, Assertions
from sameas.extraction.extractors.prompted.control import ModelControl
from sameas.extraction.extractors.prompted.examples import ExampleBook
from sameas.extraction.extractors.prompted.prompt import prompt
from sameas.extraction.extractors.prompted.questions import Questions
from sameas.extraction.extractors.prompted.reading import Read, ReplyReader, Thing, read_things
from sameas.extraction.extractors.prompted.replies import (
    EntityReply,
    GroundingReply,
    JointReply,
    NamedEntity,
    RelationReply,
    percent_of,
)
from sameas.extraction.extractors.prompted.settings import PromptSettings
from sameas.extraction.extractors.prompted.signatures import Menu, Signatures
from sameas.extraction.extractors.usage import joined
from sameas.extraction.graph.model import Claim, Mention, Rejection
from sameas.extraction.text.chunking import Chunk
from sameas.llm.ledger import UsageRow
from sameas.llm.memo import CallMemo
from sameas.llm.models import Model
from sameas.llm.supervisor import RequestSupervisor
from sameas.llm.usage import Count
from sameas.ontology.focus import Focus
from sameas.ontology.index import OntologyIndex

if TYPE_CHECKING:
    from sameas.extraction.extractors.learning.examples import Example

VERSION = "2"


class ModelExtractor:
    """Asks a model about chunks. Made once for an ontology, bound for each run."""

    def __init__(
        self,
        index: OntologyIndex,
        model: Model,
        *,
        control: ModelControl,
        settings: PromptSettings | None = None,
        examples: Sequence[Example] = (),
        grounding_model: Model | None = None,
    ) -> None:
        self._index = index
        self._model = model
        self._control = control
        self._settings = settings or PromptSettings()
        self._book = ExampleBook(examples, index)
        self._signatures = Signatures(index)
        self._questions = Questions(self._signatures, examples=self._book, settings=self._settings)
        self._reader = ReplyReader(index)
        self._assertions = Assertions(index)
        self._grounding_model = grounding_model

    @property
    def name(self) -> str:
        return f"model:{self._model.name}"

    @property
    def version(self) -> str:
        return VERSION

    @property
    def memo(self) -> CallMemo | None:
        """What remembers the calls that were made."""
        return self._control.memo

    @property
    def settings(self) -> Mapping[str, Any]:
        return prompt_identity(
            self._model.name,
            settings=self._settings,
            versions=self._questions.versions,
            examples=self._book.digest,
            grounding_model=None if self._grounding_model is None else self._grounding_model.name,
        )

    @property
    def model(self) -> Model:
        return self._model

    @property
    def prompt_settings(self) -> PromptSettings:
        return self._settings

    @property
    def questions(self) -> Questions:
        return self._questions

    @property
    def tries(self) -> int:
        """How often a call is made at most, before it has failed."""
        return self._control.retries + 1

    def longest_label(self, iris: Iterable[str], count: Count) -> int:
        """The tokens of the longest of these terms' names."""
        return max((count(self._signatures.label(iri)) for iri in iris), default=0)

    @property
    def second_model(self) -> Model | None:
        return self._grounding_model

    def menu(self, focus: Focus) -> Menu:
        return self._signatures.menu(focus)

    def mentions(self, chunk: Chunk, menu: Menu, replies: Sequence[EntityReply]) -> Read:
        """What the answers agree on, with places in the text."""
        least = self._settings.minimum_agreement
        names = agree([_typed(reply.entities, menu) for reply in replies], minimum=least)
        values = agree([[StatedFact(_plain(value)) for value in reply.values] for reply in replies], minimum=least)
        return self._reader.mentions(
            chunk, names, [value.what for value in values if value.what], with_values=menu.takes_values
        )

    def claims(
        self, chunk: Chunk, menu: Menu, things: Sequence[Thing], replies: Sequence[RelationReply]
    ) -> tuple[tuple[Claim, ...], tuple[Rejection, ...]]:
        """The facts between things that the answers agree on and the text asserts, with places; and the others."""
        facts = self._agree(
            [
                [
                    StatedFact((one.subject, menu.property_at(one.property), one.object), percent(one))
                    for one in reply.relations
                ]
                for reply in replies
                for percent in (percent_of(reply.relations),)
            ]
        )
        mentions = [place for thing in things for place in thing.places]
        return self._assertions.check(chunk, self._reader.claims(chunk, things, facts), mentions)

    def joint(self, chunk: Chunk, menu: Menu, replies: Sequence[JointReply]) -> tuple[Read, tuple[Claim, ...]]:
        """The names and the facts of answers that give both, as far as the text asserts them."""
        names = self._agree([_typed(reply.entities, menu) for reply in replies])
        facts = self._agree(
            [
                [
                    StatedFact((_plain(one.subject), menu.property_at(one.property), _plain(one.object)), percent(one))
                    for one in reply.relations
                ]
                for reply in replies
                for percent in (percent_of(reply.relations),)
            ]
        )
        read, claims = self._reader.joint(chunk, names, facts)
        kept, refused = self._assertions.check(chunk, claims, read.mentions)
        return Read(read.mentions, (*read.rejected, *refused)), kept

    def _agree(self, samples: list[list[StatedFact[Any]]]) -> list[Any]:
        return agree(samples, minimum=self._settings.minimum_agreement)

    def bind(self, run: RunLink) -> RunningExtractor:
        """The extractor with a budget, accounts and a listener of its own."""
        control = self._control
        budget = control.budget(
            self._settings,
            chunks=run.chunks,
            with_second=self._grounding_model is not None,
            spent=run.spent,
            on_signal=run.on_signal,
        )
        asked = (
            (self._model, control.limiter),
            (self._grounding_model, control.second_limiter or control.limiter),
        )
        supervisors = [
            RequestSupervisor(
                model,
                limiter=limiter,
                budget=budget,
                memo=control.memo,
                on_signal=run.on_signal,
                run_id=run.key,
                retries=control.retries,
                backoff=control.backoff,
                attempt_seconds=control.attempt_seconds,
                lingering=control.lingering,
                on_spent=run.on_spent,
                at_once=None if run.concurrency is None else run.concurrency * self._settings.samples,
            )
            for model, limiter in asked
            if model is not None
        ]
        return RunningExtractor(self, supervisors)

    async def extract_entities(self, chunk: Chunk, focus: Focus) -> Found[Mention]:
        """Without a run: with a budget for this chunk alone."""
        return await self._alone(chunk).extract_entities(chunk, focus)

    async def extract_relations(self, chunk: Chunk, mentions: Sequence[Mention], focus: Focus) -> Found[Claim]:
        return await self._alone(chunk).extract_relations(chunk, mentions, focus)

    def _alone(self, chunk: Chunk) -> RunningExtractor:
        return self.bind(RunLink(key=chunk.digest, chunks=1, on_signal=lambda _: None))


class RunningExtractor:
    """The extractor at work for one run."""

    def __init__(self, owner: ModelExtractor, supervisors: Sequence[RequestSupervisor]) -> None:
        self._owner = owner
        self._settings = owner._settings
        self._questions = owner._questions
        self._supervisors = supervisors
        self._asker = Asker(supervisors[0], self._settings)
        # Without the second model there is a graph all the same.
        unneeded = frozenset({"unreachable"})
        self._second = (
            Asker(supervisors[-1], self._settings.of_second, passing=unneeded) if len(supervisors) > 1 else None
        )

    @property
    def name(self) -> str:
        return self._owner.name

    @property
    def version(self) -> str:
        return self._owner.version

    @property
    def settings(self) -> Mapping[str, Any]:
        return self._owner.settings

    @property
    def relates(self) -> bool:
        return self._settings.mode != "joint"

    @property
    def verifies(self) -> bool:
        return self._second is not None

    async def extract_entities(self, chunk: Chunk, focus: Focus) -> Found[Mention]:
        """The names of the chunk; in joint mode its claims too. A chunk that is about nothing asks nobody."""
        menu = self._owner.menu(focus)
        if not menu.classes:
            return Found()
        messages = self._questions.entities(chunk, menu)
        if self._settings.mode == "joint":
            return await self._joint(chunk, menu, messages)
        replies = await self._asker.samples("entity_extraction", messages, EntityReply)
        read = self._owner.mentions(chunk, menu, replies)
        return Found(read.mentions, _notes(chunk), rejected=read.rejected)

    async def extract_relations(self, chunk: Chunk, mentions: Sequence[Mention], focus: Focus) -> Found[Claim]:
        """The claims between the mentions; nothing is asked where there is nothing to relate."""
        menu = self._owner.menu(focus)
        things = read_things(mentions)
        names = sum(thing.mention.kind != "literal" for thing in things)
        if self._settings.mode == "joint" or not menu.properties or not names or len(things) == 1:
            return Found()
        messages = self._questions.relations(chunk, menu, things)
        replies = await self._asker.samples("relation_extraction", messages, RelationReply)
        claims, refused = self._owner.claims(chunk, menu, things, replies)
        return Found(claims, rejected=refused)

    async def verify(self, chunk: Chunk, claims: Sequence[Claim]) -> tuple[bool, ...]:
        """What the second model says of each claim; all stand where there is none."""
        if self._second is None or not claims:
            return (True,) * len(claims)
        messages = self._questions.grounding(chunk, claims)
        reply = await self._second.answer("grounding", messages, GroundingReply)
        supported = set(reply.supported)
        return tuple(number in supported for number in range(1, len(claims) + 1))

    def usage(self) -> tuple[UsageRow, ...]:
        """What was spent and saved, by stage and model."""
        return joined(*(supervisor.usage.rows for supervisor in self._supervisors))

    async def _joint(self, chunk: Chunk, menu: Menu, messages: Any) -> Found[Mention]:
        replies = await self._asker.samples("entity_extraction", messages, JointReply)
        read, claims = self._owner.joint(chunk, menu, replies)
        return Found(read.mentions, _notes(chunk), claims=claims, rejected=read.rejected)


def prompt_identity(
    model: str,
    *,
    settings: PromptSettings,
    versions: Mapping[str, str],
    examples: str,
    grounding_model: str | None,
) -> dict[str, Any]:
    """What of an extractor by a model goes into the key, as JSON values."""
    identity: dict[str, Any] = {
        "model": model,
        "prompts": dict(versions),
        "example_book": examples,
        "assertion": ASSERTION_VERSION,
        **msgspec.to_builtins(settings),
    }
    if settings.effort is None:
        # Keys from before there was a choice stay what they were.
        del identity["effort"]
    if grounding_model is not None:
        identity["grounding_model"] = grounding_model
        identity["prompts"]["grounding"] = prompt("grounding").identity
    return identity


def _typed(entities: Sequence[NamedEntity], menu: Menu) -> list[StatedFact[tuple[str, str]]]:
    percent = percent_of(entities)
    return [StatedFact((_plain(one.name), menu.class_at(one.type)), percent(one)) for one in entities]


def _notes(chunk: Chunk) -> tuple[str, ...]:
    return (NOTE,) if addressed(chunk.text, chunk.sentences) else ()


def _plain(text: str) -> str:
    return " ".join(text.split())
