"""What a process keeps of chunks that are done: `... model_path_memory FEW MANY` prints two figures in bytes a chunk.

The first is what many chunks leave behind that few do not, after the run; the second what piles up during a run, as the
model sees it. The text is made of the same few words and says nothing, so that there are no results to keep.
"""

import asyncio
import gc
import itertools
import sys
import tempfile
import tracemalloc
from functools import partial
from pathlib import Path

import msgspec

from sameas import open_async_store
from sameas.extraction.extractors.prompted import ModelControl, ModelExtractor
from sameas.extraction.pipeline import stages
from sameas.extraction.pipeline.settings import PipelineSettings
from sameas.extraction.pipeline.spools import ChunkSpool
from sameas.extraction.runs.service import ExtractionService
from sameas.llm.account import LocalAccount
from sameas.llm.limiter import CentralRateLimiterService
from sameas.llm.memo import CallMemo
from sameas.llm.models import Ask, Reply, Usage
from sameas.once.async_engine import AsyncEngine

from .model_path import CHUNKS, INDEX, PLENTY

_LETTERS = "abcdefghij"
_LOOK_EVERY = 5


class Silent:
    """A model that finds nothing, and looks from time to time how much memory there is in use."""

    name = "local:silent"
    price = None

    def __init__(self) -> None:
        self.looks: list[int] = []
        self._calls = itertools.count(1)

    def count_tokens(self, text: str) -> int:
        return len(text) // 4

    async def ask(self, ask: Ask) -> Reply:
        await asyncio.sleep(0)
        if next(self._calls) % _LOOK_EVERY == 0:
            self.looks.append(in_use())
        return Reply('{"entities":[],"values":[]}', Usage(400, 9, reported=True), "stop", self.name)

    async def close(self) -> None:
        pass


def in_use() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def document(run: int, count: int) -> str:
    numbers = (" ".join(_LETTERS[int(digit)] for digit in f"{run}{number:05}") for number in range(count))
    return "".join(f"The minutes {number} of the people who work for the company.\n\n" for number in numbers)


class Account:
    """One limiter and one extractor, for a run after the other."""

    def __init__(self) -> None:
        # Of a clock that stands nothing is ever a minute old: what a limiter keeps, it keeps.
        self._limiter = CentralRateLimiterService(account=LocalAccount(PLENTY, clock=lambda: 0.0))
        self._runs = itertools.count(1)

    def left_behind(self, count: int, model: Silent) -> int:
        """The memory in use after a run over so many chunks."""
        asyncio.run(self._run(count, model))
        return in_use()

    async def _run(self, count: int, model: Silent) -> None:
        with tempfile.TemporaryDirectory() as folder:
            async with open_async_store(f"sqlite:///{folder}/sameas.db") as store:
                control = ModelControl(limiter=self._limiter, memo=CallMemo(AsyncEngine(store)))
                done = await ExtractionService(home=Path(folder), store=store).extract(
                    document(next(self._runs), count),
                    ontology=INDEX.ontology,
                    extractor=ModelExtractor(INDEX, model, control=control),
                    settings=PipelineSettings(chunking=CHUNKS, concurrency=1),
                )
        assert done.metadata.status == "complete", done.metadata
        assert sum(row.calls for row in done.metadata.usage) == done.metadata.chunks == count


def measured(few: int, many: int) -> dict[str, float]:
    # As in a long text: the chunks lie in a file from the first one on.
    vars(stages)["ChunkSpool"] = partial(ChunkSpool, in_memory=1)
    account, model = Account(), Silent()
    account.left_behind(few, model)
    gc.freeze()
    tracemalloc.start()
    after_few = account.left_behind(few, model)
    model.looks.clear()
    after_many = account.left_behind(many, model)
    # The least of several looks: what is under way at a look is not kept. The first ones fill what is of fixed size.
    looks = model.looks
    quarter = len(looks) // 4
    between = 2 * quarter * _LOOK_EVERY
    return {
        "after": (after_many - after_few - sys.getsizeof(looks)) / (many - few),
        "during": (min(looks[3 * quarter :]) - min(looks[quarter : 2 * quarter])) / between,
    }


if __name__ == "__main__":
    print(msgspec.json.encode(measured(int(sys.argv[1]), int(sys.argv[2]))).decode())
