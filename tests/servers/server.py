"""The life of a test server: started on a free loopback port in a folder of its own, killed, started again.

Its rule: nothing outlives the test run. A server is ended when its `with` block ends, when the process exits,
and by the guardian when the process was killed. A server that does not start says what it logged.
"""

import atexit
import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from tests.servers.guardian import GUARDIAN
from tests.servers.port import LOOPBACK, free_port
from tests.servers.process import is_alive, kill_tree, process_tree, reap, stop_tree, wait_until_dead
from tests.servers.program import Account

START_TRIES = 5
LOG_LINES_SHOWN = 30


class ServerFailedError(RuntimeError):
    """A server did not do what it must; the message ends with its log."""

    def __init__(self, problem: str, *, log: str) -> None:
        last = "\n".join(log.splitlines()[-LOG_LINES_SHOWN:])
        super().__init__(f"{problem}; its last words:\n{last}")


class Server(ABC):
    """One server program under a test's control."""

    name: ClassVar[str]
    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM
    ready_within_seconds: ClassVar[float] = 30.0
    second_port_at: ClassVar[int] = 0

    def __init__(self, *, account: Account | None = None) -> None:
        self.host = LOOPBACK
        self.port = free_port(and_at=self.second_port_at)
        self.started_in_seconds = 0.0
        self._account = account
        self._prepared = False
        self._log_began_at = 0
        self._folder: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = os.getpid()
        self._lock = threading.RLock()

    @property
    @abstractmethod
    def url(self) -> str:
        """Where a client finds the server."""

    @abstractmethod
    def command(self) -> Sequence[str]:
        """The program and its arguments."""

    @abstractmethod
    def is_ready(self) -> bool:
        """Whether the server answers a real request."""

    @abstractmethod
    def prepare(self) -> None:
        """Make the files that the first start needs."""

    def environment(self) -> Mapping[str, str]:
        """The variables that the program sees."""
        return os.environ

    @property
    def folder(self) -> Path:
        """The server's own folder: data, configuration, log."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix=f"sameas-{self.name}-"))
            GUARDIAN.watch_folder(self._folder)
            atexit.register(self._close_at_exit)
            if self._account is not None:
                os.chown(self._folder, self._account.uid, self._account.gid)
        return self._folder

    @property
    def log(self) -> str:
        """What the server has printed, over all its starts."""
        path = self.folder / "log"
        return path.read_text(errors="replace") if path.exists() else ""

    @property
    def recent_log(self) -> str:
        """What the server has printed since it was last started."""
        return self.log[self._log_began_at :]

    @property
    def pid(self) -> int:
        """The id of the server's first process."""
        if self._process is None:
            problem = f"{self.name} has no process: call start() first"
            raise ServerFailedError(problem, log=self.log)
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether its first process is alive."""
        if self._process is None:
            return False
        tree = process_tree(self._process.pid)
        return bool(tree) and is_alive(tree[0])

    def start(self) -> Self:
        """Start it and wait until it answers; does nothing when it runs."""
        with self._lock:
            if self.running:
                return self
            began_at = time.monotonic()
            is_first = not self._prepared
            if is_first:
                self.prepare()
                self._prepared = True
            # A zombie or a shared-memory segment of the killed one can make the first try fail.
            for attempt in range(1, START_TRIES + 1):
                if self._try_start():
                    self.started_in_seconds = time.monotonic() - began_at
                    return self
                if is_first:
                    self.port = free_port(and_at=self.second_port_at)
                time.sleep(0.1 * attempt)
            problem = f"{self.name} did not start in {START_TRIES} tries"
            raise ServerFailedError(problem, log=self.log)

    def kill(self) -> None:
        """SIGKILL to the server and all its children; they are dead when this returns."""
        with self._lock:
            if self._process is not None:
                kill_tree(self._process.pid)
                reap(self._process)

    def stop(self) -> None:
        """Ask it to end in good order, and kill what is left."""
        self._end_with(self.stop_signal)

    def restart(self) -> Self:
        """Stop it in good order and start it on the same data and port."""
        with self._lock:
            self.stop()
            return self.start()

    def kill_and_restart(self) -> Self:
        """SIGKILL it and start it on the same data and port."""
        with self._lock:
            self.kill()
            return self.start()

    def pause(self) -> None:
        """SIGSTOP: the kernel still accepts connections, the server says nothing more when this returns."""
        stop_tree(self.pid)

    def resume(self) -> None:
        """SIGCONT after a pause."""
        self._signal_all(signal.SIGCONT)

    def close(self) -> None:
        """End it for good and remove its folder."""
        with self._lock:
            self.kill()
            if self._folder is not None:
                shutil.rmtree(self._folder, ignore_errors=True)
                GUARDIAN.forget_folder(self._folder)
                atexit.unregister(self._close_at_exit)
                self._folder = None
            self._prepared = False
            self._process = None

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def run_tool(self, command: Sequence[str]) -> None:
        """Run a program that prepares the server, as the server's account."""
        with self._spawn(command, output=subprocess.PIPE) as tool:
            try:
                said, _ = tool.communicate(timeout=self.ready_within_seconds)
            finally:
                kill_tree(tool.pid)
        if tool.returncode != 0:
            problem = f"{command[0]} failed"
            raise ServerFailedError(problem, log=said.decode(errors="replace"))

    def _end_with(self, number: signal.Signals) -> None:
        with self._lock:
            if self._process is None or not self.running:
                return
            members = process_tree(self._process.pid)
            self.resume()
            self.ask_to_end(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=self.ready_within_seconds)
            for member in members:
                if is_alive(member):
                    kill_tree(member.pid)
            reap(self._process)
            wait_until_dead(members)

    def ask_to_end(self, number: signal.Signals) -> None:
        """Send the signal that ends the server in its own way."""
        os.kill(self.pid, number)

    def _try_start(self) -> bool:
        if self._process is not None:
            reap(self._process)
        self._log_began_at = len(self.log)
        with (self.folder / "log").open("ab") as log:
            self._process = self._spawn(self.command(), output=log.fileno())
        try:
            if self._becomes_ready(self._process):
                return True
        except BaseException:
            self.kill()
            raise
        self.kill()
        return False

    def _spawn(self, command: Sequence[str], *, output: int) -> "subprocess.Popen[bytes]":
        account = self._account
        process = subprocess.Popen(
            command,
            cwd=self.folder,
            env=dict(self.environment()),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            # Ctrl-C in the terminal is for the tests; a test decides when its server ends.
            start_new_session=True,
            user=account.uid if account else None,
            group=account.gid if account else None,
            extra_groups=[] if account else None,
        )
        GUARDIAN.watch_process(process.pid)
        return process

    def _becomes_ready(self, process: "subprocess.Popen[bytes]") -> bool:
        deadline = time.monotonic() + self.ready_within_seconds
        pause = 0.002
        while time.monotonic() < deadline:
            if process.poll() is not None:
                return False
            if self.is_ready():
                return True
            time.sleep(pause)
            pause = min(pause * 1.5, 0.1)
        return False

    def _signal_all(self, number: signal.Signals) -> None:
        for member in process_tree(self.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(member.pid, number)

    def _close_at_exit(self) -> None:
        # A forked worker that ends must not take its parent's server with it.
        if os.getpid() == self._owner:
            self.close()
