"""The extractor that asks a language model, under control.

Rule: it is never trusted. It shows a model one chunk and the part of the ontology that the chunk can be about, reads
what comes back as data, and offers it to the guard. Its identity holds the model's name, the prompts, the examples
and every setting that can change an answer; limits, budgets and memos are not in it. `bind` gives a run its own
accounts.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from sameas.extraction.chunking import Chunk
from sameas.extraction.extractor import Found, RunLink
from sameas.extraction.graph import Claim, Mention
from sameas.extraction.learning.examples import Example
from sameas.extraction.prompted.agreement import Said, agree
from sameas.extraction.prompted.asking import Asker
from sameas.extraction.prompted.control import ModelControl
from sameas.extraction.prompted.examples import ExampleBook
from sameas.extraction.prompted.prompt import prompt
from sameas.extraction.prompted.questions import Questions
from sameas.extraction.prompted.reading import Read, Reader, Thing, read_things
from sameas.extraction.prompted.replies import (
    EntityReply,
    GroundingReply,
    JointReply,
    NamedEntity,
    RelationReply,
    percent_of,
)
from sameas.extraction.prompted.settings import PromptSettings
from sameas.extraction.prompted.signatures import Menu, Signatures
from sameas.extraction.usage import joined
from sameas.llm.ledger import UsageRow
from sameas.llm.memo import CallMemo
from sameas.llm.models import Model
from sameas.llm.supervisor import RequestSupervisor
from sameas.ontology.focus import Focus
from sameas.ontology.index import OntologyIndex

VERSION = "1"


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
        self._reader = Reader(index)
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
    def second_model(self) -> Model | None:
        return self._grounding_model

    def menu(self, focus: Focus) -> Menu:
        return self._signatures.menu(focus)

    def mentions(self, chunk: Chunk, menu: Menu, replies: Sequence[EntityReply]) -> Read:
        """What the answers agree on, with places in the text."""
        least = self._settings.minimum_agreement
        names = agree([_typed(reply.entities, menu) for reply in replies], minimum=least)
        values = agree([[Said(_plain(value)) for value in reply.values] for reply in replies], minimum=least)
        return self._reader.mentions(
            chunk, names, [value.what for value in values if value.what], with_values=menu.takes_values
        )

    def claims(
        self, chunk: Chunk, menu: Menu, things: Sequence[Thing], replies: Sequence[RelationReply]
    ) -> tuple[Claim, ...]:
        """The facts between things that the answers agree on, with places in the text."""
        facts = self._agree(
            [
                [
                    Said((one.subject, menu.property_at(one.property), one.object), percent(one))
                    for one in reply.relations
                ]
                for reply in replies
                for percent in (percent_of(reply.relations),)
            ]
        )
        return tuple(self._reader.claims(chunk, things, facts))

    def joint(self, chunk: Chunk, menu: Menu, replies: Sequence[JointReply]) -> tuple[Read, tuple[Claim, ...]]:
        """The names and the facts of answers that give both."""
        names = self._agree([_typed(reply.entities, menu) for reply in replies])
        facts = self._agree(
            [
                [
                    Said((_plain(one.subject), menu.property_at(one.property), _plain(one.object)), percent(one))
                    for one in reply.relations
                ]
                for reply in replies
                for percent in (percent_of(reply.relations),)
            ]
        )
        read, claims = self._reader.joint(chunk, names, facts)
        return read, tuple(claims)

    def _agree(self, samples: list[list[Said[Any]]]) -> list[Any]:
        return agree(samples, minimum=self._settings.minimum_agreement)

    def bind(self, run: RunLink) -> "RunningExtractor":
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

    def _alone(self, chunk: Chunk) -> "RunningExtractor":
        return self.bind(RunLink(key=chunk.digest, chunks=1, on_signal=lambda _: None))


class RunningExtractor:
    """The extractor at work for one run."""

    def __init__(self, owner: ModelExtractor, supervisors: Sequence[RequestSupervisor]) -> None:
        self._owner = owner
        self._settings = owner._settings
        self._questions = owner._questions
        self._supervisors = supervisors
        self._asker = Asker(supervisors[0], self._settings)
        self._second = Asker(supervisors[-1], self._settings.of_second) if len(supervisors) > 1 else None

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
        return Found(read.mentions, rejected=read.rejected)

    async def extract_relations(self, chunk: Chunk, mentions: Sequence[Mention], focus: Focus) -> Found[Claim]:
        """The claims between the mentions; nothing is asked where there is nothing to relate."""
        menu = self._owner.menu(focus)
        things = read_things(mentions)
        names = sum(thing.mention.kind != "literal" for thing in things)
        if self._settings.mode == "joint" or not menu.properties or not names or len(things) == 1:
            return Found()
        messages = self._questions.relations(chunk, menu, things)
        replies = await self._asker.samples("relation_extraction", messages, RelationReply)
        return Found(self._owner.claims(chunk, menu, things, replies))

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
        return Found(read.mentions, claims=claims, rejected=read.rejected)


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
        **msgspec.to_builtins(settings),
    }
    if grounding_model is not None:
        identity["grounding_model"] = grounding_model
        identity["prompts"]["grounding"] = prompt("grounding").identity
    return identity


def _typed(entities: Sequence[NamedEntity], menu: Menu) -> list[Said[tuple[str, str]]]:
    percent = percent_of(entities)
    return [Said((_plain(one.name), menu.class_at(one.type)), percent(one)) for one in entities]


def _plain(text: str) -> str:
    return " ".join(text.split())
