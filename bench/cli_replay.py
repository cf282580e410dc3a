"""What a replay and `sameas --help` cost from the command line: `./run bench cli_replay [ROUNDS]`.

The same text and ontology are extracted once, and then asked for again in new processes, taking turns with a Python
that does nothing. The median of the rounds counts; processor time is printed beside it, because it hardly depends on
what else the machine does. Bytecode is kept, as it is for an installed package; one line shows a machine that keeps none.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from importlib.resources import files
from pathlib import Path
from statistics import median

from tests.servers.model_server import ModelServer

LIMIT = 0.500
ROUNDS = 15
COMMAND = ["-m", "sameas.cli", "extract", "story.txt", "--ontology", "company.ttl"]
HELP = ["-m", "sameas.cli", "--help"]
NOTHING = ["-c", "pass"]


def main(rounds: str = str(ROUNDS)) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name in ("story.txt", "company.ttl", "examples.jsonl"):
            Path(folder, name).write_bytes(files("sameas.example").joinpath(name).read_bytes())
        environment = {**_environment(), "PYTHONPYCACHEPREFIX": str(Path(folder, "bytecode"))}
        _measure(folder, int(rounds), "with the reader", environment)
        _measure(folder, int(rounds), "with the lexicon", {**environment, "SAMEAS_EXTRACTOR": "lexicon"})
        _measure_help(folder, int(rounds), environment)
        # Its one reply is empty: what a replay costs does not depend on it.
        with ModelServer(lambda _: {"entities": [], "values": []}) as server:
            _measure(folder, int(rounds), "with a model", environment, "--model", server.address("tiny"))
        learn = ["-m", "sameas.cli", "learn", "examples.jsonl", "--ontology", "company.ttl"]
        subprocess.run([sys.executable, *learn], cwd=folder, env=environment, check=True, capture_output=True)
        _measure(folder, int(rounds), "with a learned model", environment)
        bare = {**_environment(), "PYTHONDONTWRITEBYTECODE": "1", "SAMEAS_HOME": str(Path(folder, "other"))}
        _measure(folder, int(rounds), "without bytecode", bare)


def _measure(folder: str, rounds: int, name: str, environment: dict[str, str], *options: str) -> None:
    command = [*COMMAND, *options]
    first, _, said = _timed(folder, command, environment)
    if "complete" not in said:
        raise SystemExit(f"the first run was not complete: {said}")
    floors, replays = [], []
    for _ in range(rounds):
        floors.append(_timed(folder, NOTHING, environment))
        replays.append(_timed(folder, command, environment))
        if "replayed" not in replays[-1][2]:
            raise SystemExit(f"not a replay: {replays[-1][2]}")
    _print(f"replay {name}", replays, floors)
    print(f"{'first run':<28} {first * 1000:5.0f} ms in all")


def _measure_help(folder: str, rounds: int, environment: dict[str, str]) -> None:
    _timed(folder, HELP, environment)
    floors, helps = [], []
    for _ in range(rounds):
        floors.append(_timed(folder, NOTHING, environment))
        helps.append(_timed(folder, HELP, environment))
    _print("sameas --help", helps, floors)


def _print(name: str, rounds: list[tuple[float, float, str]], floors: list[tuple[float, float, str]]) -> None:
    wall, floor = (median(one[0] for one in times) for times in (rounds, floors))
    cpu = median(one[1] for one in rounds)
    print(
        f"{name:<28} {wall * 1000:5.0f} ms in all (Python alone {floor * 1000:.0f} ms; {cpu * 1000:.0f} ms of processor "
        f"time; under {LIMIT * 1000:.0f} ms: {'yes' if wall < LIMIT else 'MISSED'})"
    )


def _timed(folder: str, arguments: list[str], environment: dict[str, str]) -> tuple[float, float, str]:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    seconds = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, used, done.stderr


def _environment() -> dict[str, str]:
    left_out = ("SAMEAS_", "PYTHONDONTWRITEBYTECODE")
    return {name: value for name, value in os.environ.items() if not name.startswith(left_out)}


if __name__ == "__main__":
    main(*sys.argv[1:])
