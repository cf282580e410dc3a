"""Promised runs on the disk, and the names that reach it."""

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
