"""Bearer tokens: JSON Web Tokens with a signature, checked as RFC 8725 asks.

Rule: the deployment says which algorithms, issuer and audience there are; the token only has to fit. Refused: `alg`
none, an algorithm that is not on the list or does not belong to the key, a token without `exp`, one out of its time
(with a leeway for clocks that differ), for somebody else, from somebody else, or without a tenant and exactly one of
user and service. Why a token was refused is told by its kind only, never with a word out of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jwt
import msgspec
from jwt import PyJWK
from jwt.exceptions import (
    ExpiredSignatureError,
    ImmatureSignatureError,
    InvalidAudienceError,
    InvalidIssuerError,
    InvalidTokenError,
    MissingRequiredClaimError,
)

from sameas.identity.normalize import Credentials
from sameas.identity.scope import Principal, ScopeError, check_id, check_tenant
from sameas.tenancy.authenticator import Unauthorized, unknown_scheme
from sameas.tenancy.jwks import SYMMETRIC, KeySet

ASYMMETRIC = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
MAX_LEEWAY = 300.0


class JwtAuthenticator:
    """Checks tokens with the keys of a set, or with one secret that issuer and service share."""

    def __init__(
        self,
        keys: KeySet | bytes,
        *,
        issuer: str,
        audience: str,
        algorithms: Sequence[str],
        leeway_seconds: float = 30.0,
        tenant_claim: str = "tenant_id",
        user_claim: str = "sub",
        service_claim: str = "service_id",
        roles_claim: str = "roles",
        allow_any_tenant: bool = False,
    ) -> None:
        if not issuer or not audience:
            raise ValueError("tokens need an issuer and an audience to be checked against")
        if not 0 <= leeway_seconds <= MAX_LEEWAY:
            raise ValueError(f"the leeway must be from 0 to {MAX_LEEWAY:.0f} seconds")
        self._algorithms = _checked(algorithms, keys)
        self._keys = keys
        self._issuer = issuer
        self._audience = audience
        self._leeway = leeway_seconds
        self._tenant_claim = tenant_claim
        self._user_claim = user_claim
        self._service_claim = service_claim
        self._roles_claim = roles_claim
        self._any_tenant = allow_any_tenant

    async def authenticate(self, credentials: Credentials | None) -> Principal | None:
        if credentials is None:
            return None
        if credentials.scheme != "bearer":
            raise unknown_scheme("bearer")
        key, algorithm = await self._key(credentials.token)
        try:
            claims = jwt.decode(
                credentials.token,
                key,
                algorithms=[algorithm],
                issuer=self._issuer,
                audience=self._audience,
                leeway=self._leeway,
                options={"require": ["exp", "iss", "aud"]},
            )
        except InvalidTokenError as error:
            raise _refusal(error) from None
        return self._principal(claims)

    async def _key(self, token: str) -> tuple[PyJWK | bytes, str]:
        """The key for a token, and the algorithm, which must be on the deployment's list."""
        try:
            header = jwt.get_unverified_header(token)
        except InvalidTokenError as error:
            raise _refusal(error) from None
        algorithm, kid = header.get("alg"), header.get("kid")
        if not isinstance(algorithm, str) or algorithm not in self._algorithms:
            raise Unauthorized(
                "the token's algorithm is not accepted here", code="token-algorithm", challenge=_CHALLENGE
            )
        if isinstance(self._keys, bytes):
            return self._keys, algorithm
        key = await self._keys.find(kid if isinstance(kid, str) else None, algorithm)
        if key is None:
            raise Unauthorized("the token's key is not known here", code="token-key", challenge=_CHALLENGE)
        return key, algorithm

    def _principal(self, claims: Mapping[str, Any]) -> Principal:
        service, roles = claims.get(self._service_claim), claims.get(self._roles_claim, ())
        named = {
            "tenant_id": claims.get(self._tenant_claim),
            # A service's token has a subject too: it names the service's account and is no user.
            "user_id": claims.get(self._user_claim) if service is None else None,
            "service_id": service,
            "credential_id": claims.get("jti", ""),
            "roles": roles.split() if isinstance(roles, str) else roles,
        }
        try:
            principal = msgspec.convert(named, Principal)
            check_tenant(principal.tenant_id, any_tenant=self._any_tenant)
            check_id("user_id", principal.user_id, any_text=self._any_tenant)
        except (ScopeError, msgspec.ValidationError):
            raise Unauthorized(
                f"the token must have a tenant ({self._tenant_claim}) and a user ({self._user_claim}) or a service "
                f"({self._service_claim}), each a well-formed id",
                code="token-claims",
                challenge=_CHALLENGE,
            ) from None
        return principal


_CHALLENGE = 'Bearer error="invalid_token"'
_REFUSALS: dict[type[InvalidTokenError], tuple[str, str]] = {
    ExpiredSignatureError: ("the token is no longer valid: get a new one", "token-expired"),
    ImmatureSignatureError: ("the token is not valid yet", "token-immature"),
    InvalidAudienceError: ("the token is for another audience", "token-audience"),
    InvalidIssuerError: ("the token comes from another issuer", "token-issuer"),
    MissingRequiredClaimError: ("the token must have exp, iss and aud", "token-claims"),
}


def _refusal(error: InvalidTokenError) -> Unauthorized:
    message, code = _REFUSALS.get(type(error), ("the token cannot be read or its signature is wrong", "token-invalid"))
    return Unauthorized(message, code=code, challenge=_CHALLENGE)


def _checked(algorithms: Sequence[str], keys: KeySet | bytes) -> tuple[str, ...]:
    if isinstance(algorithms, str) or not algorithms:
        raise ValueError("name the algorithms that tokens may be signed with, such as ['RS256']")
    unknown = [name for name in algorithms if name not in ASYMMETRIC and name not in SYMMETRIC]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is not accepted: use {', '.join([*ASYMMETRIC, *SYMMETRIC])}")
    symmetric = [name for name in algorithms if name in SYMMETRIC]
    # One list for both would let a public key be used as a secret.
    if symmetric and len(symmetric) != len(algorithms):
        raise ValueError("use either symmetric algorithms (HS...) or asymmetric ones, not both")
    if isinstance(keys, bytes):
        if not symmetric:
            raise ValueError("a shared secret needs a symmetric algorithm, such as HS256")
        longest = max(SYMMETRIC[name] for name in symmetric)
        if len(keys) < longest:
            raise ValueError(f"the shared secret must have at least {longest} bytes")
    return tuple(algorithms)
