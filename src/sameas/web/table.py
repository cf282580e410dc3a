"""Which policy a request falls under: the table's, then the endpoint's mark, then the defaults.

Lines of the table are `METHOD /path/{part}`, or `/path/{part}` for every method that the policy names. What was found
for a path is remembered, for a bounded number of paths.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from sameas.once.policy import MINUTE
from sameas.web.frameworks import Found, Scope, find_endpoint, mount_of
from sameas.web.response import CODEC
from sameas.web.route import METHODS, RoutePolicy, marked

REMEMBERED: Final = 4_096
# Source document 003; a longer one is not recorded.
_MAX_ROUTE: Final = 256
# A longer path is looked up each time: what clients make up must not fill memory.
_MAX_REMEMBERED_PATH: Final = 1_024
_LINE = re.compile(r"(?:([A-Z]+) )?(/\S*)")
_PART = re.compile(r"\{[^{}/]+\}")


class Rule:
    """A policy where it applies: the scope's name and the options of the engine's call, ready. `host` is the pattern of
    the host, where the host decides: then two hosts are two scopes, and the request's own host counts."""

    __slots__ = ("host", "options", "policy", "scope_name", "template")

    def __init__(self, policy: RoutePolicy, method: str, template: str, *, host: str = "") -> None:
        self.policy = policy
        self.template = template
        self.host = host
        self.scope_name = policy.scope or f"{method} {host}{template}"[:255]
        self.options: dict[str, Any] = {
            "scope": self.scope_name,
            "retention": policy.retention,
            "wait_for": policy.wait_for,
            "codec": CODEC,
            "method": method,
        }
        if policy.lease is not None:
            self.options["lease"] = policy.lease
        elif policy.expires_after < MINUTE:
            # A record must not go before the lease on it.
            self.options["lease"] = min(policy.expires_after, MINUTE / 2)
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
        pieces = [re.escape(piece) for piece in _PART.split(self.template)]
        self.regex = re.compile("[^/]+".join(pieces))

    def fits(self, method: str, path: str) -> bool:
        if self.method:
            return method == self.method and self.regex.fullmatch(path) is not None
        return method in self.policy.methods and self.regex.fullmatch(path) is not None


class RouteTable:
    """The rules of one middleware."""

    def __init__(self, app: Any, routes: Mapping[str, RoutePolicy], defaults: RoutePolicy) -> None:
        self._app = app
        self._lines = [_Line(line, policy) for line, policy in routes.items()]
        self._defaults = defaults
        self._known: dict[tuple[str, str, str], Rule | None] = {}

    def find(self, scope: Scope) -> Rule | None:
        """The rule for a request; None where it is left alone."""
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

    def policy_of(self, method: str, template: str, endpoint: Any) -> RoutePolicy | None:
        """The policy of an endpoint that is known by its template; None where it is left alone."""
        for line in self._lines:
            if line.template == template and (not line.method or line.method == method):
                return _acting(line.policy, method, named=bool(line.method))
        return _acting(marked(endpoint, method) or self._defaults, method)

    def _look(self, method: str, scope: Scope) -> tuple[Rule | None, bool]:
        if method not in METHODS:
            return None, False
        found = find_endpoint(self._app, scope)
        for line in self._lines:
            if line.fits(method, scope["path"]) or (
                line.template == found.template and (not line.method or line.method == method)
            ):
                policy = _acting(line.policy, method, named=bool(line.method))
                rule = None if policy is None else Rule(policy, method, line.template, host=found.host)
                return rule, found.by_path
        if not found.template:
            return None, found.by_path
        policy = _acting(marked(found.endpoint, method) or self._defaults, method)
        # Two applications that are mounted beside each other may have routes of one name.
        template = mount_of(scope) + _template(found)
        return (None if policy is None else Rule(policy, method, template, host=found.host)), found.by_path


def _template(found: Found) -> str:
    return found.template if found.template.startswith("/") else f"/{found.template}"


def _acting(policy: RoutePolicy, method: str, *, named: bool = False) -> RoutePolicy | None:
    """The policy, where it has something to say about the method."""
    return policy if policy.key != "off" and (named or method in policy.methods) else None
