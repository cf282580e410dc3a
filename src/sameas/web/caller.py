"""Who asks, if no authenticator says it: what `principal_of` names, or the user that the server put into the scope.

Who is named has keys of their own. Where there is only a credential, the key is everybody's and the credential is a
part of the request: another credential under the same key is refused, neither answered nor run. Callers who show
nothing are one, the anonymous caller. A user whom nobody can tell from others is refused, never taken for somebody.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from inspect import isawaitable, iscoroutinefunction
from typing import Any, Final
from uuid import UUID

from sameas.identity.canonical import join, sha256_hex
from sameas.web.problem import Problem

Id = str | int | UUID
PrincipalOf = Callable[[Mapping[str, Any]], Awaitable[Id | None] | Id | None]
TenantOf = Callable[[Mapping[str, Any]], str | None]

# What the house itself takes for a credential.
_CREDENTIALS: Final = frozenset({"authorization", "x-api-key"})
# What says who a user is, the first that does: Starlette's, Django's, a token's, and what people call it.
_NAMES: Final = ("identity", "pk", "id", "user_id", "sub", "username")
# What a stored key begins with that belongs to somebody: an anonymous key that looks like one is told apart from it.
_OWNED: Final = re.compile(r"(?:[0-9a-f]{64}|public|tenant)\.").match

_NOT_ASYNC: Final = (
    "it is asked where nothing can be awaited. Look the tenant up in a middleware outside of this one, put it into the "
    "scope, and give tenant_of=lambda scope: scope['tenant']"
)

WHERE_TO_PUT_IT: Final = (
    "the caller was recognised further inside, too late to tell one caller's answer from another's: put "
    "IdempotencyMiddleware inside of what authenticates, or give it principal_of="
)


def credential_names(headers: Iterable[str]) -> frozenset[bytes]:
    """The headers that are a credential: Authorization, X-API-Key, and those that a deployment lists."""
    if isinstance(headers, str):
        raise TypeError("credential_headers takes a collection of names, not one string")
    names = _CREDENTIALS | {name.lower() for name in headers}
    if "cookie" in names:
        raise ValueError(
            "Cookie is no credential: most of it says nothing of the caller and changes as it likes; "
            "find the caller in the cookie that matters, with principal_of="
        )
    return frozenset(name.encode("latin-1") for name in names)


async def name_caller(scope: Mapping[str, Any], principal_of: PrincipalOf | None) -> str:
    """The digest of who asks; empty if nobody says so."""
    if principal_of is not None:
        named = principal_of(scope)
        if isawaitable(named):
            named = await named
        if named is not None:
            if not _is_id(named):
                raise TypeError("principal_of must give the caller's id (text, number or UUID), or None for nobody")
            return sha256_hex(join("principal", str(named)))
    return name_user(scope)


def refuse_async_tenant_of(tenant_of: TenantOf | None) -> None:
    """Refuse a function whose answer would have to be awaited."""
    if tenant_of is not None and is_async(tenant_of):
        raise TypeError(f"tenant_of must not be async: {_NOT_ASYNC}")


def tenant_named(tenant_of: TenantOf | None, scope: Mapping[str, Any]) -> str | None:
    """What `tenant_of` says of a request; None without it."""
    named: Any = None if tenant_of is None else tenant_of(scope)
    if named is None or type(named) is str:
        return named
    if isawaitable(named):
        if isinstance(named, Coroutine):
            # Nobody will await it, and Python need not say so once more.
            named.close()
        raise TypeError(f"tenant_of must not give what has to be awaited: {_NOT_ASYNC}")
    if not isinstance(named, str):
        raise TypeError(
            f"tenant_of must give the tenant's id as text, or None for no tenant, not {type(named).__name__}"
        )
    return named


def name_user(scope: Mapping[str, Any]) -> str:
    """The digest of the user in the scope; empty if nobody was recognised."""
    if not knows_a_user(scope):
        return ""
    user = scope["user"]
    known_as = _id_of(user)
    if known_as is None:
        raise Problem(
            500,
            "caller-unknown",
            "The server knows a user and nothing that tells this user from others; nothing was run. "
            "Whoever runs it: give IdempotencyMiddleware principal_of=.",
        )
    # A customer and a clerk may have one number, and their classes one name. What stands for a user names its class.
    kind = user.__class__
    return sha256_hex(join("user", kind.__module__, kind.__qualname__, *known_as))


def knows_a_user(scope: Mapping[str, Any]) -> bool:
    """Whether somebody was recognised and put into the scope."""
    user = scope.get("user")
    if user is None or (isinstance(user, (str, Mapping)) and not user):
        return False
    recognised = _part(user, "is_authenticated")
    if callable(recognised):
        recognised = recognised()
    return recognised is None or bool(recognised)


def is_async(function: Any) -> bool:
    """Whether a function, or an object that is called like one, is async."""
    return callable(function) and (iscoroutinefunction(function) or iscoroutinefunction(type(function).__call__))


def anonymous_owner(key: str) -> str:
    """What the stored key of an anonymous caller begins with: nothing, as far as that can be told from another's."""
    return "public." if "." in key and _OWNED(key) else ""


def _id_of(user: Any) -> tuple[str, str] | None:
    """What a user is known by: the name of the part that says it, and what it says."""
    if _is_id(user):
        return "", str(user)
    for name in _NAMES:
        found = _part(user, name)
        if _is_id(found):
            return name, str(found)
    return None


def _is_id(value: Any) -> bool:
    return isinstance(value, (str, int, UUID)) and not isinstance(value, bool) and value != ""


def _part(user: Any, name: str) -> Any:
    if isinstance(user, Mapping):
        return user.get(name)
    try:
        return getattr(user, name, None)
    except NotImplementedError:
        # Starlette's users have some of them only in name.
        return None
