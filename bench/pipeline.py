"""Figures of the model path: a server of fixed latency, our own work for each call, memory, and what caches save.

`python -m bench pipeline [--latency S] [--slots C] [--chunks N] [--long N]`. The server is a process of its own on
loopback, so that its work is not counted as ours. Everything between is real: HTTP, SQLite, files.
"""

import argparse
import asyncio
import gc
import math
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import NamedTuple

import msgspec

from sameas import open_async_store
from sameas.extraction.extractors.prompted import ModelControl, ModelExtractor, PromptSettings
from sameas.extraction.extractors.prompted.asking import question
from sameas.extraction.extractors.prompted.replies import EntityReply
from sameas.extraction.extractors.prompted.settings import ExtractionMode
from sameas.extraction.pipeline.settings import PipelineSettings
from sameas.extraction.runs.service import Extraction, ExtractionService
from sameas.extraction.text.chunking import ChunkSettings, chunk_text
from sameas.llm.account import RateLimits
from sameas.llm.limiter import CentralRateLimiterService
from sameas.llm.memo import CallMemo
from sameas.llm.models import Ask, Model, Reply, Usage, open_model
from sameas.llm.tokens import counter_for
from sameas.once.async_engine import AsyncEngine
from sameas.ontology.focus import Focuser
from sameas.ontology.index import OntologyIndex
from sameas.ontology.load import read_ontology
from tests.servers.model_oracle import Fact, Oracle, Seen
from tests.servers.model_script import Call, Step, says
from tests.servers.model_server import ModelServer

from .extraction import ONTOLOGY

# A paragraph of one sentence is a chunk.
CHUNKS = ChunkSettings(window=100, limit=2000)
FILLER = "nothing of note was said about it and the meeting went on for a while in the usual manner, " * 4
SAID = re.compile(r"(\w+ Stone) works for (\w+ Robotics)")
BYTES_PER_TOKEN = 4
# The memory of a long text: megabytes over that of a short one, which is room of a fixed size that a short one does not
# fill (the spools' in memory, arenas of the allocator), and bytes for each chunk more, once that is full. A chunk here
# is 400 bytes and its question 2,500.
TARGETS = {"time": 1.05, "cpu": 3.0, "cached": 5.0, "memoised": 1.5, "growth": 2.0, "slope": 50.0}
SHORT, MIDDLE = 100, 1_000
FACTS = 20
# Texts of the same kind and length, one for each round.
ROUNDS = ("minutes", "records", "letters")


class Setup(NamedTuple):
    """A service with its extractor."""

    service: ExtractionService
    extractor: ModelExtractor
    index: OntologyIndex
    slots: int

    async def extract(self, text: str | Iterator[str]) -> Extraction:
        return await self.service.extract(
            text,
            ontology=self.index.ontology,
            extractor=self.extractor,
            settings=PipelineSettings(chunking=CHUNKS, concurrency=self.slots),
        )


def paragraphs(count: int, *, every: int = 1, source: str = ROUNDS[0]) -> Iterator[str]:
    """A paragraph, and so a chunk, for each number; one in `every` says something."""
    for number in range(count):
        said = f"Person{number} Stone works for Acme{number} Robotics, " if number % every == 0 else ""
        yield f"{said}{FILLER}as number {number} of the {source} says.\n\n"


def facts(text: str) -> list[Fact]:
    return [(match[1], "works for", match[2]) for match in SAID.finditer(text)]


ORACLE = Oracle(facts)


class LocalModel:
    """The oracle without a network: what a run takes with it is our own."""

    name = "local:oracle"
    price = None

    def __init__(self, *, latency: float = 0.0) -> None:
        self._latency = latency
        # Seconds of CPU for the answers themselves, which are a model's work and not ours.
        self.thought = 0.0
        self._counter = counter_for("compatible", "oracle")

    def count_tokens(self, text: str) -> int:
        return self._counter.count(text)

    async def ask(self, ask: Ask) -> Reply:
        await asyncio.sleep(self._latency)
        began = time.thread_time()
        system, user = ask.messages[0].content, ask.messages[1].content
        text = msgspec.json.encode(ORACLE.answer(ask.schema_name, Seen.of(system, user))).decode()
        used = Usage((len(system) + len(user)) // BYTES_PER_TOKEN, len(text) // BYTES_PER_TOKEN, reported=True)
        self.thought += time.thread_time() - began
        return Reply(text, used, "stop", self.name)

    async def close(self) -> None:
        pass


@asynccontextmanager
async def setup(
    home: Path, model: Model, *, slots: int, store: Path | None = None, mode: ExtractionMode = "two-stage"
) -> AsyncIterator[Setup]:
    index = OntologyIndex(read_ontology(ONTOLOGY, extension=".ttl"))
    limits = RateLimits(requests_per_minute=10**6, tokens_per_minute=10**9, max_concurrent=slots)
    async with open_async_store(f"sqlite:///{(store or home) / 'sameas.db'}") as opened:
        control = ModelControl(limiter=CentralRateLimiterService(limits), memo=CallMemo(AsyncEngine(opened)))
        extractor = ModelExtractor(index, model, control=control, settings=PromptSettings(mode=mode))
        try:
            yield Setup(ExtractionService(home=home, store=opened), extractor, index, slots)
        finally:
            await model.close()


@contextmanager
def served(latency: float) -> Iterator[str]:
    """The address of a server with this latency, in a process of its own."""
    command = [sys.executable, "-m", "bench.pipeline", "--serve", str(latency)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def serve(latency: float) -> None:
    def answer(call: Call) -> Step:
        return says(ORACLE(call), latency=latency)

    with ModelServer(answer) as server:
        print(f"{server.url}#oracle", flush=True)
        sys.stdin.read()


async def with_latency(address: str, *, latency: float, slots: int, chunks: int, mode: ExtractionMode) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        # As `sameas extract` and `sameas serve` open it.
        model = open_model(address, when_loaded=gc.freeze)
        async with setup(home, model, slots=slots, mode=mode) as ours:
            # The clients' packages take seconds to load, once; an idle server has no connections yet.
            await ours.extract("Warm0 Stone works for Acme0 Robotics.")
            rounds = [await one_round(ours, source, latency=latency, chunks=chunks, mode=mode) for source in ROUNDS]
            calls, over = rounds[0].calls, [one.over for one in rounds]
            cpu, client, floor, own = (median(one[part] for one in rounds) for part in (2, 3, 4, 5))
            print(
                f"{mode:<10}        {chunks} chunks, {calls} calls, {slots} slots, latency {latency:g} s: "
                f"{median(over):.3f}x of the ideal ({min(over):.3f}x to {max(over):.3f}x in {len(over)} rounds)"
                f"{_verdict(median(over), TARGETS['time'])}; the provider's client alone takes {floor:.3f}x\n"
                f"                  CPU {cpu:.2f} ms a call in all; "
                f"the client alone {client:.2f}; our own, with a model in the process, {own:.2f}"
                f"{_verdict(own, TARGETS['cpu'])}"
            )
            if mode == "two-stage":
                await caches(home, ours, "".join(paragraphs(chunks)), open_model(address))


class Round(NamedTuple):
    """A document: its calls, its time over the ideal, its CPU in ms a call; the client's alone, and our own."""

    calls: int
    over: float
    cpu: float
    client: float
    floor: float
    own: float


async def one_round(ours: Setup, source: str, *, latency: float, chunks: int, mode: ExtractionMode) -> Round:
    client, floor = await alone(ours, calls=4 * ours.slots, latency=latency)
    began, cpu = time.perf_counter(), time.process_time()
    done = await ours.extract("".join(paragraphs(chunks, source=source)))
    took, cpu = time.perf_counter() - began, time.process_time() - cpu
    calls = sum(row.calls for row in done.metadata.usage)
    assert done.metadata.status == "complete", done.metadata.missing[:3]
    assert done.metadata.chunks == chunks
    own = await our_own(latency=latency, slots=ours.slots, chunks=chunks, mode=mode)
    return Round(calls, took / (math.ceil(calls / ours.slots) * latency), 1000 * cpu / calls, client, floor, own)


async def alone(ours: Setup, *, calls: int, latency: float) -> tuple[float, float]:
    """What the provider's client takes without us: CPU in ms a call, and time over the ideal."""
    extractor = ours.extractor
    menu = extractor.menu(Focuser(ours.index).focus(""))
    chunks = chunk_text("".join(paragraphs(calls)), settings=CHUNKS)
    asks = [
        question(extractor.questions.entities(chunk, menu), EntityReply, settings=extractor.prompt_settings)
        for chunk in chunks
    ]
    slots = asyncio.Semaphore(ours.slots)

    async def one(ask: Ask) -> None:
        async with slots:
            await extractor.model.ask(ask)

    began, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(one(ask) for ask in asks))
    took, cpu = time.perf_counter() - began, time.process_time() - cpu
    return 1000 * cpu / calls, took / (math.ceil(calls / ours.slots) * latency)


async def our_own(*, latency: float, slots: int, chunks: int, mode: ExtractionMode) -> float:
    """CPU in ms a call with a model that takes as long and costs nothing."""
    with tempfile.TemporaryDirectory() as folder:
        model = LocalModel(latency=latency)
        async with setup(Path(folder), model, slots=slots, mode=mode) as ours:
            await ours.extract("Warm0 Stone works for Acme0 Robotics.")
            cpu = time.process_time() - model.thought
            done = await ours.extract("".join(paragraphs(chunks)))
            cpu = time.process_time() - model.thought - cpu
            return 1000 * cpu / sum(row.calls for row in done.metadata.usage)


async def caches(home: Path, ours: Setup, text: str, model: Model) -> None:
    times = []
    for _ in range(30):
        began = time.perf_counter()
        assert (await ours.extract(text)).replayed
        times.append(1000 * (time.perf_counter() - began))
    print(f"cached result     {median(times):.2f} ms in process{_verdict(median(times), TARGETS['cached'])}")
    with tempfile.TemporaryDirectory() as other:
        # Another folder, so that neither the result nor the checkpoints are there: only the memo of calls.
        async with setup(Path(other), model, slots=ours.slots, store=home) as fresh:
            began = time.perf_counter()
            done = await fresh.service.extract(
                text,
                ontology=fresh.index.ontology,
                extractor=fresh.extractor,
                settings=PipelineSettings(chunking=CHUNKS, concurrency=ours.slots),
                base="urn:again:",
            )
            took = time.perf_counter() - began
            hits, calls = (sum(getattr(row, name) for row in done.metadata.usage) for name in ("memo_hits", "calls"))
            print(
                f"memoised run      {done.metadata.chunks} chunks, {hits} calls remembered, {calls} made: {took:.2f} s"
                f"{_verdict(took, TARGETS['memoised'])}"
            )


class Remembered(NamedTuple):
    """A run's peak of memory and the size of its results, in MB, and its seconds."""

    peak: float
    results: float
    took: float

    @property
    def beyond(self) -> float:
        return self.peak - self.results


def memory(long: int) -> None:
    """The same facts in texts of any length, and then as many more as the text is longer."""
    counts = (SHORT, MIDDLE, long)
    sparse = [(chunks, max(1, chunks // FACTS)) for chunks in counts] * len(ROUNDS)
    # Each in a process of its own: what one leaves behind would hide what the other needs.
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1) as processes:
        *runs, dense = processes.map(_remembering, (*sparse, (long, SHORT // FACTS)))
    # What the allocator keeps differs by half a megabyte from one process to the next.
    short, middle, last = (sorted(runs[place :: len(counts)])[len(ROUNDS) // 2] for place in range(len(counts)))
    growth = last.beyond - short.beyond
    slope = 1e6 * (last.beyond - middle.beyond) / (long - MIDDLE)
    peaks = ", ".join(
        f"{count} chunks {run.peak:.1f} MB" for count, run in zip(counts, (short, middle, last), strict=True)
    )
    print(
        f"memory, peak      {FACTS} facts in {peaks} ({last.took:.0f} s)\n                  beyond the results of "
        f"{last.results:.2f} MB: {growth:+.1f} MB from {SHORT} to {long} chunks{_verdict(growth, TARGETS['growth'])}; "
        f"{slope:+.0f} bytes a chunk from {MIDDLE} on{_verdict(slope, TARGETS['slope'])}\n                  "
        f"{long * FACTS // SHORT} facts in {long} chunks {dense.peak:.1f} MB, of which results {dense.results:.1f} MB: "
        f"{dense.beyond - short.beyond:+.1f} MB beyond them"
    )


def _remembering(text: tuple[int, int]) -> Remembered:
    """A run over so many chunks, of which one in so many says something."""
    chunks, every = text

    async def work() -> Extraction:
        with tempfile.TemporaryDirectory() as folder:
            async with setup(Path(folder), LocalModel(), slots=4) as ours:
                return await ours.extract(paragraphs(chunks, every=every))

    began = time.perf_counter()
    done = asyncio.run(work())
    assert done.metadata.chunks == chunks
    results = sum(file.size for name, file in done.metadata.files.items() if name != "events.jsonl") / 1e6
    return Remembered(_peak_mb(), results, time.perf_counter() - began)


def _peak_mb() -> float:
    # Not ru_maxrss: a process inherits that from the one that started it.
    status = Path("/proc/self/status").read_text("ascii")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) * 1024 / 1e6


def _verdict(figure: float, target: float) -> str:
    return f" (at most {target:g}: {'yes' if figure <= target else 'MISSED'})"


def main(*arguments: str) -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="bench pipeline", description=__doc__)
    parser.add_argument("--latency", type=float, default=0.5, help="seconds that the server takes for a reply")
    parser.add_argument("--slots", type=int, default=10, help="calls at a time")
    parser.add_argument("--chunks", type=int, default=200)
    parser.add_argument("--long", type=int, default=10_000, help="chunks of the long text")
    parser.add_argument("--serve", type=float, help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if asked.serve is not None:
        serve(asked.serve)
        return
    if asked.long <= MIDDLE:
        parser.error(f"--long must be above {MIDDLE}: the slope is measured from there on")
    modes: tuple[ExtractionMode, ...] = ("two-stage", "joint")
    with served(asked.latency) as address:
        for mode in modes:
            asyncio.run(with_latency(address, latency=asked.latency, slots=asked.slots, chunks=asked.chunks, mode=mode))
    memory(asked.long)
    print(f"load              {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores: figures of time need an idle machine")


if __name__ == "__main__":
    main(*sys.argv[1:])
