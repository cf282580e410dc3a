"""What docs/model-control.md shows works as it stands there, in at most five lines each."""

import ast
import asyncio
import inspect
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import sameas.llm
from sameas.llm.memo import CallMemo
from sameas.once.async_engine import AsyncEngine
from sameas.once.store import AsyncStore
from sameas.stores.memory import MemoryBackend

from .calls import ScriptedModel, answer, question

DOC = Path(__file__).resolve().parents[3] / "docs" / "model-control.md"
SHOWN = re.findall(r"```python\n(.*?)```", DOC.read_text("utf-8"), re.DOTALL)


def test_each_service_is_shown_in_at_most_five_lines() -> None:
    assert len(SHOWN) == 6
    assert max(len(block.splitlines()) for block in SHOWN) <= 5


def test_the_lines_of_the_document_work() -> None:
    async def go() -> None:
        from sameas.llm.redis_account import RedisAccount
        from sameas.stores.redis import open_backend

        async with AsyncEngine(AsyncStore(MemoryBackend())) as engine:
            names: dict[str, Any] = {
                **{name: getattr(sameas.llm, name) for name in sameas.llm.__all__},
                "Decimal": Decimal,
                "RedisAccount": RedisAccount,
                # No server is needed to make the objects.
                "open_backend": lambda url: open_backend("redis://127.0.0.1:1/0"),
                "model": ScriptedModel([answer()]),
                "question": question(),
                "memo": CallMemo(engine),
            }
            for block in SHOWN:
                shared = dict(names)
                code = compile(block, str(DOC), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
                result = eval(code, names)
                if inspect.isawaitable(result):
                    await result
                if "RedisAccount" in block:
                    # The blocks that follow go on without a server.
                    await names["backend"].aclose()
                    names = shared

    asyncio.run(go())


@pytest.mark.parametrize("name", sameas.llm.__all__)
def test_what_the_package_names_is_there(name: str) -> None:
    assert getattr(sameas.llm, name) is not None
