"""Figures of runs: what the first extraction costs to the folder on disk, and what the same again costs.

`python -m bench.replay [REPLAYS] [MEGABYTES]`
"""

import asyncio
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median, quantiles

from bench.extraction import ONTOLOGY, sentences
from sameas import open_async_store
from sameas.extraction.extractors.lexicon import LexiconExtractor
from sameas.extraction.pipeline.settings import PipelineSettings
from sameas.extraction.runs.service import Extraction, ExtractionService
from sameas.ontology.index import OntologyIndex
from sameas.ontology.load import read_ontology

TARGET_MS = 5.0
SIZES = (5_000, 50_000)
AGAIN = """
import sys, time
began = time.perf_counter()
import asyncio
from pathlib import Path
from sameas import open_async_store
from sameas.extraction.extractors.lexicon import LexiconExtractor
from sameas.extraction.runs.service import ExtractionService
from sameas.ontology.index import OntologyIndex
from sameas.ontology.load import load_ontology
home = Path(sys.argv[1])
ontology = load_ontology(home / "ontology.ttl", cache_dir=home / "cache")
service = ExtractionService(home=home, store=open_async_store(f"sqlite:///{home}/sameas.db"))
extractor = LexiconExtractor(OntologyIndex(ontology))
done = asyncio.run(service.extract((home / "text").read_text(), ontology=ontology, extractor=extractor))
assert done.replayed
print(1000 * (time.perf_counter() - began))
"""


class Desk:
    """A service in a folder of its own, with one ontology and the lexicon."""

    def __init__(self, home: Path, *, database: bool = False) -> None:
        index = OntologyIndex(read_ontology(ONTOLOGY, extension=".ttl"))
        self._ontology = index.ontology
        self._extractor = LexiconExtractor(index)
        self._settings = PipelineSettings(concurrency=1)
        url = f"sqlite:///{home}/sameas.db"
        self._service = ExtractionService(home=home, store=open_async_store(url), database=url if database else None)

    async def extract(self, text: str) -> Extraction:
        return await self._service.extract(
            text, ontology=self._ontology, extractor=self._extractor, settings=self._settings
        )


async def replays(size: int, count: int, *, database: bool) -> None:
    text = "".join(sentences(size))
    with tempfile.TemporaryDirectory() as folder:
        desk = Desk(Path(folder), database=database)
        began = time.perf_counter()
        first = await desk.extract(text)
        fresh_ms = 1000 * (time.perf_counter() - began)
        took = []
        for _ in range(count):
            began = time.perf_counter()
            again = await desk.extract(text)
            took.append(1000 * (time.perf_counter() - began))
            assert again.replayed
            assert again.graph == first.graph
    verdict = "yes" if median(took) < TARGET_MS else "MISSED"
    print(
        f"replay in process {size / 1000:4.0f} kB of text{', with SQL' if database else '          '}  "
        f"median {median(took):6.2f} ms  p95 {quantiles(took, n=20)[-1]:6.2f} ms  "
        f"(first run {fresh_ms:.0f} ms, {first.metadata.entity_count} entities, "
        f"{first.metadata.relation_count} relations; under {TARGET_MS:g} ms: {verdict})"
    )


def in_a_new_process(rounds: int = 5) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "ontology.ttl").write_bytes(ONTOLOGY)
        text = "".join(sentences(5_000))
        (home / "text").write_text(text)
        asyncio.run(_default(home, text))
        took = []
        for _ in range(rounds):
            answer = subprocess.run([sys.executable, "-c", AGAIN, folder], capture_output=True, text=True, check=True)
            took.append(float(answer.stdout))
    print(f"replay in a new process, imports and all, beyond Python's own start  median {median(took):.0f} ms")


async def _default(home: Path, text: str) -> None:
    index = OntologyIndex(read_ontology(ONTOLOGY, extension=".ttl"))
    service = ExtractionService(home=home, store=open_async_store(f"sqlite:///{home}/sameas.db"))
    await service.extract(text, ontology=index.ontology, extractor=LexiconExtractor(index))


async def whole_run(megabytes: float) -> None:
    text = "".join(sentences(int(megabytes * 1_000_000)))
    with tempfile.TemporaryDirectory() as folder:
        desk = Desk(Path(folder))
        began, worked = time.perf_counter(), time.process_time()
        first = await desk.extract(text)
        fresh, of_a_core = time.perf_counter() - began, time.process_time() - worked
        began = time.perf_counter()
        await desk.extract(text)
        again = time.perf_counter() - began
        edited = text.replace("works for", "worked for", 1)
        began = time.perf_counter()
        changed = await desk.extract(edited)
        after_edit = time.perf_counter() - began
    redone = 2 * changed.metadata.chunks - changed.metadata.chunks_from_checkpoints
    print(
        f"service           {megabytes:g} MB to the run folder in {fresh:.2f} s, {of_a_core:.2f} s of one core, "
        f"({first.metadata.chunks} chunks), "
        f"replay {again:.2f} s, one word edited {after_edit:.2f} s ({redone} of {2 * changed.metadata.chunks} "
        "pieces of work redone)"
    )


def main(count: str = "200", megabytes: str = "1") -> None:
    """Print the figures."""
    for size in SIZES:
        asyncio.run(replays(size, int(count), database=False))
    asyncio.run(replays(SIZES[0], int(count), database=True))
    in_a_new_process()
    asyncio.run(whole_run(float(megabytes)))


if __name__ == "__main__":
    main(*sys.argv[1:])
