"""Who has a stream or a WebSocket open, and whether they may still.

Rule: what was let in once is asked for again every `EVERY` seconds, each credential once, however many streams it has.
A key that was revoked, a token that expired, a tenant that was suspended, a case that was left, a browser that signed
out: whatever is open with it ends. Where the authenticator cannot answer, streams stay while it is asked `TRIES` times,
and then end too. A tenant may have so many streams open, and no more. Lives in the serving loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from sameas.identity.normalize import Credentials, credentials, requested_case_id
from sameas.identity.scope import ScopeError
from sameas.server.problems import Problem
from sameas.server.tenants.access import AccessControl, Caller, WebSessions, session_of

# Seconds after which an open stream is asked for its credential again.
EVERY = 5.0
TRIES = 3
# All tenants together may have so many times as many streams as one.
_TENANTS = 10

# What a stream showed of itself: its credential, the case that it asked for, and the session that stood for it.
Shown: TypeAlias = tuple[Credentials | None, str | None, bytes | None]

_LOG = logging.getLogger("sameas.server")
_SERVER_FAULT = 500


class Admission:
    """An open stream or socket; `on_refused` is called when it must end."""

    def __init__(self, admissions: Admissions, scope: Mapping[str, Any], caller: Caller) -> None:
        self._admissions = admissions
        self.scope = scope
        self.tenant = caller.ctx.tenant_id
        self.credential: Shown = (credentials(scope), requested_case_id(scope), session_of(scope))
        self.is_refused = False
        self._on_refused: list[Callable[[], object]] = []

    def on_refused(self, end: Callable[[], object]) -> None:
        self._on_refused.append(end)

    def forget(self, end: Callable[[], object]) -> None:
        """What `end` would have ended has ended: a socket outlives the streams on it."""
        self._on_refused.remove(end)

    @property
    def streams(self) -> int:
        """How much there is to end where it is refused."""
        return len(self._on_refused)

    def refuse(self) -> None:
        self.is_refused = True
        for end in tuple(self._on_refused):
            end()

    def check(self) -> None:
        """Raise where it must end."""
        if self.is_refused:
            raise Problem(401, "credential-refused", "the credential of this stream is no longer good; come in again")

    def leave(self) -> None:
        self._admissions.leave(self)


class Admissions:
    """Everything that is open."""

    def __init__(self, access: AccessControl, sessions: WebSessions, *, per_tenant: int) -> None:
        self._access = access
        self._sessions = sessions
        self._per_tenant = per_tenant
        self._open: set[Admission] = set()
        self._tenants: Counter[str] = Counter()
        self._faults: Counter[Shown] = Counter()
        self._task: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._open)

    def start(self) -> None:
        self._task = asyncio.create_task(self._watch())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def enter(self, scope: Mapping[str, Any], caller: Caller) -> Admission:
        """Admit a stream that was let in by the door; refused where its tenant has too many."""
        tenant = caller.ctx.tenant_id
        if self._tenants[tenant] >= self._per_tenant or len(self._open) >= _TENANTS * self._per_tenant:
            raise Problem(
                429, "too-many-streams", f"at most {self._per_tenant} streams may be open; end one", retry_after=5.0
            )
        admission = Admission(self, scope, caller)
        self._open.add(admission)
        self._tenants[tenant] += 1
        return admission

    def leave(self, admission: Admission) -> None:
        if admission in self._open:
            self._open.discard(admission)
            self._tenants[admission.tenant] -= 1
            if not self._tenants[admission.tenant]:
                del self._tenants[admission.tenant]

    async def look(self) -> None:
        """Ask for every credential again."""
        by_credential: dict[Shown, list[Admission]] = {}
        for admission in self._open:
            by_credential.setdefault(admission.credential, []).append(admission)
        for credential, admissions in by_credential.items():
            if not await self._is_good(credential, admissions[0].scope):
                for admission in admissions:
                    admission.refuse()
        self._faults = Counter({one: count for one, count in self._faults.items() if one in by_credential})

    async def _is_good(self, credential: Shown, scope: Mapping[str, Any]) -> bool:
        try:
            await self._access.enter(scope)
            is_good = await self._sessions.stands(scope)
        except ScopeError as refused:
            if refused.status < _SERVER_FAULT:
                return False
            trouble: Exception = refused
        except Exception as error:
            trouble = error
        else:
            self._faults.pop(credential, None)
            return is_good
        self._faults[credential] += 1
        _LOG.warning("the credential of an open stream could not be asked for: %s", type(trouble).__name__)
        return self._faults[credential] < TRIES

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(EVERY)
            await self.look()
