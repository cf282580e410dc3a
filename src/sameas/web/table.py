"""Which policy a request falls under: the table's, then the endpoint's mark, then the defaults.

Lines of the table are `METHOD /path/{part}`, or `/path/{part}` for every method that the policy names. Where a
framework says which template leads to the endpoint, a line is compared with that, whatever the parts are called;
elsewhere with the path. What was found for a path is remembered, for a bounded number of paths.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import inf
from typing import Any, Final

from sameas.once.async_engine import AsyncEngine
from sameas.once.policy import Policy
from sameas.web.frameworks import Scope, find_endpoint, mount_of, unknown_within, watch
from sameas.web.response import CODEC
from sameas.web.route import METHODS, RoutePolicy, UnseenMark, marked, marked_within

REMEMBERED: Final = 4_096
# Source document 003; a longer one is not recorded.
_MAX_ROUTE: Final = 256
# A longer path is looked up each time: what clients make up must not fill memory.
_MAX_REMEMBERED_PATH: Final = 1_024
_LINE = re.compile(r"(?:([A-Z]+) )?(/\S*)")
# A part of a template, as `{id}`, `{id:int}` or `<int:id>`.
_PART = re.compile(r"\{[^{}/]+\}|<[^<>/]+>")


class Rule:
    """A policy where it applies: the scope's name, how long an answer is kept, and the options of the engine's call,
    ready. `host` is the pattern of the host, if the host decides: then two hosts are two scopes, and the request's
    own host counts. `is_watched` says that the entering of the handler is noted."""

    __slots__ = ("expires_after", "host", "is_watched", "options", "policy", "scope_name", "template")

    def __init__(
        self, policy: RoutePolicy, method: str, template: str, *, host: str = "", engine: AsyncEngine | None = None
    ) -> None:
        self.policy = policy
        self.template = template
        self.host = host
        self.is_watched = False
        self.scope_name = policy.scope or f"{method} {host}{template}"[:255]
        self.options: dict[str, Any] = {
            "scope": self.scope_name,
            "wait_for": policy.wait_for,
            "codec": CODEC,
            "method": method,
        }
        usual = Policy() if engine is None else engine.policies.get(self.scope_name, engine.policy)
        if policy.expires_after is None:
            self.expires_after = inf if usual.retention is None else usual.retention
        else:
            self.expires_after = policy.expires_after
            self.options["retention"] = None if policy.expires_after == inf else policy.expires_after
        if policy.lease is not None:
            self.options["lease"] = policy.lease
        elif self.expires_after < usual.lease:
            # A record must not go before the lease on it.
            self.options["lease"] = self.expires_after
        if policy.on_busy is not None:
            self.options["on_busy"] = policy.on_busy
        if len(template) <= _MAX_ROUTE and template.startswith("/") and "?" not in template:
            self.options["route"] = template


class _Line:
    def __init__(self, line: str, policy: RoutePolicy) -> None:
        parsed = _LINE.fullmatch(line)
        if parsed is None or (parsed[1] and parsed[1] not in METHODS):
            raise ValueError(f"{line!r} is no line of a route table: write 'POST /orders/{{id}}' or '/orders'")
        self.method, self.template, self.policy = parsed[1], parsed[2], policy
        self._shape = _shape(self.template)
        self._paths = re.compile(_paths(self.template))

    def fits_path(self, method: str, path: str) -> bool:
        """Whether it speaks of a path, if nobody knows which template leads there."""
        return self._speaks_of(method) and self._paths.fullmatch(path) is not None

    def fits_template(self, method: str, template: str, root: str) -> bool:
        """Whether it speaks of the endpoint of a template. It may begin with `root`, where the application is, or with
        the end of it."""
        if not self._speaks_of(method):
            return False
        shape = _shape(template)
        if self._shape == shape or not self._shape.endswith(shape):
            return self._shape == shape
        before = _paths(self._shape.removesuffix(shape))
        return re.fullmatch(f"(?:.*){before}", root) is not None

    def acting(self) -> RoutePolicy | None:
        return None if self.policy.key == "off" else self.policy

    def _speaks_of(self, method: str) -> bool:
        return method == self.method if self.method else method in self.policy.methods


class RouteTable:
    """The rules of one middleware. Raises ValueError for a line that is none. What names no error raises none."""

    def __init__(
        self,
        app: Any,
        routes: Mapping[str, RoutePolicy],
        defaults: RoutePolicy,
        *,
        engine: AsyncEngine | None = None,
    ) -> None:
        self._app = app
        self._engine = engine
        self._lines = [_Line(line, policy) for line, policy in routes.items()]
        self._defaults = defaults
        self._known: dict[tuple[str, str, str], Rule | None] = {}
        # The names that are marked in applications of which nothing is known, by the application's number, and it.
        self._searched: dict[int, tuple[list[str], Any]] = {}

    def find(self, scope: Scope) -> Rule | None:
        """The rule for a request; None if it is left alone. Raises UnseenMark where marked functions would be passed
        over."""
        method = scope["method"]
        where = (method, scope["path"], scope.get("path_template") or scope.get("root_path", ""))
        try:
            return self._known[where]
        except KeyError:
            pass
        rule, lasting = self._look(method, scope)
        if lasting and len(where[1]) + len(where[2]) <= _MAX_REMEMBERED_PATH:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            self._known[where] = rule
        return rule

    def rule_of(
        self, method: str, template: str, endpoint: Any, *, mount: str = "", root: str = "", host: str = ""
    ) -> Rule | None:
        """The rule for an endpoint that is known by its template; None if it is left alone. `mount` is a part of the
        scope's name, `root` is what lines may begin with."""
        template = template if template.startswith("/") else f"/{template}"
        for line in self._lines:
            if line.fits_template(method, template, root):
                policy = line.acting()
                break
        else:
            policy = marked(endpoint, method) or self._defaults
            policy = policy if policy.key != "off" and method in policy.methods else None
        # Two applications that are mounted beside each other may have routes of one name.
        return self._rule(policy, method, mount + template, host)

    def _look(self, method: str, scope: Scope) -> tuple[Rule | None, bool]:
        if method not in METHODS:
            return None, False
        found = find_endpoint(self._app, scope)
        if not found.known or not found.template:
            for line in self._lines:
                if line.fits_path(method, scope["path"]):
                    return self._rule(line.acting(), method, line.template, found.host), found.by_path
        if found.unseen is not None and method in self._defaults.methods:
            self.refuse_unseen(found.unseen)
        if not found.template:
            return None, found.by_path
        mount, root = mount_of(scope), scope.get("root_path", "")
        rule = self.rule_of(method, found.template, found.endpoint, mount=mount, root=root, host=found.host)
        if rule is not None and found.held_by is not None:
            rule.is_watched = watch(*found.held_by)
        return rule, found.by_path

    def refuse_unseen(self, app: Any) -> None:
        """Refuse an application of which nothing is known, if functions of it are marked. Raises UnseenMark."""
        searched = self._searched.get(id(app))
        if searched is None:
            searched = self._searched[id(app)] = (marked_within(app), app)
        if searched[0]:
            raise UnseenMark(searched[0])

    def refuse_all_unseen(self, outer: Any = None) -> None:
        """The same at start, for all that can be reached from here or from the application that has the middleware;
        where there are lines, only a request can say whether one speaks of it.

        Raises UnseenMark.
        """
        if not self._lines:
            for app in unknown_within(self._app, outer):
                self.refuse_unseen(app)

    def _rule(self, policy: RoutePolicy | None, method: str, template: str, host: str) -> Rule | None:
        return None if policy is None else Rule(policy, method, template, host=host, engine=self._engine)


def _shape(template: str) -> str:
    """A template without the names of its parts and what they are converted to."""
    return _PART.sub("{_}", template)


def _paths(template: str) -> str:
    """The paths that a template speaks of, as a regular expression."""
    return "[^/]+".join(re.escape(piece) for piece in _PART.split(template))
