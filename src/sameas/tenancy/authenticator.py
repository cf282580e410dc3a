"""What an authenticator is: it turns what a request shows of itself into a principal, or refuses it.

Rule: nobody is `None`, a bad credential is `Unauthorized`, and a fault of whoever must be asked is `StoreUnavailable`:
three different answers (go on only if the endpoint is public; 401; 503). It is asked at every request, before any
replay. No message, log line or repr holds a credential or a part of one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from sameas.identity.normalize import Credentials
from sameas.identity.scope import Principal, ScopeError


class Unauthorized(ScopeError):
    """The credential is not accepted."""

    def __init__(self, message: str, *, code: str = "credential-invalid", challenge: str = "Bearer") -> None:
        super().__init__(message, code=code, status=401, challenge=challenge)


class Authenticator(Protocol):
    """Asked at every request."""

    async def authenticate(self, credentials: Credentials | None) -> Principal | None:
        """The principal; None where nothing was shown; Unauthorized where it is not accepted."""


class BySchemeAuthenticator:
    """Several authenticators, one per scheme: `{"bearer": JwtAuthenticator(...), "apikey": ApiKeyAuthenticator(...)}`.

    The scheme alone decides who is asked, so that a credential that one refuses is never tried on another.
    """

    def __init__(self, schemes: Mapping[str, Authenticator]) -> None:
        self._schemes = {name.lower(): authenticator for name, authenticator in schemes.items()}

    async def authenticate(self, credentials: Credentials | None) -> Principal | None:
        if credentials is None:
            return None
        authenticator = self._schemes.get(credentials.scheme)
        if authenticator is None:
            raise unknown_scheme(*self._schemes)
        return await authenticator.authenticate(credentials)


def unknown_scheme(*known: str) -> Unauthorized:
    """The refusal of a scheme that nobody here can read."""
    ways = {"bearer": "`Authorization: Bearer ...`", "apikey": "`X-API-Key: ...`"}
    return Unauthorized(
        f"send {' or '.join(ways.get(scheme, f'`Authorization: {scheme} ...`') for scheme in known)}",
        code="credential-scheme",
        challenge="Bearer" if "bearer" in known else "ApiKey",
    )
