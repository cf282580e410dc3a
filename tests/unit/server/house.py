"""A running service for tests: on a free port of this machine, in a thread, with an extractor that can be held."""

import asyncio
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import uvicorn

from sameas.extraction.extractors.contract import Found
from sameas.extraction.extractors.lexicon import LexiconExtractor
from sameas.extraction.graph.model import Claim, Mention
from sameas.extraction.text.chunking import Chunk
from sameas.ontology.focus import Focus
from sameas.ontology.index import OntologyIndex
from sameas.ontology.model import Ontology
from sameas.server.app import App, Entry, open_entry
from sameas.server.logs import RequestLog
from sameas.server.runs.models import Models, ModelWish
from sameas.server.serving import BoundedHeads, Server, messages_within
from sameas.settings import Settings

EXAMPLE = Path(__file__).resolve().parents[3] / "src" / "sameas" / "example"
TURTLE = (EXAMPLE / "company.ttl").read_bytes()
TEXT = "Anna Stone works for Acme Ltd. Bob Miller is the founder of Globex Inc."
REQUEST = {"text": TEXT, "ontologyId": "company"}
SLOW = {"extractor": "model", "model": "held", "chunkSize": 100}
LONG = "\n\n".join(
    f"Anna{n} Stone works for Acme{n} Ltd. Carl{n} Young lives in the old town of Paris{n}." for n in range(30)
)
WITHIN = 30.0


class HeldExtractor:
    """The lexicon, which stops before a chunk while it is held, and counts what it is asked."""

    name = "held"
    version = "1"
    settings: Mapping[str, Any] = {}

    def __init__(self, hold: "Hold", ontology: Ontology) -> None:
        self._hold = hold
        self._inner = LexiconExtractor(OntologyIndex(ontology))

    async def extract_entities(self, chunk: Chunk, focus: Focus) -> Found[Mention]:
        self._hold.asked += 1
        while self._hold.is_held(self._hold.asked):
            self._hold.reached.set()
            await asyncio.sleep(0.01)
        return await self._inner.extract_entities(chunk, focus)

    async def extract_relations(self, chunk: Chunk, mentions: Sequence[Mention], focus: Focus) -> Found[Claim]:
        return await self._inner.extract_relations(chunk, mentions, focus)


class Hold:
    """Holds extractors before their next chunks until it is let go."""

    def __init__(self, after: int = 2) -> None:
        self.asked = 0
        self.after = after
        self.held = True
        self.reached = threading.Event()

    def is_held(self, asked: int) -> bool:
        return self.held and asked > self.after

    def let_go(self) -> None:
        self.held = False

    def extractor(self, wish: ModelWish) -> HeldExtractor:
        return HeldExtractor(self, wish.ontology)


class Running:
    """A service and its address."""

    def __init__(self, app: App, server: Server, url: str) -> None:
        self.app = app
        self.server = server
        self.url = url
        self.client = httpx.Client(base_url=url, timeout=WITHIN)

    @property
    def socket_url(self) -> str:
        return self.url.replace("http", "ws") + "/api/rpc"

    def stop(self) -> None:
        self.server.should_exit = True


def with_company(home: Path) -> Path:
    folder = home / "ontologies"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "company.ttl").write_bytes(TURTLE)
    return home


def settings_for(home: Path, **changes: Any) -> Settings:
    return Settings(home=with_company(home), port=0, **{"lease": 5.0, "grace": 10.0, "extractor": "lexicon", **changes})


@contextmanager
def running(
    home: Path, *, hold: Hold | None = None, entry: Entry | None = None, apart: bool = False, **changes: Any
) -> Iterator[Running]:
    """A service until the block ends. Models that are listed are asked in this process, which has a provider's package
    already, unless `apart` has it done as a deployment does.
    """
    settings = settings_for(home, **changes)
    here = Models(settings) if settings.models and not apart else None
    chosen = entry or open_entry(settings, models=hold.extractor if hold else here)
    app = App(settings, chosen, log=RequestLog(enabled=False))
    config = uvicorn.Config(
        app,
        host="127.0.0.1",
        port=0,
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=5,
        lifespan="on",
        http=BoundedHeads,
        ws=messages_within(app.service.body_memory),
    )
    server = Server(config, app)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()))
    thread.start()
    try:
        ends_at = time.monotonic() + WITHIN
        while not server.started and time.monotonic() < ends_at and thread.is_alive():
            time.sleep(0.01)
        assert server.started, "the service did not start"
        port = server.servers[0].sockets[0].getsockname()[1]
        service = Running(app, server, f"http://127.0.0.1:{port}")
        try:
            yield service
        finally:
            service.client.close()
    finally:
        if hold is not None:
            hold.let_go()
        server.should_exit = True
        thread.join(WITHIN)
        chosen.close()
    assert not thread.is_alive(), "the service did not stop"


def read_events(lines: Iterator[str]) -> Iterator[tuple[int | None, str, str]]:
    """Number, type and data of each server-sent event."""
    number: int | None = None
    kind = data = ""
    for line in lines:
        if line.startswith("id: "):
            number = int(line[4:])
        elif line.startswith("event: "):
            kind = line[7:]
        elif line.startswith("data: "):
            data = line[6:]
        elif not line and kind:
            yield number, kind, data
            number, kind, data = None, "", ""
