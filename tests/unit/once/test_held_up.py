"""Who is warned that an event loop was held up, and who is not."""

import pytest

from sameas import Policy
from sameas.once.call_builder import identity_of
from sameas.once.context import Context
from sameas.once.heartbeat import Beat
from sameas.once.record import Lease

LEASE = 30.0


@pytest.mark.parametrize(
    ("now", "due", "warned"),
    [
        (131.0, 110.0, True),
        # The timer came when it should, and the store has not answered since.
        (131.0, 130.0, False),
        # It was late, and the lease is still ours.
        (129.0, 110.0, False),
    ],
)
def test_only_a_timer_that_came_too_late_for_its_lease_is_warned_about(now, due, warned, caplog):
    context = Context(Lease(identity_of("pay", "order-1"), 1, ""), attempt=1, safe_until=100.0 + LEASE, place=None)
    Beat(context, Policy(lease=LEASE), due).warn_of_a_held_up_loop(now)
    assert ("lease of pay (30 s)" in caplog.text) == warned
    assert "order-1" not in caplog.text
