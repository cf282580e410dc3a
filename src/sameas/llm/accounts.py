"""The limiters of the accounts that a program uses: one for each, whichever of its models is asked.

Rule: an account is a provider at an address. Models of one account share its limits and its circuit; what happens to
one account does not keep anybody from another. Where records live in Redis, every program that uses it shares them. A
server of one's own has no limit by the minute, and answers one call after another unless somebody knows better.
"""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from sameas.identity.canonical import sha256_hex
from sameas.llm.account import RateLimits
from sameas.llm.address import ModelAddress
from sameas.llm.limiter import CentralRateLimiterService
from sameas.once.store import Backend

if TYPE_CHECKING:
    from sameas.stores.redis import RedisBackend

# No model answers as often, or says as much, in a minute.
UNLIMITED = RateLimits(requests_per_minute=1_000_000, tokens_per_minute=1_000_000_000, max_concurrent=1)


def usual_limits(model: ModelAddress) -> RateLimits:
    """The limits of a model's account, as far as nobody said otherwise."""
    return UNLIMITED if model.is_own else RateLimits()


class AccountLimiters:
    """Limiters, each made when its account is first named, with limits for all or by account. They belong to one event
    loop.
    """

    def __init__(
        self,
        limits: RateLimits | Callable[[ModelAddress], RateLimits] | None = None,
        *,
        backend: Backend | None = None,
    ) -> None:
        self._limits = limits or RateLimits()
        self._place = None if backend is None else backend.place
        self._limiters: dict[str, CentralRateLimiterService] = {}

    def of(self, model: ModelAddress) -> CentralRateLimiterService:
        """The limiter of a model's account."""
        account = f"{model.provider}:{sha256_hex(model.url.encode())[:16]}" if model.url else model.provider
        if account not in self._limiters:
            limits = self._limits if isinstance(self._limits, RateLimits) else self._limits(model)
            self._limiters[account] = self._made(account, limits)
        return self._limiters[account]

    def all(self) -> dict[str, CentralRateLimiterService]:
        """The limiters that were made, by account."""
        return dict(self._limiters)

    def _made(self, account: str, limits: RateLimits) -> CentralRateLimiterService:
        # Whoever has a store on Redis has loaded it; others need not.
        redis = sys.modules.get("sameas.stores.redis")
        if redis is None or not isinstance(self._place, redis.RedisBackend):
            return CentralRateLimiterService(limits)
        from sameas.llm.redis_account import RedisAccount

        return CentralRateLimiterService(
            account=RedisAccount(cast("RedisBackend", self._place), limits, account=account)
        )
