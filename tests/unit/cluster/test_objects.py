"""Objects in a folder and in a real S3: the same answers from both."""

import pytest

from sameas.objects import Objects, ObjectsUnavailable, open_objects
from sameas.once.errors import StoreMisconfigured
from tests.servers.http_faults import HttpFaults
from tests.servers.s3 import S3Server


@pytest.fixture(scope="module")
def s3():
    with S3Server() as server:
        yield server


@pytest.fixture(params=["folder", "s3"])
def objects(request, tmp_path, monkeypatch) -> Objects:
    if request.param == "folder":
        return open_objects(f"file://{tmp_path}/objects")
    server = request.getfixturevalue("s3")
    for name, value in server.credentials.items():
        monkeypatch.setenv(name, value)
    return open_objects(f"{server.url}/{tmp_path.name}")


def test_what_was_put_is_there_whole_and_may_be_written_over(objects):
    assert objects.get("a/b") is None
    assert not objects.has("a/b")
    objects.put("a/b", b"first")
    objects.put("a/b", b"second \x00\xff")
    assert objects.get("a/b") == b"second \x00\xff"
    assert objects.has("a/b")
    objects.put("a/empty", b"")
    assert objects.get("a/empty") == b""


def test_names_below_a_folder_are_listed_and_no_others(objects):
    for name in ("runs/x/1", "runs/x/2", "runs/xy/1", "other"):
        objects.put(name, name.encode())
    assert sorted(one.name for one in objects.list("runs/x")) == ["runs/x/1", "runs/x/2"]
    assert {one.size for one in objects.list("runs/x")} == {8}
    assert list(objects.list("nothing")) == []


def test_names_may_hold_what_keys_and_times_hold(objects):
    name = "started/acme_1/00012~2026-01-31T12:00:00.000Z~sha256-ab"
    objects.put(name, b"")
    assert [one.name for one in objects.list("started/acme_1")] == [name]


def test_deleting_what_is_not_there_is_no_error(objects):
    objects.put("gone", b"1")
    objects.delete(["gone", "never"])
    assert objects.get("gone") is None


def test_more_than_a_page_is_listed(objects):
    for number in range(1_050):
        objects.put(f"many/{number:05d}", b"")
    assert len(list(objects.list("many"))) == 1_050


def test_a_server_that_is_away_is_said_to_be_and_found_again(monkeypatch):
    with S3Server() as server:
        for name, value in server.credentials.items():
            monkeypatch.setenv(name, value)
        objects = open_objects(server.url)
        objects.put("kept", b"1")
        server.kill()
        with pytest.raises(ObjectsUnavailable, match="did not answer"):
            objects.get("kept")
        server.start()
        assert objects.get("kept") == b"1"


@pytest.mark.parametrize("status", [500, 503])
def test_a_server_that_refuses_every_third_request_and_is_slow_loses_nothing(monkeypatch, status):
    with S3Server() as server, HttpFaults(port=server.port) as faults:
        for name, value in server.credentials.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("AWS_ENDPOINT_URL", faults.url)
        objects = open_objects(server.url)
        faults.each, faults.status, faults.seconds = 3, status, 0.01
        for number in range(12):
            objects.put(f"some/{number}", b"%d" % number)
        assert [objects.get(f"some/{number}") for number in range(12)] == [b"%d" % number for number in range(12)]
        assert len(list(objects.list("some"))) == 12
        objects.delete([f"some/{number}" for number in range(12)])
        assert not list(objects.list("some"))
        assert faults.refused > 10


def test_a_url_of_no_store_says_which_there_are():
    with pytest.raises(StoreMisconfigured, match="s3://bucket/prefix"):
        open_objects("ftp://somewhere")
