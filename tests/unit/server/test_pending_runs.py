"""Promised runs on the disk, and the names that reach it."""

import msgspec
import pytest

from sameas.server.runs.pending_runs import PendingRun, PendingRuns
from sameas.server.schemas import ExtractRequest

KEY = "sha256-" + "a" * 64
REQUEST = ExtractRequest(text="Anna Stone works.", ontology_id="company")


def test_a_promise_is_there_until_it_is_done(tmp_path):
    pending_runs = PendingRuns(tmp_path)
    pending_runs.keep(PendingRun(tenant="t", key=KEY, request=REQUEST, audit={"trace_id": "1"}))
    (found,) = PendingRuns(tmp_path).all()
    assert (found.tenant, found.key, found.request) == ("t", KEY, REQUEST)
    assert pending_runs.has("t", KEY)
    pending_runs.done("t", KEY)
    pending_runs.done("t", KEY)
    assert list(pending_runs.all()) == []


@pytest.mark.parametrize("tenant", ["../x", "a/b", "", "x" * 300, "\x00", "~case~"])
def test_whatever_a_tenant_is_called_its_promises_stay_in_the_folder(tmp_path, tenant):
    PendingRuns(tmp_path / "home").keep(PendingRun(tenant=tenant, key=KEY, request=REQUEST))
    (path,) = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert path.parent.parent == tmp_path / "home" / "requests"
    assert path.name == f"{KEY}.json"


def test_what_is_no_key_is_refused_before_it_meets_a_name(tmp_path):
    with pytest.raises(ValueError, match="not an extraction key"):
        PendingRuns(tmp_path).has("t", "../metadata")


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\x00garbage"])
def test_a_file_that_is_no_promise_is_set_aside_and_hides_no_other(tmp_path, content):
    pending_runs = PendingRuns(tmp_path)
    pending_runs.keep(PendingRun(tenant="t", key=KEY, request=REQUEST))
    other = "sha256-" + "b" * 64
    (tmp_path / "requests" / "t" / f"{other}.json").write_bytes(content)
    assert [pending_run.key for pending_run in pending_runs.all()] == [KEY]
    assert not pending_runs.has("t", other)
    assert (tmp_path / "requests" / "t" / f"{other}.json.unreadable").read_bytes() == content


@pytest.mark.parametrize(("tenant", "key"), [("another", KEY), ("t", "sha256-" + "b" * 64), ("t", "../../x")])
def test_a_promise_that_is_not_where_it_belongs_is_not_believed(tmp_path, tenant, key):
    place = tmp_path / "requests" / "t" / f"{KEY}.json"
    place.parent.mkdir(parents=True)
    place.write_bytes(msgspec.json.encode(PendingRun(tenant=tenant, key=key, request=REQUEST)))
    assert list(PendingRuns(tmp_path).all()) == []
    assert not place.exists()


def test_a_promise_of_another_release_is_left_to_it(tmp_path):
    pending_runs = PendingRuns(tmp_path)
    pending_runs.keep(PendingRun(tenant="t", key=KEY, request=REQUEST))
    place = tmp_path / "requests" / "t" / f"{KEY}.json"
    place.write_bytes(place.read_bytes().replace(b'"ontologyId"', b'"somethingNew":1,"ontologyId"'))
    assert list(pending_runs.all()) == []
    assert pending_runs.has("t", KEY)
