"""Bytes are where they were put, in memory and beyond it, until the spool is closed."""

import gc
import random
import tempfile
import weakref
from typing import IO, Any

import pytest

from sameas.extraction.pipeline.spools import ByteSpool, PairSpool

SIZES = [0, 1, 100, 1_000_000]


def spooled(in_memory: int) -> ByteSpool:
    return ByteSpool(in_memory=in_memory, prefix="sameas-test-")


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> list[IO[bytes]]:
    """The files that were opened."""
    opened: list[IO[bytes]] = []
    plain = tempfile.TemporaryFile

    def noted(**options: Any) -> IO[bytes]:
        opened.append(plain(**options))
        return opened[-1]

    monkeypatch.setattr(tempfile, "TemporaryFile", noted)
    return opened


@pytest.mark.parametrize("in_memory", SIZES)
def test_writes_anywhere_are_read_back_anywhere(in_memory: int) -> None:
    chance = random.Random(7)
    held, expected = spooled(in_memory), bytearray()
    for _ in range(300):
        at, data = chance.randrange(400), chance.randbytes(chance.randrange(40))
        held.write(at, data)
        if data:
            expected.extend(bytes(max(0, at - len(expected))))
            expected[at : at + len(data)] = data
        at, size = chance.randrange(500), chance.randrange(60)
        assert held.read(at, size) == expected[at : at + size]
    held.close()


@pytest.mark.parametrize("in_memory", SIZES)
def test_a_gap_is_of_zeros_and_beyond_the_end_there_is_nothing(in_memory: int) -> None:
    held = spooled(in_memory)
    held.write(5, b"ab")
    assert held.read(0, 100) == b"\0\0\0\0\0ab"
    assert held.read(6, 100) == b"b"
    assert held.read(7, 100) == b""
    assert held.read(70, 100) == b""
    held.close()


def test_a_file_is_opened_only_for_what_memory_may_not_hold(files: list[IO[bytes]]) -> None:
    held = spooled(10)
    held.write(0, b"0123456789")
    assert files == []
    held.write(9, b"ab")
    assert len(files) == 1
    held.write(20, b"c")
    assert len(files) == 1
    assert held.read(0, 100) == b"012345678ab\0\0\0\0\0\0\0\0\0c"
    held.close()
    assert files[0].closed


def test_the_file_is_closed_with_its_owner(files: list[IO[bytes]]) -> None:
    held = spooled(0)
    held.write(0, b"a")
    gone = weakref.ref(held)
    del held
    gc.collect()
    assert gone() is None
    assert files[0].closed


@pytest.mark.parametrize("in_memory", SIZES)
def test_what_is_closed_is_not_empty_but_refuses(in_memory: int) -> None:
    held = spooled(in_memory)
    held.write(0, b"abc")
    held.close()
    held.close()
    with pytest.raises(ValueError, match="closed"):
        held.read(0, 3)
    with pytest.raises(ValueError, match="closed"):
        held.write(0, b"abc")


def test_pairs_of_a_spool_that_is_closed_are_not_taken_for_none() -> None:
    pairs = PairSpool()
    pairs[0] = (1, 2)
    pairs.close()
    with pytest.raises(ValueError, match="closed"):
        list(pairs)


def test_a_disk_that_takes_nothing_leaves_what_was_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**_: object) -> IO[bytes]:
        raise OSError(28, "No space left on device")

    held = spooled(4)
    held.write(0, b"abc")
    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    with pytest.raises(OSError, match="No space"):
        held.write(3, b"de")
    assert held.read(0, 10) == b"abc"
    held.close()
