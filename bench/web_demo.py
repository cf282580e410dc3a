"""A service with something to show: the documents that come along, two versions of their ontology, clients with keys.

The hourly counts of the past thirty days are invented; what is counted while this runs is real.
"""

import asyncio
import math
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from sameas.once.call_builder import identity_of
from sameas.once.observe import CallEnded, CallStarted, Removed
from sameas.once.record import About, ClaimRequest, Identity
from sameas.server.app import open_entry
from sameas.server.runs.hourly_counts import HOUR, HourlyCounts
from sameas.server.runs.models import ModelWish
from sameas.tenancy import open_tables
from tests.servers.model_server import ModelServer
from tests.unit.server.house import SLOW, WITHIN, HeldExtractor, Hold, Running, running, settings_for

EXAMPLE = Path(__file__).resolve().parents[1] / "src" / "sameas" / "example"
QUESTION = "Who founded the companies that Halyard Ventures backed?"
QUERY = """SELECT ?company ?founder {
  ?investor rdfs:label "Halyard Ventures" ; :investedIn ?company .
  ?company :founder ?founder .
} LIMIT 50"""
DOCUMENTS = sorted((EXAMPLE / "collection").glob("*.txt"))
# Of the run that is under way.
_READ_CHUNKS = 45


class Demo(NamedTuple):
    """Where it is, and what is in it: a run and another of the same text, a collection and an entity of it; beside it a
    run that is under way in a service of its own, and a service that asks for a credential.
    """

    url: str
    service: Running
    run: str
    other: str
    collection: str
    entity: str
    live: str
    door: str


@contextmanager
def demo_service(home: Path) -> Iterator[Demo]:
    """A service until the block ends."""
    _invent_counts(home)
    # The one answer that the model on loopback knows.
    model = ModelServer({"sparql": QUERY})
    with (
        model,
        running(home, extractor="", base="https://example.org/", lease=30.0, models=model.address("demo")) as service,
        _under_way(home / "live") as live,
        _shut(home / "shut") as door,
    ):
        run, other = _extract(service)
        yield Demo(service.url, service, run, other, *_collect(service), live, door)


class _LexiconHeld(Hold):
    """Holds the lexicon, which goes by its own name."""

    def extractor(self, wish: ModelWish) -> HeldExtractor:
        held = super().extractor(wish)
        held.name = "lexicon"
        return held


@contextmanager
def _under_way(home: Path) -> Iterator[str]:
    """The address of a run that is in its middle until the block ends."""
    hold = _LexiconHeld(after=_READ_CHUNKS)
    with running(home, hold=hold) as service:
        text = "\n\n".join(path.read_text("utf-8") for path in (EXAMPLE / "story.txt", *DOCUMENTS))
        request = {
            "text": text,
            "ontologyId": "company",
            "document": "harbour and tram depot.txt",
            "extractionParams": SLOW,
        }
        answer = service.client.post("/api/v1/extract", json=request, headers={"Prefer": "respond-async"})
        answer.raise_for_status()
        hold.reached.wait(WITHIN)
        yield f"{service.url}/#/studio/{answer.json()['idempotencyKey']}"


@contextmanager
def _shut(home: Path) -> Iterator[str]:
    """The address of a service that lets nobody in without a key."""
    home.mkdir()
    open_tables(f"sqlite:///{home}/tenants.db").close()
    with running(home, entry=open_entry(settings_for(home, auth="api-key")), auth="api-key") as service:
        yield service.url


def _extract(service: Running) -> tuple[str, str]:
    """Runs of every document under a client's keys; of the story a second one, by the lexicon."""
    client = service.client
    turtle = (EXAMPLE / "company.ttl").read_bytes()
    older = turtle.replace(b'skos:altLabel "works with"@en, "cooperates with"@en ; ', b"").replace(
        b':Material a owl:Class ; rdfs:label "material"@en, "Werkstoff"@de, "mat\xc3\xa9riau"@fr .', b""
    )
    for version in (older, turtle):
        client.put("/api/v1/ontologies/company", content=version).raise_for_status()
    story = EXAMPLE / "story.txt"
    key = ""
    for path in (*DOCUMENTS, story):
        request = {"text": path.read_text("utf-8"), "ontologyId": "company", "document": path.name}
        headers = {"Idempotency-Key": f"import-{path.stem}"}
        for _ in range(2):
            answer = client.post("/api/v1/extract", json=request, headers=headers, timeout=120)
            answer.raise_for_status()
        key = answer.json()["idempotencyKey"]
    params = {"extractor": "lexicon"}
    other = client.post("/api/v1/extract", json={**request, "extractionParams": params}, timeout=120).json()
    hold_key(service, "order-2026-0815")
    return key, other["idempotencyKey"]


def _collect(service: Running) -> tuple[str, str]:
    """One graph of all documents, and another of the story."""
    _collection(service, "tram depot", [EXAMPLE / "story.txt"])
    client = service.client
    id_ = _collection(service, "harbour robotics", DOCUMENTS)
    address = f"/api/v1/collections/{id_}"
    # Two documents give it two years of foundation; somebody knows that it is one all the same.
    a, b = _named(service, address, "Solheim Foundation")
    decision = {"verdict": "same", "a": a, "b": b, "reason": "there is only one in Bergen"}
    client.post(f"{address}/decisions", json=decision).raise_for_status()
    return id_, _named(service, address, "Tidewater Robotics")[0]


def _collection(service: Running, name: str, documents: list[Path]) -> str:
    client = service.client
    made = client.post("/api/v1/collections", json={"name": name, "ontologyId": "company"})
    made.raise_for_status()
    address = f"/api/v1/collections/{made.json()['id']}"
    texts = [{"name": path.name, "text": path.read_text("utf-8")} for path in documents]
    client.post(f"{address}/documents", json={"documents": texts}).raise_for_status()
    while client.get(f"{address}/sync").json()["waiting"]:
        time.sleep(0.2)
    return str(made.json()["id"])


def _named(service: Running, address: str, name: str) -> list[str]:
    found = service.client.get(f"{address}/entities", params={"q": name}).json()["entities"]
    return [one["id"] for one in found if one["name"] == name]


def hold_key(service: Running, key: str) -> None:
    """A key whose worker is at it."""
    app = service.app.service
    identity = identity_of("extract", f"{'7' * 64}:{key}", tenant=app.settings.tenant)
    about = About(owner="importer-2:4711", route="/api/v1/extract", method="POST")
    claim = ClaimRequest(identity, "fingerprint", "attempt", 900_000_000, 86_400_000_000, about=about)

    async def do() -> None:
        await app.do(app.store.claim(claim))

    asyncio.run_coroutine_threadsafe(do(), app._serving).result(30)  # type: ignore[arg-type]


def _invent_counts(home: Path) -> None:
    """Thirty days of a service that is busy by day; three days ago a client began to retry too hard."""
    home.mkdir(parents=True, exist_ok=True)
    chance = random.Random(7)
    now = int(time.time()) // HOUR * HOUR
    clock = [0.0]
    counts = HourlyCounts(f"sqlite:///{home}/counts.db", clock=lambda: clock[0])
    for back in range(29 * 24, 0, -1):
        clock[0] = now - back * HOUR
        busy = 8 + 30 * max(0.0, math.sin((back % 24) / 24 * math.tau)) * chance.uniform(0.6, 1.3)
        if (now - back * HOUR) // (24 * HOUR) % 7 in (2, 3):
            busy *= 0.3
        retries = 0.09 if back < 60 else 0.02
        for _ in range(round(busy)):
            _count(counts, "extract", chance, replays=retries)
        for _ in range(round(busy * 1.6)):
            _count(counts, "extraction", chance, replays=0.42)
        if back % 6 == 0:
            counts.on(Removed("expired", round(busy * chance.uniform(2, 5))))
        counts.flush()
    counts.close()


def _count(counts: HourlyCounts, scope: str, chance: random.Random, *, replays: float) -> None:
    how, waited = "fresh", 0.0
    if chance.random() < replays:
        how, waited = ("shared", chance.uniform(0.1, 2.5)) if chance.random() < 0.2 else ("replay", 0.0)
    counts.on(CallEnded(CallStarted(Identity(b"", "", scope, "key"), {}), how, 0.1, waited))
