"""What a run may spend on models: set aside of its tenant's day before it begins, settled when it has ended.

Rule: what was accepted is finished with what was set aside for it, however often it is taken up again. Lives in the
background loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from decimal import Decimal

from msgspec.structs import replace

from sameas.extraction.runs.metadata import SpendingFile
from sameas.llm.budget import TOKENS_PER_CHUNK
from sameas.once.errors import SameasError
from sameas.server.runs.chunk_tasks import ASKS_MODELS, helpers_for
from sameas.server.runs.day_accounts import DayAccounts, Reserved, Spent, total
from sameas.server.runs.models import ModelEstimate
from sameas.server.runs.preparation import LONG_TEXT, Prepared
from sameas.server.tenants.workspaces import Workspaces, tenant_of

_LOG = logging.getLogger("sameas.server")


class RunBudgets:
    """The budgets of runs. `chunks_per_task` is 0 where helpers do no parts of them."""

    def __init__(
        self,
        accounts: DayAccounts,
        workspaces: Workspaces,
        *,
        request_limit: Spent,
        chunks_per_task: int,
        estimate: Callable[[Prepared], Awaitable[ModelEstimate | None]],
        without_price: Collection[str] = (),
    ) -> None:
        self._accounts = accounts
        self._workspaces = workspaces
        self._request_limit = request_limit
        self._chunks_per_task = chunks_per_task
        self._estimate = estimate
        self._without_price = without_price

    async def begin(self, prepared: Prepared) -> Reserved | None:
        """Set aside what a new run may spend; None where it asks no model."""
        if not prepared.extractor.name.startswith(ASKS_MODELS):
            return None
        before = await asyncio.to_thread(self._spent, prepared.space, prepared.key.key, starts_over=True)
        chunks = len(prepared.request.text) // prepared.settings.chunking.limit + 1
        usual, most = Spent(TOKENS_PER_CHUNK * chunks), self._request_limit
        if prepared.extractor.name.removeprefix(ASKS_MODELS) in self._without_price:
            # Nobody knows what it costs: nothing is set aside in money, and its tokens have an end.
            most = Spent(most.tokens)
        likely = usual
        if len(prepared.request.text) <= LONG_TEXT and (found := await self._estimate(prepared)) is not None:
            # A call sets aside as much as its reply may have, so that the likely use alone would begin nothing.
            least = max(usual.tokens, found.input_tokens + found.output_tokens) if found.calls else 0
            dearest = found.most_cost or Decimal(0)
            likely = Spent(least, max(found.cost or Decimal(0), dearest * least / max(1, found.most_tokens)))
            most = Spent(max(usual.tokens, found.most_tokens), dearest).at_most(most)
        return await self._set_aside(prepared, likely=likely.at_most(most), most=most, before=before)

    async def end(self, space: str, key: str, reserved: Reserved | None) -> None:
        """Count what a run has spent in place of what was set aside for it."""
        if reserved is None:
            return
        try:
            spent = await asyncio.to_thread(self._spent, space, key)
            await self._accounts.end(reserved, spent.less(reserved.before))
        except (SameasError, OSError) as trouble:
            # What was set aside stays so.
            _LOG.warning("what the run %s spent could not be counted: %s", key, trouble)

    def allowed(self, reserved: Reserved | None, *, to_helper: bool = False) -> tuple[int, Decimal | None] | None:
        """What a run may spend in all, its earlier attempts included, or one who helps it."""
        if reserved is None:
            return None
        most = (reserved.allowed_to_helper() if to_helper else reserved.allowed()).at_most(self._request_limit)
        return max(1, most.tokens), most.cost if self._limits_cost else None

    @property
    def _limits_cost(self) -> bool:
        return self._request_limit.cost.is_finite() or self._accounts.limits_cost

    async def _set_aside(self, prepared: Prepared, *, likely: Spent, most: Spent, before: Spent) -> Reserved:
        tenant, helpers = tenant_of(prepared.space), 0
        if self._chunks_per_task and not prepared.request.extraction_params.batch:
            helpers = await helpers_for(
                prepared.extractor.name,
                prepared.request.text,
                prepared.settings,
                chunks_per_task=self._chunks_per_task,
            )
        twice = most.plus(most)
        if not helpers or not twice.fits(self._request_limit):
            return await self._accounts.begin(tenant, likely=likely, most=most, before=before)
        reserved = await self._accounts.begin(tenant, likely=likely, most=twice, before=before)
        is_whole = twice.tokens <= reserved.most.tokens and (twice.cost <= reserved.most.cost or not self._limits_cost)
        return replace(reserved, helpers=helpers) if is_whole else reserved

    def _spent(self, space: str, key: str, *, starts_over: bool = False) -> Spent:
        """What the attempts at a run have spent; one that is complete begins anew."""
        folder = self._workspaces.get(space).runs.at(key)
        metadata = folder.peek()
        if metadata is None or (starts_over and metadata.status == "complete"):
            return Spent()
        return total(SpendingFile(folder.path).read(metadata.usage))
