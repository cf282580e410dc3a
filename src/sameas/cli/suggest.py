"""`sameas ontology suggest`: labels and examples from the user's own texts, for a person to look at."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from sameas.cli.documents import find_sources, read_source
from sameas.cli.extractors import choose_extractor
from sameas.extraction.extractors.suggestions import suggest
from sameas.extraction.graph.model import Graph
from sameas.extraction.outputs.context import local_name
from sameas.extraction.pipeline.pipeline import Pipeline
from sameas.extraction.text.document import Document
from sameas.identity.key import compute_idempotency_key, normalize_text
from sameas.ontology.index import OntologyIndex
from sameas.ontology.model import Ontology
from sameas.settings import Settings

_SHOWN = 3


def print_suggestions(
    arguments: Sequence[str], ontology: Ontology, *, path: Path, examples: Path | None, settings: Settings
) -> None:
    """Turtle on stdout, examples in a file."""
    index = OntologyIndex(ontology)
    texts = []
    for source in find_sources(arguments):
        read = read_source(source)
        texts.append(normalize_text(read.text if isinstance(read, Document) else "".join(read)))
    extractor = choose_extractor(ontology, path=path, default=settings.extractor)
    pipeline = Pipeline(index=index, extractor=extractor)
    found = suggest([(text, asyncio.run(_graph(pipeline, text, ontology))) for text in texts], index)
    if found.labels:
        print("@prefix skos: <http://www.w3.org/2004/02/skos/core#> .")
    for one in found.labels:
        for sentence in one.sentences[:_SHOWN]:
            print(f"# {sentence}")
        print(f"<{one.property}> skos:altLabel {json.dumps(one.phrase, ensure_ascii=False)} .")
    if examples is not None:
        rows = (
            {"text": one.text, "triples": [[first, local_name(iri), other] for first, iri, other in one.triples]}
            for one in found.examples
        )
        examples.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    print(f"{len(found.labels)} labels and {len(found.examples)} examples to look at", file=sys.stderr)
    if not found.labels and not found.examples:
        print("note: no two names of a sentence were left without a relation that could join them", file=sys.stderr)
    elif examples is None and found.examples:
        print("note: --examples FILE writes the examples; correct them, then `sameas learn FILE`", file=sys.stderr)


async def _graph(pipeline: Pipeline, text: str, ontology: Ontology) -> Graph:
    key = compute_idempotency_key(
        text, ontology_id=ontology.iri or ontology.version, ontology_version=ontology.version, extraction_params={}
    )
    return (await pipeline.run(text, key=str(key), formats=())).found
