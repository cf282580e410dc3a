"""The same applications on uvicorn, asked by wrk over loopback: requests per second, in turns."""

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import httpx

from bench.http.apps import BARE, BESIDE, FLOOR, NAMES, OURS, TIER
from bench.http.asking import order
from bench.http.in_process import FRESH_AT_LEAST, REPLAY_AT_LEAST, TIER_AT_LEAST
from bench.stores.turns import Figure
from tests.servers.port import free_port

ROOT = Path(__file__).resolve().parents[2]
CONNECTIONS = 16
# More than there are connections, so that few ask for one key at a time.
REPLAYED_KEYS = 128
ALL_NEW = 1_000_000_000
SLOW_CLIENTS = 1_000
# Of their own speed alone: the slow ones cost their memory and their leases, not the others' time.
BESIDE_AT_LEAST = 0.9
READY_WITHIN_SECONDS = 60
WRK = """
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
local number = 0
request = function()
  number = (number + 1) % {keys}
  wrk.headers["Idempotency-Key"] = '"{prefix}-' .. number .. '"'
  return wrk.format(nil, "/orders", nil, '{body}')
end
"""


class WrkMissingError(RuntimeError):
    """wrk is not installed."""


@contextmanager
def servers(url: str) -> Iterator[Mapping[str, str]]:
    """One uvicorn for each application; their addresses by name."""
    running, addresses = [], {}
    try:
        for name in (*NAMES, BESIDE):
            port = free_port()
            addresses[name] = f"http://127.0.0.1:{port}"
            environment = {**os.environ, "BENCH_HTTP_APP": name, "BENCH_HTTP_REDIS": url}
            command = [sys.executable, "-m", "uvicorn", "--factory", "bench.http.apps:make_app", "--port", str(port)]
            options = ["--no-access-log", "--log-level", "error", "--backlog", "4096"]
            running.append(subprocess.Popen([*command, *options], cwd=ROOT, env=environment, stderr=subprocess.DEVNULL))
        for address in addresses.values():
            _await(address)
        yield addresses
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.wait()


def figures(addresses: Mapping[str, str], *, rounds: int, seconds: int) -> dict[str, list[Figure]]:
    """The tables by their titles: seconds per request, as the other tables have it."""
    if shutil.which("wrk") is None:
        raise WrkMissingError
    taken: dict[tuple[str, str], list[float]] = {}
    for number in range(rounds):
        for kind in ("fresh", "replay"):
            for name in NAMES:
                rate = _wrk(addresses[name], kind, seconds, salt=number)
                taken.setdefault((kind, name), []).append(1 / rate)
    tables = {}
    for title, kind, floor, goals in (
        ("fresh", "fresh", FLOOR, {OURS: FRESH_AT_LEAST}),
        ("replay", "replay", FLOOR, {OURS: REPLAY_AT_LEAST}),
        ("replay from the local tier", "replay", BARE, {TIER: TIER_AT_LEAST}),
    ):
        names = (BARE, TIER) if floor == BARE else (BARE, FLOOR, OURS)
        tables[f"uvicorn and wrk, {title}"] = [
            Figure(
                name,
                median(taken[kind, name]),
                None
                if name == floor
                else median(base / time for base, time in zip(taken[kind, floor], taken[kind, name], strict=True)),
                goals.get(name),
            )
            for name in names
        ]
    return tables


def slow_readers(addresses: Mapping[str, str], *, rounds: int, seconds: int) -> dict[str, list[Figure]]:
    """What quick clients take, alone and beside clients that read a byte a second of an answer that is streamed."""
    if shutil.which("wrk") is None:
        raise WrkMissingError
    taken: dict[tuple[str, str], list[float]] = {}
    with _reading_slowly(addresses[BESIDE]):
        for number in range(rounds):
            for name in (OURS, BESIDE):
                before = _state(addresses[name])["processor_seconds"]
                rate = _wrk(addresses[name], "replay", seconds, salt=number)
                spent = _state(addresses[name])["processor_seconds"] - before
                taken.setdefault(("", name), []).append(1 / rate)
                taken.setdefault((", processor time", name), []).append(spent / (rate * seconds + REPLAYED_KEYS))
        held_up = _state(addresses[BESIDE])["waiting"]
        if held_up != SLOW_CLIENTS:
            raise RuntimeError(f"{SLOW_CLIENTS - held_up} of the slow clients were not slow: they have their answers")
    return {
        f"uvicorn and wrk, replay, {SLOW_CLIENTS:,} others of the server read a byte a second{kind}": [
            Figure("alone", median(taken[kind, OURS]), None, None),
            Figure(
                "beside them",
                median(taken[kind, BESIDE]),
                median(alone / beside for alone, beside in zip(taken[kind, OURS], taken[kind, BESIDE], strict=True)),
                # Their leases take processor time whether the others ask much or little: no share of it is a target.
                BESIDE_AT_LEAST if not kind else None,
            ),
        ]
        for kind in ("", ", processor time")
    }


def _state(address: str) -> dict[str, float]:
    state: dict[str, float] = httpx.get(f"{address}/state", timeout=60).json()
    return state


@contextmanager
def _reading_slowly(address: str) -> Iterator[None]:
    host, port = address.removeprefix("http://").split(":")
    done = threading.Event()
    slow: list[socket.socket] = []

    def read() -> None:
        while not done.wait(1):
            for connection in slow:
                connection.recv(1)

    reader = threading.Thread(target=read)
    try:
        for number in range(SLOW_CLIENTS):
            connection = socket.socket()
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            connection.connect((host, int(port)))
            slow.append(connection)
            lines = ("POST /large HTTP/1.1", "Host: x", "Content-Length: 0", f'Idempotency-Key: "slow-{number}"')
            connection.sendall("\r\n".join([*lines, "", ""]).encode())
        for connection in slow:
            connection.recv(1)
        reader.start()
        yield
    finally:
        done.set()
        if reader.ident is not None:
            reader.join()
        for connection in slow:
            connection.close()


def _wrk(address: str, kind: str, seconds: int, *, salt: int) -> float:
    keys = ALL_NEW if kind == "fresh" else REPLAYED_KEYS
    prefix = f"wrk-{salt}-{time.monotonic_ns()}"
    if kind == "replay":
        with httpx.Client() as http:
            for number in range(keys):
                headers = {"Content-Type": "application/json", "Idempotency-Key": f'"{prefix}-{number}"'}
                http.post(f"{address}/orders", content=order(0), headers=headers).raise_for_status()
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(WRK.format(prefix=prefix, keys=keys, body=order(0).decode()))
        script.flush()
        command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "-s", script.name, address]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    if "Non-2xx" in said:
        raise RuntimeError(f"some requests were refused: {said}")
    found = re.search(r"Requests/sec:\s+([\d.]+)", said)
    assert found, said
    return float(found[1])


def _await(address: str) -> None:
    deadline = time.monotonic() + READY_WITHIN_SECONDS
    while True:
        try:
            httpx.get(address)
            return
        except httpx.TransportError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
