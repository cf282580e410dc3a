"""One tenant and one user for everybody who can connect: for one's own machine.

Rule: it is never a fallback of another authenticator; and it serves the loopback addresses only, unless whoever starts
it says in so many words that the network is trusted. Whatever credential a request shows is not looked at.
"""

from __future__ import annotations

from ipaddress import ip_address

from sameas.identity.normalize import Credentials
from sameas.identity.scope import Principal

MODE = "single-tenant"


class SingleTenant:
    """Everybody is the one user. By default the tenant is the library's, which has no name."""

    def __init__(
        self,
        *,
        tenant_id: str = "",
        user_id: str = "local",
        roles: tuple[str, ...] = (),
        allow_remote: bool = False,
    ) -> None:
        self._principal = Principal(tenant_id=tenant_id, user_id=user_id, credential_id=MODE, roles=roles)
        self._allow_remote = allow_remote

    async def authenticate(self, credentials: Credentials | None) -> Principal | None:
        return self._principal

    def check_bind(self, host: str) -> str:
        """The address to listen on, refused where others than this machine could reach it."""
        if self._allow_remote or is_loopback(host):
            return host
        raise ValueError(
            f"{MODE} mode has no credentials and listens on loopback only, and {host!r} is not loopback: listen on "
            "127.0.0.1, choose another mode, or say allow_remote if everybody on that network may do everything"
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
