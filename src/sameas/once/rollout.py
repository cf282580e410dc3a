"""For how much of the traffic keys are in force: by deployment, tenant and scope, and for a share of the keys.

Rule: the more exact rule wins: a tenant's scope, a tenant, a scope, the deployment. A share is chosen by a digest of
the key, so that one key is treated alike by every process and every time.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final, Literal, cast

from msgspec import Struct

Mode = Literal["enforce", "shadow", "off"]
MODES: Final = ("enforce", "shadow", "off")

_RULE: Final = re.compile(
    r"(?:(?:tenant:(?P<tenant>[^\s=,]+))?\s*(?:scope:(?P<scope>[^\s=,]+))?\s*=\s*)?"
    r"(?P<mode>enforce|shadow|off)(?::(?P<share>\d{1,3}(?:\.\d+)?)%)?"
)
_TODO: Final = (
    "mode must be enforce, shadow or off, each with a share if wanted, and exceptions after commas: "
    "enforce:25%, tenant:ID=off, scope:extract=shadow, tenant:ID scope:extract=shadow:10%"
)


class Rule(Struct, frozen=True, kw_only=True):
    """What holds for a tenant, a scope, both or all: a mode for a share of the keys, and another for the rest."""

    tenant: str | None = None
    scope: str | None = None
    mode: Mode = "enforce"
    share: float = 1.0

    @property
    def rest(self) -> Mode:
        """What holds for the other keys: the opposite of what is being brought in."""
        return "enforce" if self.mode == "off" else "off"


class Rollout(Struct, frozen=True):
    """All rules, the most exact first."""

    rules: tuple[Rule, ...] = (Rule(),)

    def mode_of(self, tenant: str, scope: str, key: str) -> Mode:
        for rule in self.rules:
            if rule.tenant in (None, tenant) and rule.scope in (None, scope):
                return rule.mode if rule.share >= 1 or _place(scope, key) < rule.share else rule.rest
        return "enforce"

    @property
    def is_whole(self) -> bool:
        """Whether every key of everybody is in force."""
        return self.rules == (Rule(),)


def parse_rollout(text: str) -> Rollout:
    """The rules of a setting; a ValueError that says how to write them."""
    rules = []
    for part in (one.strip() for one in text.split(",")):
        found = _RULE.fullmatch(part)
        share = 1.0 if found is None or found["share"] is None else float(found["share"]) / 100
        if found is None or share > 1:
            raise ValueError(_TODO)
        mode = cast("Mode", found["mode"])
        rules.append(Rule(tenant=found["tenant"], scope=found["scope"], mode=mode, share=share))
    places = {(rule.tenant, rule.scope) for rule in rules}
    if len(places) != len(rules):
        raise ValueError(f"{_TODO}; two rules hold for the same")
    rules.sort(key=lambda rule: (rule.tenant is None, rule.scope is None))
    return Rollout(tuple(rules))


def _place(scope: str, key: str) -> float:
    """Where a key stands among all, from 0 to 1."""
    digest = hashlib.sha256(f"{len(scope)}:{scope}{key}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8]) / 2**64
