"""The guardian of started servers: a small process that outlives a test run killed with SIGKILL.

It reads what this process started from a pipe. When the pipe closes, however that came about, it kills the
processes that are left and removes their folders. It touches nothing else.
"""

import atexit
import contextlib
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import TextIO

import psutil

from tests.servers.process import GONE_WITHIN_SECONDS, kill_tree

ROOT = Path(__file__).resolve().parents[2]


class Guardian:
    """This process's line to its guardian, started when the first thing is watched."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._owner = os.getpid()
        self._lock = threading.Lock()

    def watch_process(self, pid: int) -> None:
        """Kill the process and its children when this process ends."""
        self._say("watch", "process", f"{pid}@{_started_at(pid)}")

    def watch_folder(self, folder: Path) -> None:
        """Remove the folder when this process ends."""
        self._say("watch", "folder", str(folder))

    def forget_folder(self, folder: Path) -> None:
        """The folder is gone or somebody else's now."""
        self._say("forget", "folder", str(folder))

    def _say(self, *words: str) -> None:
        if self._owner != os.getpid():
            # After a fork the pipe is the parent's, and its lock may be held by a thread that is not here.
            self._owner, self._lock, self._process = os.getpid(), threading.Lock(), None
        with self._lock:
            if self._process is None:
                self._process = _start_guardian()
                atexit.register(self._dismiss)
            assert self._process.stdin is not None
            self._process.stdin.write("\t".join(words) + "\n")
            self._process.stdin.flush()

    def _dismiss(self) -> None:
        if self._process is None or self._owner != os.getpid():
            return
        # Said, not only closed: a forked child may still hold the other copy of the pipe.
        with contextlib.suppress(OSError, ValueError, subprocess.TimeoutExpired):
            self._process.communicate("end\t\t\n", timeout=GONE_WITHIN_SECONDS)


def _start_guardian() -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "tests.servers.guardian"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
        # A Ctrl-C in the terminal is for the tests; the guardian must live on to clean up after them.
        start_new_session=True,
    )


def _started_at(pid: int) -> float:
    try:
        return float(psutil.Process(pid).create_time())
    except psutil.NoSuchProcess:
        return 0.0


def stand_guard(lines: TextIO) -> None:
    """Note what is watched until the pipe closes, then end what is left of it."""
    watched: dict[tuple[str, str], None] = {}
    for line in lines:
        verb, kind, what = line.rstrip("\n").split("\t")
        if verb == "end":
            break
        if verb == "watch":
            watched[kind, what] = None
        else:
            watched.pop((kind, what), None)
    for kind, what in reversed(watched):
        if kind == "folder":
            shutil.rmtree(what, ignore_errors=True)
            continue
        pid, started_at = what.split("@")
        if _started_at(int(pid)) == float(started_at):
            with contextlib.suppress(Exception):
                kill_tree(int(pid))


GUARDIAN = Guardian()

if __name__ == "__main__":
    stand_guard(sys.stdin)
