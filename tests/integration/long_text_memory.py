"""`python -m tests.integration.long_text_memory SENTENCES`: one run over a text of that length, and the most memory that
the process ever had.

The things in the text stay the same few, so that everything but the number of places is equal for every length.
"""

import asyncio
import json
import re
import resource
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sameas.extraction.extractors.contract import Found
from sameas.extraction.graph.model import Claim, Mention
from sameas.extraction.text.chunking import Chunk
from sameas.extraction.text.document import Span
from sameas.ontology.focus import Focus
from tests.unit.extraction.company import EX
from tests.unit.extraction.runs.desk import ONTOLOGY, make_service

PEOPLE, COMPANIES, UNKNOWN = 50, 40, 200
_SAID = re.compile(r"(Anna\d+ Stone) works for (Acme\d+ Ltd)")
_UNTYPED = re.compile(r"(?<=Then )\w+ Stone|Nobody\d+")


class ShapeExtractor:
    """Finds what the text below says, at hardly any cost."""

    name = "shapes"
    version = "1"
    settings: Mapping[str, Any] = {}

    async def extract_entities(self, chunk: Chunk, focus: Focus) -> Found[Mention]:
        found = [
            Mention(*said.span(group), said[group], types=(EX + kind,))
            for said in _SAID.finditer(chunk.text)
            for group, kind in ((1, "Person"), (2, "Company"))
        ]
        return Found((*found, *(Mention(*said.span(), said[0]) for said in _UNTYPED.finditer(chunk.text))))

    async def extract_relations(self, chunk: Chunk, mentions: Sequence[Mention], focus: Focus) -> Found[Claim]:
        at = {mention.start: mention for mention in mentions}
        return Found(
            tuple(
                Claim(at[said.start(1)], EX + "worksFor", at[said.start(2)], Span(*said.span()))
                for said in _SAID.finditer(chunk.text)
            )
        )


def sentences(count: int) -> Iterator[str]:
    """Three mentions a sentence, one of them without a class, and now and then a name that is refused."""
    for number in range(count):
        person, other = f"Anna{number % PEOPLE} Stone", f"Anna{number * 7 % PEOPLE} Stone"
        yield f"{person} works for Acme{number % COMPANIES} Ltd. Then {other} met Nobody{number % UNKNOWN}. "


def peak_bytes() -> int:
    """Of this program alone: what a process was before it became this one does not count."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    (peak,) = re.findall(r"VmHWM:\s+(\d+) kB", status.read_text())
    return int(peak) * 1024


def main(count: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        service = make_service(Path(folder))
        done = asyncio.run(service.extract(sentences(count), ontology=ONTOLOGY, extractor=ShapeExtractor()))
        peak = peak_bytes()
        graph = done.graph
    said = sum(len(entity.mentions) for entity in graph.entities)
    print(
        json.dumps(
            {
                "peak": peak,
                "mentions": said,
                "entities": len(graph.entities),
                "relations": len(graph.relations),
                "rejected": len(graph.rejected),
            }
        )
    )


if __name__ == "__main__":
    main(int(sys.argv[1]))
