"""`./run test`: tests in sight, and those of real servers in two processes beside them, on files of a few lines."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests import turns

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tests" / "side_by_side.sh"

# What a process has for all of its tests, as a server is.
CONFTEST = """
import os, pathlib, signal, subprocess, time, pytest

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

@pytest.fixture(scope="session")
def server():
    folder = pathlib.Path(os.environ["SEEN"])
    running = subprocess.Popen(["sleep", "600"])
    (folder / f"began-{os.getpid()}").write_text(str(running.pid))
    # However slow the machine is, nobody is through before all three are there.
    deadline = time.monotonic() + 60
    while len(list(folder.glob("began-*"))) < 3:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    yield os.getpid()
    running.terminate()
    running.wait()
    (folder / f"ended-{os.getpid()}").touch()

@pytest.fixture
def ran(request, server):
    with open(os.environ["SEEN"] + "/ran", "a") as file:
        print(request.node.name, server, file=file)
"""
TEST = "import time\n\ndef test_{name}_1(ran):\n    pass\n\ndef test_{name}_2(ran):\n    {body}\n"


@pytest.fixture
def folder(tmp_path):
    for name in ("seen", "beside", "unit"):
        (tmp_path / name).mkdir()
    (tmp_path / "conftest.py").write_text(CONFTEST)
    return tmp_path


def write(folder, *names, body="pass"):
    for name in names:
        (folder / f"test_{Path(name).name}.py").parent.mkdir(exist_ok=True)
        path = folder / Path(name).parent / f"test_{Path(name).name}.py"
        path.write_text(TEST.format(name=Path(name).name, body=body))


def started(folder, *, ignored=()):
    """The script in a group of its own, as a shell with a terminal starts it."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTEST_ADDOPTS": f"-p pytest_rerunfailures -p no:cacheprovider -q --rootdir {folder} -c {os.devnull}",
        "SEEN": str(folder / "seen"),
    }
    command = [str(SCRIPT), sys.executable, "beside", "unit"]
    return subprocess.Popen(
        [
            "bash",
            "-c",
            f'trap "" {" ".join(ignored)}; exec bash "$@"' if ignored else 'exec bash "$@"',
            "bash",
            *command,
        ],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def runs(folder):
    """Which test ran in which process."""
    return [line.split() for line in (folder / "seen" / "ran").read_text().splitlines()]


@pytest.mark.parametrize("ignored", [(), ("INT", "HUP")], ids=["as it is", "as under nohup, in the background"])
def test_every_file_is_run_once_by_one_of_the_two(folder, ignored):
    names = [f"{letter}" for letter in "abcdefgh"]
    write(folder, *[f"beside/{name}" for name in names], "unit/u")
    script = started(folder, ignored=ignored)
    said, _ = script.communicate(timeout=100)
    assert script.returncode == 0, said
    found = runs(folder)
    assert Counter(name for name, _ in found) == Counter([f"test_{name}_{n}" for name in [*names, "u"] for n in (1, 2)])
    where = {name.rpartition("_")[0]: process for name, process in found}
    # Both tests of a file had the same server, and each process had one.
    assert all(where[name.rpartition("_")[0]] == process for name, process in found)
    assert len(set(where.values())) == 3 == len(list((folder / "seen").glob("ended-*")))
    logs = [(folder / ".cache" / f"integration-{number}.log").read_text() for number in (1, 2)]
    assert all("100%" in said and log in said for log in logs)


def test_a_file_is_one_whole_however_its_tests_are_ordered():
    items = [SimpleNamespace(path=Path(f"{name}.py"), number=n) for n in range(3) for name in ("test_a", "test_b")]
    mine = list(turns.taken(items, lambda path: path.stem == "test_a"))
    assert [[(item.path.stem, item.number) for item in group] for group in mine] == [[("test_a", n) for n in range(3)]]


def test_every_file_that_begins_first_is_there():
    assert {path.name for path in (ROOT / "tests" / "integration").glob("test_*.py")} >= set(turns.LONGEST)


@pytest.mark.parametrize(
    ("failing", "body", "code"),
    [
        ("beside/c", "assert not 'this one'", 1),
        ("unit/u", "assert not 'this one'", 1),
        ("beside/a", "__import__('os').kill(__import__('os').getpid(), 9)", 137),
    ],
    ids=["beside", "in sight", "a process that dies"],
)
def test_what_fails_anywhere_fails_the_whole(folder, failing, body, code):
    write(folder, "beside/a", "beside/b", "beside/c", "unit/u")
    write(folder, failing, body=body)
    script = started(folder)
    said, _ = script.communicate(timeout=100)
    assert script.returncode == code, said
    # The others went on to their ends.
    assert {f"test_{name}_1" for name in "abcu"} == {name for name, _ in runs(folder) if name.endswith("1")}
    for pid in {int(path.read_text()) for path in (folder / "seen").glob("began-*")}:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize(
    ("told", "ignored", "code"),
    [(signal.SIGTERM, ("INT", "HUP"), 143), (signal.SIGINT, (), 130)],
)
def test_ctrl_c_and_term_end_all_three_and_what_they_started(folder, told, ignored, code):
    write(folder, "beside/a", "beside/b", "unit/u", body="time.sleep(600)")
    script = started(folder, ignored=ignored)
    seen, deadline = folder / "seen", time.monotonic() + 60
    while not (seen / "ran").exists() or len(runs(folder)) < 6:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    processes = {int(process) for _, process in runs(folder)}
    servers = {int(path.read_text()) for path in seen.glob("began-*")}
    # A terminal tells the whole group.
    os.killpg(script.pid, told)
    said, _ = script.communicate(timeout=100)
    assert script.returncode == code, said
    assert len(processes) == 3 == len(servers)
    for process in processes | servers:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)
    # They ended by themselves, with what they had to put away.
    assert len(list(seen.glob("ended-*"))) == 3
