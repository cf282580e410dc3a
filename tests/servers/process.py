"""A tree of processes, its stop and its end.

The rule: what is stopped or ended here is so when the call returns, or a zombie that only its own parent can reap.
Processes are named by their id and start time, so that a reused id is never signalled.
"""

import contextlib
import signal
import subprocess
import time
from collections.abc import Iterable

import psutil

GONE_WITHIN_SECONDS = 10.0


class ProcessOutlivedError(RuntimeError):
    """Processes were still alive long after they should have ended."""

    def __init__(self, alive: "Iterable[psutil.Process]") -> None:
        super().__init__(f"processes outlived their end: {[process.pid for process in alive]}")


def process_tree(pid: int) -> list[psutil.Process]:
    """The process and everything below it, the root first; empty when it is gone."""
    try:
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def kill_tree(pid: int) -> None:
    """SIGKILL the process and everything below it, and wait until none of them runs."""
    root = process_tree(pid)[:1]
    # A stopped parent cannot start another child between the listing and the kill.
    _signal(root, signal.SIGSTOP)
    victims = process_tree(pid)
    _signal(victims, signal.SIGKILL)
    late = [child for victim in victims for child in process_tree(victim.pid)[1:] if child not in victims]
    _signal(late, signal.SIGKILL)
    wait_until_dead([*victims, *late])


def stop_tree(pid: int) -> None:
    """SIGSTOP the process and everything below it, and wait until none of them runs."""
    deadline = time.monotonic() + GONE_WITHIN_SECONDS
    # The root first: stopped, it starts no other child. One that was just started is met the next time round.
    while running := [process for process in process_tree(pid) if _runs(process)]:
        if time.monotonic() > deadline:
            raise ProcessOutlivedError(running)
        _signal(running, signal.SIGSTOP)
        time.sleep(0.001)


def _runs(process: psutil.Process) -> bool:
    try:
        return process.status() not in (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def wait_until_dead(processes: Iterable[psutil.Process], *, within_seconds: float = GONE_WITHIN_SECONDS) -> None:
    """Wait for processes that are ending; a zombie counts as dead: it holds no port, file or memory."""
    alive = [process for process in processes if is_alive(process)]
    pause = 0.001
    waited = 0.0
    while alive:
        if waited > within_seconds:
            raise ProcessOutlivedError(alive)
        # psutil cannot wait for a grandchild's zombie, so its state is polled.
        psutil.wait_procs(alive, timeout=pause)
        waited += pause
        pause = min(pause * 2, 0.05)
        alive = [process for process in alive if is_alive(process)]


def is_alive(process: psutil.Process) -> bool:
    """Whether the very same process still runs; a zombie does not."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def reap(process: subprocess.Popen[bytes]) -> None:
    """Take a dead child's exit code, so that no zombie of ours is left."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=GONE_WITHIN_SECONDS)


def _signal(processes: Iterable[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(number)
