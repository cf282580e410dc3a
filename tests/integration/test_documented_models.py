"""What docs/models.md and docs/model-path.md show works as it stands there, with a scripted model for the provider's."""

import ast
import asyncio
import inspect
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import sameas
import sameas.llm
from sameas.extraction.extractors.prompted import ModelControl, ModelExtractor, PromptSettings
from sameas.extraction.runs.service import ExtractionService, ServiceSettings
from sameas.llm.models import open_model
from sameas.ontology.index import OntologyIndex
from sameas.ontology.load import read_ontology
from tests.servers.model_oracle import Oracle
from tests.servers.model_script import Call, says
from tests.servers.model_server import ModelServer
from tests.shared_data import shared
from tests.unit.extraction.company import ONTOLOGY

from .model_path import ORACLE, document, sentence

DOCS = Path(__file__).resolve().parents[2] / "docs"
SHOWN_MODEL = "openai:gpt-5-mini"
NAMES = {"names": ["Acme"]}
PRICES = """
as_of = 2026-01-01
[models]
"compatible:gpt-5-mini" = { input = 0.25, output = 2 }
"""


def blocks(name: str, language: str) -> list[str]:
    """The fenced blocks of a page; those without a language are command lines."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", (DOCS / name).read_text("utf-8"), re.DOTALL | re.MULTILINE)
    return [text for kind, text in found if kind == language]


def commands() -> list[str]:
    return [line for block in blocks("model-path.md", "") for line in block.splitlines() if line.startswith("sameas ")]


async def executed(block: str, names: dict[str, Any], server: ModelServer) -> None:
    """Run a block as it stands, but that the provider is at the server's address."""
    led = block.replace(f'"{SHOWN_MODEL}", ', f'"{SHOWN_MODEL}", url="{server.url}", ')
    result = eval(compile(led, "docs", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
    if inspect.isawaitable(result):
        await result


def test_the_lines_of_models_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"key": "k", "text": "Acme is old.", "fits": lambda reply: True}

    async def work(server: ModelServer) -> None:
        asking, remembering = blocks("models.md", "python")
        await executed(asking, names, server)
        assert json.loads(names["reply"].text) == NAMES
        assert len(server.calls) == 1
        assert server.calls[0].schema is not None
        # The first block closed its model; its connections open again.
        try:
            await executed(remembering, names, server)
            assert json.loads(names["found"].reply.text) == NAMES
            assert not names["found"].was_kept
            assert await names["memo"].find(names["model"].name, names["ask"]) is None
        finally:
            await names["model"].close()

    with ModelServer(says(NAMES)) as server:
        asyncio.run(work(server))


def test_the_lines_of_the_model_path_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ontology = read_ontology(ONTOLOGY.encode(), extension=".ttl")
    given = {"open_model": open_model, "key": "k", "text": sentence(1), "home": tmp_path, "ontology": ontology}

    async def work(server: ModelServer) -> dict[str, Any]:
        async with sameas.open_async_store(f"sqlite:///{tmp_path}/sameas.db") as store:
            names: dict[str, Any] = {
                **{name: getattr(sameas.llm, name) for name in sameas.llm.__all__},
                **{one.__name__: one for one in (ModelControl, ModelExtractor, PromptSettings, OntologyIndex)},
                **{one.__name__: one for one in (ExtractionService, ServiceSettings, sameas.AsyncEngine)},
                **given,
                "store": store,
            }
            (block,) = blocks("model-path.md", "python")
            await executed(block, names, server)
            await names["model"].close()
            return names

    with ModelServer(ORACLE) as server:
        names = asyncio.run(work(server))
        # Asked jointly, as the lines say.
        assert [call.schema_name for call in server.calls] == ["JointReply"]
    assert [relation.predicate.rpartition("#")[2] for relation in names["result"].graph.relations] == ["worksFor"]
    assert "COMPLETE" in capsys.readouterr().out


def test_there_are_commands_to_run() -> None:
    assert [command.split()[1] for command in commands()] == ["extract", "extract", "eval"]


@pytest.mark.parametrize("command", commands())
def test_a_command_of_the_model_path_works(command: str, tmp_path: Path) -> None:
    (tmp_path / "company.ttl").write_text(ONTOLOGY, "utf-8")
    (tmp_path / "report.txt").write_text(document(3), "utf-8")
    (tmp_path / "prices.toml").write_text(PRICES, "utf-8")
    nothing = Oracle([])

    def answer(call: Call) -> Any:
        return nothing(call) if " eval " in command else ORACLE(call)

    with ModelServer(answer) as server:
        led = command.replace(SHOWN_MODEL, server.address("gpt-5-mini"))
        led = led.replace("../shared/data/text2kgbench", str(shared("data", "text2kgbench")))
        # So many that the usual limits of an account do not make it wait.
        led = led.replace("--texts 100", "--texts 3")
        done = subprocess.run(
            [sys.executable, "-m", "sameas.cli", *shlex.split(led)[1:]],
            cwd=tmp_path,
            env={
                **os.environ,
                "SAMEAS_HOME": str(tmp_path / "home"),
                "SAMEAS_PRICES": str(tmp_path / "prices.toml"),
                "OMP_NUM_THREADS": "1",
            },
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert bool(server.calls) == ("--estimate" not in command)
    assert done.stdout
