"""Promised runs on the disk, and the names that reach it."""

import msgspec
import pytest

from sameas.server.promises import Promise, Promises
from sameas.server.wire import ExtractRequest

KEY = "sha256-" + "a" * 64
REQUEST = ExtractRequest(text="Anna Stone works.", ontology_id="company")


def test_a_promise_is_there_until_it_is_done(tmp_path):
    promises = Promises(tmp_path)
    promises.keep(Promise(tenant="t", key=KEY, request=REQUEST, audit={"trace_id": "1"}))
    (found,) = Promises(tmp_path).all()
    assert (found.tenant, found.key, found.request) == ("t", KEY, REQUEST)
    assert promises.has("t", KEY)
    promises.done("t", KEY)
    promises.done("t", KEY)
    assert list(promises.all()) == []


@pytest.mark.parametrize("tenant", ["../x", "a/b", "", "x" * 300, "\x00", "~case~"])
def test_whatever_a_tenant_is_called_its_promises_stay_in_the_folder(tmp_path, tenant):
    Promises(tmp_path / "home").keep(Promise(tenant=tenant, key=KEY, request=REQUEST))
    (path,) = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert path.parent.parent == tmp_path / "home" / "requests"
    assert path.name == f"{KEY}.json"


def test_what_is_no_key_is_refused_before_it_meets_a_name(tmp_path):
    with pytest.raises(ValueError, match="not an extraction key"):
        Promises(tmp_path).has("t", "../metadata")


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\x00garbage"])
def test_a_file_that_is_no_promise_is_set_aside_and_hides_no_other(tmp_path, content):
    promises = Promises(tmp_path)
    promises.keep(Promise(tenant="t", key=KEY, request=REQUEST))
    other = "sha256-" + "b" * 64
    (tmp_path / "requests" / "t" / f"{other}.json").write_bytes(content)
    assert [promise.key for promise in promises.all()] == [KEY]
    assert not promises.has("t", other)
    assert (tmp_path / "requests" / "t" / f"{other}.json.unreadable").read_bytes() == content


@pytest.mark.parametrize(("tenant", "key"), [("another", KEY), ("t", "sha256-" + "b" * 64), ("t", "../../x")])
def test_a_promise_that_is_not_where_it_belongs_is_not_believed(tmp_path, tenant, key):
    place = tmp_path / "requests" / "t" / f"{KEY}.json"
    place.parent.mkdir(parents=True)
    place.write_bytes(msgspec.json.encode(Promise(tenant=tenant, key=key, request=REQUEST)))
    assert list(Promises(tmp_path).all()) == []
    assert not place.exists()


def test_a_promise_of_another_release_is_left_to_it(tmp_path):
    promises = Promises(tmp_path)
    promises.keep(Promise(tenant="t", key=KEY, request=REQUEST))
    place = tmp_path / "requests" / "t" / f"{KEY}.json"
    place.write_bytes(place.read_bytes().replace(b'"ontologyId"', b'"somethingNew":1,"ontologyId"'))
    assert list(promises.all()) == []
    assert promises.has("t", KEY)
