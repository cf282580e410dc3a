"""The contract of a store, as a suite: what `contract` asks, run for every store, for threads and for tasks.

    from sameas.testing import StoreConformance

    class TestMyStore(StoreConformance):
        def open(self):
            return Store(MyBackend())

A store whose clock can be moved overrides `advance`; for the others the suite waits for real, with short leases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sameas.once.errors import StoreClosed
from sameas.once.record import Accepted, Lost
from sameas.testing.contract import (
    ClaimContract,
    CompleteContract,
    FailContract,
    FindContract,
    ForgetContract,
    PruneContract,
    ReadContract,
    ReleaseContract,
    RenewContract,
)
from sameas.testing.examined import OTHER, OUTCOME, replayed


class StoreConformance(
    ClaimContract,
    CompleteContract,
    FailContract,
    RenewContract,
    ReleaseContract,
    ForgetContract,
    ReadContract,
    FindContract,
    PruneContract,
):
    """Everything a store must do."""

    def test_one_result_is_accepted_whoever_hands_in_first(self) -> None:
        old = self.hold(self.request())
        self.pass_lease()
        new = self.hold(self.request(attempt="a2"))
        self.pass_lease()
        newest = self.hold(self.request(attempt="a3", lease=30))
        assert self.complete(new, OTHER) == Lost()
        assert isinstance(self.complete(newest), Accepted)
        assert self.complete(old, OTHER) == Lost()
        assert self.store.release(new) == Lost()
        assert self.renew(old) == Lost()
        assert replayed(self.store.claim(self.request(attempt="a4"))).outcome == OUTCOME

    def test_a_closed_store_answers_nobody_and_can_be_closed_again(self) -> None:
        lease = self.hold(self.request())
        self.finish("done")
        self.store.close_store()
        self.store.close_store()
        asked: tuple[Callable[[], object], ...] = (
            lambda: self.store.claim(self.request("new")),
            lambda: self.store.claim(self.request("done")),
            lambda: self.read("done"),
            lambda: self.complete(lease),
        )
        for ask in asked:
            try:
                answer = ask()
            except StoreClosed:
                continue
            raise AssertionError(f"a closed store answered {answer}")


def contract_tests(suite: type[StoreConformance]) -> Iterator[str]:
    """The names of a suite's tests, in the order they are written."""
    seen = set()
    for contract in reversed(suite.__mro__):
        for name in vars(contract):
            if name.startswith("test_") and name not in seen:
                seen.add(name)
                yield name


def examine(suite: type[StoreConformance]) -> dict[str, Exception]:
    """Run a suite without pytest: what failed, by the name of the test."""
    failures: dict[str, Exception] = {}
    for name in contract_tests(suite):
        examined = suite()
        try:
            examined.setup_method()
            try:
                getattr(examined, name)()
            finally:
                examined.teardown_method()
        except Exception as failure:
            failures[name] = failure
    return failures
