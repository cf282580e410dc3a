"""Secrets that were planted are nowhere to be read: not in logs, errors, reprs, tracebacks or files."""

import asyncio
import logging
import traceback

import pytest

from sameas.identity.normalize import credentials, normalize_request
from sameas.identity.scope import ScopeError
from sameas.once.errors import StoreError
from sameas.tenancy import ApiKeyAuthenticator, BySchemeAuthenticator, EnrolledAuthenticator
from sameas.tenancy.jwks import KeySet
from sameas.tenancy.jwt import JwtAuthenticator
from tests.unit.tenancy.tokens import AUDIENCE, ISSUER, key_set, public_jwk, signed

CANARY = "kanarienvogel"
SECRET = (CANARY * 5).encode()


def request(name, value):
    return {"type": "http", "headers": [(name, value.encode("latin-1", "replace"))]}


def shown(error):
    """Everything that somebody may print of an error: with its causes, and with the values of its variables left out."""
    return "".join(traceback.format_exception(error)) + repr(error) + str(vars(error))


@pytest.fixture
def door(database, keys):
    """All authenticators behind one door, as a deployment has them."""
    tokens = JwtAuthenticator(SECRET, issuer=ISSUER, audience=AUDIENCE, algorithms=["HS256"])
    return BySchemeAuthenticator(
        {
            "bearer": EnrolledAuthenticator(tokens, database=database),
            "apikey": ApiKeyAuthenticator(database, secret=SECRET, clock=keys._clock),
        }
    )


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_no_secret_is_in_anything_that_was_written(door, directory, keys, ctx, tenant, caplog, capfd, tmp_path):
    caplog.set_level(logging.DEBUG)
    user = directory.add_user(ctx, "First")
    made = keys.create(ctx, "laptop", user_id=user.user_id)
    keys.revoke(ctx, made.key_id)
    secret = made.token.rpartition("_")[2]
    good = signed("HS256", key=SECRET, tenant_id=tenant.tenant_id, sub=user.user_id)
    shown_credentials = [
        (b"authorization", f"Bearer {good[:-4]}{CANARY}"),
        (b"authorization", f"Bearer {signed('HS256', key=SECRET, exp=1)}"),
        (b"authorization", f"Bearer {signed('HS256', key=SECRET, tenant_id=CANARY)}"),
        (b"authorization", f"Bearer {signed('HS256', key=SECRET, aud=CANARY)}"),
        (b"authorization", f"Bearer {CANARY}"),
        (b"authorization", f"Bearer {CANARY}\x00"),
        (b"authorization", f"Basic {CANARY}"),
        (b"authorization", CANARY),
        (b"x-api-key", made.token),
        (b"x-api-key", f"sameas_{CANARY}"),
        (b"x-api-key", f"{CANARY} {CANARY}"),
    ]
    written = [repr(made), repr(door), repr(keys), repr(vars(door))]
    for name, value in shown_credentials:
        with pytest.raises((ScopeError, StoreError)) as caught:
            asked = request(name, value)
            principal = asyncio.run(door.authenticate(credentials(asked)))
            normalize_request(asked, principal=principal)
        written.append(shown(caught.value))
        assert caught.value.status == 401
    principal = asyncio.run(door.authenticate(credentials(request(b"authorization", f"Bearer {good}"))))
    written += [repr(principal), repr(normalize_request(request(b"a", "b"), principal=principal))]
    written += [caplog.text, *capfd.readouterr()]
    files = [path.read_bytes().decode("latin-1") for path in tmp_path.iterdir()]
    token_parts = [part for _, value in shown_credentials for part in value.split() if len(part) > 30]
    for text in (*written, *files):
        for part in (CANARY, secret, SECRET.decode(), *token_parts, good):
            assert part not in text


def test_a_key_set_that_cannot_be_used_does_not_tell_its_keys():
    broken = [
        key_set({"kty": "oct", "k": CANARY, "kid": "one"}),
        key_set({"kty": "RSA", "n": CANARY, "e": "AQAB", "kid": "one"}),
        key_set({**public_jwk("ES256"), "x": CANARY}),
        f'{{"keys": "{CANARY}'.encode(),
    ]
    for text in broken:
        keys = KeySet(lambda text=text: text)
        checker = JwtAuthenticator(keys, issuer=ISSUER, audience=AUDIENCE, algorithms=["RS256", "ES256"])
        with pytest.raises(StoreError) as caught:
            asyncio.run(checker.authenticate(credentials(request(b"authorization", f"Bearer {signed()}"))))
        assert CANARY not in shown(caught.value)


def test_an_unsafe_secret_is_not_told_in_the_refusal():
    with pytest.raises(ValueError) as caught:
        JwtAuthenticator(CANARY.encode(), issuer=ISSUER, audience=AUDIENCE, algorithms=["HS256"])
    assert CANARY not in shown(caught.value)
