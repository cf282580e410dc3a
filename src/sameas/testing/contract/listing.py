"""Looking at records without touching them: one by its identity, many by filters and pages."""

from __future__ import annotations

from sameas.once.record import About, Accepted, Outcome, State
from sameas.once.store import Query
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
