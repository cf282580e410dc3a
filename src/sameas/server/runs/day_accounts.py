"""What a tenant's runs may spend on models in a day (UTC), to the token, for all servers of one store.

Rule: a run sets aside the most that it may take before it begins, and may not take more: its budget is what was set
aside. When it ends, however it ends, what it really took is counted in place of that. An account is a log of its
changes in the store, so that of two servers that reserve at once one is first and the other sees it. What a server set
aside and could not settle stays set aside for the rest of the day.

A change costs the same however many runs wait: a server keeps what it has read of the log, and now and then an entry
says how the account stood before it, for those who have read nothing. Changes that come together are one entry.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Literal

import msgspec

from sameas.identity.ids import uuid7
from sameas.llm.ledger import UsageRow
from sameas.once.async_engine import AsyncEngine
from sameas.once.policy import DAY
from sameas.server.problems import Problem
from sameas.server.tenants.broadcast import AppendLog

_SCOPE = "sameas.accounts"
_KEPT = 3 * DAY
# Accounts of which a server remembers what it has read.
_REMEMBERED = 1_000
# Entries between two that say how the account stood; more where that is much to say.
_STATED_EVERY = 64
# Entries that are asked for at once, where many are new.
_READ_AT_ONCE = 64
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
    before: Spent = NOTHING_SPENT
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
    """A tenant's day: what was spent, and what is set aside by id."""

    spent: Spent = NOTHING_SPENT
    reserved: Mapping[str, Spent] = {}


class AccountChange(msgspec.Struct, frozen=True):
    """Something was set aside; or settled with what was spent of it; or spent beside that. An id has each once."""

    kind: Literal["set-aside", "settled", "spent"]
    id: str
    amount: Spent


class AccountEntry(msgspec.Struct, frozen=True, kw_only=True):
    """Changes that one server made together, and the last entry, maybe this one, that says how the account stood."""

    id: str
    changes: tuple[AccountChange, ...]
    stated_at: int
    before: Account | None = None


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
        self._logs: OrderedDict[tuple[str, str], _AccountLog] = OrderedDict()

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

        def reserve(stand: _Stand) -> AccountChange | Problem:
            left = self._limit.less(stand.spent.plus(stand.aside))
            if not likely.fits(left):
                return _refusal(now, is_set_aside=likely.fits(self._limit.less(stand.spent)))
            # Half of what is left, where the most is more than that: others come too.
            granted = most.at_most(Spent(max(likely.tokens, left.tokens // 2), max(likely.cost, left.cost / 2)))
            if not granted.cost.is_finite():
                # Nobody limits money.
                granted = Spent(granted.tokens)
            return AccountChange("set-aside", name, granted)

        change = await self._log(tenant, day).make(_Wish("set-aside", name, reserve))
        assert change is not None
        return Reserved(id=name, tenant=tenant, day=day, most=change.amount, before=before)

    async def end(self, reserved: Reserved, spent: Spent) -> None:
        """Count what the run took in place of what was set aside; a second time changes nothing."""

        def settle(stand: _Stand) -> AccountChange | None:
            return AccountChange("settled", reserved.id, spent) if stand.has(reserved.id) else None

        await self._log(reserved.tenant, reserved.day).make(_Wish("settled", reserved.id, settle))

    async def add(self, reserved: Reserved, spent: Spent) -> None:
        """Count what was spent for a run beside what was counted when it ended."""
        change = AccountChange("spent", str(uuid7()), spent)
        await self._log(reserved.tenant, reserved.day).make(_Wish("spent", change.id, lambda _: change))

    async def read(self, tenant: str, day: str) -> Account:
        """How an account stands."""
        return await self._log(tenant, day).read()

    def _log(self, tenant: str, day: str) -> _AccountLog:
        log = self._logs.get((tenant, day))
        if log is None:
            scope = f"{_SCOPE}.{day}"
            entries = AppendLog(self._engine, AccountEntry, scope=scope, tenant=f"~spending~{tenant}", retention=_KEPT)
            log = self._logs[tenant, day] = _AccountLog(entries)
            while len(self._logs) > _REMEMBERED:
                # Whoever is at one goes on with it; another one reads anew.
                self._logs.popitem(last=False)
        self._logs.move_to_end((tenant, day))
        return log


class _Stand:
    """How an account stands, with what is about to be added."""

    def __init__(self, account: Account) -> None:
        self.spent = account.spent
        self.reserved = dict(account.reserved)
        self.aside = NOTHING_SPENT
        for one in self.reserved.values():
            self.aside = self.aside.plus(one)

    def has(self, name: str) -> bool:
        return name in self.reserved

    def apply(self, change: AccountChange) -> Callable[[], None]:
        """Take a change in; gives what takes it back."""
        spent, aside, there = self.spent, self.aside, self.reserved.get(change.id)

        def undo() -> None:
            self.spent, self.aside = spent, aside
            if there is None:
                self.reserved.pop(change.id, None)
            else:
                self.reserved[change.id] = there

        if change.kind == "set-aside":
            self.reserved[change.id] = change.amount
            self.aside = aside.plus(change.amount)
        elif change.kind == "spent":
            self.spent = spent.plus(change.amount)
        elif there is not None:
            del self.reserved[change.id]
            self.aside = aside.less(there)
            self.spent = spent.plus(change.amount)
        return undo

    def account(self) -> Account:
        return Account(spent=self.spent, reserved=dict(self.reserved))


class _Wish:
    """A change that somebody waits for. What it decides is believed once everything before it was read."""

    def __init__(self, kind: str, name: str, decide: Callable[[_Stand], AccountChange | Problem | None]) -> None:
        self.place = (kind, name)
        self.decide = decide
        self.done = False
        self.answer: AccountChange | Problem | None = None

    def settle(self, answer: AccountChange | Problem | None) -> None:
        self.done, self.answer = True, answer


class _AccountLog:
    """One account, as far as its log was read here."""

    def __init__(self, entries: AppendLog[AccountEntry]) -> None:
        self._entries = entries
        self._number = 0
        self._stated_at = 0
        self._stand = _Stand(Account())
        self._lock = asyncio.Lock()
        self._wishes: list[_Wish] = []

    async def make(self, wish: _Wish) -> AccountChange | None:
        """Make a change, with those of everybody who waits by then; None where there was nothing to change."""
        self._wishes.append(wish)
        try:
            async with self._lock:
                while not wish.done:
                    await self._write()
        finally:
            if wish in self._wishes:
                self._wishes.remove(wish)
        if isinstance(wish.answer, Problem):
            raise wish.answer
        return wish.answer

    async def read(self) -> Account:
        async with self._lock:
            await self._read_on()
            return self._stand.account()

    async def _write(self) -> None:
        """Decide what everybody wishes, and add it to the log; where another server was first, nothing but that is
        known afterwards.
        """
        if self._number == 0 or not self._decide(is_current=False):
            await self._read_on()
        made = self._decide(is_current=True)
        if not made:
            return
        number, is_stated = self._number + 1, self._is_to_be_stated
        entry = AccountEntry(
            id=str(uuid7()),
            changes=made,
            stated_at=number if is_stated else self._stated_at,
            before=self._stand.account() if is_stated else None,
        )
        there = await self._entries.add(entry, number=number)
        self._apply(there)
        if there.id != entry.id:
            await self._read_on()

    def _decide(self, *, is_current: bool) -> tuple[AccountChange, ...]:
        """The changes that are to be made. Where this may not be how the account stands by now, nobody is refused, and
        nothing is made if somebody would be.
        """
        made, undone = [], []
        for wish in (one for one in self._wishes if not one.done):
            answer = wish.decide(self._stand)
            if isinstance(answer, AccountChange):
                made.append(answer)
                undone.append(self._stand.apply(answer))
            elif is_current:
                wish.settle(answer)
            else:
                made = []
                break
        for undo in reversed(undone):
            undo()
        return tuple(made)

    @property
    def _is_to_be_stated(self) -> bool:
        return self._number + 1 - self._stated_at >= max(_STATED_EVERY, len(self._stand.reserved)) or not self._number

    def _apply(self, entry: AccountEntry) -> None:
        """Take in the next entry, and tell those whose changes it has: it may have been written for one who left."""
        wishes = {wish.place: wish for wish in self._wishes}
        for change in entry.changes:
            self._stand.apply(change)
            if (wish := wishes.get((change.kind, change.id))) is not None:
                wish.settle(change)
        self._number += 1
        self._stated_at = entry.stated_at

    async def _read_on(self) -> None:
        """Read what is new."""
        if self._number == 0:
            _, last = await self._entries.last()
            first = None if last is None else await self._entries.read(last.stated_at)
            if last is None or first is None:
                return
            self._number = last.stated_at - 1
            self._stand = _Stand(first.before or Account())
            self._apply(first)
        count = 1
        while True:
            numbers = range(self._number + 1, self._number + 1 + count)
            for entry in await asyncio.gather(*(self._entries.read(number) for number in numbers)):
                if entry is None:
                    return
                self._apply(entry)
            count = min(2 * count, _READ_AT_ONCE)


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
