"""Key sets: kept, fetched again within bounds, and believed only as far as they may be."""

import asyncio
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from sameas.once.errors import StoreUnavailable
from sameas.tenancy.jwks import KeySet, parse_key_set
from tests.unit.tenancy.tokens import key_set, public_jwk


class Provider:
    """A provider whose keys change, with a count of how often it was asked."""

    def __init__(self, *jwks):
        self.jwks = jwks
        self.asked = 0
        self.now = 1_000.0
        self.fault = None
        self.gate = None

    def load(self):
        self.asked += 1
        if self.gate is not None:
            self.gate.wait(10)
        if self.fault is not None:
            raise self.fault
        return key_set(*self.jwks)

    def keys(self, **options):
        return KeySet(self.load, clock=lambda: self.now, **options)


@pytest.fixture
def provider():
    return Provider(public_jwk("ES256"))


def find(keys, kid, algorithm="ES256"):
    """What `find` finds; a load that goes on behind it is at its end before the test moves the clock."""

    async def found():
        key = await keys.find(kid, algorithm)
        while keys._loading is not None:
            await asyncio.sleep(0.001)
        return key

    return asyncio.run(found())


def test_keys_are_loaded_once_and_kept(provider):
    keys = provider.keys()
    for _ in range(5):
        assert find(keys, "one").key_id == "one"
    assert provider.asked == 1


def test_a_kid_that_is_not_known_loads_again_but_not_more_often_than_the_bound(provider):
    keys = provider.keys(refresh_after=30)
    assert find(keys, "one")
    provider.now += 1
    provider.jwks = (public_jwk("ES256"), public_jwk("ES256", "two"))
    assert find(keys, "two") is None
    assert provider.asked == 1
    provider.now += 30
    assert find(keys, "two").key_id == "two"
    for made_up in range(100):
        assert find(keys, f"made up {made_up}") is None
    assert provider.asked == 2


def test_a_key_that_was_taken_out_of_the_set_ends(provider):
    keys = provider.keys(max_age=600)
    assert find(keys, "one")
    provider.jwks = (public_jwk("ES256", "two"),)
    provider.now += 600

    find(keys, "one")
    assert find(keys, "one") is None


def test_a_key_that_was_taken_out_while_nobody_asked_is_not_accepted_even_once(provider):
    keys = provider.keys(max_age=600, stale_after=3600)
    assert find(keys, "one")
    provider.jwks = (public_jwk("ES256", "two"),)
    provider.now += 1_200
    provider.gate = threading.Event()

    async def asked():
        waiting = asyncio.create_task(keys.find("one", "ES256"))
        while provider.asked == 1:
            await asyncio.sleep(0.001)
        provider.gate.set()
        return await waiting

    assert asyncio.run(asked()) is None


def test_a_load_that_never_ends_does_not_stop_the_next(provider):
    keys = provider.keys(refresh_after=30)
    provider.gate = gate = threading.Event()

    async def asked():
        waiting = asyncio.create_task(keys.find("one", "ES256"))
        while provider.asked == 0:
            await asyncio.sleep(0.001)
        provider.gate = None
        provider.now += 60
        key = await keys.find("one", "ES256")
        gate.set()
        await waiting
        return key

    assert asyncio.run(asked()).key_id == "one"
    assert provider.asked == 2


def test_known_keys_serve_on_while_the_provider_is_away_and_then_nothing_does(provider):
    keys = provider.keys(max_age=600, stale_after=3600)
    assert find(keys, "one")
    provider.fault = OSError("away")
    provider.now += 601
    assert find(keys, "one")
    provider.now += 3600
    with pytest.raises(StoreUnavailable, match="away"):
        find(keys, "one")
    provider.fault = None
    provider.now += 30
    assert find(keys, "one")


def test_a_provider_that_was_never_there_is_a_fault_and_not_a_refusal(provider):
    provider.fault = TimeoutError("slow")
    keys = provider.keys()
    for _ in range(3):
        with pytest.raises(StoreUnavailable, match="slow"):
            find(keys, "one")
    assert provider.asked == 1


def test_many_who_wait_cost_one_load_and_one_who_leaves_stops_nobody(provider):
    keys = provider.keys()
    provider.gate = threading.Event()

    async def crowd():
        waiting = [asyncio.create_task(keys.find("one", "ES256")) for _ in range(50)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        provider.gate.set()
        return await asyncio.gather(*waiting, return_exceptions=True)

    left, *served = asyncio.run(crowd())
    assert isinstance(left, asyncio.CancelledError)
    assert all(key.key_id == "one" for key in served)
    assert provider.asked == 1


def test_one_set_serves_several_event_loops(provider):
    keys = provider.keys(refresh_after=0)
    assert [find(keys, "one").key_id for _ in range(3)] == ["one"] * 3
    provider.now += 1
    assert [find(keys, f"unknown {number}") for number in range(3)] == [None] * 3


def test_a_token_without_a_kid_needs_a_set_without_a_choice(provider):
    assert find(provider.keys(), None).key_id == "one"
    provider.jwks = (public_jwk("ES256"), public_jwk("ES256", "two"))
    assert find(provider.keys(), None) is None
    assert find(provider.keys(), "two")


def test_a_file_is_read_again_when_it_is_due(tmp_path):
    file = tmp_path / "keys.json"
    file.write_bytes(key_set(public_jwk("ES256")))
    keys = KeySet.from_file(file, refresh_after=0)
    assert find(keys, "one")
    file.write_bytes(key_set(public_jwk("ES256", "two")))
    assert find(keys, "two")


@pytest.mark.parametrize(
    "text",
    [
        *(
            b"",
            b"{}",
            b"[]",
            b'{"keys": 7}',
            b'{"keys": {"a": 1}',
            b"\xff",
            b"null",
            b'{"keys": [{"kty": "RSA", "n": 1}]}',
        ),
        b'{"keys": [{"kty": "RSA", "kid": ["one"]}]}',
        b'{"keys": [{"kty": "RSA", "key_ops": null}]}',
        b'{"keys": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
)
def test_what_is_no_key_set_is_refused(text):
    with pytest.raises(ValueError):
        parse_key_set(text)


def test_keys_for_other_purposes_and_of_unknown_kinds_are_passed_over():
    odd = [
        {"kty": "unknown", "kid": "a"},
        public_jwk("RS256", use="enc"),
        public_jwk("ES256", key_ops=["sign"]),
        public_jwk("ES256", crv="secp256k1"),
        public_jwk("RS256", alg="RSA-OAEP"),
        "text",
        {"kty": "oct", "kid": "empty"},
    ]
    assert parse_key_set(json.dumps({"keys": odd}).encode()) == {}


def test_a_kid_that_stands_for_two_keys_is_refused():
    with pytest.raises(ValueError, match="twice"):
        parse_key_set(key_set(public_jwk("ES256"), public_jwk("ES256", "two", kid="one")))


@pytest.mark.parametrize("entry", [{"kty": "oct", "k": "c2VjcmV0"}, {**public_jwk("ES256"), "d": "c2VjcmV0"}])
def test_a_public_set_with_a_secret_in_it_is_refused_without_telling_it(entry):
    with pytest.raises(ValueError, match="secret key") as caught:
        parse_key_set(key_set(entry))
    assert "c2VjcmV0" not in str(caught.value)


def test_a_short_secret_is_no_key():
    assert parse_key_set(key_set({"kty": "oct", "k": "c2hvcnQ", "kid": "one"}), public=False) == {}


@pytest.fixture
def address():
    """A real server: /keys answers, /moved sends elsewhere, /long does not end, /gone is not there."""
    content = key_set(public_jwk("ES256"))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            status = {"/keys": 200, "/long": 200, "/moved": 302}.get(self.path, 404)
            self.send_response(status)
            if status == 302:
                self.send_header("Location", "/keys")
            self.end_headers()
            if self.path == "/keys":
                self.wfile.write(content)
            elif self.path == "/long":
                self.wfile.write(b" " * 1_100_000)

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_keys_come_from_an_address(address):
    assert find(KeySet.from_url(f"{address}/keys"), "one").key_id == "one"


@pytest.mark.parametrize(("path", "said"), [("moved", "sends elsewhere"), ("long", "longer than"), ("gone", "404")])
def test_an_address_that_does_not_answer_with_keys_is_a_fault(address, path, said):
    with pytest.raises(StoreUnavailable, match=said):
        find(KeySet.from_url(f"{address}/{path}"), "one")


@pytest.mark.parametrize("url", ["http://issuer.test/keys", "file:///etc/passwd", "ftp://127.0.0.1/x", "", "https"])
def test_an_address_must_be_https_unless_it_is_this_machine(url):
    with pytest.raises(ValueError, match="https"):
        KeySet.from_url(url)
