"""Spaces that are let go close their connections to the database, and not while somebody works in one."""

import gc

import pytest

from sameas import open_async_store
from sameas.once.errors import StoreUnavailable
from sameas.server.tenants import workspaces
from sameas.server.tenants.workspaces import Workspaces


@pytest.mark.anyio
async def test_connections_of_a_space_that_was_let_go_are_closed_when_nobody_works_in_it(tmp_path, monkeypatch):
    monkeypatch.setattr(workspaces, "_KEPT", 1)
    async with open_async_store("memory://") as store:
        spaces = Workspaces(tmp_path, store, database=f"sqlite:///{tmp_path}/tables.db", lease=1.0)
        working = spaces.get("one")
        spaces.get("other")
        spaces.get("other")
        # It was let go, and goes on for whoever has it.
        tables = working._tables
        assert tables.keys("") == []
        del working
        gc.collect()
        last = spaces.get("other")
        with pytest.raises(StoreUnavailable, match="was closed"):
            tables.keys("")
        last.remove_ontology("https://example.org/none")
        spaces.close()
        with pytest.raises(StoreUnavailable, match="was closed"):
            last.remove_ontology("https://example.org/none")
