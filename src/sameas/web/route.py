"""How one route behaves: its scope, its key, how long an answer is kept and which, what is compared.

`@idempotent(...)` marks an endpoint with such a policy and changes nothing else; the middleware finds it there. In an
application whose routes cannot be seen, nobody can say which request leads to a marked function. It is searched for
once, through what the application's objects hold, and refused by name: a line of the route table says what to do
instead.
"""

from __future__ import annotations

import logging
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from math import inf
from types import FunctionType, MethodType, ModuleType
from typing import Any, Final, Literal, TypeVar

from sameas.identity.canonical import Exclusions, compile_exclusions
from sameas.identity.errors import SameasError
from sameas.identity.normalize import Starts
from sameas.identity.scope import check_scope_name
from sameas.once.policy import OnBusy
from sameas.web.caller import is_async
from sameas.web.response import kept_names

_LOG = logging.getLogger("sameas")

E = TypeVar("E", bound=Callable[..., Any])

MEGABYTE: Final = 1_048_576
# The longest that any pattern may allow.
MAX_KEY: Final = 255
# Keys as people make them. No blanks: a header that was folded over two lines has one where it was joined.
USUAL_KEY: Final = r"[\x21-\x7e]{1,255}"
METHODS: Final = frozenset({"GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"})
# RFC 9110: the other methods are safe, and repeat without harm.
UNSAFE: Final = frozenset({"POST", "PUT", "DELETE", "PATCH"})
MARK: Final = "__sameas_idempotent__"

# A handler, what runs it in a thread, what watches it, a partial; and one more.
_MOST_AROUND: Final = 5
# Far more than the objects of any application's routes.
_MOST_HELD: Final = 100_000
# They say that the request was not applied, or not now: the next try is another matter.
_NOT_APPLIED: Final = frozenset({401, 407, 408, 425, 429})


def settled_statuses(status: int) -> bool:
    """Which answers are kept unless a route says otherwise: those that a retry would not change. Raises nothing."""
    return status < 500 and status not in _NOT_APPLIED


def every_status(status: int) -> bool:
    """Keep server errors too, as Stripe does: `RoutePolicy(keeps=every_status)`. What says "not now" is never kept.
    Raises nothing."""
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutePolicy:
    """The settings of a route, checked when they are made. Durations are in seconds, sizes in bytes. Raises ValueError
    for one that cannot be, and TypeError for an async `keeps`."""

    # A stable name; without one the scope is the method and the path's template.
    scope: str = ""
    # `content`: the request itself is the key, whether or not one is sent. `off`: the route is left alone.
    key: Literal["optional", "required", "content", "off"] = "optional"
    methods: Iterable[str] = UNSAFE
    # None leaves it to the engine's policy for the scope, which says 24 hours unless it was told otherwise; `inf` keeps
    # answers until they are forgotten.
    expires_after: float | None = None
    # None leaves these to the engine too.
    lease: float | None = None
    on_busy: OnBusy | None = None
    wait_for: float = 30.0
    keeps: Callable[[int], bool] = settled_statuses
    # Replays go to everybody of the tenant, not only to the principal who asked first.
    shared: bool = False
    # Whether it may be called by nobody in particular, if there is an authenticator.
    public: bool = False
    # Whether a request must name a case that its principal may see, and whether it starts a run.
    case_required: bool = False
    starts: Starts | None = None
    body_limit: int = 10 * MEGABYTE
    # Source document 003: a body of up to a megabyte is kept.
    keep_limit: int = MEGABYTE
    over_limit: Literal["refuse", "truncate"] = "refuse"
    # Besides the usual ones.
    kept_headers: Iterable[str] = ()
    delivery: Literal["hold", "passthrough"] = "hold"
    # Dotted paths of members of a JSON body that do not count.
    exclude_fields: Iterable[str] = ()
    key_pattern: str = USUAL_KEY
    # Add `idempotency_replayed` to JSON objects as they are sent.
    replayed_in_body: bool = False

    kept_names: frozenset[bytes] = field(init=False, repr=False, compare=False)
    exclusions: Exclusions = field(init=False, repr=False, compare=False)
    pattern: re.Pattern[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.scope:
            check_scope_name(self.scope)
        for name, value, allowed in (
            ("key", self.key, ("optional", "required", "content", "off")),
            ("on_busy", self.on_busy, (None, "wait", "refuse")),
            ("over_limit", self.over_limit, ("refuse", "truncate")),
            ("delivery", self.delivery, ("hold", "passthrough")),
        ):
            if value not in allowed:
                raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, not {value!r}")
        if is_async(self.keeps):
            raise TypeError("keeps must not be async: it is asked for a status, and what it says is used at once")
        lasts = inf if self.expires_after is None else self.expires_after
        if not lasts > 0 or self.wait_for < 0:
            raise ValueError("expires_after must be positive and wait_for must not be negative")
        if self.lease is not None and not 0 < self.lease <= lasts:
            raise ValueError("lease must be positive and not longer than expires_after")
        if self.body_limit < 0 or self.keep_limit < 0:
            raise ValueError("body_limit and keep_limit must not be negative")
        methods = frozenset(method.upper() for method in self.methods)
        if not methods <= METHODS:
            raise ValueError(f"methods must be among {', '.join(sorted(METHODS))}")
        object.__setattr__(self, "methods", methods)
        object.__setattr__(self, "kept_names", kept_names(self.kept_headers))
        object.__setattr__(self, "exclude_fields", tuple(self.exclude_fields))
        object.__setattr__(self, "exclusions", compile_exclusions(self.exclude_fields))
        object.__setattr__(self, "pattern", re.compile(self.key_pattern))
        if self.pattern.fullmatch(""):
            raise ValueError("key_pattern must not allow an empty key")


def idempotent(policy: RoutePolicy | None = None, /, **settings: Any) -> Callable[[E], E]:
    """Mark an endpoint: `@idempotent(scope="create_order", key="required")`. If a route is marked, it is for all of
    the endpoint's methods that the policy names.

    Raises TypeError for both a policy and settings, ValueError for settings that cannot be.
    """
    if policy is not None and settings:
        raise TypeError("give a policy or its settings, not both")
    chosen = policy or RoutePolicy(**settings)

    def mark(endpoint: E) -> E:
        setattr(endpoint, MARK, chosen)
        return endpoint

    return mark


def marked(endpoint: Any, method: str = "") -> RoutePolicy | None:
    """The policy that an endpoint is marked with: a function, a class, or a class's method for an HTTP method."""
    for owner in _inside(endpoint):
        for candidate in (getattr(owner, method.lower(), None) if method else None, owner):
            found = getattr(candidate, MARK, None)
            if isinstance(found, RoutePolicy):
                return found
    return None


def _inside(endpoint: Any, depth: int = 0) -> Iterator[Any]:
    """An endpoint and what it was made of: a handler of Litestar's and a partial know their function, and so does what
    runs one in a thread or is around it; a view of Django's knows its class."""
    yield endpoint
    for name in ("fn", "view_class", "func", "__wrapped__"):
        inner = getattr(endpoint, name, None)
        if depth < _MOST_AROUND and inner is not None and callable(inner):
            yield from _inside(inner, depth + 1)


_PLAIN: Final = (str, bytes, bytearray, int, float, complex, type(None), ModuleType, RoutePolicy)


class UnseenMark(SameasError, RuntimeError):
    """A marked function is mounted where the middleware cannot see its routes."""

    def __init__(self, names: list[str]) -> None:
        self.names = names
        super().__init__(
            f"{', '.join(names)}: marked with @idempotent where IdempotencyMiddleware cannot see the routes; it "
            "would do nothing; take the mark away and give the middleware routes={'POST /the/path': RoutePolicy(...)}"
        )


def marked_within(app: Any) -> list[str]:
    """The names of the marked functions and classes that an application holds."""
    names: dict[str, None] = {}
    seen: dict[int, Any] = {}
    waiting = deque([app])
    while waiting:
        value = waiting.popleft()
        if issubclass(type(value), _PLAIN) or id(value) in seen:
            continue
        # Held, so that no other object takes its place and number.
        seen[id(value)] = value
        if len(seen) > _MOST_HELD:
            _LOG.warning("an application is too large to be searched for functions marked with @idempotent")
            break
        try:
            if isinstance(getattr(value, "__dict__", {}).get(MARK), RoutePolicy):
                names[f"{value.__module__}.{getattr(value, '__qualname__', type(value).__qualname__)}"] = None
            waiting.extend(list(_held(value)))
        except Exception as error:
            # A stand-in for something that is only there during a request, such as Flask's: it holds no routes.
            _LOG.debug("an object of type %s cannot be searched: %s", type(value).__qualname__, type(error).__name__)
    return list(names)


def _held(value: Any) -> Iterator[Any]:
    """What an object holds; not what its module or its class does. Its own type decides, whatever it stands for."""
    kind = type(value)
    if issubclass(kind, dict):
        yield from list(dict.values(value))
    elif issubclass(kind, (list, tuple, set, frozenset, deque)):
        yield from list(value)
    elif issubclass(kind, partial):
        yield from (value.func, *value.args, *value.keywords.values())
    elif issubclass(kind, MethodType):
        yield from (value.__self__, value.__func__)
    elif issubclass(kind, FunctionType):
        yield from value.__dict__.values()
        for cell in value.__closure__ or ():
            # One that is not filled yet has no contents.
            with suppress(ValueError):
                yield cell.cell_contents
    elif issubclass(kind, type):
        yield from [each for each in vars(value).values() if isinstance(each, FunctionType)]
    else:
        yield from list(getattr(value, "__dict__", {}).values())
        for each in kind.__mro__:
            for name in getattr(each, "__slots__", ()):
                yield getattr(value, name, None)
