"""What an authenticator is: it turns what a request shows of itself into a principal, or refuses it.

Rule: nobody is `None`, a bad credential is `Unauthorized`, and a fault of whoever must be asked is `StoreUnavailable`:
three different answers (go on only if the endpoint is public; 401; 503). It is asked at every request, before any
replay. No message, log line or repr holds a credential or a part of one.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from typing import Protocol

from sameas.identity.normalize import Credentials
from sameas.identity.scope import Principal, ScopeError

SINGLE_TENANT = "single-tenant"


class Unauthorized(ScopeError):
    """The credential is not accepted."""

    def __init__(self, message: str, *, code: str = "credential-invalid", challenge: str = "Bearer") -> None:
        super().__init__(message, code=code, status=401, challenge=challenge)


class Authenticator(Protocol):
    """Asked at every request."""

    async def authenticate(self, credentials: Credentials | None) -> Principal | None:
        """The principal; None if nothing was shown. Raises Unauthorized if it is not accepted, StoreUnavailable if
        whoever must be asked cannot answer."""


class BySchemeAuthenticator:
    """Several authenticators, one per scheme: `{"bearer": JwtAuthenticator(...), "apikey": ApiKeyAuthenticator(...)}`.

    The scheme alone decides who is asked, so that a credential that one refuses is never tried on another.
    """

    def __init__(self, schemes: Mapping[str, Authenticator]) -> None:
        self._schemes = {name.lower(): authenticator for name, authenticator in schemes.items()}

    async def authenticate(self, credentials: Credentials | None) -> Principal | None:
        """The principal of the one for this scheme; None if nothing was shown. Raises Unauthorized for a scheme that
        nobody here reads, and what that one raises."""
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


class SingleTenant:
    """One tenant and one user for everybody who can connect: for one's own machine. By default the tenant is the
    library's, which has no name.

    Rule: it is never a fallback of another authenticator; and it serves the loopback addresses only, unless whoever
    starts it says in so many words that the network is trusted. Whatever credential a request shows is not looked at.
    """

    def __init__(
        self,
        *,
        tenant_id: str = "",
        user_id: str = "local",
        roles: tuple[str, ...] = (),
        allow_remote: bool = False,
    ) -> None:
        self._principal = Principal(tenant_id=tenant_id, user_id=user_id, credential_id=SINGLE_TENANT, roles=roles)
        self._allow_remote = allow_remote

    async def authenticate(self, credentials: Credentials | None) -> Principal | None:
        """Always the one user; raises nothing."""
        return self._principal

    def check_bind(self, host: str) -> str:
        """The address to listen on, refused if others than this machine could reach it. Raises ValueError."""
        if self._allow_remote or is_loopback(host):
            return host
        raise ValueError(
            f"{SINGLE_TENANT} mode has no credentials and listens on loopback only, and {host!r} is not loopback: "
            "listen on 127.0.0.1, choose another mode, or say allow_remote if everybody on that network may do "
            "everything"
        )

    @property
    def allowed_hosts(self) -> tuple[str, ...]:
        """What the Host header may say: a page elsewhere whose name was pointed at this machine says another."""
        return ("*",) if self._allow_remote else ("localhost", "127.0.0.1", "[::1]")


def is_loopback(host: str) -> bool:
    """Whether an address, or the name localhost, can be reached from this machine only."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        # A name may stand for any address, now or later.
        return False
