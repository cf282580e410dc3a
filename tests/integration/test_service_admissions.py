"""Streams and sockets that are open when their credential ends: they end too, within a bounded time."""

import json
import time
from contextlib import contextmanager

import httpx
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from sameas.identity.normalize import normalize_context
from sameas.server.app import open_entry
from sameas.server.streams import admissions
from sameas.tenancy.api_keys import ApiKeys
from sameas.tenancy.directory import TenantDirectory, open_tables
from tests.unit.server.house import LONG, SLOW, TURTLE, WITHIN, Hold, read_events, running, settings_for
from tests.unit.tenancy import tokens

PAYLOAD = {"text": LONG, "ontologyId": "co", "extractionParams": SLOW}
AUTH = "jwt,api-key"


class House:
    """A service with a run that is held, a user with a key and a case, and what can be taken from them."""

    def __init__(self, service, database, hold):
        self.service = service
        self.hold = hold
        self.directory = TenantDirectory(database)
        self.keys = ApiKeys(database)
        self.tenant = self.directory.bootstrap("one", service_id="setup")
        self.ctx = normalize_context(service_id="setup", tenant_id=self.tenant.tenant_id)
        self.user = self.directory.add_user(self.ctx, "user")
        self.case = self.directory.create_case(self.ctx, "a case")
        self.directory.put_member(self.ctx, self.case.case_id, self.user.user_id)
        self.key = self.keys.create(self.ctx, "key", user_id=self.user.user_id)
        self.headers = {"X-API-Key": self.key.token}

    def another_tenant(self):
        """The headers of a user of another tenant."""
        tenant = self.directory.bootstrap("two", service_id="setup")
        ctx = normalize_context(service_id="setup", tenant_id=tenant.tenant_id)
        user = self.directory.add_user(ctx, "another user")
        return {"X-API-Key": self.keys.create(ctx, "key", user_id=user.user_id).token}

    def begin(self, headers):
        put = self.service.client.put("/api/v1/ontologies/co", content=TURTLE, headers=headers)
        assert put.status_code in (200, 201), put.text
        sent = {**headers, "Prefer": "respond-async"}
        accepted = self.service.client.post("/api/v1/extract", json=PAYLOAD, headers=sent)
        assert accepted.status_code == 202
        return accepted.headers["location"]


@pytest.fixture
def house(tmp_path, monkeypatch):
    monkeypatch.setattr(admissions, "EVERY", 0.05)
    (tmp_path / "keys.json").write_bytes(tokens.key_set(tokens.public_jwk("ES256")))
    settings = {
        "auth": AUTH,
        "jwt_issuer": tokens.ISSUER,
        "jwt_audience": tokens.AUDIENCE,
        "jwt_keys": str(tmp_path / "keys.json"),
        "max_streams": 3,
    }
    database = open_tables(f"sqlite:///{tmp_path}/tenants.db")
    entry = open_entry(settings_for(tmp_path, **settings), models=(hold := Hold()).extractor)
    with running(tmp_path, hold=hold, entry=entry, **settings) as service:
        yield House(service, database, hold)
    database.close()


@contextmanager
def socket_of(house, headers):
    with connect(house.service.socket_url, additional_headers=headers, close_timeout=WITHIN) as socket:
        yield socket


def _ended_by(house, headers, take_away):
    """What a stream, a socket and lines of calls say when the credential is taken away while they are open."""
    place = house.begin(headers)
    sent = {"tag": "extraction.streamExtract", "payload": PAYLOAD, "id": "1"}
    client = house.service.client
    with (
        socket_of(house, headers) as socket,
        client.stream("GET", f"{place}/events", headers=headers) as stream,
        client.stream("POST", "/api/rpc", json=sent, headers=headers) as lines,
    ):
        events, messages = read_events(stream.iter_lines()), lines.iter_lines()
        assert next(events)[1] == "extraction_started"
        assert json.loads(next(messages))["type"] == "event"
        socket.send(json.dumps(sent))
        assert json.loads(socket.recv(timeout=WITHIN))["type"] == "event"
        take_away()
        kinds = [kind for _, kind, _ in events]
        last = json.loads(list(messages)[-1])
        with pytest.raises(ConnectionClosed) as closed:
            while True:
                socket.recv(timeout=WITHIN)
    assert closed.value.rcvd.code == 1008
    assert not {"extraction_completed", "extraction_failed", "extraction_cancelled"} & set(kinds)
    assert (last["type"], last["error"]["type"]) == ("error", "urn:sameas:problem:credential-refused")
    assert client.get(place, headers=headers).status_code in (401, 403)


def test_a_revoked_key_ends_what_is_open_with_it(house):
    _ended_by(house, house.headers, lambda: house.keys.revoke(house.ctx, house.key.key_id))


def test_a_suspended_tenant_ends_what_is_open(house):
    _ended_by(house, house.headers, lambda: house.directory.suspend(house.ctx))


def test_a_case_that_was_left_ends_what_is_open_in_it(house):
    def leave():
        house.directory.remove_member(house.ctx, house.case.case_id, house.user.user_id)

    _ended_by(house, {**house.headers, "X-Case-ID": house.case.case_id}, leave)


def test_a_token_that_expires_ends_what_is_open_with_it(house):
    claims = {"tenant_id": house.tenant.tenant_id, "sub": house.user.user_id}
    # The leeway is 30 seconds: of these a few are left.
    token = tokens.signed("ES256", **claims, exp=int(time.time()) - 26)
    _ended_by(house, {"Authorization": f"Bearer {token}"}, lambda: None)


def test_a_browser_that_signs_out_ends_what_is_open_with_its_cookie_and_nothing_else(house):
    place = house.begin(house.headers)
    with httpx.Client(base_url=house.service.url, timeout=WITHIN) as browser:
        signed_in = browser.post("/api/v1/session", json={"kind": "api-key", "credential": house.key.token})
        assert signed_in.status_code == 204
        with (
            browser.stream("GET", f"{place}/events") as stream,
            house.service.client.stream("GET", f"{place}/events", headers=house.headers) as other,
        ):
            events, others = read_events(stream.iter_lines()), read_events(other.iter_lines())
            assert next(events)[1] == next(others)[1] == "extraction_started"
            with httpx.Client(base_url=house.service.url, cookies=browser.cookies) as page:
                assert page.delete("/api/v1/session").status_code == 204
            assert not {"extraction_completed", "extraction_cancelled"} & {kind for _, kind, _ in events}
            house.hold.let_go()
            assert [kind for _, kind, _ in others][-1] == "extraction_completed"
        assert browser.get(place).status_code == 401


def test_streams_have_a_bound_for_each_tenant_and_leave_the_requests_alone(house):
    place = house.begin(house.headers)
    other = house.another_tenant()
    client = house.service.client
    with (
        client.stream("GET", f"{place}/events", headers=house.headers) as first,
        client.stream("GET", f"{place}/events", headers=house.headers),
        socket_of(house, house.headers),
    ):
        events = read_events(first.iter_lines())
        assert next(events)[1] == "extraction_started"
        refused = client.get(f"{place}/events", headers=house.headers)
        assert (refused.status_code, refused.json()["type"]) == (429, "urn:sameas:problem:too-many-streams")
        lines = client.get("/metrics").text.splitlines()
        assert "sameas_streams_open 3.0" in lines
        assert "sameas_requests_under_way 1.0" in lines
        with socket_of(house, other):
            assert "sameas_streams_open 4.0" in client.get("/metrics").text.splitlines()
    ends_at = time.monotonic() + WITHIN
    while "sameas_streams_open 0.0" not in client.get("/metrics").text:
        assert time.monotonic() < ends_at, "places are not given back"


def test_a_socket_keeps_nothing_of_streams_that_have_ended(house):
    put = house.service.client.put("/api/v1/ontologies/co", content=TURTLE, headers=house.headers)
    assert put.status_code == 201
    with socket_of(house, house.headers) as socket:
        (admission,) = house.service.app.service.admissions._open
        for number in range(5):
            payload = {"text": f"Anna Stone works for Acme{number} Ltd.", "ontologyId": "co"}
            socket.send(json.dumps({"tag": "extraction.streamExtract", "payload": payload}))
            kinds = set()
            while "result" not in kinds:
                kinds.add(json.loads(socket.recv(timeout=WITHIN))["type"])
            assert "event" in kinds
        # The socket itself is what is left to end.
        assert admission.streams == 1
