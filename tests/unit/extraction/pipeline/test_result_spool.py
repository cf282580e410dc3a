"""The results of a stage come back for each chunk, and what was refused is counted as it comes."""

import random

import pytest

from sameas.extraction.graph.model import Mention, Rejection, merge_rejections
from sameas.extraction.graph.rejections import Ledger
from sameas.extraction.pipeline.spools import ResultSpool
from sameas.extraction.pipeline.stages import ChunkMentions

RESULTS = [
    ChunkMentions(tuple(Mention(place, place + 4, "東京👩\u200d🚀", types=("c",)) for place in range(number % 5)))
    for number in range(50)
]


@pytest.mark.parametrize("in_memory", [0, 100, 1_000_000])
def test_results_put_in_any_order_are_read_in_the_order_of_the_chunks(in_memory: int) -> None:
    spool = ResultSpool(ChunkMentions, total=len(RESULTS), in_memory=in_memory)
    order = list(range(len(RESULTS)))
    random.Random(3).shuffle(order)
    for index in order:
        spool.put(index, RESULTS[index])
    assert list(spool) == RESULTS
    assert [spool[index] for index in order] == [RESULTS[index] for index in order]
    assert len(spool) == len(RESULTS)
    spool.close()


def test_beyond_its_bound_a_spool_keeps_no_result_in_memory_but_the_latest() -> None:
    spool = ResultSpool(ChunkMentions, total=2, in_memory=10)
    spool.put(0, RESULTS[4])
    spool.put(1, RESULTS[3])
    first = spool[0]
    assert first == RESULTS[4]
    assert spool[1] == RESULTS[3]
    assert spool[0] is not first
    spool.close()


def test_equal_results_in_a_row_take_the_room_of_one() -> None:
    spool = ResultSpool(ChunkMentions, total=9, in_memory=10)
    for index in range(8):
        spool.put(index, RESULTS[4])
    written = spool._written
    spool.put(8, RESULTS[2])
    assert list(spool) == [RESULTS[4]] * 8 + [RESULTS[2]]
    assert written == spool._places[0][1]
    spool.close()


def test_a_ledger_has_the_lines_of_everything_that_was_added() -> None:
    chance = random.Random(5)
    said = [
        [
            Rejection(start, start + 3, "no_type", "entity_extraction", f"Name {chance.randint(0, 90)}")
            for start in (chance.randint(0, 500) for _ in range(10))
        ]
        for _ in range(2000)
    ]
    ledger = Ledger()
    for number, rejections in enumerate(said):
        ledger.add(rejections, start=1000 * number)
    whole = [one.shifted(1000 * number) for number, rejections in enumerate(said) for one in rejections]
    assert tuple(ledger) == merge_rejections(whole)
    assert len(ledger) == len(merge_rejections(whole)) == 91
