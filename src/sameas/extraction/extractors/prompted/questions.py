"""The questions about a chunk, as the messages that are sent.

Rule: a question depends on the chunk's text, its focus, the examples and the prompts, and on nothing else: equal
questions are equal to the byte, whatever else the document and the ontology hold. Examples are earlier turns of the
same conversation, the likest last: small models that were told of them beside the text answered about them instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sameas.extraction.extractors.prompted.examples import ExampleBook, Shown
from sameas.extraction.extractors.prompted.prompt import Prompt, PromptName, fence, prompt
from sameas.extraction.extractors.prompted.settings import PromptSettings
from sameas.extraction.extractors.prompted.signatures import Menu, Signatures
from sameas.extraction.graph.model import Claim
from sameas.extraction.text.chunking import Chunk
from sameas.llm.models import Message
from sameas.llm.timeouts import StageName

if TYPE_CHECKING:
    from sameas.extraction.extractors.prompted.reading import Thing

_SURE = '\nGive each item a "confidence" from 0 to 100.'


class Questions:
    """Writes the questions for one ontology."""

    def __init__(self, signatures: Signatures, *, examples: ExampleBook, settings: PromptSettings) -> None:
        self._signatures = signatures
        self._examples = examples
        self._settings = settings

    @property
    def versions(self) -> Mapping[str, str]:
        """The prompts in use, for the key."""
        names: tuple[PromptName, ...] = ("joint",) if self._settings.mode == "joint" else ("entities", "relations")
        return {name: prompt(name).identity for name in (*names, "repair")}

    def entities(self, chunk: Chunk, menu: Menu) -> tuple[Message, ...]:
        """What does the chunk name? In joint mode, also: and how is it related?"""
        asked = prompt("joint" if self._settings.mode == "joint" else "entities")
        question = asked.messages(
            classes=menu.class_lines,
            properties=menu.property_lines or "none",
            sure=self._sure,
            text=chunk.text,
            fence=fence(chunk.text),
        )
        return self._with_examples(asked, question, chunk, menu, "entity_extraction")

    def relations(self, chunk: Chunk, menu: Menu, things: Sequence[Thing]) -> tuple[Message, ...]:
        """How are these things of the chunk related?"""
        asked = prompt("relations")
        question = asked.messages(
            properties=menu.property_lines,
            sure=self._sure,
            text=chunk.text,
            fence=fence(chunk.text),
            things="\n".join(self._thing_line(number, thing) for number, thing in enumerate(things, 1)),
        )
        return self._with_examples(asked, question, chunk, menu, "relation_extraction")

    def grounding(self, chunk: Chunk, claims: Sequence[Claim]) -> tuple[Message, ...]:
        """Which of these does the chunk say?"""
        lines = (
            f"{number} {_plain(claim.subject.text)} | {self._signatures.label(claim.predicate)} | "
            f"{_plain(claim.object.text)}"
            for number, claim in enumerate(claims, 1)
        )
        return prompt("grounding").messages(text=chunk.text, fence=fence(chunk.text), statements="\n".join(lines))

    def _thing_line(self, number: int, thing: Thing) -> str:
        mention = thing.mention
        kinds = "value" if mention.kind == "literal" else "|".join(map(self._signatures.label, mention.types))
        return f"{number} {_plain(mention.text)}, {kinds}"

    @property
    def _sure(self) -> str:
        return _SURE if self._settings.ask_confidence else ""

    def _with_examples(
        self, asked: Prompt, question: tuple[Message, ...], chunk: Chunk, menu: Menu, stage: StageName
    ) -> tuple[Message, ...]:
        """The question after its examples, each asked in the same words."""
        settings = self._settings
        shown = self._examples.shown(chunk.text, menu, mode=settings.mode, stage=stage, count=settings.examples)
        system, user = question
        turns = (
            turn for one in reversed(shown) for turn in (self._example(asked, one), Message("assistant", one.reply))
        )
        return (system, *turns, user)

    def _example(self, asked: Prompt, shown: Shown) -> Message:
        lines = (
            f"{number} {_plain(name)}, {self._signatures.label(iri) if iri else 'value'}"
            for number, (name, iri) in enumerate(shown.things, 1)
        )
        return Message("user", asked.filled(sure="", text=shown.text, fence=fence(shown.text), things="\n".join(lines)))


def _plain(text: str) -> str:
    """On one line, or a name of two lines would look like two."""
    return " ".join(text.split())
