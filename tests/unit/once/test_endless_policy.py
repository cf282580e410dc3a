"""Durations without an end: a retention may have none, a lease must have one."""

from dataclasses import replace
from math import inf, nan

import pytest

from sameas.once.engine import Engine
from sameas.once.policy import Policy
from sameas.once.record import FOR_EVER
from sameas.once.store import Store
from sameas.stores.memory import MemoryBackend
from sameas.testing.clock import MovableClock


def test_endless_retention_is_none():
    assert Policy(retention=inf).retention_micros == Policy(retention=None).retention_micros == FOR_EVER
    assert Policy(retention=1e300).retention_micros == FOR_EVER
    assert Policy(retry_window=inf).retry_window_micros == FOR_EVER


@pytest.mark.parametrize("words", [{"lease": inf}, {"lease": nan}, {"retention": nan}, {"retry_window": nan}])
def test_lease_without_an_end_and_what_is_no_number_are_refused(words):
    with pytest.raises(ValueError, match="lease|retention|retry_window"):
        Policy(**words)


def test_result_with_an_endless_retention_is_replayed_after_fifty_years():
    clock = MovableClock()
    with Engine(Store(MemoryBackend(clock))) as engine:
        assert engine.run(lambda _: 1, scope="s", key="k", retention=inf) == 1
        clock.advance(50 * 365 * 86_400)
        assert engine.run(lambda _: 2, scope="s", key="k") == 1


def test_a_former_name_of_a_setting_still_works_and_warns():
    with pytest.warns(DeprecationWarning, match="hand_in_for"):
        policy = Policy(lease=3, patience=2)
    assert policy == Policy(lease=3, hand_in_for=2)
    with pytest.warns(DeprecationWarning, match="hand_in_for"):
        assert policy.patience == 2
    assert replace(policy, hand_in_for=None).hand_in_for is None
