"""Bearer tokens: what is accepted, and everything that RFC 8725 warns of."""

import asyncio
import json
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode

import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from sameas.identity.ids import uuid7
from sameas.identity.normalize import Credentials, normalize_request
from sameas.once.errors import StoreUnavailable
from sameas.tenancy import BySchemeAuthenticator, EnrolledAuthenticator, SingleTenant, Unauthorized
from sameas.tenancy.jwks import KeySet
from sameas.tenancy.jwt import JwtAuthenticator
from tests.unit.tenancy.tokens import AUDIENCE, ISSUER, TENANT, USER, claims, key_set, private_key, public_jwk, signed

ALGORITHMS = ["RS256", "RS512", "PS256", "ES256", "ES384", "ES512", "EdDSA"]
SECRET = b"s" * 64


def authenticator(*algorithms, keys=None, **options):
    algorithms = algorithms or ("RS256",)
    keys = keys or KeySet(lambda: key_set(*{jwk["kid"]: jwk for jwk in map(public_jwk, algorithms)}.values()))
    return JwtAuthenticator(keys, issuer=ISSUER, audience=AUDIENCE, algorithms=algorithms, **options)


def show(checker, token, scheme="bearer"):
    return asyncio.run(checker.authenticate(Credentials(scheme, token)))


def refused(code):
    return pytest.raises(Unauthorized, check=lambda error: error.code == code and error.status == 401)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_token_with_a_good_signature_is_its_user(algorithm):
    principal = show(authenticator(algorithm), signed(algorithm, roles=["reader"]))
    assert (principal.tenant_id, principal.user_id, principal.service_id) == (TENANT, USER, None)
    assert principal.credential_id == "t1"
    assert principal.roles == ("reader",)
    assert normalize_request({"headers": []}, principal=principal).user_id == USER


@pytest.mark.parametrize("algorithm", ["HS256", "HS384", "HS512"])
def test_a_shared_secret_checks_tokens_too(algorithm):
    checker = authenticator(algorithm, keys=SECRET)
    assert show(checker, signed(algorithm, key=SECRET)).user_id == USER
    with refused("token-invalid"):
        show(checker, signed(algorithm, key=b"t" * 64))


def test_symmetric_keys_may_come_from_a_file_that_is_kept_secret(tmp_path):
    encoded = urlsafe_b64encode(SECRET[:32]).rstrip(b"=").decode()
    file = tmp_path / "keys.json"
    file.write_bytes(key_set({"kty": "oct", "k": encoded, "kid": "one", "alg": "HS256"}))
    checker = authenticator("HS256", keys=KeySet.from_file(file, public=False))
    assert show(checker, signed("HS256", key=SECRET[:32])).user_id == USER
    with pytest.raises(StoreUnavailable, match="secret key") as caught:
        show(authenticator("HS256", keys=KeySet.from_file(file)), signed("HS256", key=SECRET[:32]))
    assert encoded not in str(caught.value)


def test_a_token_of_a_service_is_no_user():
    principal = show(authenticator(), signed(service_id="worker"))
    assert (principal.user_id, principal.service_id) == (None, "worker")


def test_nothing_shown_is_nobody_and_another_scheme_is_refused():
    assert asyncio.run(authenticator().authenticate(None)) is None
    with refused("credential-scheme"):
        show(authenticator(), signed(), "basic")


def unsigned(alg, **changes):
    def encoded(part):
        return urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode()

    return f"{encoded({'alg': alg, 'typ': 'JWT', 'kid': 'one'})}.{encoded(claims(**changes))}."


@pytest.mark.parametrize("alg", ["none", "None", "NONE", "nOnE", "", "HS256", "RS257", 7, None, ["RS256"]])
def test_a_token_without_a_signature_is_refused_however_none_is_spelt(alg):
    with refused("token-algorithm"):
        show(authenticator(), unsigned(alg))


def test_a_token_that_claims_an_algorithm_but_has_no_signature_is_refused():
    with refused("token-invalid"):
        show(authenticator(), unsigned("RS256"))


def test_a_public_key_is_never_used_as_a_secret():
    public = private_key("RS256").public_key()
    pem = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    head, body = (part.encode() for part in unsigned("HS256").split(".")[:2])
    import hashlib
    import hmac

    for secret in (pem, json.dumps(public_jwk("RS256")).encode()):
        mac = urlsafe_b64encode(hmac.digest(secret, head + b"." + body, hashlib.sha256)).rstrip(b"=")
        with refused("token-algorithm"):
            show(authenticator(), b".".join([head, body, mac]).decode())


def test_symmetric_and_asymmetric_algorithms_are_never_on_one_list():
    with pytest.raises(ValueError, match="not both"):
        authenticator("RS256", "HS256", keys=SECRET)
    with pytest.raises(ValueError, match="symmetric"):
        authenticator("RS256", keys=SECRET)


def test_an_algorithm_must_belong_to_the_key_too():
    keys = KeySet(lambda: key_set(public_jwk("RS256", alg="RS256")))
    checker = authenticator("RS256", "RS512", "ES256", keys=keys)
    assert show(checker, signed("RS256"))
    with refused("token-key"):
        show(checker, signed("RS512", key=private_key("RS256")))
    with refused("token-key"):
        show(checker, signed("ES256"))


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"exp": None}, "token-claims"),
        ({"exp": "soon"}, "token-invalid"),
        ({"exp": int(time.time()) - 3600}, "token-expired"),
        ({"nbf": int(time.time()) + 3600}, "token-immature"),
        ({"iat": int(time.time()) + 3600}, "token-immature"),
        ({"aud": None}, "token-claims"),
        ({"aud": "another"}, "token-audience"),
        ({"aud": [AUDIENCE[:-1]]}, "token-audience"),
        ({"iss": None}, "token-claims"),
        ({"iss": ISSUER + ".evil"}, "token-issuer"),
        ({"tenant_id": None}, "token-claims"),
        ({"tenant_id": ""}, "token-claims"),
        ({"tenant_id": "acme"}, "token-claims"),
        ({"tenant_id": [TENANT]}, "token-claims"),
        ({"tenant_id": TENANT.upper()}, "token-claims"),
        ({"sub": None}, "token-claims"),
        ({"sub": "somebody"}, "token-claims"),
        ({"service_id": ""}, "token-claims"),
        ({"service_id": 7}, "token-claims"),
        ({"roles": [1]}, "token-claims"),
        ({"roles": {"a": 1}}, "token-claims"),
    ],
)
def test_claims_that_are_missing_wrong_or_out_of_time_are_refused(changes, code):
    with refused(code):
        show(authenticator(), signed(**changes))


def test_clocks_may_differ_by_the_leeway_and_no_more():
    now = int(time.time())
    checker = authenticator(leeway_seconds=60)
    assert show(checker, signed(exp=now - 5))
    assert show(checker, signed(nbf=now + 30))
    with refused("token-expired"):
        show(checker, signed(exp=now - 120))
    with refused("token-expired"):
        show(authenticator(leeway_seconds=0), signed(exp=now - 5))
    with pytest.raises(ValueError, match="leeway"):
        authenticator(leeway_seconds=3600)


def test_a_changed_token_is_refused():
    head, body, mac = signed().split(".")
    changed = json.loads(urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    changed["tenant_id"] = str(uuid7())
    forged = urlsafe_b64encode(json.dumps(changed).encode()).rstrip(b"=").decode()
    for token in (
        f"{head}.{forged}.{mac}",
        f"{head}.{body}.{mac[:-8]}",
        f"{head}.{body}",
        "a.b.c",
        "",
        "x" * 9_000,
        "é",
    ):
        with refused("token-invalid"):
            show(authenticator(), token)


def test_a_token_with_an_extension_that_must_be_understood_is_refused():
    token = jwt.encode(claims(), private_key("RS256"), "RS256", headers={"kid": "one", "crit": ["exp"], "exp": 1})
    with refused("token-invalid"):
        show(authenticator(), token)


def test_ids_of_other_kinds_are_accepted_where_the_library_is_told_so():
    checker = authenticator(allow_any_tenant=True)
    principal = show(checker, signed(tenant_id="acme", sub="auth0|7", roles="reader writer"))
    assert (principal.tenant_id, principal.user_id, principal.roles) == ("acme", "auth0|7", ("reader", "writer"))
    ctx = normalize_request({"headers": []}, principal=principal, allow_any_tenant=True)
    assert ctx.tenant_id == "acme"


def test_claims_may_have_other_names():
    checker = authenticator(tenant_claim="https://x/tenant", user_claim="uid", roles_claim="groups")
    token = signed(**{"https://x/tenant": TENANT, "uid": USER, "sub": "x", "tenant_id": None, "groups": ["a"]})
    assert show(checker, token).roles == ("a",)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"algorithms": []}, "name the algorithms"),
        ({"algorithms": "RS256"}, "name the algorithms"),
        ({"algorithms": ["none"]}, "not accepted"),
        ({"algorithms": ["HS512"], "keys": b"s" * 32}, "at least 64 bytes"),
        ({"issuer": ""}, "issuer"),
        ({"audience": ""}, "audience"),
    ],
)
def test_an_unsafe_configuration_is_refused(options, message):
    options = {"keys": SECRET, "issuer": ISSUER, "audience": AUDIENCE, "algorithms": ["HS256"], **options}
    with pytest.raises(ValueError, match=message):
        JwtAuthenticator(options.pop("keys"), **options)


def test_the_scheme_alone_decides_who_is_asked():
    both = BySchemeAuthenticator({"Bearer": authenticator(), "apikey": SingleTenant(tenant_id="x")})
    assert show(both, signed()).user_id == USER
    assert show(both, "anything", "apikey").tenant_id == "x"
    with refused("token-invalid"):
        show(both, "anything")
    with refused("credential-scheme"):
        show(both, "anything", "basic")
    assert asyncio.run(both.authenticate(None)) is None


def test_a_user_who_was_disabled_is_out_although_the_token_is_good(database, directory, tenant, ctx):
    checker = EnrolledAuthenticator(authenticator(), database=database)
    user = directory.add_user(ctx, "First")
    directory.add_service(ctx, "worker")
    of_user = signed(tenant_id=tenant.tenant_id, sub=user.user_id)
    of_service = signed(tenant_id=tenant.tenant_id, service_id="worker")
    assert show(checker, of_user).user_id == user.user_id
    assert show(checker, of_service).service_id == "worker"
    assert asyncio.run(checker.authenticate(None)) is None
    directory.disable_user(ctx, user.user_id)
    with refused("not-enrolled"):
        show(checker, of_user)
    assert show(checker, of_service)
    directory.suspend(ctx)
    for token in (
        of_service,
        signed(),
        signed(tenant_id=tenant.tenant_id),
        signed(tenant_id=str(uuid7()), sub=user.user_id),
    ):
        with refused("not-enrolled"):
            show(checker, token)
