"""Workers that are killed or stopped at the worst moments: nothing is stuck, nothing is accepted twice."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from sameas import Engine, Policy, StoredFailure, open_store
from sameas.once.record import State
from tests.unit.once.waits import Waits

LEASE = 0.4
GRACE = 0.25
# Less than a store waits for a file that somebody holds.
FILE_WAIT = 8.0

WORKER = """
import os, signal, sys, time
from sameas import Engine, Policy, open_store

url, point, folder = sys.argv[1:]

def die(at):
    if at == point:
        os.kill(os.getpid(), signal.SIGKILL)

engine = Engine(open_store(url), policy=Policy(lease=%r))
backend = engine.store.backend
perform = backend.perform

def dying(statement):
    if statement.sql.startswith("INSERT"):
        die("before claim")
    rows = perform(statement)
    if statement.sql.startswith("INSERT"):
        die("after claim")
    if statement.sql.startswith("UPDATE"):
        die("after complete")
    return rows

backend.perform = dying

def work(ctx):
    die("in the handler")
    with open(f"{folder}/effects", "a") as effects:
        effects.write(f"{ctx.attempt} {ctx.child_key('mail')}\\n")
    die("after the effect")
    return {"by": "worker"}

engine.run(work, scope="s", key="k")
""".replace("%r", str(LEASE))

# The same for tasks.
TASK_WORKER = (
    WORKER.replace("import os,", "import asyncio, os,")
    .replace("import Engine, Policy, open_store", "import AsyncEngine, Policy, open_async_store")
    .replace("Engine(open_store(url)", "AsyncEngine(open_async_store(url)")
    .replace("perform = backend.perform", "perform = backend.aperform")
    .replace("def dying", "async def dying")
    .replace("rows = perform(", "rows = await perform(")
    .replace("backend.perform = dying", "backend.aperform = dying")
    .replace("def work(ctx)", "async def work(ctx)")
    .replace('engine.run(work, scope="s", key="k")', 'asyncio.run(engine.run(work, scope="s", key="k"))')
)

ATTEMPT_AFTER = {
    "before claim": 1,
    "after claim": 2,
    "in the handler": 2,
    "after the effect": 2,
    "after complete": None,
}


@pytest.mark.parametrize("code", [WORKER, TASK_WORKER], ids=["threads", "tasks"])
@pytest.mark.parametrize("point", ATTEMPT_AFTER)
def test_kill_9_at_each_crash_point(point, code, tmp_path):
    url = f"sqlite:///{tmp_path}/records.db"
    worker = subprocess.run([sys.executable, "-c", code, url, point, str(tmp_path)], check=False)
    died = time.monotonic()
    assert worker.returncode == -signal.SIGKILL
    engine = Engine(open_store(url))
    waits = Waits(engine)
    contexts = []

    def work(ctx):
        contexts.append(ctx)
        return {"by": "successor"}

    record = engine.record(work, scope="s", key="k")
    assert waits.seconds < LEASE + GRACE
    assert time.monotonic() - died < FILE_WAIT, "the dead process still holds the file"
    effects = (tmp_path / "effects").read_text().splitlines() if (tmp_path / "effects").exists() else []
    if point == "after complete":
        assert (record.result, record.was_replay, contexts) == ({"by": "worker"}, True, [])
        assert len(effects) == 1
    else:
        assert (record.result, record.was_replay) == ({"by": "successor"}, False)
        assert contexts[0].attempt == record.attempt == ATTEMPT_AFTER[point]
        # An effect outside the database may repeat, but under the same child key.
        assert effects == ([f"1 {contexts[0].child_key('mail')}"] if point == "after the effect" else [])


STOPPED = """
import json, os, sys, time
from sameas import Engine, Policy, open_store

url, ending, folder = sys.argv[1:]
engine = Engine(open_store(url), policy=Policy(lease=%r, keep_errors=(LookupError,)))

def work(ctx):
    print("working", flush=True)
    while not os.path.exists(f"{folder}/finish"):
        time.sleep(0.005)
    if ending == "fail":
        raise LookupError("late")
    if ending == "release":
        raise RuntimeError("late")
    if ending == "renew":
        while not ctx.lost:
            time.sleep(0.005)
    return "late"

try:
    record = engine.record(work, scope="s", key="k")
    print(json.dumps({"result": record.result, "was_replay": record.was_replay}), flush=True)
except Exception as error:
    print(json.dumps({"error": type(error).__name__}), flush=True)
""".replace("%r", str(LEASE))


@pytest.mark.parametrize("ending", ["complete", "fail", "release", "renew"])
def test_a_holder_stopped_beyond_its_lease_changes_nothing_when_it_wakes(ending, tmp_path):
    url = f"sqlite:///{tmp_path}/records.db"
    worker = subprocess.Popen(
        [sys.executable, "-c", STOPPED, url, ending, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert worker.stdout.readline() == "working\n"
        os.kill(worker.pid, signal.SIGSTOP)
        engine = Engine(open_store(url))
        record = engine.record(lambda ctx: "accepted", scope="s", key="k")
        assert (record.result, record.attempt) == ("accepted", 2)
        before = engine.read("s", "k")
        (tmp_path / "finish").touch()
        os.kill(worker.pid, signal.SIGCONT)
        told = json.loads(worker.stdout.readline())
    finally:
        worker.kill()
        worker.wait()
        worker.stdout.close()
    assert engine.read("s", "k") == before
    assert before.state is State.DONE
    expected = {
        "complete": {"result": "accepted", "was_replay": True},
        "renew": {"result": "accepted", "was_replay": True},
        "fail": {"result": "accepted", "was_replay": True},
        "release": {"result": "accepted", "was_replay": True},
    }
    assert told == expected[ending]


def test_a_kept_failure_of_a_killed_run_is_replayed(tmp_path):
    engine = Engine(open_store(f"sqlite:///{tmp_path}/records.db"), policy=Policy(keep_errors=(ValueError,)))

    def fail(ctx):
        raise ValueError("bad")

    with pytest.raises(ValueError, match="bad"):
        engine.run(fail, scope="s", key="k")
    with pytest.raises(StoredFailure, match="ValueError: bad"):
        Engine(open_store(f"sqlite:///{tmp_path}/records.db")).run(fail, scope="s", key="k")


SIGTERM = """
import sys, time
from sameas import Engine, open_store
import signal
signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))
engine = Engine(open_store(sys.argv[1]))

def work(ctx):
    print("working", flush=True)
    time.sleep(30)

engine.run(work, scope="s", key="k")
"""


@pytest.mark.parametrize(("ending", "code"), [(signal.SIGTERM, 3), (signal.SIGINT, -signal.SIGINT)])
def test_a_signal_releases_the_claim_at_once(ending, code, tmp_path):
    url = f"sqlite:///{tmp_path}/records.db"
    worker = subprocess.Popen(
        [sys.executable, "-c", SIGTERM, url], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert worker.stdout.readline() == "working\n"
    worker.send_signal(ending)
    assert worker.wait(10) == code
    worker.stdout.close()
    engine = Engine(open_store(url))
    assert engine.read("s", "k") is None
    assert engine.record(lambda ctx: 1, scope="s", key="k").attempt == 1
