"""Editing one word of a long text: how much of a fresh run the second run takes, and how many chunks it redoes.

    ./run bench edit [MEGABYTES] [lexicon|reader]

The text is generated and every paragraph is another. By default 2 MB with the lexicon, which is the quickest extractor
and so the hardest case, and a twentieth of that with the reader, whose fresh run over 2 MB takes most of an hour here.
"""

import asyncio
import random
import sys
import tempfile
import time
from pathlib import Path

import sameas
from sameas import open_async_store
from sameas.extraction.events.events import ChunkCompleted, Event
from sameas.extraction.extractors.deferred import deferred_lexicon, deferred_reader
from sameas.extraction.extractors.embedded import find_weights
from sameas.extraction.runs.service import ExtractionService
from sameas.ontology.load import load_ontology

TARGET = 0.1
READERS_SHARE = 20
_FIRST = ("Nord", "Weser", "Alster", "Ampere", "Helvetia", "Bora", "Cedar", "Delta", "Elbe", "Fjord", "Garda", "Havel")
_LAST = ("Werke", "Zellen", "Capital", "Speicher", "Stahl", "Motors", "Systems", "Labs", "Energie", "Foods")
_PEOPLE = ("Ada", "Mara", "Jonas", "Lucia", "Mateo", "Annegret", "Sylvie", "Tom", "Ines", "Omar")
_CITIES = ("Hamburg", "Bremen", "Valence", "Zaragoza", "Shanghai", "Lyon", "Berlin")


def main(megabytes: str = "2", extractor: str = "") -> None:
    size = int(float(megabytes) * 1_000_000)
    for name in (extractor,) if extractor else ("lexicon", "reader"):
        if name == "reader" and find_weights() is None:
            print("reader: not run, its weights are not installed")
            continue
        share = size // READERS_SHARE if name == "reader" and not extractor else size
        asyncio.run(_measure(name, share))


async def _measure(name: str, size: int) -> None:
    ontology = load_ontology(Path(sameas.__file__).parent / "example" / "company.ttl")
    weights = find_weights()
    chosen = deferred_lexicon(ontology) if name == "lexicon" else deferred_reader(ontology, weights=weights)  # type: ignore[arg-type]
    text = generated(size)
    middle = text.index("weather", len(text) // 2)
    edited = f"{text[:middle]}climate{text[middle + len('weather') :]}"
    with tempfile.TemporaryDirectory(prefix="sameas-bench-") as home:
        async with open_async_store(f"sqlite:///{home}/sameas.db") as store:
            service = ExtractionService(home=Path(home), store=store)

            async def run(given: str) -> tuple[float, int, int]:
                redone: set[int] = set()

                def hear(event: Event) -> None:
                    if isinstance(event, ChunkCompleted) and event.stage == "entity_extraction" and not event.cached:
                        redone.add(event.chunk_index)

                began = time.perf_counter()
                done = await service.extract(given, ontology=ontology, extractor=chosen, on_event=hear)
                return time.perf_counter() - began, done.metadata.chunks, len(redone)

            # Loading an extractor is neither's fault.
            await run("Weserstahl bought Helvetia Zellen in 2021.")
            fresh, chunks, _ = await run(text)
            again, _, redone = await run(edited)
    share = again / fresh
    verdict = "yes" if share <= TARGET else "MISSED"
    print(
        f"{name:<8} {len(text) / 1e6:.2f} MB, {chunks} chunks: fresh {fresh:.1f} s, after an edit {again:.1f} s "
        f"({share:.2f} of a fresh run; at most {TARGET}: {verdict}), chunks redone {redone}"
    )
    sys.stdout.flush()


def generated(size: int) -> str:
    """A text of about so many characters."""
    rng = random.Random(7)
    found: list[str] = []
    length = 0

    def company() -> str:
        return f"{rng.choice(_FIRST)}{rng.choice(_FIRST).lower()} {rng.choice(_LAST)} AG"

    while length < size:
        one, other = company(), company()
        found.append(
            f"{one} was founded in {rng.randint(1950, 2020)} by {rng.choice(_PEOPLE)} {rng.choice(_FIRST)}mann. It is "
            f"headquartered in {rng.choice(_CITIES)} and employs {rng.randint(10, 9000)} people. In "
            f"{rng.randint(2000, 2024)} {one} bought {other}. Nobody at the fair of lot {rng.randint(1, 10**9)} spoke of "
            f"anything else for days, and the weather was grey over the harbour. {other} is led by "
            f"{rng.choice(_PEOPLE)} {rng.choice(_FIRST)}sen. The board of the town met twice that winter and wrote a "
            "long letter about the price of bread and of light."
        )
        length += len(found[-1]) + 2
    return "\n\n".join(found)


if __name__ == "__main__":
    main(*sys.argv[1:])
