"""Durations without an end: a retention may have none, a lease must have one."""

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
