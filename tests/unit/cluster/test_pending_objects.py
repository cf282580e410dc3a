"""Promises as objects: every machine sees them, and their tenant is read from their names."""

import pytest

from sameas.objects import open_objects
from sameas.server.runs.pending_runs import PendingObjects, PendingRun
from sameas.server.schemas import ExtractRequest

KEY = "sha256-" + "ab" * 32
REQUEST = ExtractRequest(text="Anna works.", ontology_id="company")


@pytest.fixture
def pending(tmp_path):
    return PendingObjects(open_objects(f"file://{tmp_path}/objects"))


@pytest.mark.parametrize("tenant", ["", "acme", "a/b~case~1", "Zürich \U0001f600", "_"])
def test_a_promise_is_found_by_its_tenant_and_key(pending, tenant):
    pending.keep(PendingRun(tenant=tenant, key=KEY, request=REQUEST))
    assert pending.has(tenant, KEY)
    assert pending.read(tenant, KEY).request == REQUEST
    assert [place for place, _ in pending.places()] == [(tenant, KEY)]
    assert [one.key for one in pending.all()] == [KEY]
    pending.done(tenant, KEY)
    assert not pending.has(tenant, KEY)
    assert pending.places() == []


def test_a_promise_that_cannot_be_read_is_left_to_others(pending, tmp_path):
    pending.keep(PendingRun(tenant="", key=KEY, request=REQUEST))
    (path,) = (tmp_path / "objects" / "requests").rglob("sha256-*")
    path.write_bytes(b'{"of": "another release"}')
    assert pending.read("", KEY) is None
    assert pending.has("", KEY)


def test_what_is_no_request_keeps_nobody_from_the_others(pending, tmp_path):
    pending.keep(PendingRun(tenant="acme", key=KEY, request=REQUEST))
    for stray in ("a", "\u00e9", "_w"):
        folder = tmp_path / "objects" / "requests" / stray
        folder.mkdir()
        (folder / KEY).write_bytes(b"{}")
    assert [place for place, _ in pending.places()] == [("acme", KEY)]
    assert [one.key for one in pending.all()] == [KEY]


def test_no_name_but_a_key_reaches_the_objects(pending):
    with pytest.raises(ValueError, match="not an extraction key"):
        pending.read("", "../../etc/passwd")
