"""W3C Trace Context, after the cases of the W3C's own harness: what comes in with a request, and what its calls carry."""

import re

import pytest

from sameas.identity.normalize import normalize_request, normalize_task, task_headers
from sameas.identity.scope import Principal

TRACE, PARENT = "12345678901234567890123456789012", "1234567890123456"
GOOD = f"00-{TRACE}-{PARENT}-01"
FORM = re.compile(r"00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})")


def hop_of(*headers):
    # A server hands the names over in lower case, whatever they were.
    raw = [(name.lower().encode(), value.encode()) for name, value in headers]
    return normalize_request({"headers": raw}, principal=Principal(tenant_id="t", user_id="u"), allow_any_tenant=True)


def call_of(*headers):
    """Trace id, parent id, flags and tracestate of a call that the request's handler makes."""
    sent = hop_of(*headers).trace_headers()
    found = FORM.fullmatch(sent["traceparent"])
    assert found
    return *found.groups(), sent.get("tracestate")


def state_of(*states):
    trace, _, _, state = call_of(("traceparent", GOOD), *(("tracestate", each) for each in states))
    assert trace == TRACE
    return state


def test_a_request_without_a_trace_starts_one():
    assert call_of()[0] != call_of()[0]
    assert call_of()[3] is None


@pytest.mark.parametrize("name", ["traceparent", "TraceParent", "TrAcEpArEnT", "TRACEPARENT"])
@pytest.mark.parametrize(
    "value",
    [
        GOOD,
        f" {GOOD}",
        f"\t{GOOD}",
        f"{GOOD} ",
        f"{GOOD}\t",
        f"\t {GOOD} \t",
        f"cc-{TRACE}-{PARENT}-01",
        f"cc-{TRACE}-{PARENT}-01-what-the-future-will-be-like",
    ],
)
def test_a_good_trace_goes_on_under_a_parent_id_of_its_own(name, value):
    trace, parent, flags, _ = call_of((name, value))
    assert (trace, flags) == (TRACE, "01")
    assert parent != PARENT


@pytest.mark.parametrize("name", ["trace-parent", "trace.parent"])
def test_a_header_of_another_name_is_none(name):
    assert call_of((name, GOOD))[0] != TRACE


def test_two_traceparents_are_none():
    other = GOOD.replace(TRACE, TRACE[:-1] + "1")
    assert call_of(("traceparent", other), ("traceparent", GOOD))[0] not in (TRACE, TRACE[:-1] + "1")


@pytest.mark.parametrize(
    "value",
    [
        f"{GOOD}.",
        f"{GOOD}-what-the-future-will-be-like",
        f"cc-{TRACE}-{PARENT}-01.what-the-future-will-be-like",
        f"ff-{TRACE}-{PARENT}-01",
        f".0-{TRACE}-{PARENT}-01",
        f"0.-{TRACE}-{PARENT}-01",
        f"000-{TRACE}-{PARENT}-01",
        f"0000-{TRACE}-{PARENT}-01",
        f"0-{TRACE}-{PARENT}-01",
        f"00-{'0' * 32}-{PARENT}-01",
        f"00-.{TRACE[1:]}-{PARENT}-01",
        f"00-{TRACE[:-1]}.-{PARENT}-01",
        f"00-{TRACE}3-{PARENT}-01",
        f"00-{TRACE[:-1]}-{PARENT}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE}-.{PARENT[1:]}-01",
        f"00-{TRACE}-{PARENT[:-1]}.-01",
        f"00-{TRACE}-{PARENT}7-01",
        f"00-{TRACE}-{PARENT[:-1]}-01",
        f"00-{TRACE}-{PARENT}-.0",
        f"00-{TRACE}-{PARENT}-0.",
        f"00-{TRACE}-{PARENT}-001",
        f"00-{TRACE}-{PARENT}-1",
    ],
)
def test_a_malformed_traceparent_starts_a_new_trace_without_its_state(value):
    trace, _, _, state = call_of(("traceparent", value), ("tracestate", "foo=1"))
    assert trace not in (TRACE, TRACE[:-1], TRACE[1:] + "3", "0" * 32)
    assert state is None


def test_a_state_without_a_traceparent_is_left_out():
    assert call_of(("tracestate", "foo=1"))[3] is None
    assert call_of(("tracestate", "foo=1,bar=2"))[3] is None


@pytest.mark.parametrize("name", ["tracestate", "TraceState", "TrAcEsTaTe", "TRACESTATE"])
def test_a_state_goes_on_whatever_the_case_of_its_name(name):
    assert call_of(("traceparent", GOOD), (name, "foo=1,bar=2"))[3] == "foo=1,bar=2"


@pytest.mark.parametrize("name", ["trace-state", "trace.state"])
def test_a_state_under_another_name_is_none(name):
    assert call_of(("traceparent", GOOD), (name, "foo=1"))[3] is None


KEY = "abcdefghijklmnopqrstuvwxyz0123456789_-*/"
VALUE = "".join(chr(code) for code in range(0x20, 0x7F) if chr(code) not in ",=")
MANY = [f"bar{number:02}={number:02}" for number in range(1, 33)]


@pytest.mark.parametrize(
    ("states", "sent"),
    [
        ([""], None),
        (["foo=1", ""], "foo=1"),
        (["", "foo=1"], "foo=1"),
        (["foo=1,bar=2", "rojo=1,congo=2", "baz=3"], "foo=1,bar=2,rojo=1,congo=2,baz=3"),
        (["foo=1 \t , \t bar=2, \t baz=3"], "foo=1,bar=2,baz=3"),
        (["foo=1\t \t,\t \tbar=2,\t \tbaz=3"], "foo=1,bar=2,baz=3"),
        ([" foo=1"], "foo=1"),
        (["\tfoo=1"], "foo=1"),
        (["foo=1 "], "foo=1"),
        (["foo=1\t"], "foo=1"),
        (["\t foo=1 \t"], "foo=1"),
        ([f"{KEY}={VALUE}"], f"{KEY}={VALUE}"),
        ([f"{KEY}@a-z0-9_-*/={VALUE}"], f"{KEY}@a-z0-9_-*/={VALUE}"),
        ([",".join(MANY[:10]), ",".join(MANY[10:30]), ",".join(MANY[30:])], ",".join(MANY)),
        (["foo=1", "z" * 256 + "=1"], "foo=1," + "z" * 256 + "=1"),
        (["foo=1", "t" * 241 + "@" + "v" * 14 + "=1"], "foo=1," + "t" * 241 + "@" + "v" * 14 + "=1"),
    ],
)
def test_a_good_state_goes_on_in_order(states, sent):
    assert state_of(*states) == sent


@pytest.mark.parametrize(
    "states",
    [
        ["foo =1"],
        ["FOO=1"],
        ["foo.bar=1"],
        ["foo@=1,bar=2"],
        ["@foo=1,bar=2"],
        ["foo@@bar=1,bar=2"],
        ["foo@bar@baz=1,bar=2"],
        [*MANY, "bar33=33"],
        ["foo=1", "z" * 257 + "=1"],
        ["foo=1", "t" * 242 + "@v=1"],
        ["foo=1", "t@" + "v" * 15 + "=1"],
        ["foo=bar=baz"],
        ["foo=,bar=3"],
    ],
)
def test_a_malformed_state_is_left_out_and_the_trace_goes_on(states):
    assert state_of(*states) is None


@pytest.mark.parametrize("states", [["foo=1,foo=1"], ["foo=1,foo=2"], ["foo=1", "foo=1"], ["foo=1", "foo=2"]])
def test_of_two_members_with_one_key_the_first_goes_on(states):
    assert state_of(*states) == "foo=1"
    assert state_of("bar=0", *states, "baz=3") == "bar=0,foo=1,baz=3"


@pytest.mark.parametrize("headers", [[("traceparent", GOOD)], [], [("traceparent", f"00-{'0' * 32}-{PARENT}-01")]])
def test_each_call_of_a_hop_has_a_parent_id_of_its_own_in_one_trace(headers):
    hop = hop_of(*headers)
    sent = [FORM.fullmatch(hop.trace_headers()["traceparent"]) for _ in range(3)]
    tasks = [FORM.fullmatch(task_headers(hop)["sameas"]["traceparent"]) for _ in range(3)]
    assert len({each[2] for each in (*sent, *tasks)} | {PARENT, hop.trace.span_id}) == 8
    assert {each[1] for each in (*sent, *tasks)} == {hop.trace_id}


@pytest.mark.parametrize("flags", ["00", "01", "02", "03"])
def test_the_flags_of_a_trace_go_on_with_requests_and_tasks(flags):
    hop = hop_of(("traceparent", GOOD[:-2] + flags))
    assert hop.trace_headers()["traceparent"].endswith(f"-{flags}")
    task, _ = normalize_task(task_headers(hop), service_id="worker", allow_any_tenant=True)
    assert task.trace_headers()["traceparent"].endswith(f"-{flags}")


def test_a_trace_that_starts_here_says_that_its_id_is_random():
    assert call_of()[2] == "03"
