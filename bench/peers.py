"""Other libraries from PyPI on the same Redis, each used as its own manual says: aws-lambda-powertools, idemkit,
idempotency-kit.

They are installed from `bench/peers.lock` into a folder of their own and run in a process of their own, which sees
that folder and the standard library only; it takes turns when it is told to. Their floor is redis-py in that very
process. What cannot be installed or used is "not measured", with the reason. The lock is renewed with

    uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-annotate -o bench/peers.lock -

from the lines of `REQUIREMENTS`.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "bench" / "peers.lock"
WORKER = ROOT / "bench" / "stores" / "peer_worker.py"
# Powertools imports boto3 even where Redis is its store.
REQUIREMENTS = (
    "aws-lambda-powertools[aws-sdk,redis]",
    "idemkit[redis]",
    "idempotency-kit[redis]",
    "redis[hiredis]",
)
INSTALL_WITHIN_SECONDS = 120

KINDS = ("fresh", "replay")
SYNC_FLOOR = "floor of the peers, sync"
ASYNC_FLOOR = "floor of the peers, async"
SYNC_PEERS = (SYNC_FLOOR, "aws-lambda-powertools")
ASYNC_PEERS = (ASYNC_FLOOR, "idemkit", "idempotency-kit")


class PeerFailedError(RuntimeError):
    """The peers' process ended or could not be made."""


class Peers:
    """The process of the peers; `missing` says why some are not measured."""

    def __init__(self, process: "subprocess.Popen[str] | None", missing: Mapping[str, str]) -> None:
        self._process = process
        self.missing = dict(missing)
        self.versions: dict[str, str] = {}
        self._there: list[str] = []
        if process is not None:
            hello = self._heard()
            self.versions = hello["versions"]
            self.missing |= hello["missing"]
            self._there = hello["contestants"]

    @property
    def processes(self) -> tuple[int, ...]:
        return () if self._process is None else (self._process.pid,)

    def turns(self, names: tuple[str, ...], kind: str) -> dict[str, Callable[[int], float]]:
        """Those of the names that are there, with their versions, and how to let each take a turn in its process."""
        return {self._shown(name): self._turn(name, kind) for name in names if name in self._there}

    def _shown(self, name: str) -> str:
        version = self.versions.get(name)
        return f"{name} {version}" if version else name

    def _turn(self, name: str, kind: str) -> Callable[[int], float]:
        def turn(calls: int) -> float:
            assert self._process is not None
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps({"name": name, "kind": kind, "calls": calls}) + "\n")
            self._process.stdin.flush()
            return float(self._heard()["seconds"])

        return turn

    def _heard(self) -> dict[str, Any]:
        assert self._process is not None
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise PeerFailedError("the peers' process ended: run bench/stores/peer_worker.py by hand to see why")
        heard: dict[str, Any] = json.loads(line)
        return heard


@contextmanager
def peers_on(url: str, result: object) -> Iterator[Peers]:
    """The peers, ready on a Redis and answering `result`; without any where they cannot be installed."""
    try:
        folder = installed()
    except PeerFailedError as reason:
        yield _none(reason)
        return
    # -S: without our own environment, so that a peer meets the packages that its lock names.
    command = [sys.executable, "-S", str(WORKER), url, json.dumps(result)]
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):
        try:
            peers = Peers(process, {})
        except PeerFailedError as reason:
            peers = _none(reason)
        try:
            yield peers
        finally:
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()


def _none(reason: PeerFailedError) -> Peers:
    return Peers(None, dict.fromkeys((*SYNC_PEERS[1:], *ASYNC_PEERS[1:]), str(reason)))


def installed(lock: Path = LOCK) -> Path:
    """The folder with the packages of the lock; made once for each lock and version of Python."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    digest = hashlib.sha256(lock.read_bytes() + version.encode()).hexdigest()[:16]
    folder = ROOT / ".cache" / "peers" / digest
    if folder.exists():
        return folder
    unfinished = folder.with_suffix(f".{os.getpid()}")
    options = ["--quiet", "--target", str(unfinished), "--require-hashes", "--requirement", str(lock)]
    command = [sys.executable, "-m", "uv", "pip", "install", "--system-certs", "--python", sys.executable, *options]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=INSTALL_WITHIN_SECONDS)
        unfinished.rename(folder)
    except subprocess.CalledProcessError as error:
        raise PeerFailedError("it could not be installed: " + _reason(error.stderr)) from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PeerFailedError(f"it could not be installed: {type(error).__name__}") from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return folder


def _reason(said: str) -> str:
    """The kind of failure, without the paths and addresses that an installer prints."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    first = lines[0] if lines else "the installer said nothing"
    return first if not any(mark in first for mark in ("/", "\\")) else "the installer failed"


def main(*arguments: str) -> None:
    """Install them and say which versions they are."""
    folder = installed()
    for about in sorted(folder.glob("*.dist-info")):
        name, _, version = about.name.removesuffix(".dist-info").rpartition("-")
        print(f"{name} {version}")


if __name__ == "__main__":
    main()
