"""Bodies are read up to a bound, and not a piece further; a tenant has its share of the memory for them."""

import pytest

from sameas.server.bodies import BodyMemory, ClientGone, read_body
from sameas.server.problems import Problem

pytestmark = pytest.mark.anyio


class Client:
    """Sends the same piece for ever, and counts."""

    def __init__(self, *messages):
        self.sent = 0
        self._messages = list(messages)

    async def __call__(self):
        self.sent += 1
        if self._messages:
            return self._messages.pop(0)
        return {"type": "http.request", "body": b"a" * 100, "more_body": True}


async def test_a_body_without_an_end_is_refused_at_the_bound():
    client = Client()
    with pytest.raises(Problem) as refused:
        await read_body({"headers": []}, client, at_most=1000)
    assert refused.value.status == 413
    assert client.sent == 11


async def test_a_body_that_says_it_is_too_long_is_not_read_at_all():
    client = Client()
    with pytest.raises(Problem):
        await read_body({"headers": [(b"content-length", b"1001")]}, client, at_most=1000)
    assert client.sent == 0


async def test_pieces_are_put_together():
    client = Client(
        {"type": "http.request", "body": b"a", "more_body": True},
        {"type": "http.request", "body": b"b", "more_body": False},
    )
    assert await read_body({"headers": []}, client, at_most=2) == b"ab"


async def test_a_client_that_leaves_in_the_middle_is_told_nothing():
    client = Client({"type": "http.request", "body": b"a", "more_body": True}, {"type": "http.disconnect"})
    with pytest.raises(ClientGone):
        await read_body({"headers": []}, client, at_most=2)


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
