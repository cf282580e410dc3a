"""Whether a Redis server keeps what it was given: its eviction and persistence settings, judged.

A server that evicts, or keeps nothing on disk, forgets results that were promised. What a managed server does
not let us ask is said to be unknown; it is not guessed.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

from sameas.once.errors import StoreMisconfigured

# Asked on a new connection, in one go. INFO is allowed on managed servers that forbid CONFIG, and tells part
# of it.
QUESTIONS: Final = (
    (b"CONFIG", b"GET", b"maxmemory-policy"),
    (b"CONFIG", b"GET", b"appendonly"),
    (b"CONFIG", b"GET", b"save"),
    (b"CONFIG", b"GET", b"appendfsync"),
    (b"INFO",),
)

_log = logging.getLogger("sameas.redis")


class Level(StrEnum):
    """How bad it is."""

    FINE = "fine"
    WARNING = "warning"
    UNKNOWN = "unknown"
    REFUSED = "refused"


class Finding(Struct, frozen=True):
    """One thing that was found, and what to do about it."""

    level: Level
    subject: str
    message: str


def judge(replies: Sequence[Any]) -> list[Finding]:
    """What the replies to `QUESTIONS` mean."""
    *configured, told = replies
    info = _info(told)
    policy, appendonly, save, fsync = (_setting(reply) for reply in configured)
    if policy is None:
        policy = info.get("maxmemory_policy")
    if appendonly is None and "aof_enabled" in info:
        appendonly = "yes" if info["aof_enabled"] == "1" else "no"
    return [_eviction(policy), _persistence(appendonly, save, fsync)]


def refuse(replies: Sequence[Any]) -> None:
    """Raise if a strict store must not use this server; what could not be checked is logged."""
    findings = judge(replies)
    for finding in findings:
        if finding.level is Level.UNKNOWN:
            _log.warning("%s: %s", finding.subject, finding.message)
    bad = [finding.message for finding in findings if finding.level is Level.REFUSED]
    if bad:
        raise StoreMisconfigured(" ".join([*bad, "Open the store with strict=False to use it all the same."]))


def is_cluster(told: Any) -> bool:
    """Whether the server that told its INFO is part of a cluster."""
    return _info(told).get("redis_mode") == "cluster"


def _eviction(policy: str | None) -> Finding:
    subject = "eviction"
    if policy is None:
        return Finding(
            Level.UNKNOWN,
            subject,
            "This server does not tell its maxmemory-policy; make sure that it is noeviction.",
        )
    if policy != "noeviction":
        return Finding(
            Level.REFUSED,
            subject,
            f"This Redis evicts records when memory is short (maxmemory-policy is {policy}), so finished "
            "work would be done again: set maxmemory-policy to noeviction, or use another for records.",
        )
    return Finding(Level.FINE, subject, "Nothing is evicted.")


def _persistence(appendonly: str | None, save: str | None, fsync: str | None) -> Finding:
    subject = "persistence"
    if appendonly == "yes":
        if fsync in (None, "always"):
            return Finding(Level.FINE, subject, "Every write goes to the append-only file.")
        return Finding(
            Level.WARNING,
            subject,
            f"The append-only file is synced by appendfsync {fsync}: a power cut can lose the last writes, "
            "and their work would be done again. Set appendfsync to always where that matters.",
        )
    if save:
        return Finding(
            Level.WARNING,
            subject,
            f"Records are kept by snapshots only (save {save}): a crash loses what came after the last one, "
            "and that work would be done again. Set appendonly to yes.",
        )
    if save is None:
        return Finding(
            Level.UNKNOWN,
            subject,
            "This server does not tell whether it saves snapshots, and has no append-only file; make sure "
            "that it keeps its data.",
        )
    return Finding(
        Level.REFUSED,
        subject,
        "This Redis keeps nothing on disk (appendonly is no, save is empty), so a restart forgets every "
        "result: set appendonly to yes.",
    )


def _setting(reply: Any) -> str | None:
    if isinstance(reply, Exception) or not reply:
        return None
    if isinstance(reply, Mapping):
        reply = [*next(iter(reply.items()))]
    return _text(reply[1])


def _info(reply: Any) -> dict[str, str]:
    if isinstance(reply, Exception) or reply is None:
        return {}
    if isinstance(reply, Mapping):
        return {str(name): str(value) for name, value in reply.items()}
    lines = _text(reply).splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line)


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
