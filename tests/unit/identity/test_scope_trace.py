"""Trace headers from outside: whatever they hold, a hop has a good trace, and what goes out is bounded."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sameas.identity.ids import TraceContext, bounded_tracestate, is_trace_id
from sameas.identity.normalize import normalize_request
from sameas.identity.scope import Principal

PRINCIPAL = Principal(tenant_id="t", user_id="u")
GOOD = f"00-{'1' * 32}-{'2' * 16}-01"
FORM = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-0[0-3]")


def ctx_of(parents, states=()):
    headers = [(b"traceparent", value) for value in parents] + [(b"tracestate", value) for value in states]
    return normalize_request({"headers": headers}, principal=PRINCIPAL, allow_any_tenant=True)


def check_outgoing(ctx):
    out = ctx.trace_headers()
    assert FORM.fullmatch(out["traceparent"])
    assert is_trace_id(ctx.trace_id)
    state = out.get("tracestate", "")
    assert len(state) <= 512
    assert state.count(",") < 32
    assert state.isascii()
    assert state.isprintable()


def mutated(good):
    """A good header with a few characters put in, taken out or changed."""
    edits = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 2), st.binary(max_size=3)), min_size=1, max_size=4)

    def apply(changes):
        raw = good.encode()
        for at, cut, put in changes:
            raw = raw[:at] + put + raw[at + cut :]
        return raw

    return edits.map(apply)


@given(
    st.lists(st.one_of(st.binary(max_size=80), mutated(GOOD)), max_size=3),
    st.lists(st.binary(max_size=600), max_size=3),
)
@example([GOOD.encode()] * 2, [])
@example([GOOD.encode() + b"-" + b"a" * 70_000], [])
@example([b"01" + GOOD[2:].encode() + b"-" + b"a" * 70_000], [])
@example([GOOD.encode()], [b"a=1," * 100_000])
def test_whatever_comes_in_a_good_trace_goes_out(parents, states):
    ctx = ctx_of(parents, states)
    check_outgoing(ctx)
    accepted = len(parents) == 1 and re.fullmatch(
        rb"[ \t]*(?!ff)[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-.*)?[ \t]*", parents[0], re.DOTALL
    )
    if not accepted:
        assert ctx.trace.parent_id == ""
        assert ctx.trace.state == ""
        assert not any(ctx.trace_id.encode() in parent for parent in parents)


KEYS = st.from_regex(r"[a-z0-9][a-z0-9_\-*/]{0,20}(@[a-z][a-z0-9]{0,5})?", fullmatch=True)
VALUES = st.from_regex(r"[!-+\--<>-~]{1,200}", fullmatch=True)


@given(st.dictionaries(KEYS, VALUES, max_size=40))
def test_a_good_state_is_passed_on_in_order_as_far_as_the_bound_allows(members):
    pairs = [f"{key}={value}" for key, value in members.items()]
    state = TraceContext.joined([GOOD], [", ".join(pairs)]).state
    kept = [pair for pair in state.split(",") if pair]
    assert len(state) <= 512
    assert kept == [pair for pair in pairs if pair in set(kept)]
    if len(pairs) <= 32 and len(",".join(pairs)) <= 512:
        assert kept == pairs


@given(st.text(max_size=600))
def test_a_state_is_passed_on_only_where_all_of_it_is_well_formed(text):
    state = bounded_tracestate([text])
    for member in filter(None, state.split(",")):
        key, _, value = member.partition("=")
        assert re.fullmatch(r"[a-z0-9][a-z0-9_\-*/@]*", key)
        assert value
        assert member in text


@pytest.mark.parametrize(
    "state",
    [
        "a",
        "=1",
        "A=1",
        "a=\x00",
        "a=é",
        "a=b=c",
        "a=1;b=2\n",
        ",".join(f"k{n}=1" for n in range(33)),
        "a=" + "x" * 257,
    ],
)
def test_a_bad_state_is_left_out_and_the_trace_stays(state):
    trace = TraceContext.joined([GOOD], [state])
    assert (trace.trace_id, trace.state) == ("1" * 32, "")
    assert "tracestate" not in trace.headers()


def test_several_state_headers_are_one_list_and_long_members_go_first():
    assert bounded_tracestate(["a=1 ", "", " b=2,\tc=3"]) == "a=1,b=2,c=3"
    long, short = "long=" + "x" * 200, [f"k{n}=" + "y" * 60 for n in range(7)]
    assert bounded_tracestate([",".join([long, *short])]) == ",".join(short)
    many = [f"k{n}=" + "y" * 60 for n in range(9)]
    assert bounded_tracestate([",".join(many)]) == ",".join(many[:8])


@pytest.mark.parametrize(
    ("flags", "sent"), [("00", "00"), ("01", "01"), ("02", "02"), ("03", "03"), ("ff", "03"), ("fc", "00")]
)
def test_the_sampled_and_the_random_flag_go_on_and_unknown_ones_do_not(flags, sent):
    trace = TraceContext.joined([GOOD[:-2] + flags])
    assert (trace.sampled, trace.random) == (int(sent) in (1, 3), int(sent) in (2, 3))
    assert trace.traceparent.endswith(f"-{sent}")
    assert trace.headers()["traceparent"].endswith(f"-{sent}")


def test_headers_of_any_length_are_not_read_to_their_end():
    later = "01" + GOOD[2:] + "-"
    assert TraceContext.joined([later + "a" * 100]).trace_id == "1" * 32
    assert TraceContext.joined([later + "a" * 70_000]).trace_id != "1" * 32
    assert bounded_tracestate(["a=1" + "," * 1_000]) == "a=1"
    assert bounded_tracestate(["a=1" + "," * 10_000]) == ""
    assert bounded_tracestate(["a=1", *[","] * 10_000]) == ""
