"""`./run demo`: a document becomes a graph, again as a replay, and again after an edit; then the engine underneath.

Everything happens in a temporary folder, through the same command line that people use.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from pathlib import Path
from typing import Any

from sameas import Engine, Policy, open_store
from sameas.cli.tables import print_table
from sameas.extraction.outputs.context import local_name

BEFORE = "employs 640 people"
AFTER = "employs 655 people"
SHOWN = 24
LINES = 17
QUOTED = 68
_SENTENCE_END = re.compile(r"[.!?]\s+|\n")


ORDER = {"id": "o-1001", "customer": "c-7", "total": "24.98", "currency": "EUR", "sent_at": "10:00:00"}
LEASE = 0.5

DYING_WORKER = """
import os, signal, sys
from sameas import Engine, Policy, open_store
engine = Engine(open_store(sys.argv[1]), policy=Policy(lease=float(sys.argv[2])))
engine.run(lambda ctx: os.kill(os.getpid(), signal.SIGKILL), scope="ship", key="o-1001")
"""


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="sameas-demo-") as folder:
        home = Path(folder)
        for name in ("story.txt", "company.ttl"):
            (home / name).write_bytes(files("sameas.example").joinpath(name).read_bytes())
        first = extract(home, "1. A story of two pages and an ontology:")
        show(first)
        show_turtle(home)
        extract(home, "2. The same work again:")
        story = (home / "story.txt").read_text("utf-8")
        (home / "story.txt").write_text(story.replace(BEFORE, AFTER), "utf-8")
        edited = extract(home, f"3. One sentence is edited ({BEFORE!r} becomes {AFTER!r}):")
        compare(home, first, edited)
    print("\nThe engine underneath, on its own:\n")
    show_engine()


def extract(home: Path, title: str) -> dict[str, Any]:
    print(title)
    began = time.perf_counter()
    done = sameas(home, "extract", "story.txt", "--ontology", "company.ttl", "--json", "--quiet")
    seconds = time.perf_counter() - began
    found: dict[str, Any] = json.loads(done)
    metadata = json.loads((home / found["folder"] / "metadata.json").read_text("utf-8"))
    found["metadata"] = metadata
    how = "replayed, nothing was extracted" if found["cacheHit"] else f"extracted in {metadata['durationMs']} ms"
    print(f"   $ sameas extract story.txt --ontology company.ttl      ({seconds:.2f} s with Python's own start)")
    print(f"   {len(found['entities'])} entities, {len(found['relations'])} relations: {how}")
    print(f"   key {found['idempotencyKey']}\n")
    return found


def show(found: dict[str, Any]) -> None:
    names = {entity["id"]: entity["name"] for entity in found["entities"]}
    kinds = {entity["id"]: local_name(entity["types"][0]) for entity in found["entities"]}
    # The best connected things first: they are what the story is about.
    ends = [end for one in found["relations"] for end in (one["subject"], one.get("object", ""))]
    order = sorted(found["relations"], key=lambda one: (-ends.count(one["subject"]), one["subject"], one["predicate"]))
    rows = [
        [
            names[one["subject"]],
            kinds[one["subject"]],
            local_name(one["predicate"]),
            names[one["object"]] if one.get("object") else f"{one['value']['value']} {one['value'].get('unit', '')}",
            _quote(one),
        ]
        for one in order[:SHOWN]
    ]
    print_table(("subject", "class", "property", "object", "because the text says"), rows, to=sys.stdout)
    print(
        f"   ... and {len(order) - len(rows)} more, each tied to the characters that say it; "
        "`sameas runs show KEY` lists all\n"
    )


def show_turtle(home: Path) -> None:
    print("   A part of graph.ttl:")
    turtle = sameas(home, "extract", "story.txt", "--ontology", "company.ttl", "--quiet")
    lines = turtle.splitlines()
    entity = next(number for number, line in enumerate(lines) if line.startswith(":nordlicht-speicher"))
    fact = next(number for number, line in enumerate(lines) if "#acquired> " in line)
    for line in (*lines[entity : entity + 3], *lines[fact : fact + LINES]):
        print(f"   | {line.expandtabs(4)[:120]}")
    print()


def compare(home: Path, first: dict[str, Any], edited: dict[str, Any]) -> None:
    metadata = edited["metadata"]
    chunks = metadata["chunks"]
    events = [json.loads(line) for line in (home / edited["folder"] / "events.jsonl").read_text("utf-8").splitlines()]
    worked = {
        event["chunkIndex"]
        for event in events
        if event["type"] == "chunk_completed" and event["stage"] == "entity_extraction" and not event.get("cached")
    }
    before = {_fact(one) for one in first["relations"]}
    after = {_fact(one) for one in edited["relations"]}
    print(f"   {len(worked)} of {chunks} chunks redone, {chunks - len(worked)} reused; the graph changed by:")
    for sign, facts in (("-", before - after), ("+", after - before)):
        for subject, predicate, value in sorted(facts):
            print(f"   {sign} {subject} {predicate} {value}")


def _quote(relation: dict[str, Any]) -> str:
    """The words from one end of the relation to the other, and what leads to them; the middle of many is left out."""
    evidence = relation["evidence"][0]
    spans = (*relation["subjectSpans"][:1], *relation["objectSpans"][:1])
    start = max(min(span["start"] for span in spans) - evidence["start"], 0)
    end = max(span["end"] for span in spans) - evidence["start"]
    words = evidence["text"][start:end]
    if len(words) > QUOTED:
        first, last = words[: QUOTED // 3].rpartition(" "), words[5 - 2 * QUOTED // 3 :].partition(" ")
        return " ".join(f"{first[0] or first[2]} ... {last[2] or last[0]}".split())
    # "The chief executive of Acme is Mary" says it, "Acme is Mary" does not.
    before = evidence["text"][max(0, start + len(words) - QUOTED) : start]
    lead = before if len(before) == start else before.partition(" ")[2]
    return " ".join((_SENTENCE_END.split(lead)[-1] + words).split())


def _fact(relation: dict[str, Any]) -> tuple[str, str, str]:
    value = relation.get("object") or relation["value"]["value"]
    return relation["subject"].rpartition("-")[0], local_name(relation["predicate"]), value


def sameas(home: Path, *arguments: str) -> str:
    """Run a command as a person would, in the folder."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SAMEAS_")}
    done = subprocess.run(
        [sys.executable, "-m", "sameas.cli", *arguments],
        cwd=home,
        env={**environment, "PYTHONUTF8": "1"},
        stdout=subprocess.PIPE,
        check=True,
        encoding="utf-8",
    )
    return done.stdout


def show_engine() -> None:
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/sameas.db"
        with Engine(open_store(url), policy=Policy(lease=LEASE)) as engine:
            print("Records are kept in a SQLite file; every result is on disk before anybody gets it.\n")
            same_order_twice(engine)
            impatient_crowd(engine)
            dead_worker(engine, url)


def same_order_twice(engine: Engine) -> None:
    print("1. The same order, delivered twice (the second time with another sent_at):")
    charges: list[str] = []

    @engine.once(scope="charge", exclude_fields={"sent_at"})
    def charge(order: dict[str, Any]) -> dict[str, Any]:
        time.sleep(0.15)  # a payment provider takes its time
        charges.append(order["id"])
        return {"charged": order["total"], "receipt": f"r-{order['id']}"}

    for delivery in (ORDER, ORDER | {"sent_at": "10:00:05"}):
        began = time.perf_counter()
        record = charge.record(delivery)
        milliseconds = (time.perf_counter() - began) * 1_000
        how = "replayed" if record.was_replay else "run for real"
        print(f"   {how:<13} in {milliseconds:8.3f} ms -> {record.result}")
    print(f"   the provider was asked {len(charges)} time(s)\n")


def impatient_crowd(engine: Engine) -> None:
    print("2. Twenty clicks at once:")
    runs: list[int] = []

    def book(context: object) -> str:
        runs.append(1)
        time.sleep(0.1)
        return "seat 12A"

    with ThreadPoolExecutor(20) as clicks:
        answers = set(clicks.map(lambda _: engine.run(book, scope="book", key="click-1"), range(20)))
    print(f"   {len(runs)} run, 20 answers, all equal: {answers}\n")


def dead_worker(engine: Engine, url: str) -> None:
    print("3. A worker is killed in the middle of its work (kill -9):")
    worker = subprocess.run([sys.executable, "-c", DYING_WORKER, url, str(LEASE)], check=False)
    assert worker.returncode == -signal.SIGKILL
    began = time.perf_counter()
    record = engine.record(lambda ctx: f"shipped by process {os.getpid()}", scope="ship", key="o-1001")
    waited = time.perf_counter() - began
    print(f"   taken over after {waited:.2f} s (its lease was {LEASE} s), attempt {record.attempt}: {record.result}")


if __name__ == "__main__":
    main()
