"""How a model is asked: everything here can change its answers, and all of it is in the extraction's key."""

from typing import Literal, TypeAlias

import msgspec

from sameas.llm.efforts import ROOM_FOR_THOUGHTS
from sameas.llm.models import Effort

ExtractionMode: TypeAlias = Literal["two-stage", "joint"]

# What counts as asserted (understanding.py) decides what is in the graph.
ASSERTION_VERSION = 5


class PromptSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the questions; those of the control services are elsewhere, because they change no answer."""

    mode: ExtractionMode = "two-stage"
    samples: int = 1
    """How often each question is asked; with more than one, confidence is the share of answers that agree."""
    temperature: float = 0.0
    """For a single sample; several are asked at `sample_temperature`, or they would all be the same."""
    sample_temperature: float = 0.7
    minimum_agreement: float = 0.5
    examples: int = 3
    """How many of the given examples a question shows."""
    ask_confidence: bool = False
    """Ask the model how sure it is; without it confidence comes from a rule."""
    max_output_tokens: int = 0
    """Room for a reply; 0 takes what the mode needs."""
    repair_output_tokens: int = 0
    """Room for a reply that is asked for again; 0 takes what the mode needs."""

    effort: Effort | None = None
    """How long the model may think before it answers; None is as little as it can."""

    def __post_init__(self) -> None:
        # A joint reply holds names and facts; a page of prose has more of both than fit into the room of one.
        usual, repair = (1800, 3600) if self.mode == "joint" else (600, 1800)
        if self.effort is not None:
            usual, repair = (room + ROOM_FOR_THOUGHTS[self.effort] for room in (usual, repair))
        most = self.max_output_tokens or usual
        msgspec.structs.force_setattr(self, "max_output_tokens", most)
        msgspec.structs.force_setattr(self, "repair_output_tokens", self.repair_output_tokens or max(repair, most))
        if self.effort is not None and most <= ROOM_FOR_THOUGHTS[self.effort]:
            least = ROOM_FOR_THOUGHTS[self.effort] + 1
            raise ValueError(
                f"max_output_tokens must be at least {least} with effort {self.effort}: thoughts are in it"
            )
        if self.samples < 1:
            raise ValueError("samples must be at least 1")
        if not (0 <= self.temperature <= 2 and 0 < self.sample_temperature <= 2):
            raise ValueError("temperature must be from 0 to 2, and that of several samples above 0")
        if not 0 < self.minimum_agreement <= 1:
            raise ValueError("minimum_agreement must be above 0 and at most 1")
        if self.examples < 0:
            raise ValueError("examples must not be negative")
        if not 1 <= self.max_output_tokens <= self.repair_output_tokens:
            raise ValueError("max_output_tokens must be at least 1, and repair_output_tokens no less")

    @property
    def of_second(self) -> "PromptSettings":
        """Those of the second model: it is asked once, because its answer is a check and not a vote."""
        return msgspec.structs.replace(self, samples=1, ask_confidence=False)

    @property
    def heat(self) -> float:
        """The temperature of a question."""
        return self.temperature if self.samples == 1 else self.sample_temperature
