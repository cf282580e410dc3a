"""The extractor that asks a language model, at work for one run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sameas.extraction.extractors.contract import Found
from sameas.extraction.extractors.prompted.addressing import NOTE, addressed
from sameas.extraction.extractors.prompted.asking import Asker
from sameas.extraction.extractors.prompted.reading import read_things
from sameas.extraction.extractors.prompted.replies import EntityReply, GroundingReply, JointReply, RelationReply
from sameas.extraction.extractors.prompted.signatures import Menu
from sameas.extraction.graph.model import Claim, Mention
from sameas.extraction.text.chunking import Chunk
from sameas.llm.ledger import UsageRow, joined
from sameas.llm.supervisor import RequestSupervisor
from sameas.ontology.focus import Focus

if TYPE_CHECKING:
    from sameas.extraction.extractors.prompted.extractor import ModelExtractor


class RunningExtractor:
    """The extractor at work for one run."""

    def __init__(self, owner: ModelExtractor, supervisors: Sequence[RequestSupervisor]) -> None:
        self._owner = owner
        self._settings = owner.prompt_settings
        self._questions = owner.questions
        self._understanding = owner.understanding
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
        read = self._understanding.mentions(chunk, menu, replies)
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
        claims, refused = self._understanding.claims(chunk, menu, things, replies)
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
        read, claims = self._understanding.joint(chunk, menu, replies)
        return Found(read.mentions, _notes(chunk), claims=claims, rejected=read.rejected)


def _notes(chunk: Chunk) -> tuple[str, ...]:
    return (NOTE,) if addressed(chunk.text, chunk.sentences) else ()
