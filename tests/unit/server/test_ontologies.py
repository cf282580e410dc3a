"""Registries in the store: whole or not at all, whatever happens at the same time."""

import asyncio
import shutil
from contextlib import asynccontextmanager

import pytest

from sameas import AsyncEngine, open_async_store
from sameas.once.errors import StoreUnavailable
from sameas.server.tenants.broadcast import AppendLog
from sameas.server.tenants.ontologies import ContentGone, Ontologies
from sameas.server.tenants.ontology_files import OntologyFiles, files_of
from sameas.server.tenants.ontology_files import describe as describe_ontology
from tests.unit.server.house import TURTLE

pytestmark = pytest.mark.anyio
CHANGED = TURTLE.replace(b'"sodium"@en', b'"soda"@en')


@asynccontextmanager
async def registries(folder, count):
    """As many processes with the same store."""
    stores = [open_async_store(f"sqlite:///{folder}/ontologies.db") for _ in range(count)]
    try:
        yield [Ontologies(AsyncEngine(store), folder=None, cache=folder / "cache") for store in stores]
    finally:
        for store in stores:
            await store.close()


async def put(registry, data, nonce):
    return await registry.put("t", "co", data, media_type="text/turtle", audit={}, nonce=nonce)


async def test_of_two_who_ask_at_once_after_a_start_both_find_the_present_version(tmp_path):
    async with registries(tmp_path, 2) as (one, other):
        await put(one, TURTLE, "1")
        entry = (await put(one, CHANGED, "2")).entry
        found = await asyncio.gather(*(other.find("t", "co") for _ in range(5)))
        assert {registered and registered.entry.version for registered in found} == {entry.version}


async def test_a_registry_that_could_be_read_in_part_only_is_not_taken_for_whole(tmp_path, monkeypatch):
    async with registries(tmp_path, 2) as (one, other):
        await put(one, TURTLE, "1")
        entry = (await put(one, CHANGED, "2")).entry
        read = AppendLog.read

        async def broken(append_log, number):
            if number == 2:
                raise StoreUnavailable("gone")
            return await read(append_log, number)

        monkeypatch.setattr(AppendLog, "read", broken)
        with pytest.raises(StoreUnavailable):
            await other.find("t", "co")
        monkeypatch.undo()
        assert (await other.find("t", "co")).entry.version == entry.version


async def test_content_that_was_replaced_elsewhere_is_said_to_be_gone_and_found_anew(tmp_path):
    async with registries(tmp_path, 2) as (one, other):
        await put(one, TURTLE, "1")
        old = await other.find("t", "co")
        entry = (await put(one, CHANGED, "2")).entry
        with pytest.raises(ContentGone) as gone:
            await other.load(old)
        await other.refresh(gone.value.owner)
        new = await other.find("t", "co")
        assert (await other.load(new)).version == new.entry.version == entry.version


async def test_content_that_another_puts_again_while_it_is_dropped_stays(tmp_path, monkeypatch):
    async with registries(tmp_path, 2) as (one, other):
        first = (await put(one, TURTLE, "1")).entry
        forget = AsyncEngine.forget

        async def slow(engine, *names, **more):
            monkeypatch.undo()
            await put(other, TURTLE, "3")
            return await forget(engine, *names, **more)

        monkeypatch.setattr(AsyncEngine, "forget", slow)
        await put(one, CHANGED, "2")
        for registry in (one, other):
            await registry.refresh("t")
            found = await registry.find("t", "co")
            assert (await registry.content(found), found.entry.version) == (TURTLE, first.version)


async def test_files_and_a_folder_that_go_while_they_are_listed_are_not_listed(tmp_path):
    folder = tmp_path / "ontologies"
    folder.mkdir()
    for name in ("one", "two", "three"):
        (folder / f"{name}.ttl").write_bytes(TURTLE)

    async def describe(source):
        if source.file.endswith("one.ttl"):
            # The first in the order of names is there; the next goes while it is read.
            (folder / "two.ttl").unlink(missing_ok=True)
        return await asyncio.to_thread(describe_ontology, source, cache=tmp_path / "cache")

    files = OntologyFiles(lambda: files_of(folder), describe, source="folder")
    assert sorted(await files.all()) == ["one", "three"]
    assert files_of(tmp_path / "gone") == {}
    listed = files_of(folder)
    gone = OntologyFiles(lambda: listed, describe, source="folder")
    shutil.rmtree(folder)
    assert await gone.all() == {}
