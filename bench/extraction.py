"""Figures of the extraction pipeline without a model: seconds for a megabyte, milliseconds for a sentence,
memory for a long text.

Sizes come from the command line: `python -m bench.extraction [MEGABYTES] [STREAMED_MEGABYTES]`. With
`--megabytes N` it streams a sparse text of that size to a run's folder and prints how much memory grows, with `--dense`
one in which nearly every sentence says something. Growth is the peak of a process's memory less that of one with a
shorter text, which has filled every buffer. Results are not subtracted: they are not meant to be in memory either.
"""

import argparse
import asyncio
import random
import resource
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from sameas import open_async_store
from sameas.extraction.events.bus import Bus
from sameas.extraction.events.journal import FileJournal
from sameas.extraction.extractors.lexicon import LexiconExtractor
from sameas.extraction.graph.model import Mention
from sameas.extraction.graph.resolution import resolve
from sameas.extraction.outputs import write_entities, write_relations
from sameas.extraction.pipeline.pipeline import Pipeline
from sameas.extraction.pipeline.settings import PipelineSettings
from sameas.extraction.runs.metadata import EVENTS, RunMetadata
from sameas.extraction.runs.service import ExtractionService
from sameas.extraction.text.chunking import chunk_text, iter_chunks
from sameas.extraction.text.document import normalized_pieces
from sameas.ontology.focus import Focuser
from sameas.ontology.index import OntologyIndex
from sameas.ontology.load import read_ontology

ONTOLOGY = b"""
@prefix : <http://example.org/company#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
<http://example.org/company> a owl:Ontology .
:Person a owl:Class ; rdfs:label "person" .
:Organization a owl:Class ; rdfs:label "organization" .
:Company a owl:Class ; rdfs:subClassOf :Organization ; rdfs:label "company" .
:Place a owl:Class ; rdfs:label "place" .
:City a owl:Class ; rdfs:subClassOf :Place ; rdfs:label "city" .
:worksFor a owl:ObjectProperty ; rdfs:label "works for" ; rdfs:domain :Person ; rdfs:range :Organization .
:founder a owl:ObjectProperty ; rdfs:label "founder" ; rdfs:domain :Organization ; rdfs:range :Person .
:basedIn a owl:ObjectProperty ; rdfs:label "based in" ; rdfs:domain :Organization ; rdfs:range :Place .
:birthDate a owl:DatatypeProperty ; rdfs:label "birth date" ; rdfs:domain :Person ; rdfs:range xsd:date .
:employees a owl:DatatypeProperty ; rdfs:label "employees" ; rdfs:domain :Organization ; rdfs:range xsd:integer .
"""
SYLLABLES = [
    "an",
    "bel",
    "cor",
    "dan",
    "el",
    "far",
    "gen",
    "hol",
    "is",
    "jor",
    "kal",
    "lem",
    "mor",
    "nis",
    "or",
    "pel",
    "quin",
    "ros",
    "sten",
    "tal",
    "ur",
    "vel",
    "wen",
    "yar",
    "zan",
]
TEMPLATES = (
    "{person} was born on {day} May {year} and works for {company}.",
    "{company} was founded by {person} in {year} and is based in {city}.",
    "The weather in {city} was fair, and nobody who had been there before expected the long delay that followed.",
    "In {year} the company {company} had {number} employees, more than any other firm of its kind in the region.",
    "It was a quiet afternoon; the letters lay unopened on the table while the discussion about the plan went on.",
    "{person}, a person of few words, left {company} and moved to {city} with two friends.",
)
# One sentence in so many says something; every spool has gone to disk by then.
KNOWN_SHARE = 1 / 200
FULL_BUFFERS = 10.0
FULL_BUFFERS_DENSE = 2.0
# Flat: a twentieth of what the text grows by, which the allocator alone may take.
FLAT_KB_PER_MB = 50.0


def name(chance: random.Random) -> str:
    return "".join(chance.choice(SYLLABLES) for _ in range(chance.randint(2, 3))).capitalize()


def sentences(size: int, *, seed: int = 7) -> Iterator[str]:
    """About `size` characters of prose, some of it about people and companies."""
    chance = random.Random(seed)
    people = [f"{name(chance)} {name(chance)}" for _ in range(2000)]
    companies = [f"{name(chance)} {chance.choice(['Ltd', 'Systems', 'Group', 'Works'])}" for _ in range(500)]
    cities = [name(chance) for _ in range(200)]
    written = 0
    while written < size:
        sentence = chance.choice(TEMPLATES).format(
            person=chance.choice(people),
            company=chance.choice(companies),
            city=chance.choice(cities),
            day=chance.randint(1, 31),
            year=chance.randint(1900, 2020),
            number=f"{chance.randint(100, 99_999):,}",
        )
        sentence += chance.choice((" ", " ", " ", "\n\n"))
        written += len(sentence)
        yield sentence


def sparse_sentences(size: int, *, seed: int = 11) -> Iterator[str]:
    """About `size` characters in which few paragraphs hold anything that the ontology knows."""
    chance = random.Random(seed)
    known = list(sentences(20_000))
    words = [name(chance).lower() for _ in range(5000)]
    written = 0
    while written < size:
        if chance.random() < KNOWN_SHARE:
            sentence = chance.choice(known).strip()
        else:
            sentence = " ".join(chance.choices(words, k=chance.randint(8, 24))).capitalize() + "."
        sentence += chance.choice((" ", " ", " ", "\n\n"))
        written += len(sentence)
        yield sentence


def long_text(megabytes: float, *, dense: bool) -> None:
    """A long text in pieces through the service, against a shorter one that has filled every buffer."""
    short = min(megabytes / 2, FULL_BUFFERS_DENSE if dense else FULL_BUFFERS)
    # Each in a process of its own: what one leaves behind would hide what the other needs.
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1) as processes:
        (_, before, of_short), (took, peak, about) = processes.map(_long_run, (short, megabytes), (dense, dense))
    kept, more = _results(about), _results(about) - _results(of_short)
    beyond = 1000 * (peak - before - more) / (megabytes - short)
    print(
        f"{'dense' if dense else 'long'} text        {megabytes:g} MB to the run folder in {took:.1f} s "
        f"({about.chunks} chunks, {about.entity_count} entities, {about.relation_count} relations, "
        f"results of {kept:.1f} MB)\n"
        f"its memory        peak {peak:.1f} MB, {peak - before:.1f} MB over that of {short:g} MB of text, while results "
        f"grew by {more:.1f} MB; beyond the results {beyond:.0f} kB per MB of text "
        f"(at most {FLAT_KB_PER_MB:.0f}: {'yes' if beyond <= FLAT_KB_PER_MB else 'MISSED'})"
    )


def _results(about: RunMetadata) -> float:
    """The megabytes of what a run keeps besides its events."""
    return sum(file.size for name, file in about.files.items() if name != EVENTS) / 1e6


def _long_run(megabytes: float, dense: bool) -> tuple[float, float, RunMetadata]:
    """Seconds, the peak of memory and what the run says of itself."""
    pieces = (sentences if dense else sparse_sentences)(int(megabytes * 1_000_000))
    index = OntologyIndex(read_ontology(ONTOLOGY, extension=".ttl"))
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        store = open_async_store(f"sqlite:///{folder}/sameas.db")
        service = ExtractionService(home=Path(folder), store=store)
        done = asyncio.run(
            service.extract(
                pieces,
                ontology=index.ontology,
                extractor=LexiconExtractor(index),
                settings=PipelineSettings(concurrency=1),
            )
        )
        took = time.perf_counter() - began
    return took, _peak_mb(), done.metadata


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def whole_pipeline(megabytes: float) -> None:
    text = "".join(sentences(int(megabytes * 1_000_000)))
    index = OntologyIndex(read_ontology(ONTOLOGY, extension=".ttl"))
    with tempfile.TemporaryDirectory() as folder:
        began, began_cpu = time.perf_counter(), time.process_time()
        pipeline = Pipeline(index=index, extractor=LexiconExtractor(index), settings=PipelineSettings(concurrency=1))
        bus = Bus("bench", journal=FileJournal(Path(folder, "events.jsonl")))
        result = asyncio.run(pipeline.run(text, key="bench", bus=bus))
        with Path(folder, "graph.ttl").open("wb") as file:
            result.outputs.copy("turtle", file)
        with Path(folder, "entities.json").open("wb") as file:
            write_entities(result.found, file)
        with Path(folder, "relations.json").open("wb") as file:
            write_relations(result.found, file)
        took, cpu = time.perf_counter() - began, time.process_time() - began_cpu
    graph = result.found
    print(
        f"lexicon pipeline  {len(text) / 1e6:.2f} MB to disk in {took:.2f} s, {cpu:.2f} s of one core  "
        f"({result.chunks} chunks, {len(graph.entities)} entities, {len(graph.relations)} relations)"
    )


def per_sentence() -> None:
    index = OntologyIndex(read_ontology(ONTOLOGY, extension=".ttl"))
    extractor = LexiconExtractor(index)
    chunks = chunk_text("".join(sentences(200_000)).strip())
    count = sum(len(chunk.sentences) for chunk in chunks)
    focuser = Focuser(index)

    async def extract() -> None:
        for chunk in chunks:
            focus = focuser.focus(chunk.text)
            found = await extractor.extract_entities(chunk, focus)
            kept = [mention for mention in found.items if mention.types or mention.kind == "literal"]
            await extractor.extract_relations(chunk, kept, focus)

    began = time.perf_counter()
    asyncio.run(extract())
    print(f"lexicon extractor {1000 * (time.perf_counter() - began) / count:.3f} ms a sentence ({count} sentences)")


def resolution(mentions: int) -> None:
    index = OntologyIndex(read_ontology(ONTOLOGY, extension=".ttl"))
    chance = random.Random(3)
    person = ("http://example.org/company#Person",)
    said = []
    for number in range(mentions):
        text = f"{name(chance)} {name(chance)}" if number % 3 else name(chance)
        said.append(Mention(number * 40, number * 40 + len(text), text, types=person))
    began = time.perf_counter()
    entities = list(resolve(said, index=index).entities)
    print(f"resolution        {mentions} mentions in {time.perf_counter() - began:.2f} s ({len(entities)} entities)")


def streamed(megabytes: float) -> None:
    tracemalloc.start()
    began = time.perf_counter()
    count = sum(1 for _ in iter_chunks(normalized_pieces(sentences(int(megabytes * 1_000_000)))))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    print(
        f"streamed chunking {megabytes:g} MB in {time.perf_counter() - began:.1f} s (traced), {count} chunks, "
        f"peak {peak / 1e6:.1f} MB of Python memory"
    )


def main(*arguments: str) -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="bench extraction", description=__doc__)
    parser.add_argument("size", nargs="?", type=float, default=1.0, help="megabytes through the whole pipeline")
    parser.add_argument("streamed", nargs="?", type=float, default=5.0, help="megabytes through chunking alone")
    parser.add_argument("--megabytes", type=float, help="only the long text, of this size")
    parser.add_argument("--dense", action="store_true", help="a long text that says something everywhere")
    asked = parser.parse_args(arguments)
    if asked.megabytes is not None:
        long_text(asked.megabytes, dense=asked.dense)
        return
    whole_pipeline(asked.size)
    per_sentence()
    resolution(20_000)
    streamed(asked.streamed)
    print(f"peak memory       {_peak_mb():.0f} MB of the process")


if __name__ == "__main__":
    main(*sys.argv[1:])
