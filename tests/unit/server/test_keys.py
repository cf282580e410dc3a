"""A record in words says who holds it, since when, and what a request now would get."""

from msgspec.structs import replace

from sameas.once.record import About, Identity, Record, State
from sameas.server.http.routes.keys import describe_record

AT = 1_769_860_800
HELD = Record(
    identity=Identity(b"", "t", "extract", f"{'a' * 64}:order-7"),
    fingerprint="f",
    state=State.HELD,
    fence=AT * 1_000_000,
    attempt=2,
    attempt_id="x",
    lease_until=(AT + 30) * 1_000_000,
    created_at=AT * 1_000_000,
    expires_at=(AT + 60) * 1_000_000,
    about=About(owner="host:42", route="/api/v1/extract", method="POST", audit={"created_by_user_id": "anna"}),
)


def said(record, *, now=AT + 1):
    return " ".join(describe_record(record, now=now))


def test_a_held_record_names_holder_time_attempt_fence_and_lease():
    words = said(HELD)
    assert "order-7" in words
    assert "a client chose it" in words
    assert "The user anna asked for it first." in words
    assert (
        f"host:42 has held it since 2026-01-31T12:00:00.000Z: the second attempt, with the fence {AT}000000." in words
    )
    assert "waits for the holder" in words
    assert "refused with 422" in words


def test_a_lease_that_is_over_is_taken_over_at_once():
    words = said(HELD, now=AT + 31)
    assert "the holder is dead, asleep or cut off" in words
    assert "takes over at once, as the third attempt" in words


def test_a_done_record_is_replayed_until_it_expires():
    done = replace(HELD, state=State.DONE, completed_at=(AT + 5) * 1_000_000, fingerprint="")
    words = said(done)
    assert "was accepted at 2026-01-31T12:00:05.000Z" in words
    assert "kept until 2026-01-31T12:01:00.000Z" in words
    assert words.endswith("The same request now gets this result again, nothing is run.")
