"""The limiters of the accounts that a program uses: one for each, whichever of its models is asked.

Rule: an account is a provider at an address. Models of one account share its limits and its circuit; what happens to
one account does not keep anybody from another.
"""

from sameas.llm.address import ModelAddress
from sameas.llm.limiter import CentralRateLimiterService
from sameas.llm.windows import RateLimits


class AccountLimiters:
    """Limiters with equal limits, each made when its account is first named."""

    def __init__(self, limits: RateLimits | None = None) -> None:
        self._limits = limits or RateLimits()
        self._limiters: dict[tuple[str, str], CentralRateLimiterService] = {}

    def of(self, model: ModelAddress) -> CentralRateLimiterService:
        """The limiter of a model's account."""
        account = (model.provider, model.url)
        if account not in self._limiters:
            self._limiters[account] = CentralRateLimiterService(self._limits)
        return self._limiters[account]
