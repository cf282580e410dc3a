"""`./run bench web`: how the web app feels in a real browser, with software rendering as on any machine without a GPU.

The floor is what the same browser draws of an empty page in the same run: frames that a page cannot beat.
"""

import asyncio
import tempfile
import time
from pathlib import Path

from sameas.connections import open_async_store
from sameas.extraction.extractors.lexicon import LexiconExtractor
from sameas.extraction.runs.service import ExtractionService
from sameas.ontology.index import OntologyIndex
from sameas.ontology.load import load_ontology
from tests.servers.browser import launched
from tests.servers.program import find_program
from tests.unit.server.house import EXAMPLE, running
from tests.unit.server.scripted import Scripted

NAMES = 2_000
MENTIONS = 10_000
CHARACTERS = 1_000_000
SECONDS = 3

# Counts frames while `step` is done in each of them.
_FRAMES = """
async ([seconds, step]) => {
  const act = eval(step);
  await new Promise(requestAnimationFrame);
  const began = performance.now();
  let frames = 0;
  while (performance.now() - began < seconds * 1000) {
    act(frames);
    await new Promise(requestAnimationFrame);
    frames += 1;
  }
  return frames / ((performance.now() - began) / 1000);
}
"""


def main() -> None:
    program = find_program("chromium")
    home = Path(tempfile.mkdtemp(prefix="sameas-web-"))
    demo, large = asyncio.run(_runs(home))
    with running(home) as service, launched(program) as browser:
        # The policy of the pages forbids what measures them.
        context = browser.new_context(viewport={"width": 1400, "height": 900}, bypass_csp=True)
        context.set_default_timeout(120_000)
        page = context.new_page()
        page.goto("about:blank")
        floor = page.evaluate(_FRAMES, [SECONDS, "() => {}"])
        print(f"an empty page (the floor)                     {floor:6.1f} frames/s")
        page.goto(f"{service.url}/#/studio/{demo}")
        page.locator("mark").first.wait_for()
        paint = page.evaluate("() => performance.getEntriesByName('first-contentful-paint')[0].startTime")
        shown = page.evaluate("() => performance.now()")
        print(f"the demo run: first paint                     {paint:6.0f} ms (wanted: under 1000)")
        print(f"the demo run: text with its mentions          {shown:6.0f} ms")
        page.goto("about:blank")
        page.goto(f"{service.url}/#/studio/{large}?min=0")
        page.locator("mark").first.wait_for()
        page.locator(".canvas canvas").first.wait_for()
        began = time.perf_counter()
        settling = page.evaluate(_FRAMES, [SECONDS, "() => {}"])
        page.locator(".canvas[data-settled]").wait_for()
        settled = time.perf_counter() - began
        told = f"{NAMES:,} nodes"
        print(
            f"{told}: frames while they settle          {settling:6.1f} frames/s, {settling / floor:.2f} of the floor"
        )
        print(f"{told}: settled after                     {settled:6.1f} s")
        box = page.locator(".canvas").bounding_box()
        page.mouse.move(box["x"] + 40, box["y"] + 40)
        pan = "frame => document.querySelector('.canvas').chart.centerAt(60 * Math.sin(frame / 9), 60 * Math.cos(frame / 9))"
        panning = page.evaluate(_FRAMES, [SECONDS, pan])
        print(
            f"{told}: panning                           {panning:6.1f} frames/s, {panning / floor:.2f} of the floor (wanted: 20)"
        )
        scroll = "() => { document.querySelector('.text-pane').scrollTop += 60; }"
        scrolling = page.evaluate(_FRAMES, [SECONDS, scroll])
        print(
            f"{MENTIONS:,} mentions in 1 MB: scrolling           {scrolling:6.1f} frames/s, "
            f"{scrolling / floor:.2f} of the floor (wanted: 30)"
        )


async def _runs(home: Path) -> tuple[str, str]:
    ontology = load_ontology(EXAMPLE / "company.ttl")
    store = open_async_store(f"sqlite:///{home}/sameas.db")
    service = ExtractionService(home=home, store=store)
    demo = await service.extract(
        (EXAMPLE / "story.txt").read_text(),
        ontology=ontology,
        extractor=LexiconExtractor(OntologyIndex(ontology)),
        document="story.txt",
    )
    kinds = ("Person", "Company", "City", "University")
    names = {f"Zed{number} Name{number}": kinds[number % len(kinds)] for number in range(NAMES)}
    each = list(names)
    filler = "and then some words that nobody looks for stand between the names "
    sentences = [
        f"{each[number % NAMES]} {filler}".ljust(CHARACTERS // MENTIONS - 2) + ". " for number in range(MENTIONS)
    ]
    # To neighbours in the text, so that all hang together.
    told = {
        "Person": (("worksFor", 1), ("birthPlace", 2)),
        "Company": (("headquarters", 1),),
        "University": (("founder", 1),),
    }
    facts = [
        (name, predicate, each[number + step], 0.9)
        for number, name in enumerate(each[:-2])
        for predicate, step in told.get(names[name], ())
    ]
    large = await service.extract(
        "".join(sentences), ontology=ontology, extractor=_ByWord(names, facts), document="large.txt"
    )
    print(
        f"a run of {large.metadata.entity_count:,} entities and {large.metadata.relation_count:,} relations", flush=True
    )
    await store.close()
    return demo.key.key, large.key.key


class _ByWord(Scripted):
    """The scripted extractor, which looks for the names that a chunk can hold only."""

    async def extract_entities(self, chunk, focus):
        inside = {name: kind for name, kind in self._names.items() if name in chunk.text}
        return await Scripted(inside, self._facts).extract_entities(chunk, focus)

    async def extract_relations(self, chunk, mentions, focus):
        there = {mention.text for mention in mentions}
        facts = [fact for fact in self._facts if fact[0] in there]
        return await Scripted(self._names, facts).extract_relations(chunk, mentions, focus)
