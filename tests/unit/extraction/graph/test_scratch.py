"""What memory could not hold lies in files without a name, and comes back as it went in."""

import gc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sameas.extraction.graph.model import Rejection
from sameas.extraction.graph.rejections import Ledger
from sameas.extraction.graph.scratch import Scratch, Seen
from sameas.extraction.outputs import OutputSpool
from sameas.extraction.pipeline.spools import PairSpool

FILES = Path("/proc/self/fd")


@pytest.mark.skipif(not FILES.exists(), reason="this system does not show a process its open files")
def test_a_scratch_beyond_its_cache_lies_on_disk_until_its_owner_is_gone() -> None:
    scratch = Scratch("CREATE TABLE t (n INTEGER, s TEXT)")
    before = open_files()
    scratch.fill("INSERT INTO t VALUES (?, ?)", ((number, "x" * 1000) for number in range(5000)))
    assert open_files() == before + 1
    assert [n for (n,) in scratch.read("SELECT n FROM t ORDER BY n DESC")] == list(range(4999, -1, -1))
    del scratch
    gc.collect()
    assert open_files() == before


def open_files() -> int:
    """Files that have no name any more and are open all the same."""
    return sum("(deleted)" in str(one.readlink()) for one in FILES.iterdir() if one.is_symlink())


def test_a_full_disk_is_an_error_that_says_what_to_do() -> None:
    scratch = Scratch("CREATE TABLE t (s TEXT)", "PRAGMA max_page_count = 10")
    with pytest.raises(OSError, match="is full; free some room in it or set TMPDIR"):
        scratch.fill("INSERT INTO t VALUES (?)", (("x" * 1000,) for _ in range(1000)))


def test_threads_read_a_scratch_at_once() -> None:
    scratch = Scratch("CREATE TABLE t (n INTEGER)")
    scratch.fill("INSERT INTO t VALUES (?)", ((number,) for number in range(2000)))
    with ThreadPoolExecutor(4) as threads:
        sums = threads.map(lambda _: sum(n for (n,) in scratch.read("SELECT n FROM t")), range(8))
    assert set(sums) == {sum(range(2000))}


def test_a_thing_is_new_once() -> None:
    seen = Seen()
    things = [("a", 1), ("a", 2), ("a", 1), ("a1",), ("a", "1")]
    assert [seen.is_new(*thing) for thing in things] == [True, True, False, True, True]
    many = [(number % 300,) for number in range(700)]
    asked = [("a", 1), ("b",), ("b",), *many]
    assert seen.new_of(asked) == [False, True, False, *[True] * 300, *[False] * 400]
    assert seen.new_of([]) == []


@pytest.mark.parametrize("in_memory", [0, 100, 1_000_000])
def test_pairs_put_in_any_order_come_back_by_their_index(in_memory: int) -> None:
    spool = PairSpool(in_memory=in_memory)
    pairs = [(number, -(2**40) * number) for number in range(1500)]
    for index in (*range(1, 1500, 2), *range(0, 1500, 2)):
        spool[index] = pairs[index]
    assert all(one == other == pair for one, other, pair in zip(spool, spool, pairs, strict=True))
    assert [spool[index] for index in (1499, 0, 7)] == [pairs[1499], pairs[0], pairs[7]]
    spool.close()


@pytest.mark.parametrize("in_memory", [0, 1_000_000])
def test_outputs_are_what_was_written(in_memory: int) -> None:
    outputs, copied = OutputSpool(in_memory=in_memory), OutputSpool(in_memory=in_memory)
    data = bytes(range(256)) * 1000
    outputs.add("turtle").write(data)
    outputs.copy("turtle", copied.add("turtle"))
    assert outputs == copied == {"turtle": data}
    assert "csv" not in outputs


def test_looking_for_an_output_does_not_read_it(monkeypatch: pytest.MonkeyPatch) -> None:
    outputs = OutputSpool()
    outputs.add("turtle").write(b"x")
    monkeypatch.setattr(OutputSpool, "__getitem__", lambda *_: pytest.fail("it was read"))
    assert "turtle" in outputs


def test_a_ledger_forgives_what_turned_out_to_be_known() -> None:
    ledger = Ledger()
    ledger.add(Rejection(at, at + 3, "no_type", "entity_extraction", name) for at, name in ((9, "A"), (5, "B")))
    ledger.add([Rejection(9, 12, "unknown_type", "entity_extraction", "A")])
    ledger.forgive("no_type", where=lambda place: place == (9, 12))
    assert [(one.start, one.code) for one in ledger] == [(5, "no_type"), (9, "unknown_type")]
    assert len(ledger) == 2
