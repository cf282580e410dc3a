"""The ontologies of each tenant, and those that are shared by an explicit choice of their owner.

Rule: a tenant's registry is a chain of changes in the store, so that every process has the same one. What is put is
parsed first; equal versions change nothing. A tenant sees its own, then the shared ones, then (in a deployment of one
tenant) the files of the home folder. Content is kept by its digest, apart for each tenant.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from sameas.extraction.metadata import instant
from sameas.once.async_engine import AsyncEngine
from sameas.once.codec import PLAIN, unpack
from sameas.once.record import State
from sameas.ontology.load import load_ontology, read_ontology
from sameas.ontology.model import Ontology
from sameas.ontology.notation import EXTENSIONS
from sameas.server.chain import Chain
from sameas.server.wire import OntologyEntry, is_ontology_id

# No tenant of a service has this name: theirs are UUIDs, and a library's tenant may not begin so here.
SHARED = "~shared"
_LOG_SCOPE = "sameas.ontology-log"
_CONTENT_SCOPE = "sameas.ontology-content"
_PARSED_KEPT = 32


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a registry: an ontology was put, or deleted."""

    id: str
    entry: OntologyEntry | None
    digest: str = ""
    audit: Mapping[str, Any] = {}
    nonce: str = ""


class Registered(NamedTuple):
    """An ontology that can be used: its entry, whose it is, and where its bytes are."""

    entry: OntologyEntry
    tenant: str
    digest: str
    file: Path | None = None


class ContentGone(LookupError):
    """The content of a registered ontology is gone: it was put anew or deleted meanwhile."""

    def __init__(self, owner: str) -> None:
        self.owner = owner
        super().__init__("the content of the ontology is gone; ask again, or put it again")


class Ontologies:
    """The registries of all tenants. Lives in the workshop's loop; `known` may be called from anywhere."""

    def __init__(
        self,
        engine: AsyncEngine,
        *,
        folder: Path | None,
        cache: Path,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._engine = engine
        self._folder = folder
        self._cache = cache
        self._clock = clock
        self._places: dict[str, int] = {}
        self._views: dict[str, dict[str, Registered]] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        # By name: a file of the folder as it was when it was last read.
        self._files: dict[str, tuple[tuple[int, int], Registered]] = {}
        self._parsed: OrderedDict[tuple[str, str], Ontology] = OrderedDict()

    def known(self, tenant: str, ontology_id: str) -> Registered | None:
        """What this process has in memory; None also where it has not looked yet."""
        for owner in (tenant, SHARED):
            found = self._views.get(owner, {}).get(ontology_id)
            if found is not None:
                return found
        return self._unchanged_file(ontology_id)

    async def find(self, tenant: str, ontology_id: str) -> Registered | None:
        """The ontology that an id stands for, for a tenant."""
        if not is_ontology_id(ontology_id):
            return None
        for owner in (tenant, SHARED):
            if owner not in self._views:
                await self.refresh(owner)
        found = self.known(tenant, ontology_id)
        if found is None and self._folder is not None:
            found = await asyncio.to_thread(self._in_folder, ontology_id)
        return found

    async def list(self, tenant: str) -> tuple[OntologyEntry, ...]:
        for owner in (tenant, SHARED):
            await self.refresh(owner)
        merged = {**await asyncio.to_thread(self._whole_folder)}
        merged |= {name: one.entry for name, one in self._views[SHARED].items()}
        merged |= {name: one.entry for name, one in self._views[tenant].items()}
        return tuple(merged[name] for name in sorted(merged))

    async def load(self, found: Registered) -> Ontology:
        """The ontology itself, parsed once for each version."""
        place = (found.tenant, found.digest)
        known = self._parsed.get(place)
        if known is None:
            if found.file is not None:
                try:
                    known = await asyncio.to_thread(load_ontology, found.file, cache_dir=self._cache)
                except FileNotFoundError:
                    raise ContentGone(SHARED) from None
            else:
                data = await self.content(found)
                known = await asyncio.to_thread(self._parse, data)
            self._parsed[place] = known
            while len(self._parsed) > _PARSED_KEPT:
                self._parsed.popitem(last=False)
        self._parsed.move_to_end(place)
        return known

    async def content(self, found: Registered) -> bytes:
        """The bytes as they were put."""
        if found.file is not None:
            try:
                return await asyncio.to_thread(found.file.read_bytes)
            except FileNotFoundError:
                raise ContentGone(SHARED) from None
        record = await self._engine.read(
            _CONTENT_SCOPE, found.digest, tenant=_stored(found.tenant), namespace="content"
        )
        if record is None or record.state is not State.DONE or record.outcome is None:
            raise ContentGone(found.tenant)
        data: bytes = unpack(record.outcome, PLAIN)
        return data

    def check(self, data: bytes) -> Ontology:
        """What the bytes say, or an OntologyError that says what is wrong with them."""
        return self._parse(data)

    async def put(
        self, owner: str, ontology_id: str, data: bytes, *, media_type: str, audit: Mapping[str, Any], nonce: str
    ) -> tuple[OntologyEntry, OntologyEntry | None]:
        """Register the ontology; gives its entry and the one before, the same where nothing changed."""
        ontology = await asyncio.to_thread(self._parse, data)
        digest = hashlib.sha256(data).hexdigest()
        entry = OntologyEntry(
            id=ontology_id,
            version=ontology.version,
            iri=ontology.iri,
            label=ontology.titles[0].value if ontology.titles else "",
            classes=len(ontology.classes),
            properties=len(ontology.properties),
            media_type=media_type,
            size=len(data),
            shared=owner == SHARED,
            updated_at=instant(self._clock()),
        )
        async with self._lock(owner):
            await self._follow(owner)
            before = self._views[owner].get(ontology_id)
            if before is not None and before.entry.version == entry.version:
                return before.entry, before.entry
            await self._keep_content(owner, digest, data, audit=audit)
            change = Change(id=ontology_id, entry=entry, digest=digest, audit=audit, nonce=nonce)
            before = await self._append(owner, change)
            await self._drop_content(owner, before)
        return entry, None if before is None else before.entry

    async def delete(
        self, owner: str, ontology_id: str, *, audit: Mapping[str, Any], nonce: str
    ) -> OntologyEntry | None:
        """Take it out of the registry; gives what it was, None where it was not there."""
        async with self._lock(owner):
            await self._follow(owner)
            if ontology_id not in self._views[owner]:
                return None
            before = await self._append(owner, Change(id=ontology_id, entry=None, audit=audit, nonce=nonce))
            await self._drop_content(owner, before)
        return None if before is None else before.entry

    async def refresh(self, owner: str) -> None:
        """Read what was added to a registry."""
        async with self._lock(owner):
            await self._follow(owner)

    def has(self, owner: str) -> bool:
        """Whether this process holds the registry of a tenant in memory."""
        return owner in self._views

    async def let_go(self, owner: str | None = None) -> None:
        """Forget what is in memory of a registry, or of all: it is read again before it is next used."""
        for name in list(self._views) if owner is None else [owner]:
            async with self._lock(name):
                self._views.pop(name, None)
                self._places.pop(name, None)

    async def _append(self, owner: str, change: Change) -> Registered | None:
        """Under the lock. Add a change at the end, wherever that is by then; gives what it replaced."""
        while True:
            number = self._places[owner] + 1
            there = await self._chain(owner).add(change, number=number)
            before = self._views[owner].get(change.id)
            self._apply(owner, number, there)
            if there.nonce == change.nonce:
                return before

    async def _follow(self, owner: str) -> None:
        chain, number = self._chain(owner), self._places.get(owner, 0)
        view = dict(self._views.get(owner, {}))
        while (change := await chain.read(number + 1)) is not None:
            number += 1
            _change(view, owner, change)
        # Only when it is whole: half a registry would deny what is there, or give what was before.
        self._views[owner], self._places[owner] = view, number

    def _apply(self, owner: str, number: int, change: Change) -> None:
        # A new dictionary each time: other threads read the one that they have.
        view = dict(self._views[owner])
        _change(view, owner, change)
        self._views[owner], self._places[owner] = view, number

    async def _drop_content(self, owner: str, before: Registered | None) -> None:
        """Under the lock."""
        if before is None or self._is_used(owner, before.digest):
            return
        try:
            data = await self.content(before)
        except ContentGone:
            return
        await self._engine.forget(_CONTENT_SCOPE, before.digest, tenant=_stored(owner), namespace="content")
        await self._follow(owner)
        if self._is_used(owner, before.digest):
            # Another process has put the very same meanwhile, and found it there.
            await self._keep_content(owner, before.digest, data, audit={})

    async def _keep_content(self, owner: str, digest: str, data: bytes, *, audit: Mapping[str, Any]) -> None:
        await self._engine.run(
            lambda _: data,
            scope=_CONTENT_SCOPE,
            key=digest,
            tenant=_stored(owner),
            namespace="content",
            retention=None,
            audit=audit,
        )

    def _is_used(self, owner: str, digest: str) -> bool:
        return any(one.digest == digest for one in self._views[owner].values())

    def _chain(self, owner: str) -> Chain[Change]:
        return Chain(self._engine, Change, scope=_LOG_SCOPE, tenant=_stored(owner))

    def _lock(self, owner: str) -> asyncio.Lock:
        return self._locks.setdefault(owner, asyncio.Lock())

    def _parse(self, data: bytes) -> Ontology:
        return read_ontology(data, cache_dir=self._cache)

    def _whole_folder(self) -> dict[str, OntologyEntry]:
        found = {} if self._folder is None else {name: self._in_folder(name) for name in _files(self._folder)}
        return {name: one.entry for name, one in found.items() if one is not None}

    def _in_folder(self, name: str) -> Registered | None:
        # The name is looked for among those that are there; it never becomes part of a path.
        path = _files(self._folder).get(name) if self._folder is not None else None
        if path is None:
            return None
        about = path.stat()
        ontology = load_ontology(path, cache_dir=self._cache)
        entry = OntologyEntry(
            id=name,
            version=ontology.version,
            iri=ontology.iri,
            label=ontology.titles[0].value if ontology.titles else "",
            classes=len(ontology.classes),
            properties=len(ontology.properties),
            size=about.st_size,
            updated_at=instant(about.st_mtime),
            source="folder",
        )
        found = Registered(entry, "", f"{path}:{ontology.version}", path)
        self._files[name] = ((about.st_mtime_ns, about.st_size), found)
        return found

    def _unchanged_file(self, name: str) -> Registered | None:
        stamp, found = self._files.get(name, (None, None))
        if found is None or found.file is None:
            return None
        try:
            about = found.file.stat()
        except OSError:
            return None
        return found if stamp == (about.st_mtime_ns, about.st_size) else None


def _change(view: dict[str, Registered], owner: str, change: Change) -> None:
    if change.entry is None:
        view.pop(change.id, None)
    else:
        view[change.id] = Registered(change.entry, owner, change.digest)


def _files(folder: Path) -> dict[str, Path]:
    if not folder.is_dir():
        return {}
    paths = (path for path in sorted(folder.iterdir()) if path.suffix in EXTENSIONS and not path.name.startswith("."))
    return {path.stem: path for path in paths if path.is_file()}


def _stored(owner: str) -> str:
    """Where a registry is kept: apart from the records that a tenant may list and forget."""
    return f"~ontologies~{owner}"
