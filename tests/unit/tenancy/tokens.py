"""Keys and tokens for tests, made once: RSA keys take their time."""

import json
import time
from functools import cache

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from sameas.identity.ids import uuid7

ISSUER, AUDIENCE = "https://issuer.test", "sameas"
TENANT, USER = str(uuid7()), str(uuid7())


@cache
def private_key(algorithm, name="one"):
    match algorithm[:2]:
        case "RS" | "PS":
            return rsa.generate_private_key(public_exponent=65537, key_size=2048)
        case "ES":
            curves = {"ES256": ec.SECP256R1, "ES384": ec.SECP384R1, "ES512": ec.SECP521R1}
            return ec.generate_private_key(curves[algorithm]())
        case _:
            return ed25519.Ed25519PrivateKey.generate()


def public_jwk(algorithm, name="one", **members):
    kinds = {"RS": RSAAlgorithm, "PS": RSAAlgorithm, "ES": ECAlgorithm, "Ed": OKPAlgorithm}
    jwk = kinds[algorithm[:2]].to_jwk(private_key(algorithm, name).public_key(), as_dict=True)
    return {**{key: value for key, value in jwk.items() if key != "key_ops"}, "kid": name, **members}


def key_set(*jwks):
    return json.dumps({"keys": jwks}).encode()


def claims(**changes):
    now = int(time.time())
    whole = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "exp": now + 600,
        "iat": now,
        "tenant_id": TENANT,
        "sub": USER,
        "jti": "t1",
    }
    return {name: value for name, value in {**whole, **changes}.items() if value is not None}


def signed(algorithm="RS256", *, name="one", kid="one", key=None, **changes):
    headers = {"kid": kid} if kid is not None else {}
    return jwt.encode(claims(**changes), key or private_key(algorithm, name), algorithm, headers=headers)
