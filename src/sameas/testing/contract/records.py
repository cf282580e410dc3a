"""Records that are looked at, one by its identity, many by filters and pages; and records that go: forgotten when
somebody asks, pruned when they have expired.
"""

from __future__ import annotations

from sameas.once.record import About, Accepted, Lost, Outcome, State
from sameas.once.store import Query, Selection
from sameas.testing.examined import Examined


class ReadContract(Examined):
    """Looking without touching."""

    def test_reading_changes_nothing(self) -> None:
        assert self.read() is None
        lease = self.hold(self.request())
        held = self.read()
        assert held is not None
        assert (held.state, held.outcome, held.completed_at) == (State.HELD, None, None)
        assert isinstance(self.complete(lease), Accepted)
        done = self.read()
        assert done == self.read()
        assert done is not None
        assert done.created_at == held.created_at

    def test_expired_record_is_not_read(self) -> None:
        lease = self.hold(self.request())
        self.complete(lease, retention=self.lease)
        self.pass_lease()
        assert self.read() is None


class FindContract(Examined):
    """Listing with filters and pages."""

    def fill(self) -> list[str]:
        keys = [f"key-{number:02}" for number in range(12)]
        for number, key in enumerate(keys):
            about = About(tags=(f"tag{number % 3}",), route=f"/r{number % 2}", method="POST" if number % 2 else "PUT")
            lease = self.hold(self.request(key, lease=30, scope=f"s{number % 2}", tenant=f"t{number % 2}", about=about))
            if number % 3 == 0:
                self.complete(lease, Outcome(b"x" * 10, "text/plain", {"status": 200 + number}))
            self.advance(0.002)
        return keys

    def test_pages_hold_every_record_once_newest_first(self) -> None:
        if not self.capabilities.searchable:
            return
        keys = self.fill()
        found: list[str] = []
        after = None
        for _ in range(10):
            page = self.store.find(Query(limit=5, after=after))
            found += [record.identity.key for record in page.records]
            after = page.next
            if after is None:
                break
        assert found == keys[::-1]

    def test_every_filter_narrows(self) -> None:
        if not self.capabilities.searchable:
            return
        keys = self.fill()
        whole = self.store.find(Query()).records
        moment = whole[5].created_at
        for query, expected in (
            (Query(tenant="t0"), lambda number: number % 2 == 0),
            (Query(scope="s1"), lambda number: number % 2 == 1),
            (Query(tag="tag1"), lambda number: number % 3 == 1),
            (Query(route="/r0"), lambda number: number % 2 == 0),
            (Query(method="POST"), lambda number: number % 2 == 1),
            (Query(state=State.DONE), lambda number: number % 3 == 0),
            (Query(state=State.HELD), lambda number: number % 3 != 0),
            (Query(status=203), lambda number: number == 3),
            (Query(key_prefix="key-1"), lambda number: number >= 10),
            (Query(created_from=moment), lambda number: number >= 6),
            (Query(created_before=moment), lambda number: number < 6),
            (Query(tenant="t0", state=State.DONE, created_before=moment), lambda number: number == 0),
            (Query(tenant="nobody"), lambda number: False),
        ):
            found = [record.identity.key for record in self.store.find(query).records]
            assert found == [key for number, key in enumerate(keys) if expected(number)][::-1], query

    def test_listing_leaves_the_bytes_out(self) -> None:
        if not self.capabilities.searchable:
            return
        self.fill()
        done = self.store.find(Query(state=State.DONE)).records[0]
        assert done.outcome is not None
        assert (done.outcome.data, done.outcome.meta["status"]) == (b"", 209)


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
