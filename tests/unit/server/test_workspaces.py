"""Spaces that are let go close their connections to the database, and not while somebody works in one."""

import gc
import os

import pytest

from sameas import open_async_store
from sameas.server.tenants import workspaces
from sameas.server.tenants.workspaces import Workspaces


def open_files(path):
    """How often this process has a file open."""
    found = 0
    for number in os.listdir("/proc/self/fd"):
        try:
            found += os.readlink(f"/proc/self/fd/{number}") == str(path)
        except FileNotFoundError:
            continue
    return found


@pytest.mark.anyio
async def test_connections_of_a_space_that_was_let_go_are_closed_when_nobody_works_in_it(tmp_path, monkeypatch):
    monkeypatch.setattr(workspaces, "_KEPT", 1)
    path = tmp_path / "tables.db"
    async with open_async_store("memory://") as store:
        spaces = Workspaces(tmp_path, store, database=f"sqlite:///{path}", lease=1.0)
        working = spaces.get("one")
        working.remove_ontology("https://example.org/none")
        assert open_files(path) == 1
        spaces.get("other")
        # It was let go, and goes on for whoever has it.
        working.remove_ontology("https://example.org/none")
        assert open_files(path) >= 1
        before = open_files(path)
        del working
        gc.collect()
        spaces.get("other")
        assert open_files(path) == before - 1
        last = spaces.get("third")
        last.remove_ontology("https://example.org/none")
        spaces.close()
        del last
        gc.collect()
        spaces.close()
        assert open_files(path) == 0
