"""What the reader costs: time to load, memory, labels, and sentences a second on two cores: `./run bench reader`."""

import asyncio
import resource
import sys
import time
from importlib.resources import files

from sameas.extraction.extractors.embedded import find_weights
from sameas.extraction.text.chunking import chunk_text
from sameas.identity.key import normalize_text
from sameas.ontology.focus import Focuser
from sameas.ontology.index import OntologyIndex
from sameas.ontology.load import read_ontology

WANTED_LOAD, WANTED_SENTENCES, WANTED_MEGABYTES = 2.0, 10.0, 1000


def main() -> int:
    """Print the figures of the bundled example."""
    weights = find_weights()
    if weights is None:
        print("the reader's weights are not installed", file=sys.stderr)
        return 1
    example = files("sameas.example")
    index = OntologyIndex(read_ontology(example.joinpath("company.ttl").read_bytes(), extension=".ttl"))
    chunks = list(chunk_text(normalize_text(example.joinpath("story.txt").read_text("utf-8"))))
    began = time.perf_counter()
    from sameas.extraction.extractors.reader.extractor import ReaderExtractor
    from sameas.extraction.extractors.reader.reading import load_reader

    reader = load_reader(weights)
    print(f"load                 {time.perf_counter() - began:6.2f} s      (wanted {WANTED_LOAD:.0f} s)")
    extractor = ReaderExtractor(index, reader, digest="")
    focus = Focuser(index).focus(chunks[0].text)
    began = time.perf_counter()
    asyncio.run(extractor.extract_entities(chunk_text("Acme is here.")[0], focus))
    labels = len(focus.properties) + len(focus.classes)
    print(f"labels, once         {time.perf_counter() - began:6.2f} s      ({labels} of the example's ontology)")

    async def read() -> None:
        await asyncio.gather(*(extractor.extract_entities(chunk, focus) for chunk in chunks))

    began = time.perf_counter()
    asyncio.run(read())
    seconds = time.perf_counter() - began
    sentences = sum(len(chunk.sentences) for chunk in chunks)
    print(
        f"sentences a second   {sentences / seconds:6.1f}        (wanted {WANTED_SENTENCES:.0f}; {sentences} in {seconds:.2f} s)"
    )
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"memory               {memory:6d} MB     (wanted under {WANTED_MEGABYTES})")
    return 0
