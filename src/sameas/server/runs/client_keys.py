"""The answers under clients' own keys, and what is left when their run was deleted: a tombstone without content.

Rule: an answer under a client's key names its run by a tag, so that deleting the run finds it. A tombstone stands
before the answer goes, and as long as an answer does: whoever comes back with the key is told that it is gone, and
nothing is run for it.
"""

from __future__ import annotations

from sameas.once.async_engine import AsyncEngine
from sameas.once.policy import DAY
from sameas.once.record import Record, State
from sameas.once.store import Query
from sameas.server.problems import Problem

CLIENT_SCOPE = "extract"
_DELETED_SCOPE = "extract.deleted"
_PAGE = 500


def run_tag(key: str) -> str:
    """The tag of the answers that come from a run."""
    return f"run:{key}"


class ClientKeys:
    """Clients' keys in the store. Lives in the background loop."""

    def __init__(self, engine: AsyncEngine, *, lease: float, retention: float = DAY) -> None:
        self._engine = engine
        self._lease = lease
        self._retention = retention

    async def check(self, space: str, key: str) -> None:
        """Refuse a key whose answer was deleted."""
        if await self._engine.read(_DELETED_SCOPE, key, tenant=space, namespace="client") is not None:
            raise Problem(
                410, "result-deleted", "the result under this key was deleted; take a new key to have it redone"
            )

    async def delete(self, space: str, run: str) -> None:
        """Put a tombstone in the place of every answer of a run, also of those that are still waited for."""
        await self._bury_all(Query(tenant=space, scope=CLIENT_SCOPE, tag=run_tag(run), limit=_PAGE))

    async def delete_all(self, space: str) -> None:
        """Put a tombstone in the place of every answer in the space; a key whose run goes on is left alone."""
        for state in (State.DONE, State.FAILED):
            await self._bury_all(Query(tenant=space, scope=CLIENT_SCOPE, state=state, limit=_PAGE))

    async def _bury_all(self, query: Query) -> None:
        while (page := await self._engine.store.find(query)).records:
            for record in page.records:
                await self._bury(record)

    async def _bury(self, record: Record) -> None:
        identity = record.identity
        await self._engine.run(
            lambda _: "",
            scope=_DELETED_SCOPE,
            key=identity.key,
            tenant=identity.tenant,
            lease=self._lease,
            retention=self._retention,
        )
        await self._engine.store.forget(identity)
