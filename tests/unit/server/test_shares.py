"""A tenant's share of the requests under way."""

import pytest

from sameas.server.problems import Problem
from sameas.server.shares import Requests


def flood(requests, tenant, count):
    """So many requests; those that were let in."""
    places, refusals = [], set()
    for _ in range(count):
        place = requests.begin()
        try:
            place.take_share(tenant)
        except Problem as refused:
            refusals.add((refused.status, refused.code, refused.retry_after))
            place.leave()
        else:
            places.append(place)
    assert refusals <= {(429, "too-many-requests", 1.0)}
    return places


def test_a_flood_of_one_tenant_leaves_places_to_others_who_leave_some_too():
    requests = Requests(100, divided=True)
    held = {tenant: len(flood(requests, tenant, 200)) for tenant in ("a", "b", "c", "d")}
    assert held["a"] == 75
    assert all(held.values())
    assert sum(held.values()) <= 100


def test_places_that_are_left_are_there_again_and_only_once():
    requests = Requests(100, divided=True)
    for place in flood(requests, "a", 200):
        place.leave()
        place.leave()
    assert (requests.under_way, requests.shares.free) == (0, 100)
    assert len(flood(requests, "b", 200)) == 75


def test_a_deployment_of_one_tenant_has_all_places():
    requests = Requests(100, divided=False)
    assert len(flood(requests, "a", 100)) == 100
    with pytest.raises(Problem, match="too many") as refused:
        requests.begin().take_share("a")
    assert (refused.value.status, refused.value.code) == (503, "overloaded")
