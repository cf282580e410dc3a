"""Signed-in browsers: a cookie that stands for a credential, because an EventSource cannot send a header.

Rule: the cookie is a random number; the store has its digest, with the credential encrypted under the number itself, so
that neither a cookie jar nor a store alone gives a credential away. The credential is judged at every request, as if it
had been sent. A cookie counts for requests that change something only where the page says that the request is its own,
which a page of another origin cannot say.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Coroutine, Mapping
from http.cookies import CookieError, SimpleCookie
from typing import Any

from starlette.types import Scope

from sameas.once.async_engine import AsyncEngine
from sameas.once.codec import TypedCodec, unpack
from sameas.once.record import State

COOKIE = "sameas_session"
LASTS = 12 * 3600
PAGE_HEADER = b"x-sameas-page"
_SCOPE = "web.session"
_API = "/api/"
_HARMLESS = frozenset({"GET", "HEAD", "OPTIONS"})
_CREDENTIALS = frozenset({b"authorization", b"x-api-key"})
_NUMBER_BYTES = 32
_NONCE_BYTES = 12
_LET_IN_BY = "sameas.session"
_codec = TypedCodec(bytes)

Do = Callable[[Coroutine[Any, Any, Any]], Coroutine[Any, Any, Any]]


class WebSessions:
    """Opens, finds and ends sessions in the store that all servers share. `do` runs work where the store lives."""

    def __init__(self, engine: Callable[[], AsyncEngine], do: Do) -> None:
        self._engine = engine
        self._do = do

    async def open(self, header: tuple[bytes, bytes]) -> str:
        """The cookie of a new session that stands for a header that was accepted."""
        number = secrets.token_bytes(_NUMBER_BYTES)
        nonce = secrets.token_bytes(_NONCE_BYTES)
        sealed = nonce + _cipher(number).encrypt(nonce, header[0] + b"\0" + header[1], None)
        await self._do(
            self._engine().run(lambda _: sealed, scope=_SCOPE, key=_digest(number), retention=LASTS, result_type=bytes)
        )
        return number.hex()

    async def end(self, scope: Scope) -> None:
        """Forget the session of a request, if it has one."""
        number = _number(scope)
        if number is not None:
            await self._do(self._engine().forget(_SCOPE, _digest(number)))

    async def admit(self, scope: Scope) -> None:
        """Put the credential in the place of the cookie, unless the request shows one of its own."""
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        if not scope["path"].startswith(_API):
            return
        if any(name in _CREDENTIALS for name, _ in headers):
            return
        if scope["method"] not in _HARMLESS and not any(name == PAGE_HEADER for name, _ in headers):
            return
        number = _number(scope)
        if number is None:
            return
        sealed = await self._sealed(number)
        if sealed is None:
            return
        plain = _cipher(number).decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], None)
        name, _, value = plain.partition(b"\0")
        scope["headers"] = [*headers, (name, value)]
        scope[_LET_IN_BY] = number

    async def stands(self, scope: Mapping[str, Any]) -> bool:
        """Whether nobody has signed out of the session that let a request in; True where none did."""
        number = session_of(scope)
        return number is None or await self._sealed(number) is not None

    async def _sealed(self, number: bytes) -> bytes | None:
        """The encrypted credential of a session."""
        record = await self._do(self._engine().read(_SCOPE, _digest(number)))
        if record is None or record.state is not State.DONE or record.outcome is None:
            return None
        sealed: bytes = unpack(record.outcome, _codec)
        return sealed


def session_of(scope: Mapping[str, Any]) -> bytes | None:
    """The session that let a request in, if one did."""
    number: bytes | None = scope.get(_LET_IN_BY)
    return number


def set_cookie(value: str, *, is_secure: bool, lasts: int = LASTS) -> str:
    """The header that gives a browser its cookie; with `lasts=0` the one that takes it away."""
    secure = "; Secure" if is_secure else ""
    return f"{COOKIE}={value}; Path=/; Max-Age={lasts}; HttpOnly; SameSite=Strict{secure}"


def _number(scope: Scope) -> bytes | None:
    for name, value in scope["headers"]:
        if name == b"cookie" and COOKIE.encode() in value:
            cookies: SimpleCookie = SimpleCookie()
            try:
                cookies.load(value.decode("latin-1"))
                number = bytes.fromhex(cookies[COOKIE].value)
            except (CookieError, KeyError, ValueError):
                continue
            if len(number) == _NUMBER_BYTES:
                return number
    return None


def _digest(number: bytes) -> str:
    return hashlib.sha256(b"sameas.web.session.id:" + number).hexdigest()


def _cipher(number: bytes) -> Any:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(hashlib.sha256(b"sameas.web.session.key:" + number).digest())
