"""One cue of a sentence and what stands around it."""

# ruff: noqa: RUF001 (word lists and the marks of other scripts are the data here)

import re
from collections.abc import Sequence
from typing import NamedTuple

from sameas.extraction.extractors.lexicon.clause import Clause, Left
from sameas.extraction.extractors.lexicon.cues import Cue
from sameas.extraction.extractors.lexicon.inflection import is_past
from sameas.extraction.extractors.lexicon.phrases import Match
from sameas.extraction.graph.model import Mention
from sameas.extraction.text.document import Span

_MAIN_SUBJECT = re.compile(r",\s+(?:(?:the|der|die|das|la|le|el)\s+)?(?:[a-zß-ÿ][\w-]*\s+){0,2}[\"“«‘]?\Z")
_VERB_AFTER = re.compile(r"[\"”“»’]?(?:\s*\([^()]{0,60}\))?\s+[a-zß-ÿ]")


class Scene(NamedTuple):
    """The mentions of one sentence, and those of the sentences before it."""

    text: str
    sentence: Span
    mentions: Sequence[Mention]
    earlier: Sequence[Sequence[Mention]]


class Pair(NamedTuple):
    """Two ends around a cue; `left` is the name that the verb speaks of, with the words that govern it."""

    subject: Mention
    target: Mention
    left: Left | None = None


class Look(NamedTuple):
    """One cue of a sentence, and the mentions on either side of it, nearest first."""

    scene: Scene
    match: Match[Cue]
    cue: Cue
    clause: Clause
    left: list[Mention]
    right: list[Mention]

    @property
    def text(self) -> str:
        return self.scene.text

    @property
    def first_word(self) -> str:
        words = self.text[self.match.start : self.match.end].lower().split()
        return words[0] if words else ""

    def at(self, start: int) -> "Look":
        return self._replace(match=self.match._replace(start=start))

    def is_base_form(self) -> bool:
        """Whether the cue is a verb that an auxiliary further back governs as well: `may buy Acme and sell Globex`."""
        first = self.first_word
        return self.cue.use == "verb" and not is_past(first) and not first.endswith(("s", "ing"))

    def opens_sentence(self) -> bool:
        """Whether nothing but an article or a time stands before the cue."""
        return not self.left and len(self.text[self.scene.sentence.start : self.match.start].split()) <= 4

    def main_subject(self) -> Left | None:
        """`Founded in 1999, Acme grew`: the subject that an opening participle speaks of."""
        if self.text[self.scene.sentence.start : self.match.start].strip(" \"“„«‘'"):
            return None
        for name in self.right:
            if (
                name.kind != "literal"
                and _MAIN_SUBJECT.search(self.text, self.match.end, name.start)
                and _VERB_AFTER.match(self.text, name.end)
            ):
                return Left(name, self.match.start)
        return None
