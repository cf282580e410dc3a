"""Whenever a store goes away, and whenever each node notices: what all nodes let through by themselves and before stays
below the limits in every window.
"""

from bisect import bisect_left
from collections.abc import Sequence

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from sameas.llm.account import AccountState, Ending, Granted, RateLimits
from sameas.llm.circuit import CircuitSettings
from sameas.llm.redis_account import OwnShare, part_of

WINDOW = 60.0
CIRCUIT = CircuitSettings(failures_to_open=1_000)


class Traffic(msgspec.Struct, frozen=True):
    """One call: at which node, how long after the one before, what it says, what it uses, how long it lasts."""

    node: int
    after: float
    estimate: int
    used: int
    lasts: float


LIMITS = st.builds(
    RateLimits,
    requests_per_minute=st.integers(1, 20),
    tokens_per_minute=st.integers(50, 400),
    max_concurrent=st.integers(1, 8),
)
TRAFFIC = st.lists(
    st.builds(
        Traffic,
        node=st.integers(0, 2),
        after=st.sampled_from([0.0, 0.0, 0.0, 0.5, 3.0, 20.0]),
        estimate=st.integers(0, 40),
        used=st.integers(0, 40),
        lasts=st.sampled_from([0.0, 0.2, 5.0, 14.0]),
    ),
    min_size=10,
    max_size=120,
)


@given(LIMITS, st.integers(1, 3), TRAFFIC, st.integers(0, 60), st.lists(st.floats(0, 15), min_size=3, max_size=3))
def test_the_parts_of_all_nodes_and_what_went_before_are_never_more_than_the_whole(
    limits: RateLimits, count: int, traffic: list[Traffic], before: int, notices: list[float]
) -> None:
    shared = AccountState(limits, circuit=CIRCUIT, window=WINDOW)
    nodes = [OwnShare(limits, circuit=CIRCUIT, window=WINDOW) for _ in range(count)]
    for node in nodes:
        node.set_parts(count)
    sent: list[tuple[float, int]] = []
    ending: list[tuple[float, int, OwnShare, Granted, int]] = []
    now, gone_at = 0.0, None
    for number, call in enumerate(traffic):
        now += call.after
        node = nodes[call.node % count]
        for ended in sorted(one for one in ending if one[0] <= now):
            ending.remove(ended)
            at, _, owner, grant, tokens = ended
            if gone_at is None:
                shared.finish(grant, Ending(verdict="answered", tokens=tokens), at)
            owner.finish(grant, Ending(verdict="answered", tokens=tokens), at)
        if number < before:
            answer = shared.admit(call.estimate, now, str(number))
            if isinstance(answer, Granted):
                node.took(answer, now)
        else:
            gone_at = now if gone_at is None else gone_at
            noticed_at = gone_at + notices[call.node]
            if now < noticed_at:
                continue
            node.lost(noticed_at)
            if not node.is_alone:
                assert part_of(limits, count) is None
                continue
            answer = node.admit(str(number), call.estimate, now)
        if isinstance(answer, Granted):
            tokens = min(call.used, call.estimate)
            sent.append((now, tokens))
            ending.append((now + call.lasts, number, node, answer, tokens))
    assert most_within(sent, requests=True) <= limits.requests_per_minute
    assert most_within(sent, requests=False) <= limits.tokens_per_minute


def most_within(sent: Sequence[tuple[float, int]], *, requests: bool) -> int:
    """The most that went out in any window."""
    times = [at for at, _ in sent]
    found = 0
    for number, at in enumerate(times):
        part = sent[number : bisect_left(times, at + WINDOW)]
        found = max(found, len(part) if requests else sum(tokens for _, tokens in part))
    return found


def test_a_node_without_a_part_goes_nowhere_and_one_that_is_alone_reports_what_it_spent() -> None:
    limits = RateLimits(requests_per_minute=10, tokens_per_minute=100, max_concurrent=4)
    node = OwnShare(limits, circuit=CircuitSettings(failures_to_open=4), window=WINDOW)
    node.lost(0.0)
    assert not node.is_alone
    node.set_parts(2)
    early = Granted(id="early", tokens=20)
    node.took(early, 1.0)
    node.lost(2.0)
    assert (node.state.limits.requests_per_minute, node.state.circuit.settings.failures_to_open) == (5, 2)
    assert not isinstance(node.admit("too soon", 1, 76.0), Granted)
    late = node.admit("late", 10, 77.0)
    assert isinstance(late, Granted)
    # Two at once is its part of four, and twenty of its fifty tokens are under way from before.
    assert not isinstance(node.admit("one more", 1, 77.0), Granted)
    assert node.finish(late, Ending(verdict="answered", tokens=7), 78.0) is None
    spent = node.spent(79.0)
    assert (spent.requests, spent.tokens, spent.under_way) == (1, 7, (("early", 20),))
    assert node.spent(140.0).requests == 0
    node.back()
    assert (node.is_alone, node.state.limits) == (False, limits)
