"""What one request may spend: tokens, in shares by stage, and money.

Rule: what a call may cost at most is reserved before it and settled with what it did cost, so that the sum is exact
after every reply, also after one that cost more than was reserved. Entity extraction may use what the stages
without a share of their own ("other") leave; where the order of the stages is known, each may use what those before it
left, and half of the shares of those after it. A request has a budget of its own and never gets it back: the next
request takes a new one. A budget that nobody set may grow with what is asked.
"""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType

import msgspec

from sameas.llm.errors import BudgetSpent
from sameas.llm.signals import BudgetWarning, Listener, emit

# Source document 001, part 1.3; there for a request, here for a chunk (DESIGN.md, section 11).
TOKENS_PER_CHUNK = 4096
OTHER = "other"
BORROWER = "entity_extraction"
SHARES: Mapping[str, Decimal] = MappingProxyType(
    {
        "entity_extraction": Decimal("0.35"),
        "relation_extraction": Decimal("0.35"),
        "grounding": Decimal("0.15"),
        "property_scoping": Decimal("0.08"),
        OTHER: Decimal("0.07"),
    }
)
WARN_AT = Decimal("0.8")
_NOTHING = Decimal(0)


class Preflight(msgspec.Struct, frozen=True, kw_only=True):
    """Whether what is planned fits, before anything is spent; `short` has the tokens that each stage lacks."""

    tokens: int
    token_limit: int
    cost: Decimal | None
    cost_limit: Decimal | None
    short: Mapping[str, int]

    @property
    def fits(self) -> bool:
        return not self.short and self.tokens <= self.token_limit and self._is_affordable

    @property
    def _is_affordable(self) -> bool:
        # A cost that nobody knows cannot be promised to stay below a limit.
        return self.cost_limit is None or (self.cost is not None and self.cost <= self.cost_limit)


class SpendingLimit:
    """US dollars that one request may spend, or several together; without a limit it counts and never refuses. Raises
    ValueError for a limit below nothing; its calls raise nothing."""

    def __init__(self, limit: Decimal | None = None) -> None:
        if limit is not None and not limit >= 0:
            raise ValueError("cost_limit must not be negative")
        self.limit = limit
        self.used = _NOTHING
        self.reserved = _NOTHING
        self._when_settled: set[Callable[[], None]] = set()

    @property
    def left(self) -> Decimal | None:
        """What nobody has spent or set aside; never below 0, None without a limit."""
        return None if self.limit is None else max(_NOTHING, self.limit - self.used - self.reserved)

    def can_pay(self, cost: Decimal) -> bool:
        return self.limit is None or self.used + self.reserved + cost <= self.limit

    def reserve(self, cost: Decimal) -> None:
        self.reserved += cost

    def settle(self, reserved: Decimal, cost: Decimal) -> None:
        """Give back what was set aside and count what was paid."""
        self.reserved -= reserved
        self.used += cost
        waiting, self._when_settled = self._when_settled, set()
        for look in waiting:
            look()

    def when_settled(self, look: Callable[[], None]) -> None:
        """Call this once, when one of the calls under way is over."""
        self._when_settled.add(look)


class Reservation:
    """Tokens and money set aside for one call. Settle it once; a second time changes nothing. What names no error
    raises none."""

    def __init__(self, budget: "TokenBudgetService", stage: str, tokens: int, cost: Decimal) -> None:
        self._budget: TokenBudgetService | None = budget
        self.stage = stage
        self.tokens = tokens
        self.cost = cost

    def settle(self, actual_tokens: int, *, cost: Decimal = _NOTHING) -> None:
        """Give back the reservation and count what was really used. Raises ValueError for less than nothing."""
        if actual_tokens < 0 or cost < 0:
            raise ValueError("a call cannot have used less than nothing")
        budget, self._budget = self._budget, None
        if budget is not None:
            budget._settle(self, actual_tokens, cost)

    def release(self) -> None:
        """Give it back: the call was not made."""
        self.settle(0)


class _StageShare:
    """One share: what it may, has and is about to spend."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0
        self.reserved = 0
        self.provided = 0

    @property
    def protected(self) -> int:
        """What stages that come before must leave."""
        return max(0, self.limit // 2 - self.used - self.reserved)


class TokenBudgetService:
    """The budget of one request. `cost_limit` is in US dollars; without one, only tokens are limited.

    With one `spending` limit several requests spend their money together. `order` names the stages that ask, as they
    are done. With `grows` the total is where it begins, and `provide` makes room.

    Raises ValueError for limits and shares that cannot be. What names no error raises none.
    """

    def __init__(
        self,
        total: int = TOKENS_PER_CHUNK,
        *,
        shares: Mapping[str, Decimal | float] = SHARES,
        cost_limit: Decimal | None = None,
        spending: SpendingLimit | None = None,
        order: Sequence[str] = (),
        grows: bool = False,
        on_signal: Listener | None = None,
    ) -> None:
        if total < 1:
            raise ValueError("a budget needs at least one token")
        if cost_limit is not None and spending is not None:
            raise ValueError("spending has a limit of its own: give one of the two")
        exact = {stage: Fraction(str(share)) for stage, share in shares.items()}
        if OTHER not in exact or min(exact.values()) < 0 or sum(exact.values()) > 1:
            raise ValueError(f"shares need one for {OTHER!r}, none below 0, and at most 1 together")
        if not set(order) <= set(exact):
            raise ValueError("every stage of the order needs a share")
        self.total = total
        self.used = 0
        """Tokens that were really used."""
        self.reserved = 0
        """Tokens set aside for calls that are not over."""
        self.spending = spending or SpendingLimit(cost_limit)
        self._order = tuple(order)
        self._grows = grows
        self._accounts = {stage: _StageShare(int(total * share)) for stage, share in exact.items()}
        self._listener = on_signal
        self._warned: set[str] = set()

    @classmethod
    def for_chunks(
        cls,
        chunks: int,
        *,
        tokens_per_chunk: int = TOKENS_PER_CHUNK,
        cost_limit: Decimal | None = None,
        on_signal: Listener | None = None,
    ) -> "TokenBudgetService":
        """The budget of a request over so many chunks. Raises ValueError for settings that cannot be."""
        return cls(max(1, chunks) * tokens_per_chunk, cost_limit=cost_limit, on_signal=on_signal)

    def may_afford_later(self, stage: str, tokens: int, *, cost: Decimal = _NOTHING) -> bool:
        """Whether calls under way may give back what a reservation lacks."""
        has_tokens = tokens <= self.left(stage) or self.reserved > 0
        return has_tokens and (self.spending.can_pay(cost) or self.spending.reserved > 0)

    @property
    def cost_limit(self) -> Decimal | None:
        return self.spending.limit

    @property
    def cost(self) -> Decimal:
        """What was really paid, by all who spend together."""
        return self.spending.used

    @property
    def remaining(self) -> int:
        """Tokens that nobody has used or reserved; never below 0."""
        return max(0, self.total - self.used - self.reserved)

    @property
    def used_by_stage(self) -> dict[str, int]:
        """Tokens used, by share."""
        return {share: account.used for share, account in self._accounts.items()}

    def limit_of(self, stage: str) -> int:
        """The share of a stage in tokens, without what it may borrow."""
        return self._accounts[self._share_of(stage)].limit

    def left(self, stage: str) -> int:
        """What the stage may still reserve, with what it may borrow."""
        share = self._share_of(stage)
        if share in self._order:
            later = self._order[self._order.index(share) + 1 :]
            return max(0, self.remaining - sum(self._accounts[one].protected for one in later))
        available = self._free(share)
        if share == BORROWER:
            available += max(0, self._free(OTHER))
        elif share == OTHER and BORROWER in self._accounts:
            # What was borrowed is gone.
            available += min(0, self._free(BORROWER))
        return max(0, min(available, self.remaining))

    def can_afford(self, stage: str, tokens: int, *, cost: Decimal = _NOTHING) -> bool:
        """Whether a reservation would be given."""
        return tokens <= self.left(stage) and self.spending.can_pay(cost)

    def provide(self, stage: str, tokens: int) -> None:
        """Make room for a question of so many tokens, where the budget grows; elsewhere nothing happens."""
        if not self._grows:
            return
        account = self._accounts[self._share_of(stage)]
        account.provided += tokens
        more = max(0, account.provided - account.limit)
        account.limit += more
        self.total += more

    def preflight(self, planned: Mapping[str, int], *, cost: Decimal | None = None) -> Preflight:
        """Whether tokens planned by stage, and their cost, fit into what is left; nothing is reserved."""
        by_share: dict[str, int] = {}
        for stage, tokens in planned.items():
            share = self._share_of(stage)
            by_share[share] = by_share.get(share, 0) + tokens
        free = {
            share: self.left(share) if share in self._order else max(0, self._free(share)) for share in self._accounts
        }
        over = {share: tokens - free[share] for share, tokens in by_share.items() if tokens > free[share]}
        if BORROWER in over and BORROWER not in self._order:
            over[BORROWER] -= max(0, free[OTHER] - by_share.get(OTHER, 0))
        return Preflight(
            tokens=sum(planned.values()),
            token_limit=self.remaining,
            cost=cost,
            cost_limit=self.spending.left,
            short={share: tokens for share, tokens in over.items() if tokens > 0},
        )

    def reserve(self, stage: str, tokens: int, *, cost: Decimal = _NOTHING) -> Reservation:
        """Set aside what a call may use at most; raises `BudgetSpent` when that is more than is left."""
        if tokens < 0 or cost < 0:
            raise ValueError("a call cannot need less than nothing")
        if not self.can_afford(stage, tokens, cost=cost):
            raise self.refusal(stage, tokens, cost=cost)
        self._accounts[self._share_of(stage)].reserved += tokens
        self.reserved += tokens
        self.spending.reserve(cost)
        return Reservation(self, stage, tokens, cost)

    def refusal(self, stage: str, tokens: int, *, cost: Decimal = _NOTHING) -> BudgetSpent:
        """Why a reservation would not be given."""
        left = self.left(stage)
        cost_left = self.spending.left
        if tokens > left:
            message = (
                f"A call of {stage} may take {tokens:,} tokens, and {left:,} of the {self.total:,} are left for it: "
                "raise the token limit, or make chunks smaller."
            )
        else:
            message = f"The call may cost {cost} US dollars and {cost_left} are left: raise the cost limit."
        self._warn(f"{stage} refused", stage, message)
        return BudgetSpent(message, stage=stage, needed=tokens, left=left, cost=cost, cost_left=cost_left)

    def record_usage(self, stage: str, tokens: int, *, cost: Decimal = _NOTHING) -> None:
        """Count what was used without a reservation."""
        Reservation(self, stage, 0, _NOTHING).settle(tokens, cost=cost)

    def _free(self, share: str) -> int:
        account = self._accounts[share]
        return account.limit - account.used - account.reserved

    def _share_of(self, stage: str) -> str:
        return stage if stage in self._accounts else OTHER

    def _settle(self, reservation: Reservation, tokens: int, cost: Decimal) -> None:
        account = self._accounts[self._share_of(reservation.stage)]
        account.reserved -= reservation.tokens
        account.used += tokens
        self.reserved -= reservation.tokens
        self.used += tokens
        if self._grows:
            # A server that overlooks the bound of its reply must not end a document that nobody limited.
            more = max(0, tokens - reservation.tokens)
            account.limit += more
            account.provided += more
            self.total += more
        self.spending.settle(reservation.cost, cost)
        self._warn_near_limits(self._share_of(reservation.stage))

    def _warn_near_limits(self, share: str) -> None:
        account = self._accounts[share]
        if account.used >= WARN_AT * account.limit:
            self._warn(share, share, f"{share} has used {account.used} of its {account.limit} tokens")
        if self.used >= WARN_AT * self.total:
            self._warn("total", "total", f"{self.used} of {self.total} tokens are used")
        if self.cost_limit is not None and self.cost >= WARN_AT * self.cost_limit:
            self._warn("cost", "cost", f"{self.cost} of {self.cost_limit} US dollars are spent")

    def _warn(self, occasion: str, stage: str, message: str) -> None:
        if occasion in self._warned:
            return
        self._warned.add(occasion)
        account = self._accounts.get(stage)
        used, limit = (self.used, self.total) if account is None else (account.used, account.limit)
        emit(self._listener, BudgetWarning(stage=stage, used=used, limit=limit, message=message))
