"""One call over processes: whoever asks, in whichever store, the model is asked once, and a killed caller is replaced."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.servers.model_script import held, says

ROOT = Path(__file__).resolve().parents[2]
GOOD = {"entities": ["Acme"]}
# Plain HTTP instead of a provider's client, which takes seconds to load.
CALLER = """
import asyncio, json, sys, urllib.request
from sameas.connections import open_async_store
from sameas.llm.memo import CallMemo
from sameas.once.async_engine import AsyncEngine
from sameas.once.policy import Policy
from tests.unit.llm.asks import a_reply, an_ask

def post(url):
    body = json.dumps({"model": "tiny", "messages": [{"role": "user", "content": "Acme"}]}).encode()
    with urllib.request.urlopen(urllib.request.Request(f"{url}/chat/completions", body), timeout=60) as answer:
        return json.load(answer)["choices"][0]["message"]["content"]

async def call(url):
    return a_reply(await asyncio.to_thread(post, url))

async def main(store, url):
    async with AsyncEngine(open_async_store(store), policy=Policy(lease=1.0)) as engine:
        found = await CallMemo(engine).ask("compatible:tiny", an_ask(), lambda: call(url))
    print(json.dumps([found.reply.text, found.was_kept]))

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.fixture(params=["sqlite", "redis", "postgres", "mariadb"])
def store(request, tmp_path):
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/records.db"
    return request.getfixturevalue(f"{request.param}_url")


def start(store, url):
    return subprocess.Popen(
        [sys.executable, "-c", CALLER, store, url],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
    )


def said(process):
    text, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    return json.loads(text)


def test_processes_that_ask_the_same_share_one_call(store, model_server):
    gate = threading.Event()
    model_server.rescript(held(gate, GOOD))
    processes = [start(store, model_server.url) for _ in range(3)]
    model_server.wait_for_calls(1, within_seconds=60)
    gate.set()
    answers = [said(process) for process in processes]
    assert len(model_server.calls) == 1
    assert sorted(kept for _, kept in answers) == [False, True, True]
    assert [json.loads(text) for text, _ in answers] == [GOOD] * 3


def test_a_caller_that_is_killed_is_replaced(store, model_server):
    gate = threading.Event()
    model_server.rescript(held(gate, GOOD))
    victim = start(store, model_server.url)
    model_server.wait_for_calls(1, within_seconds=60)
    os.kill(victim.pid, signal.SIGKILL)
    victim.communicate()
    model_server.rescript(says(GOOD))
    text, kept = said(start(store, model_server.url))
    gate.set()
    assert (json.loads(text), kept) == (GOOD, False)
    assert len(model_server.calls) == 2
