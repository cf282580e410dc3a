"""The limiters of the accounts that a program uses: one for each, whichever of its models is asked.

Rule: an account is a provider at an address. Models of one account share its limits and its circuit; what happens to
one account does not keep anybody from another. Where records live in Redis, every program that uses it shares them.
"""

import sys

from sameas.identity.canonical import sha256_hex
from sameas.llm.address import ModelAddress
from sameas.llm.circuit import CircuitBreaker
from sameas.llm.limiter import CentralRateLimiterService
from sameas.llm.windows import RateLimits
from sameas.once.store import Backend


class AccountLimiters:
    """Limiters with equal limits, each made when its account is first named. They belong to one event loop."""

    def __init__(self, limits: RateLimits | None = None, *, backend: Backend | None = None) -> None:
        self._limits = limits or RateLimits()
        self._place = None if backend is None else backend.place
        self._limiters: dict[str, CentralRateLimiterService] = {}

    def of(self, model: ModelAddress) -> CentralRateLimiterService:
        """The limiter of a model's account."""
        account = f"{model.provider}:{sha256_hex(model.url.encode())[:16]}" if model.url else model.provider
        if account not in self._limiters:
            self._limiters[account] = self._made(account)
        return self._limiters[account]

    def _made(self, account: str) -> CentralRateLimiterService:
        # Whoever has a store on Redis has loaded it; others need not.
        redis = sys.modules.get("sameas.stores.redis")
        if redis is None or not isinstance(self._place, redis.RedisBackend):
            return CentralRateLimiterService(self._limits)
        from sameas.llm.redis_windows import RedisKeeper, RedisWindows

        return CentralRateLimiterService(
            windows=RedisWindows(self._place, self._limits, account=account),
            circuit=CircuitBreaker(keeper=RedisKeeper(self._place, account=account)),
        )
