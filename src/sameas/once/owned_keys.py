"""Clients' own keys in stored ones: where callers are told apart, a stored key begins with a digest of whose it is.

Rule: what a client typed is what people look for; the stored key is what decides.
"""

from __future__ import annotations

import re

# A principal's digest and a separator, as the service and the HTTP middleware write them; nobody's; a tenant's own.
_OWNER = re.compile(r"(?:[0-9a-f]{64}[.:]|public\.|tenant\.)")


def client_key(stored: str) -> str:
    """The key as its client chose it."""
    owner = _OWNER.match(stored)
    return stored if owner is None else stored[owner.end() :]
