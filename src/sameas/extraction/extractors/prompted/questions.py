"""The questions about a chunk, as the messages that are sent.

Rule: a question depends on the chunk's text, its focus, the examples and the prompts, and on nothing else: equal
questions are equal to the byte, whatever else the document and the ontology hold. Examples are earlier turns of the
same conversation, the likest last: small models that were told of them beside the text answered about them instead.

Each prompt is a file with a version in its first line. Its words change only together with its version, which is part
of the extraction's key; the digest of the file is part of it too, so that a forgotten version costs a repeated run and
never a stale one. What comes from a document stands between fence lines that occur nowhere in it. Filling is by name,
and a name that is missing is an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sameas.extraction.extractors.prompted.examples import ExampleBook, Shown
from sameas.extraction.extractors.prompted.settings import PromptSettings
from sameas.extraction.extractors.prompted.signatures import Menu, Signatures
from sameas.extraction.graph.model import Claim
from sameas.extraction.text.chunking import Chunk
from sameas.llm.models import Message
from sameas.llm.timeouts import StageName

if TYPE_CHECKING:
    from sameas.extraction.extractors.prompted.reading import Thing
import hashlib
from functools import cache
from importlib.resources import files
from string import Template
from typing import Literal, TypeAlias

import msgspec

PromptName: TypeAlias = Literal["entities", "relations", "joint", "grounding", "repair"]

_SEPARATOR = "\n---\n"
_VERSION = "version: "
_FENCE_DIGITS = 12


class Prompt(msgspec.Struct, frozen=True):
    """What is said to the model first, and what is asked; both have places to be filled.

    The first part holds what is the same for many chunks, so that it is counted once here and cached by providers.
    """

    name: PromptName
    version: str
    system: str
    user: str

    def messages(self, **parts: str) -> tuple[Message, ...]:
        """The two messages of a question; a part is put in as it is, whatever signs are in it."""
        return (Message("system", Template(self.system).substitute(parts)), Message("user", self.filled(**parts)))

    def filled(self, **parts: str) -> str:
        return Template(self.user).substitute(parts)

    @property
    def identity(self) -> str:
        """What goes into a key: the version, and a digest of the words themselves."""
        words = hashlib.sha256(f"{self.system}{_SEPARATOR}{self.user}".encode()).hexdigest()
        return f"{self.version}-{words[:16]}"


@cache
def prompt(name: PromptName) -> Prompt:
    """The prompt of a file in `prompts/`."""
    content = (files(__package__) / "prompts" / f"{name}.md").read_text("utf-8")
    head, *parts = content.rstrip("\n").split(_SEPARATOR)
    if not head.startswith(_VERSION) or not 1 <= len(parts) <= 2:
        raise ValueError(f"prompts/{name}.md must be a line 'version: N', then one or two parts after lines of ---")
    *system, user = parts
    return Prompt(name, head.removeprefix(_VERSION).strip(), "".join(system), user)


def fence(text: str) -> str:
    """A line that stands nowhere in the text and is the same for the same text."""
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    for length in range(_FENCE_DIGITS, len(digest) + 1):
        line = f"=====[{digest[:length]}]====="
        if line not in text:
            return line
    raise ValueError("the text contains its own digest: that cannot be")


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
