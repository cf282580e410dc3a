"""Two releases on the same stores, as while an upgrade goes on: a node and a worker of each, and no request is told
anything else than it would be by one release alone.

    ./run bench two_releases [COMMIT [REQUESTS]]

The other release is a commit of this repository, the last but one without a word; its history must be here. Requests
are accepted by one node in turn, done by whichever worker is free, and asked for at both nodes.
"""

import json
import subprocess
import tempfile
from contextlib import ExitStack
from pathlib import Path

from bench.limits import verdict
from tests.integration.model_path import ORACLE, sentence
from tests.servers.program import find_program
from tests.storm.cluster_storm import Machines
from tests.unit.server.house import TURTLE

ROOT = Path(__file__).parents[1]


def main(commit: str = "HEAD~1", requests: str = "60") -> None:
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        former = _package(commit, Path(folder))
        machines = Machines(stack, workers=2, broker="rabbitmq", settings={}, former=former)
        machines.model.rescript(ORACLE)
        for number in range(2):
            # Which node says so makes no difference to the other.
            newer = f"<https://sameas.dev/example/company#Newer{number}> a <http://www.w3.org/2002/07/owl#Class> ."
            machines.nodes[number].ask("PUT", "/api/v1/ontologies/company", TURTLE + b"\n" + newer.encode())
        said = [_ask(machines, number) for number in range(int(requests))]
        done = [len([*(one.folder / "home" / "runs").rglob("metadata.json")]) for one in machines.workers]
    alike = sum(first == second for first, second in said)
    print(
        f"{commit} and this release: {alike} of {len(said)} requests are told the same by both nodes"
        f"{verdict(alike == len(said))}; done by a worker of the other release {done[0]}, of this one {done[1]}"
    )


def _ask(machines: Machines, number: int) -> tuple[str, str]:
    """What both nodes say of a request that one of them accepted."""
    body = {
        "text": f"{sentence(number)} Two releases.",
        "ontologyId": "company",
        "extractionParams": {"extractor": "model"},
    }
    first = machines.nodes[number % 2]
    status, said = first.ask("POST", "/api/v1/extract", body, headers={"Prefer": "respond-async"})
    assert status in (200, 202), said
    told = []
    for node in machines.nodes:
        status, said = node.ask("POST", "/api/v1/extract", body)
        assert status == 200, said
        told.append(json.dumps([said[name] for name in ("idempotencyKey", "entities", "relations", "status")]))
    return told[0], told[1]


def _package(commit: str, folder: Path) -> Path:
    """The package as it was at a commit."""
    git = str(find_program("git"))
    packed = subprocess.run([git, "archive", commit, "src/sameas"], cwd=ROOT, capture_output=True, check=False)
    if packed.returncode:
        raise SystemExit(f"bench: the history of this repository has no {commit}: {packed.stderr.decode().strip()}")
    subprocess.run(["tar", "-x", "-C", str(folder)], input=packed.stdout, check=True)
    return folder / "src"


if __name__ == "__main__":
    main()
