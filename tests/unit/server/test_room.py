"""The memory for bodies, and a tenant's share of it."""

import pytest

from sameas.server.bodies import BodyMemory
from sameas.server.problems import Problem


def test_one_tenant_s_bodies_leave_room_for_another_s():
    body_memory = BodyMemory(1_000, of_one=100)
    taken = 0
    with pytest.raises(Problem, match="memory"):
        while True:
            body_memory.take(50, "many")
            taken += 50
    assert taken == 750
    for _ in range(2):
        body_memory.take(50, "one")
    body_memory.give_back(taken, "many")
    body_memory.give_back(100, "one")
    assert body_memory.used == 0


def test_a_tenant_may_always_have_one_body_where_there_is_room():
    body_memory = BodyMemory(100, of_one=100)
    for _ in range(10):
        body_memory.take(10, "one")
    with pytest.raises(Problem):
        body_memory.take(1, "one")


def test_a_deployment_of_one_tenant_has_all_of_it():
    body_memory = BodyMemory(1_000)
    for _ in range(20):
        body_memory.take(50)
    assert body_memory.is_full
