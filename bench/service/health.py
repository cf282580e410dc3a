"""How soon the service says that it lives while a large ontology is loaded and a long text is read."""

import multiprocessing
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Event
from random import Random
from statistics import median, quantiles

import httpx

_PROCESSES = multiprocessing.get_context("spawn")

CLASSES = 60_000
TEXT_BYTES = 15_000_000
EVERY = 0.02
_HEAD = "<https://example.org/large> a <http://www.w3.org/2002/07/owl#Ontology> .\n"
_CLASS = (
    "<https://example.org/large#C{n}> a <http://www.w3.org/2002/07/owl#Class> ; "
    '<http://www.w3.org/2000/01/rdf-schema#label> "{label}"@en ; '
    "<http://www.w3.org/2000/01/rdf-schema#subClassOf> <https://example.org/large#C{above}> .\n"
)


def large_ontology() -> bytes:
    """An ontology of sixty thousand classes, each with a label of two words and a number."""
    chance = Random(7)
    words = ["".join(chance.choice("bdfglmnprst") + chance.choice("aeiou") for _ in range(3)) for _ in range(4_000)]
    classes = (
        _CLASS.format(n=n, label=f"{chance.choice(words)} {chance.choice(words)} {n}", above=chance.randrange(n or 1))
        for n in range(CLASSES)
    )
    return (_HEAD + "".join(classes)).encode()


def long_text() -> str:
    """Fifteen megabytes of sentences, with blanks at the ends of lines that normalising takes away."""
    chance = Random(7)
    names = ("Anna Stone", "Bob Miller", "Carl Young", "Acme Ltd", "Globex Inc", "Paris")
    lines = (
        f"{chance.choice(names)} works for {chance.choice(names)} in {chance.choice(names)}.  \n" for _ in range(2_000)
    )
    block = "".join(lines)
    return block * (TEXT_BYTES // len(block) + 1)


def work(port: int, *, seconds: float, by: str) -> list[str]:
    """Put the ontology, have the long text read for a while and a short one beside it, both by the same extractor; says
    how long each took.
    """
    said = []
    data, text = large_ontology(), long_text()
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=300) as client, probing(port) as delays:
        began = time.perf_counter()
        put = client.put("/api/v1/ontologies/large", content=data)
        said.append(f"put {len(data) >> 20} MiB: {put.status_code} after {time.perf_counter() - began:.1f} s")
        began = time.perf_counter()
        wanted = {"text": text, "ontologyId": "large", "extractionParams": {"extractor": by}}
        accepted = client.post("/api/v1/extract", json=wanted, headers={"Prefer": "respond-async"})
        said.append(f"{len(text)} characters: {accepted.status_code} after {time.perf_counter() - began:.1f} s")
        short = time.perf_counter()
        beside = client.post("/api/v1/extract", json={**wanted, "text": "Anna met Bob."})
        said.append(f"a short text beside it: {beside.status_code} after {time.perf_counter() - short:.1f} s")
        time.sleep(max(0.0, seconds - (time.perf_counter() - began)))
        place = accepted.headers["location"]
        said.append(f"then the long one was {client.get(place).json()['status']}")
        client.delete(place)
    found = delays()
    p99 = quantiles(found, n=100)[98]
    verdict = "yes" if p99 < 0.1 else "MISSED"
    figure = (
        f"health checks while {CLASSES} classes are loaded and {len(text)} characters are read by the {by}: "
        f"{len(found)} checks, "
        f"p50 {median(found) * 1e3:.1f} ms  p99 {p99 * 1e3:.1f} ms  worst {max(found) * 1e3:.0f} ms"
        f"  (p99 below 100 ms: {verdict})"
    )
    return [figure, *(f"  {line}" for line in said)]


@contextmanager
def probing(port: int) -> Iterator[Callable[[], list[float]]]:
    """Health checks from a process that does nothing else; their delays, once the block has ended."""
    results = _PROCESSES.Queue()
    stop = _PROCESSES.Event()
    process = _PROCESSES.Process(target=_probe, args=(port, stop, results))
    process.start()
    # The first word says that it has begun.
    results.get()
    found: list[float] = []
    try:
        yield lambda: found
    finally:
        stop.set()
        found += results.get()
        process.join()


def _probe(port: int, stop: Event, results: "Queue[list[float]]") -> None:
    delays: list[float] = []
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=300) as client:
        client.get("/health/live")
        results.put([])
        while not stop.wait(EVERY):
            began = time.perf_counter()
            client.get("/health/live")
            delays.append(time.perf_counter() - began)
    results.put(delays)
