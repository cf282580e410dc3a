"""Records that go: forgotten when somebody asks, pruned when they have expired."""

from __future__ import annotations

from sameas.once.record import About, Accepted, Lost
from sameas.once.store import Query, Selection
from sameas.testing.examined import Examined


class ForgetContract(Examined):
    """Removing records, whoever holds them."""

    def test_forgotten_result_is_done_again(self) -> None:
        lease = self.finish()
        assert isinstance(self.store.forget(lease.identity), Accepted)
        assert self.store.forget(lease.identity) == Lost()
        assert self.hold(self.request(attempt="a2")).fence > lease.fence

    def test_forget_by_scope_tenant_and_tag(self) -> None:
        if not self.capabilities.searchable:
            return
        for tenant in ("t1", "t2"):
            for scope in ("s1", "s2"):
                about = About(tags=(f"{tenant}:{scope}", "all"))
                self.hold(self.request(tenant=tenant, scope=scope, about=about))
        assert self.store.forget_where(Selection(tag="t1:s1")) == 1
        assert self.store.forget_where(Selection(tag="t1:s")) == 0
        assert self.store.forget_where(Selection(tenant="t1", scope="s2")) == 1
        assert self.store.forget_where(Selection(tenant="t1")) == 0
        assert self.store.forget_where(Selection(scope="s1", tag="all")) == 1
        assert self.read(scope="s2", tenant="t2") is not None
        assert self.store.forget_where(Selection(tag="all")) == 1


class PruneContract(Examined):
    """Deleting what has expired."""

    def test_prune_deletes_expired_records_in_batches_and_nothing_else(self) -> None:
        for number in range(7):
            self.complete(self.hold(self.request(f"old{number}", attempt=f"o{number}")), retention=self.lease)
        self.finish("done")
        self.hold(self.request("held", attempt="h", lease=30))
        self.pass_lease()
        gone = [self.store.prune(3), self.store.prune(3), self.store.prune(3), self.store.prune(3)]
        assert gone in ([3, 3, 1, 0], [0, 0, 0, 0]), gone  # a store with a native expiry has nothing left to prune
        assert self.read("done") is not None
        assert self.read("held") is not None
        assert self.read("old1") is None

    def test_what_a_prune_would_delete_can_be_listed_first(self) -> None:
        if not self.capabilities.searchable:
            return
        for key in ("a", "b"):
            self.complete(self.hold(self.request(key)), retention=self.lease)
        self.complete(self.hold(self.request("later")))
        assert not self.store.find(Query(expired=True)).records
        self.pass_lease()
        listed = {record.identity.key for record in self.store.find(Query(expired=True)).records}
        assert listed <= {"a", "b"}
        # A store with a native expiry deletes them when it likes.
        pruned = self.store.prune()
        assert pruned in (0, 2)
        assert not pruned or (len(listed) == pruned and not self.store.find(Query(expired=True)).records)
        assert [record.identity.key for record in self.store.find(Query()).records] == ["later"]
