"""The extractor that asks a language model, under control.

Rule: it is never trusted. It shows a model one chunk and the part of the ontology that the chunk can be about, reads
what comes back as data, and offers it to the guard. Its identity holds the model's name, the prompts, the examples
and every setting that can change an answer; limits, budgets and memos are not in it. `bind` gives a run its own
accounts. A replay needs the identity alone, so what asks and what reads replies is loaded when a run is bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from sameas.extraction.extractors.contract import Found, RunLink
from sameas.extraction.extractors.prompted.control import ModelControl
from sameas.extraction.extractors.prompted.examples import ExampleBook
from sameas.extraction.extractors.prompted.questions import Questions, prompt
from sameas.extraction.extractors.prompted.settings import ASSERTION_VERSION, PromptSettings
from sameas.extraction.extractors.prompted.signatures import Menu, Signatures
from sameas.extraction.graph.model import Claim, Mention
from sameas.extraction.text.chunking import Chunk
from sameas.llm.memo import CallMemo
from sameas.llm.models import Model
from sameas.llm.supervisor import RequestSupervisor
from sameas.llm.tokens import Count
from sameas.ontology.focus import Focus
from sameas.ontology.index import OntologyIndex

if TYPE_CHECKING:
    from sameas.extraction.extractors.learning.examples import Example
    from sameas.extraction.extractors.prompted.running import RunningExtractor
    from sameas.extraction.extractors.prompted.understanding import Understanding

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
    def index(self) -> OntologyIndex:
        """The ontology that is asked about, as it is looked up: it is built once."""
        return self._index

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

    @cached_property
    def understanding(self) -> Understanding:
        """What reads the replies. It is loaded for the first of them: a replay has none."""
        from sameas.extraction.extractors.prompted.understanding import Understanding

        return Understanding(self._index, self._settings)

    def bind(self, run: RunLink) -> RunningExtractor:
        """The extractor with a budget, accounts and a listener of its own."""
        from sameas.extraction.extractors.prompted.running import RunningExtractor

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
