"""The keys that tokens are checked with: a JSON Web Key Set from a file or an address, kept for a while.

Rule: a key says which algorithms it may be used with, a token never does. A set that anybody can read holds public keys
only: a symmetric key in it is refused, for whoever reads it could sign. A `kid` that is not known makes the set be
fetched again, but not more often than `refresh_after`: tokens with made-up kids cost the provider nothing. When the
provider is away the known keys serve on until `stale_after`; then nothing is accepted and the answer is "not now".
While it is there, a key that was taken out of the set ends within twice `max_age`, whether or not anybody asked.
"""

from __future__ import annotations

import asyncio
import json
import time
from base64 import urlsafe_b64decode
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from http.client import HTTPException
from pathlib import Path
from threading import Lock, Thread
from typing import Any, NoReturn
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, build_opener

from jwt import PyJWK
from jwt.exceptions import PyJWTError

from sameas.once.errors import StoreUnavailable
from sameas.once.forks import renew_after_fork
from sameas.tenancy.authenticator import is_loopback

# A large provider has a dozen keys of two kilobytes.
MAX_SET = 1_000_000
FETCH_SECONDS = 5.0
# RFC 7518, 3.2: a secret as long as the digest; a shorter one can be guessed from one token.
SYMMETRIC = {"HS256": 32, "HS384": 48, "HS512": 64}

_CURVES = {"P-256": ("ES256",), "P-384": ("ES384",), "P-521": ("ES512",), "Ed25519": ("EdDSA",), "Ed448": ("EdDSA",)}
_RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")

Keys = dict[tuple[str | None, str], PyJWK]


class KeySet:
    """The keys by kid and algorithm. `load` blocks and gives the set as JSON; it is called in a thread."""

    def __init__(
        self,
        load: Callable[[], bytes],
        *,
        public: bool = True,
        max_age: float = 600.0,
        refresh_after: float = 30.0,
        stale_after: float = 3600.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._load = load
        self._public = public
        self._max_age = max_age
        self._refresh_after = refresh_after
        self._stale_after = stale_after
        self._clock = clock
        self._keys: Keys = {}
        self._loaded_at = float("-inf")
        self._tried_at = float("-inf")
        self._failure = "they were never loaded"
        self.after_fork()
        renew_after_fork(self)

    def after_fork(self) -> None:
        # A thread that was loading in the parent is not in the child.
        self._lock = Lock()
        self._loading: Future[None] | None = None

    @classmethod
    def from_file(cls, path: Path, *, public: bool = True, **options: Any) -> KeySet:
        """A set in a file; with `public=False` it may hold symmetric keys, and must be kept as a secret."""
        return cls(path.read_bytes, public=public, **{"max_age": 30.0, **options})

    @classmethod
    def from_url(cls, url: str, **options: Any) -> KeySet:
        """A set at an https address, or an http one on this machine."""
        parts = urlsplit(url)
        if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(parts.hostname or "")):
            raise ValueError("the address of a key set must begin with https://")
        return cls(lambda: _fetch(url), **options)

    def check(self) -> None:
        """Load the set now; an OSError or a ValueError says why tokens could not be checked with it."""
        if not parse_key_set(self._load(), public=self._public):
            raise ValueError("the key set holds no key that tokens can be checked with")

    async def find(self, kid: str | None, algorithm: str) -> PyJWK | None:
        """The key for a token; None if the set, as fresh as the bounds allow, has none."""
        began = self._clock()
        due = self._refresh() if began - self._loaded_at >= self._max_age else None
        key = self._known(kid, algorithm)
        if key is None and due is None and self._loaded_at < began:
            due = self._refresh()
        # Nobody waits for a set that is asked for all the time; after a pause its keys may long have been taken back.
        if due is not None and (key is None or began - self._loaded_at >= min(2 * self._max_age, self._stale_after)):
            # Not the future itself: one who stops waiting must not stop the others.
            await asyncio.wait({asyncio.wrap_future(due)}, timeout=2 * FETCH_SECONDS)
            key = self._known(kid, algorithm)
        if self._clock() - self._loaded_at >= self._stale_after:
            raise StoreUnavailable(f"the keys that tokens are checked with cannot be loaded: {self._failure}")
        return key

    def _known(self, kid: str | None, algorithm: str) -> PyJWK | None:
        if kid is not None:
            return self._keys.get((kid, algorithm))
        # Without a kid there must be no choice.
        fitting = [key for (_, usable), key in self._keys.items() if usable == algorithm]
        return fitting[0] if len(fitting) == 1 else None

    def _refresh(self) -> Future[None] | None:
        """The loading that is on its way, for all who wait; None if the last one began too short a while ago."""
        with self._lock:
            # A load that never ends is given up: a provider that sends a byte now and then must not stop the next.
            wait = self._refresh_after if self._loading is None else max(self._refresh_after, 2 * FETCH_SECONDS)
            if self._clock() - self._tried_at >= wait:
                self._tried_at = self._clock()
                self._loading = Future()
                Thread(target=self._reload, args=(self._loading,), name="sameas-key-set", daemon=True).start()
            return self._loading

    def _reload(self, loading: Future[None]) -> None:
        try:
            keys = parse_key_set(self._load(), public=self._public)
            with self._lock:
                if self._loading is loading:
                    self._keys, self._loaded_at = keys, self._clock()
        except (OSError, HTTPException, ValueError) as error:
            self._failure = f"{type(error).__name__}: {error}"
        finally:
            with self._lock:
                if self._loading is loading:
                    self._loading = None
            if loading.set_running_or_notify_cancel():
                loading.set_result(None)


def parse_key_set(text: bytes, *, public: bool = True) -> Keys:
    """The signature keys of a set. Kinds that are not known are passed over, as RFC 7517 asks; a secret is refused."""
    try:
        members = json.loads(text)["keys"]
        entries = [entry for entry in members if isinstance(entry, dict)]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ValueError("the key set is not JSON of the form {'keys': [...]}") from None
    keys: Keys = {}
    for entry in entries:
        if not isinstance(entry.get("kid"), str | None) or not isinstance(entry.get("key_ops", []), list):
            raise ValueError("a key of the set cannot be used: its kid or key_ops")  # noqa: TRY004  as for any other
        if public and ("k" in entry or "d" in entry):
            # The entry is not told: it is a secret.
            raise ValueError("the key set holds a secret key, but is meant to be read by everybody")
        for algorithm in _algorithms(entry):
            name = (entry.get("kid"), algorithm)
            if name in keys:
                raise ValueError("the key set names one kid twice")
            try:
                keys[name] = PyJWK(entry, algorithm)
            except PyJWTError as error:
                raise ValueError(f"a key of the set cannot be used: {type(error).__name__}") from None
    return keys


def _algorithms(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """What a key may be used with: by its kind, and where it names one algorithm, that one only."""
    if entry.get("use", "sig") != "sig" or "verify" not in entry.get("key_ops", ["verify"]):
        return ()
    match entry.get("kty"):
        case "RSA":
            fitting: tuple[str, ...] = _RSA
        case "oct":
            fitting = tuple(name for name, least in SYMMETRIC.items() if _secret_size(entry) >= least)
        case "EC" | "OKP":
            fitting = _CURVES.get(str(entry.get("crv")), ())
        case _:
            fitting = ()
    named = entry.get("alg")
    return fitting if named is None else tuple(algorithm for algorithm in fitting if algorithm == named)


def _secret_size(entry: Mapping[str, Any]) -> int:
    secret = str(entry.get("k", ""))
    try:
        return len(urlsafe_b64decode(secret + "=" * (-len(secret) % 4)))
    except ValueError:
        return 0


class _NoRedirect(HTTPRedirectHandler):
    """A key set is where it was said to be: following would let somebody else say where."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> NoReturn:
        raise OSError(f"the address answers {code} and sends elsewhere: set the final address")


def _fetch(url: str) -> bytes:
    give_up_at = time.monotonic() + FETCH_SECONDS
    text = b""
    with build_opener(_NoRedirect).open(url, timeout=FETCH_SECONDS) as reply:
        while part := reply.read1(65_536):
            text += part
            if len(text) > MAX_SET:
                raise ValueError(f"the key set is longer than {MAX_SET} bytes")
            if time.monotonic() > give_up_at:
                raise TimeoutError(f"the key set did not arrive within {FETCH_SECONDS:.0f} seconds")
    return text
