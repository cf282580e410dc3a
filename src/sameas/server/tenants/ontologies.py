"""The ontologies of each tenant, and those that are shared by an explicit choice of their owner.

Rule: a tenant's registry is a chain of changes in the store, so that every process has the same one. What is put is
parsed first; equal versions change nothing. A tenant sees its own, then the shared ones, then (in a deployment of one
tenant) the files of the home folder, then the published ones: the first that knows a name says which id it stands for,
the first that has that id gives the ontology. Content is kept by its digest, apart for each tenant, and goes with the
ontology, from the store and from what each process has parsed: changes hold ids, counts and digests only.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from sameas.extraction.runs.metadata import instant
from sameas.extraction.runs.service import results_id
from sameas.identity.errors import SameasError
from sameas.once.async_engine import AsyncEngine
from sameas.once.codec import PLAIN, unpack
from sameas.once.record import State
from sameas.ontology.load import forget_ontology, load_ontology, read_ontology
from sameas.ontology.model import Ontology
from sameas.ontology.show import outline_of
from sameas.server.schemas import OntologyEntry, is_ontology_id
from sameas.server.tenants.broadcast import AppendLog
from sameas.server.tenants.ontology_files import (
    LARGE_ONTOLOGY,
    Described,
    DescribeSource,
    OntologyFiles,
    SeveralVersions,
    Source,
    describe,
    files_of,
    published_files,
)
from sameas.server.tenants.ontology_registry import Change, FormerVersions, Registered, Registry

__all__ = ["SHARED", "Change", "ContentGone", "Deleted", "Ontologies", "Put", "Registered"]

# No tenant of a service has this name: theirs are UUIDs, and a library's tenant may not begin so here.
SHARED = "~shared"
_LOG_SCOPE = "sameas.ontology-log"
_CONTENT_SCOPE = "sameas.ontology-content"
_LABEL_SCOPE = "sameas.ontology-label"
_PARSED_KEPT = 32


class Put(NamedTuple):
    """What a put did: the entry, the version before, whether the name is new, and whose results are to go."""

    entry: OntologyEntry
    old_version: str | None
    is_new_name: bool
    replaced: tuple[OntologyEntry, ...] = ()

    @property
    def has_changed(self) -> bool:
        return self.old_version != self.entry.version


class Deleted(NamedTuple):
    """What a name stood for, and whether the ontology went with it."""

    entry: OntologyEntry
    is_whole: bool


class ContentGone(SameasError, LookupError):
    """The content of a registered ontology is gone: it was put anew or deleted meanwhile."""

    def __init__(self, owner: str) -> None:
        self.owner = owner
        super().__init__("the content of the ontology is gone; ask again, or put it again")


class Ontologies:
    """The registries of all tenants. Lives in the background loop; `known` may be called from anywhere."""

    def __init__(
        self,
        engine: AsyncEngine,
        *,
        folder: Path | None,
        cache: Path,
        describe_large: DescribeSource | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._engine = engine
        self._cache = cache
        self._describe_large = describe_large
        self._clock = clock
        self._places: dict[str, int] = {}
        self._views: dict[str, Registry] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._files = [OntologyFiles(published_files, self._describe, source="published")]
        if folder is not None:
            self._files.insert(0, OntologyFiles(partial(files_of, folder), self._describe, source="folder"))
        self._parsed: OrderedDict[tuple[str, str], Ontology] = OrderedDict()

    def known(self, tenant: str, named: str) -> Registered | None:
        """What this process has in memory; None also where it has not looked yet."""
        registries = [view for owner in (tenant, SHARED) if (view := self._views.get(owner)) is not None]
        ontology_id = next((one for view in registries if (one := view.id_of(named)) is not None), None)
        file = None
        if ontology_id is None:
            file = self._known_file(named)
            if file is None:
                return None
            ontology_id = file.entry.id
        return next((view.ids[ontology_id] for view in registries if ontology_id in view.ids), file)

    async def find(self, tenant: str, named: str) -> Registered | None:
        """The ontology that an id or a name stands for, for a tenant."""
        if not is_ontology_id(named):
            return None
        for owner in (tenant, SHARED):
            if owner not in self._views:
                await self.refresh(owner)
        found = self.known(tenant, named)
        if found is None or found.entry.source == "published":
            # A file of the folder, looked at or not, comes before a published one.
            for files in self._files:
                file = await files.find(named)
                if file is not None:
                    if files is not self._files[0]:
                        await self._files[0].find(file.entry.id)
                    break
            found = self.known(tenant, named)
        return found

    async def names(self, tenant: str, ontology_id: str) -> tuple[str, ...]:
        """Every name that stands for an ontology, for a tenant."""
        # Several files with this id and other contents are named all the same.
        with suppress(SeveralVersions):
            await self.find(tenant, ontology_id)
        layers = [view.ids.get(ontology_id) for owner in (tenant, SHARED) if (view := self._views.get(owner))]
        names = {name for one in layers if one is not None for name in one.entry.names}
        names |= {name for files in self._files for name in files.names(ontology_id)}
        here = [name for name in sorted(names) if (one := self.known(tenant, name)) and one.entry.id == ontology_id]
        return tuple(here)

    async def list(self, tenant: str) -> tuple[OntologyEntry, ...]:
        """Each ontology once, with all its names."""
        for owner in (tenant, SHARED):
            await self.refresh(owner)
        entries: dict[str, OntologyEntry] = {}
        names: dict[str, str] = {}
        for layer in await self._layers(tenant):
            for entry in layer:
                entries.setdefault(entry.id, entry)
                for name in entry.names:
                    names.setdefault(name, entry.id)
        return tuple(
            msgspec.structs.replace(entries[one], names=tuple(sorted(name for name in names if names[name] == one)))
            for one in sorted(entries)
        )

    def _known_file(self, named: str) -> Registered | None:
        for place, files in enumerate(self._files):
            found = files.known(named)
            if found is not None:
                before = (earlier.known(found.entry.id) for earlier in self._files[:place])
                return next((one for one in before if one is not None), found)
            if files.has(named):
                # It comes first, and nobody has looked at it yet.
                return None
        return None

    async def _layers(self, tenant: str) -> Sequence[Sequence[OntologyEntry]]:
        """What a tenant sees, what comes first first."""
        views = [self._views[owner].ids.values() for owner in (tenant, SHARED)]
        files = [(await files.all()).values() for files in self._files]
        return [[one.entry for one in layer] for layer in (*views, *files)]

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
        data = await self._read(_CONTENT_SCOPE, found.tenant, found.digest)
        if data is None:
            raise ContentGone(found.tenant)
        return data

    async def outline(self, found: Registered) -> bytes:
        """The terms of an ontology as JSON; nobody waits for a large one but who asks for it."""
        if found.entry.size <= LARGE_ONTOLOGY:
            return await asyncio.to_thread(_outline, await self.load(found))
        if found.file is None:
            return (await self._describe(Source(data=await self.content(found), is_outlined=True))).outline
        try:
            return (await self._describe(Source(file=str(found.file), is_outlined=True))).outline
        except FileNotFoundError:
            raise ContentGone(SHARED) from None

    async def review(self, data: bytes) -> Described:
        """What the bytes say and what a reviewer would, or an OntologyError that says what is wrong with them."""
        return await self._describe(Source(data=data, is_reviewed=True))

    async def put(
        self, owner: str, name: str, data: bytes, *, media_type: str, audit: Mapping[str, Any], nonce: str
    ) -> Put:
        """Register the ontology under a name, or under its id."""
        ontology = await self._describe(Source(data=data))
        digest = hashlib.sha256(data).hexdigest()
        entry = msgspec.structs.replace(
            _entry_of(ontology),
            media_type=media_type,
            size=len(data),
            shared=owner == SHARED,
            updated_at=instant(self._clock()),
        )
        async with self._lock(owner):
            try:
                return await self._register(owner, name, data, entry, digest, audit=audit, nonce=nonce)
            finally:
                # Content that was not kept after all is not kept parsed either.
                await self._forget_parsed(owner, {digest})

    async def _register(
        self,
        owner: str,
        name: str,
        data: bytes,
        entry: OntologyEntry,
        digest: str,
        *,
        audit: Mapping[str, Any],
        nonce: str,
    ) -> Put:
        """Under the lock."""
        await self._follow(owner)
        present = self._views[owner].ids.get(entry.id)
        if present is not None and present.entry.version == entry.version:
            if self._views[owner].find(name) is present:
                return Put(present.entry, entry.version, is_new_name=False)
            # Another name for what is there.
            entry, digest = present.entry, present.digest
        self._views[owner].check(name, entry.id)
        if present is not None and present.entry.version != entry.version:
            await self._keep_former(owner, present)
        await self._keep_content(owner, digest, data, label=entry.label, audit=audit)
        unsaid = msgspec.structs.replace(entry, label="")
        before = await self._append(owner, Change(id=name, entry=unsaid, digest=digest, audit=audit, nonce=nonce))
        after = self._views[owner]
        gone = _gone(before, after, of=(before.id_of(name), entry.id))
        for one in gone:
            await self._drop_content(owner, one)
            if one.entry.id not in after.ids:
                await self.former(owner).drop(one.entry.id)
        named = before.find(name) or before.ids.get(entry.id)
        return Put(
            after.ids[entry.id].entry if entry.id in after.ids else entry,
            None if named is None else named.entry.version,
            is_new_name=before.find(name) is None,
            replaced=tuple(one.entry for one in gone),
        )

    async def delete(self, owner: str, named: str, *, audit: Mapping[str, Any], nonce: str) -> Deleted | None:
        """Take a name out of the registry, or an ontology with all its names; None where there is neither."""
        async with self._lock(owner):
            await self._follow(owner)
            found = self._views[owner].find(named)
            if found is None:
                return None
            whole = named == found.entry.id
            change = Change(id=named, entry=None, audit=audit, nonce=nonce, whole=whole)
            before = await self._append(owner, change)
            gone = _gone(before, self._views[owner], of=(found.entry.id,))
            for one in gone:
                await self._drop_content(owner, one)
                await self.former(owner).drop(one.entry.id)
        return Deleted(found.entry, is_whole=bool(gone))

    async def preview(self, owner: str, name: str, data: bytes) -> Put:
        """What `put` would do, without doing it."""
        ontology = await self._describe(Source(data=data))
        entry = _entry_of(ontology)
        await self.refresh(owner)
        before = self._views[owner]
        before.check(name, entry.id)
        after = Registry(before)
        after.apply(Change(id=name, entry=entry), owner=owner)
        gone = _gone(before, after, of=(before.id_of(name), entry.id))
        named = before.find(name) or before.ids.get(entry.id)
        return Put(
            entry,
            None if named is None else named.entry.version,
            is_new_name=before.find(name) is None,
            replaced=tuple(one.entry for one in gone),
        )

    def former(self, owner: str) -> FormerVersions:
        """The versions of an owner's ontologies that were replaced."""
        return FormerVersions(self._engine, _stored(owner))

    async def compare(self, before: bytes, after: bytes) -> Described:
        """What the second says, and what has changed since the first."""
        return await self._describe(Source(data=after, before=before))

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

    async def _append(self, owner: str, change: Change) -> Registry:
        """Under the lock. Add a change at the end, wherever that is by then; gives the registry before it."""
        while True:
            number = self._places[owner] + 1
            there = await self._append_log(owner).add(change, number=number)
            before = self._views[owner]
            # A new one each time: other threads read the one that they have.
            view = Registry(before)
            view.apply(await self._labelled(owner, there), owner=owner)
            self._views[owner], self._places[owner] = view, number
            await self._forget_parsed(owner, {one.digest for one in before.ids.values()})
            if there.nonce == change.nonce:
                return before

    async def _follow(self, owner: str) -> None:
        append_log, number = self._append_log(owner), self._places.get(owner, 0)
        view = Registry(self._views.get(owner))
        seen = {one.digest for one in view.ids.values()}
        while (change := await append_log.read(number + 1)) is not None:
            number += 1
            seen.add(change.digest)
            view.apply(await self._labelled(owner, change), owner=owner)
        # Only when it is whole: half a registry would deny what is there, or give what was before.
        self._views[owner], self._places[owner] = view, number
        await self._forget_parsed(owner, seen)

    async def _labelled(self, owner: str, change: Change) -> Change:
        """With the label of the ontology, which is a part of its content."""
        if change.entry is None or change.entry.label:
            return change
        label = await self._read(_LABEL_SCOPE, owner, change.digest)
        if label is None:
            return change
        return msgspec.structs.replace(change, entry=msgspec.structs.replace(change.entry, label=label.decode()))

    async def _forget_parsed(self, owner: str, digests: Iterable[str]) -> None:
        """Under the lock. Delete what this process and its cache have of contents that are used no more."""
        view = self._views.get(owner)
        used = set() if view is None else {one.digest for one in view.ids.values()}
        for digest in filter(None, set(digests) - used):
            self._parsed.pop((owner, digest), None)
            await asyncio.to_thread(forget_ontology, digest, cache_dir=self._cache)

    async def _read(self, scope: str, owner: str, digest: str) -> bytes | None:
        record = await self._engine.read(scope, digest, tenant=_stored(owner), namespace="content")
        if record is None or record.state is not State.DONE or record.outcome is None:
            return None
        data: bytes = unpack(record.outcome, PLAIN)
        return data

    async def _drop_content(self, owner: str, before: Registered) -> None:
        """Under the lock."""
        if self._is_used(owner, before.digest):
            return
        try:
            data = await self.content(before)
        except ContentGone:
            return
        for scope in (_CONTENT_SCOPE, _LABEL_SCOPE):
            await self._engine.forget(scope, before.digest, tenant=_stored(owner), namespace="content")
        await self._follow(owner)
        if self._is_used(owner, before.digest):
            # Another process has put the very same meanwhile, and found it there.
            await self._keep_content(owner, before.digest, data, label=before.entry.label, audit={})

    async def _keep_content(
        self, owner: str, digest: str, data: bytes, *, label: str, audit: Mapping[str, Any]
    ) -> None:
        async def keep(scope: str, content: bytes) -> None:
            await self._engine.run(
                lambda _: content,
                scope=scope,
                key=digest,
                tenant=_stored(owner),
                namespace="content",
                retention=None,
                audit=audit,
            )

        await keep(_CONTENT_SCOPE, data)
        if label:
            await keep(_LABEL_SCOPE, label.encode())

    async def _keep_former(self, owner: str, present: Registered) -> None:
        """Under the lock."""
        with suppress(ContentGone):
            await self.former(owner).keep(present.entry, await self.content(present))

    def _is_used(self, owner: str, digest: str) -> bool:
        return any(one.digest == digest for one in self._views[owner].ids.values())

    def _append_log(self, owner: str) -> AppendLog[Change]:
        return AppendLog(self._engine, Change, scope=_LOG_SCOPE, tenant=_stored(owner))

    def _lock(self, owner: str) -> asyncio.Lock:
        return self._locks.setdefault(owner, asyncio.Lock())

    def _parse(self, data: bytes) -> Ontology:
        return read_ontology(data, cache_dir=self._cache)

    async def _describe(self, source: Source) -> Described:
        if self._describe_large is not None and await asyncio.to_thread(lambda: source.size) > LARGE_ONTOLOGY:
            return await self._describe_large(source)
        return await asyncio.to_thread(describe, source, cache=self._cache)


def _outline(ontology: Ontology) -> bytes:
    return msgspec.json.encode(outline_of(ontology))


def _gone(before: Registry, after: Registry, *, of: Iterable[str | None]) -> list[Registered]:
    """What is there no more, or in another version."""
    found = {one: before.ids[one] for one in of if one is not None and one in before.ids}
    return [
        one
        for name, one in found.items()
        if name not in after.ids or after.ids[name].entry.version != one.entry.version
    ]


def _stored(owner: str) -> str:
    """Where a registry is kept: apart from the records that a tenant may list and forget."""
    return f"~ontologies~{owner}"


def _entry_of(ontology: Described) -> OntologyEntry:
    return OntologyEntry(
        id=results_id(ontology.iri, ontology.version),
        version=ontology.version,
        iri=ontology.iri,
        label=ontology.label,
        classes=ontology.classes,
        properties=ontology.properties,
    )
