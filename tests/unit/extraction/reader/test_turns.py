"""Whose turn it is to be read."""

import threading

import pytest

from sameas.extraction.extractors.reader.turns import ReadingThreads


def test_the_beginning_of_a_text_goes_before_the_middle_of_another():
    threads, gate, read = ReadingThreads(1), threading.Event(), []
    first = threads.submit(gate.wait, chunk=0)
    later = [threads.submit(lambda number=number: read.append(number), chunk=number) for number in (7, 8, 9)]
    short = threads.submit(lambda: read.append("short"), chunk=0)
    gate.set()
    for each in (first, *later, short):
        each.result(timeout=10)
    assert read == ["short", 7, 8, 9]


def test_who_left_is_not_read_for_and_an_error_is_its_own():
    threads, gate, read = ReadingThreads(1), threading.Event(), []
    first = threads.submit(gate.wait, chunk=0)
    left = threads.submit(lambda: read.append("left"), chunk=1)
    bad = threads.submit(lambda: 1 / 0, chunk=2)
    good = threads.submit(lambda: read.append("good"), chunk=3)
    assert left.cancel()
    gate.set()
    first.result(timeout=10)
    with pytest.raises(ZeroDivisionError):
        bad.result(timeout=10)
    good.result(timeout=10)
    assert read == ["good"]
