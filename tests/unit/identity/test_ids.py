"""Ids: ordered, unique over threads and forks, and safe against hostile headers."""

import os
import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from sameas.identity.ids import (
    Attempts,
    Uuid7Source,
    format_traceparent,
    new_span_id,
    new_trace_id,
    parse_traceparent,
    uuid7,
)


def test_uuid7_has_its_version_variant_and_time():
    made = Uuid7Source(lambda: 0x0189B3C01234)()
    assert made.version == 7
    assert made.variant == "specified in RFC 4122"
    assert str(made).startswith("0189b3c0-1234-7")


def test_uuid7_grows_within_a_millisecond_and_after_the_clock_went_back():
    times = iter([1000, 1000, 1000, 500, 400, 1001, 1001])
    source = Uuid7Source(lambda: next(times))
    made = [source() for _ in range(7)]
    assert made == sorted(made)
    assert len(set(made)) == 7


def test_uuid7_carries_a_full_counter_into_the_time():
    source = Uuid7Source(lambda: 1000)
    first = source()
    source._counter = (1 << 42) - 1
    assert source() > first


def test_uuid7_is_unique_over_threads():
    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(lambda _: uuid7(), range(4000)))
    assert len(set(made)) == 4000


def test_forked_children_make_ids_of_their_own():
    attempts = Attempts()
    attempts()
    reading, writing = os.pipe()
    for _ in range(4):
        if os.fork() == 0:
            os.write(writing, f"{uuid7()} {Attempts()()}\n".encode())
            os._exit(0)
    for _ in range(4):
        os.wait()
    os.close(writing)
    with os.fdopen(reading) as lines:
        made = lines.read().split()
    assert len(made) == 8
    assert len(set(made)) == 8


def test_trace_ids_are_hex_and_not_zero():
    assert re.fullmatch("[0-9a-f]{32}", new_trace_id())
    assert re.fullmatch("[0-9a-f]{16}", new_span_id())


def test_traceparent_goes_out_and_comes_back():
    trace, span = new_trace_id(), new_span_id()
    assert parse_traceparent(format_traceparent(trace, span)) == (trace, span)
    assert format_traceparent(trace, span, sampled=False).endswith("-00")


@pytest.mark.parametrize(
    "header",
    [
        "",
        "00",
        "ff-" + "1" * 32 + "-" + "1" * 16 + "-01",
        "00-" + "0" * 32 + "-" + "1" * 16 + "-01",
        "00-" + "1" * 32 + "-" + "0" * 16 + "-01",
        "00-" + "A" * 32 + "-" + "1" * 16 + "-01",
        "00-" + "1" * 31 + "-" + "1" * 16 + "-01",
        "00-" + "1" * 32 + "-" + "1" * 16 + "-01-extra",
        "00-" + "1" * 32 + "-" + "1" * 16 + "-01\n",
        "0" * 70_000,
    ],
)
def test_malformed_or_hostile_traceparent_is_no_trace(header):
    assert parse_traceparent(header) is None


def test_a_later_version_with_more_fields_is_read():
    assert parse_traceparent("01-" + "1" * 32 + "-" + "2" * 16 + "-01-more") == ("1" * 32, "2" * 16)
