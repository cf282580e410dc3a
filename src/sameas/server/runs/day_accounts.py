"""What a tenant's runs may spend on models in a day (UTC), to the token, for all servers of one store.

Rule: a run sets aside the most that it may take before it begins, and may not take more: its budget is what was set
aside. When it ends, however it ends, what it really took is counted in place of that. An account is a chain of its
states in the store, so that of two servers that reserve at once one is first and the other sees it. What a server set
aside and could not settle stays set aside for the rest of the day.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal

import msgspec

from sameas.identity.ids import uuid7
from sameas.llm.ledger import UsageRow
from sameas.once.async_engine import AsyncEngine
from sameas.once.policy import DAY
from sameas.server.problems import Problem
from sameas.server.tenants.broadcast import AppendLog

_SCOPE = "sameas.spending"
_KEPT = 3 * DAY
# Seconds after which runs under way may have given back what they set aside.
_SOON = 10.0
_NOTHING = Decimal(0)


class Spent(msgspec.Struct, frozen=True):
    """Tokens and US dollars."""

    tokens: int = 0
    cost: Decimal = _NOTHING

    def plus(self, other: Spent) -> Spent:
        return Spent(self.tokens + other.tokens, self.cost + other.cost)

    def less(self, other: Spent) -> Spent:
        return Spent(max(0, self.tokens - other.tokens), max(_NOTHING, self.cost - other.cost))

    def at_most(self, other: Spent) -> Spent:
        return Spent(min(self.tokens, other.tokens), min(self.cost, other.cost))

    def fits(self, limit: Spent) -> bool:
        return self.tokens <= limit.tokens and self.cost <= limit.cost


NOTHING_SPENT = Spent()


class Reserved(msgspec.Struct, frozen=True, kw_only=True):
    """What was set aside for a run, and what the run had spent before; it is written down with the run's promise."""

    id: str
    tenant: str
    day: str
    most: Spent
    before: Spent = Spent()
    helpers: int = 0
    """So many share one half of it; the run itself has the other."""

    def allowed(self) -> Spent:
        """What the run itself may spend, with what it had spent before."""
        return self.before.plus(self._half() if self.helpers else self.most)

    def allowed_to_helper(self) -> Spent:
        half = self._half()
        return Spent(half.tokens // max(1, self.helpers), half.cost / max(1, self.helpers))

    def _half(self) -> Spent:
        return Spent(self.most.tokens // 2, self.most.cost / 2)


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """A tenant's day: what was spent, and what is set aside by id; `change` tells states apart."""

    spent: Spent = Spent()
    reserved: Mapping[str, Spent] = {}
    change: str = ""


class DayAccounts:
    """The accounts of all tenants. Lives in the background loop."""

    def __init__(
        self,
        engine: AsyncEngine,
        *,
        tokens: int,
        cost: Decimal | None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._engine = engine
        self._limit = Spent(tokens, Decimal("Infinity") if cost is None else cost)
        self._clock = clock

    @property
    def limits_cost(self) -> bool:
        return self._limit.cost.is_finite()

    async def begin(self, tenant: str, *, likely: Spent, most: Spent, before: Spent = NOTHING_SPENT) -> Reserved:
        """Set aside the most that a run may take, or less near the end of what the day has, but what it is likely to
        take; a Problem where there is not even that.
        """
        now = self._clock()
        day = time.strftime("%Y-%m-%d", time.gmtime(now))
        name = str(uuid7())
        granted = Spent()

        def reserve(account: Account) -> Account:
            nonlocal granted
            spent = account.spent
            aside = (
                sum(one.tokens for one in account.reserved.values()),
                sum((one.cost for one in account.reserved.values()), _NOTHING),
            )
            left = self._limit.less(spent.plus(Spent(*aside)))
            if not likely.fits(left):
                raise _refusal(now, is_set_aside=likely.fits(self._limit.less(spent)))
            # Half of what is left, where the most is more than that: others come too.
            granted = most.at_most(Spent(max(likely.tokens, left.tokens // 2), max(likely.cost, left.cost / 2)))
            if not granted.cost.is_finite():
                # Nobody limits money.
                granted = Spent(granted.tokens)
            return Account(spent=spent, reserved={**account.reserved, name: granted}, change=str(uuid7()))

        await self._change(tenant, day, reserve)
        return Reserved(id=name, tenant=tenant, day=day, most=granted, before=before)

    async def end(self, reserved: Reserved, spent: Spent) -> None:
        """Count what the run took in place of what was set aside; a second time changes nothing."""

        def settle(account: Account) -> Account | None:
            if reserved.id not in account.reserved:
                return None
            others = {name: one for name, one in account.reserved.items() if name != reserved.id}
            return Account(spent=account.spent.plus(spent), reserved=others, change=str(uuid7()))

        await self._change(reserved.tenant, reserved.day, settle)

    async def add(self, reserved: Reserved, spent: Spent) -> None:
        """Count what was spent for a run beside what was counted when it ended."""
        change = str(uuid7())
        await self._change(
            reserved.tenant,
            reserved.day,
            lambda account: Account(spent=account.spent.plus(spent), reserved=account.reserved, change=change),
        )

    async def read(self, tenant: str, day: str) -> Account:
        """How an account stands."""
        _, account = await self._append_log(tenant, day).last()
        return account or Account()

    async def _change(self, tenant: str, day: str, change: Callable[[Account], Account | None]) -> None:
        append_log = self._append_log(tenant, day)
        while True:
            number, account = await append_log.last()
            changed = change(account or Account())
            if changed is None:
                return
            there = await append_log.add(changed, number=number + 1)
            if there.change == changed.change:
                return

    def _append_log(self, tenant: str, day: str) -> AppendLog[Account]:
        return AppendLog(self._engine, Account, scope=f"{_SCOPE}.{day}", tenant=f"~spending~{tenant}", retention=_KEPT)


def total(usage: Iterable[UsageRow]) -> Spent:
    """What the rows of a run come to; a cost that nobody knows is not counted."""
    rows = list(usage)
    return Spent(sum(row.tokens for row in rows), sum((row.cost or _NOTHING for row in rows), _NOTHING))


def _refusal(now: float, *, is_set_aside: bool) -> Problem:
    if is_set_aside:
        said = "the runs under way have set aside what the tenant may spend on models today; ask again when some ended"
        return Problem(429, "day-set-aside", said, retry_after=_SOON)
    return Problem(
        429,
        "day-spent",
        "the tenant has spent what it may on models today; ask again tomorrow (UTC), or have tenant_tokens_per_day or "
        "tenant_cost_per_day raised",
        retry_after=DAY - now % DAY,
    )
