"""The exhaustive search: the protocol keeps the promise in every reachable state, and a broken one is found out."""

from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from sameas.once import protocol
from sameas.once.protocol import TRANSITIONS, Event, View
from sameas.once.record import Accepted, Acquired, Busy, Lease
from sameas.testing import Counterexample, explore


@pytest.mark.parametrize("workers", [1, 2, 3, 4])
def test_the_promise_holds_in_every_reachable_state(workers):
    report = explore(protocol, workers=workers)
    assert report.states > 20 * workers
    assert report.transitions > report.states


def broken(**rules):
    whole = {name: getattr(protocol, name) for name in ("claim", "renew", "complete", "fail", "release", "forget")}
    return SimpleNamespace(**whole | rules)


def as_holder(record, lease):
    return lease if record is None else Lease(lease.identity, record.fence, record.attempt_id)


def unfenced(operation):
    def rule(record, lease, **values):
        return operation(record, as_holder(record, lease), **values)

    return rule


def claim_same_fence(record, request, now):
    after, answer = protocol.claim(record, request, now)
    if record is not None and isinstance(answer, Acquired):
        after = replace(after, fence=record.fence)
        return after, Acquired(after.fence, after.attempt)
    return after, answer


def claim_never_takes_over(record, request, now):
    after, answer = protocol.claim(record, request, now)
    if record is not None and isinstance(answer, Acquired) and record.attempt_id != request.attempt_id:
        return record, Busy(1)
    return after, answer


def claim_any_fingerprint(record, request, now):
    known = request if record is None else replace(request, fingerprint=record.fingerprint)
    return protocol.claim(record, known, now)


def claim_again_after_done(record, request, now):
    same = record is not None and record.fingerprint == request.fingerprint
    return protocol.claim(None if same else record, request, now)


def complete_without_storing(record, lease, *, outcome, retain_for, now):
    _, answer = protocol.complete(record, lease, outcome=outcome, retain_for=retain_for, now=now)
    return record, answer


def complete_what_is_absent(record, lease, *, outcome, retain_for, now):
    after, answer = protocol.complete(record, lease, outcome=outcome, retain_for=retain_for, now=now)
    return (after, Accepted(now, now)) if record is None else (after, answer)


def forget_nothing(record, *, now):
    return record, Accepted(now, now)


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        (broken(complete=unfenced(protocol.complete)), "somebody who does not hold"),
        (broken(fail=unfenced(protocol.fail)), "somebody who does not hold"),
        (broken(release=unfenced(protocol.release)), "somebody who does not hold"),
        (broken(renew=unfenced(protocol.renew)), "somebody who does not hold"),
        (broken(claim=claim_same_fence), "was given before"),
        (broken(claim=claim_never_takes_over), "stuck"),
        (broken(claim=claim_any_fingerprint), "another request"),
        (broken(claim=claim_again_after_done), "although its result was accepted"),
        (broken(complete=complete_without_storing), "not the stored one"),
        (broken(complete=complete_what_is_absent), "does not hold"),
        (broken(forget=forget_nothing), "still there"),
    ],
)
def test_a_broken_protocol_gives_a_shortest_counterexample(rules, said):
    with pytest.raises(Counterexample, match=said) as found:
        explore(rules)
    assert 1 <= len(found.value.path) <= 8
    assert found.value.path[-1] in str(found.value)


def test_the_table_answers_every_event_in_every_view():
    claimant = {View.ABSENT, View.OTHER, View.MINE, View.LAPSED, View.TAKEN, View.DONE, View.FAILED}
    assert set(TRANSITIONS) == set(Event)
    assert set(TRANSITIONS[Event.CLAIM]) == claimant
    for event in (Event.RENEW, Event.COMPLETE, Event.FAIL, Event.RELEASE):
        assert set(TRANSITIONS[event]) == set(View) - {View.OTHER}
