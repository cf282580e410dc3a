"""For which keys idempotency is in force."""

import pytest

from sameas.once.rollout import parse_rollout

KEYS = [f"order-{number}" for number in range(4_000)]


def test_the_more_exact_rule_wins():
    rollout = parse_rollout("enforce, scope:pay=shadow, tenant:t1=off, tenant:t1 scope:pay=enforce")
    assert rollout.mode_of("t2", "mail", "k") == "enforce"
    assert rollout.mode_of("t2", "pay", "k") == "shadow"
    assert rollout.mode_of("t1", "mail", "k") == "off"
    assert rollout.mode_of("t1", "pay", "k") == "enforce"


def test_a_share_is_of_the_keys_and_one_key_is_always_treated_alike():
    quarter, half = parse_rollout("enforce:25%"), parse_rollout("enforce:50%")
    chosen = {key for key in KEYS if quarter.mode_of("t", "pay", key) == "enforce"}
    assert len(chosen) == pytest.approx(1_000, rel=0.15)
    assert {quarter.mode_of("t", "pay", key) for key in KEYS} == {"enforce", "off"}
    assert chosen == {key for key in KEYS if parse_rollout("enforce:25%").mode_of("t", "pay", key) == "enforce"}
    # Who was in stays in when the share grows.
    assert chosen < {key for key in KEYS if half.mode_of("t", "pay", key) == "enforce"}


def test_what_is_not_named_is_in_force():
    assert parse_rollout("enforce").is_whole
    assert parse_rollout("tenant:t1=off").mode_of("t2", "pay", "k") == "enforce"
    assert {parse_rollout("off:10%").mode_of("t", "pay", key) for key in KEYS} == {"off", "enforce"}


@pytest.mark.parametrize("text", ["", "on", "enforce:200%", "scope:=off", "off, shadow", "tenant:a b=off"])
def test_what_is_no_rule_is_refused_with_how_to_write_one(text):
    with pytest.raises(ValueError, match="mode must be enforce, shadow or off"):
        parse_rollout(text)
