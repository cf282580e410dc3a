"""Splink and dedupe on the same generated collections, each in a process of its own.

They are installed from `bench/matchers.lock` into a folder of their own. What cannot be installed or run is "not
measured", with the reason. The lock is renewed with

    uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-annotate -o bench/matchers.lock -

from the lines `splink>=4`, `dedupe>=3` and `BTrees<6`, without which dedupe's index does not work.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

from bench.collections.judging import Mention, judge
from bench.collections.world import NS, World, Written
from bench.peers import ROOT, PeerFailedError, installed

LOCK = ROOT / "bench" / "matchers.lock"
WORKER = Path(__file__).with_name("matcher_worker.py")
_WITHIN_SECONDS = 300


def compare(documents: Sequence[Written], truth: dict[Mention, int]) -> None:
    """Print how well each does on these documents."""
    try:
        folder = installed(LOCK)
    except (PeerFailedError, OSError, subprocess.SubprocessError) as error:
        print(f"splink, dedupe: not measured: {str(error).splitlines()[0]}")
        return
    training = _records(list(World(160, seed=21).documents(80, seed=22)))
    given = json.dumps({"records": _records(documents), "training": training})
    for name in ("splink", "dedupe"):
        began = perf_counter()
        try:
            done = subprocess.run(
                [sys.executable, "-I", str(WORKER), name, str(folder)],
                input=given, capture_output=True, text=True, timeout=_WITHIN_SECONDS, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            print(f"{name}: not measured: it took longer than {_WITHIN_SECONDS} s")
            continue
        if done.returncode != 0:
            print(f"{name}: not measured: {(done.stderr.strip().splitlines() or ['it ended'])[-1][:200]}")
            continue
        answer = json.loads(done.stdout)
        found: dict[Mention, object] = {one: f"alone {one}" for one in truth}
        for id_, group in answer["found"].items():
            document, _, local = id_.partition("\t")
            found[document, local] = group
        print(f"{name} {answer['version']}: {judge(found, truth)}  ({perf_counter() - began:.0f} s)")


def _records(documents: Sequence[Written]) -> list[dict[str, object]]:
    found = []
    for document in documents:
        names = {entity.id: entity.name for entity in document.graph.entities}
        for entity in document.graph.entities:
            said = [one for one in document.graph.relations if one.subject == entity.id]
            values = {one.predicate: one.value.value for one in said if one.value is not None}
            near = {names[one.object] for one in said if one.value is None}
            near |= {names[one.subject] for one in document.graph.relations if one.object == entity.id}
            found.append(
                {
                    "id": f"{document.name}\t{entity.id}", "name": entity.name, "kind": entity.types[0],
                    "year": values.get(NS + "born") or values.get(NS + "founded") or "",
                    "registration": values.get(NS + "registration") or "", "near": sorted(near),
                    "truth": document.truth[entity.id],
                }
            )  # fmt: skip
    return found
