"""Keeping a collection in step with a folder: what is new is added, what changed is done again, what is gone goes.

Rule: a file whose size and time are as they were is not read again. One process at a time works on a folder of a
collection, under a lease of the once engine: a second one waits and then looks for itself. A folder that is not there,
or is empty all at once, is an error and takes nothing out. A file that goes away while the folder is read is told, and
is gone as others are.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import msgspec

from sameas.collections.additions import Done, Filler, Given, Summary, file_time
from sameas.collections.collection import Collection, Source
from sameas.collections.errors import CollectionError, DocumentNotFoundError
from sameas.extraction.text.document import readable_path
from sameas.extraction.text.inputs.reader import readable_files
from sameas.identity.canonical import sha256_hex
from sameas.once.async_engine import AsyncEngine

SCOPE = "collection-sync"
_LEASE = 30.0


class FolderError(CollectionError):
    """A folder cannot be kept in step."""


class Plan(msgspec.Struct, frozen=True):
    """What a folder has and a collection has not, and the reverse."""

    to_add: tuple[Given, ...]
    gone: tuple[str, ...]
    unchanged: int
    skipped: int
    """Failed before, and not changed since."""


def plan_sync(
    collection: Collection, folder: Path, *, named: str = "", retry_failed: bool = False, allow_empty: bool = False
) -> Plan:
    """Compare; nothing is changed. `named` is how names begin, the folder as it was given."""
    if not folder.is_dir():
        raise FolderError(f"{folder} is not a folder. Nothing was taken out of the collection")
    place = readable_path(folder.resolve())
    known = collection.folder(place)
    to_add: list[Given] = []
    seen: set[str] = set()
    unchanged = skipped = 0
    for file in sorted(readable_files(folder)):
        name = readable_path(f"{named or folder.name}/{file.relative_to(folder).as_posix()}")
        try:
            stat = file.stat()
        except FileNotFoundError:
            # It went while we looked: it is gone as others are.
            continue
        seen.add(name)
        if collection.is_erased_source(name):
            continue
        status, size, time = known.get(name, ("", 0, ""))
        is_same = (size, time) == (stat.st_size, file_time(stat.st_mtime))
        if is_same and status == "complete":
            unchanged += 1
        elif is_same and status == "failed" and not retry_failed:
            skipped += 1
        else:
            source = Source(
                name=name, path=readable_path(file.resolve()), folder=place, size=stat.st_size,
                source_time=file_time(stat.st_mtime),
            )  # fmt: skip
            to_add.append(Given(source=source, file=file))
    gone = tuple(sorted(known.keys() - seen))
    if known and not seen and not allow_empty:
        raise FolderError(
            f"{folder} is empty, and {len(known)} documents were read from it. If that is meant, say --allow-empty"
        )
    return Plan(tuple(to_add), gone, unchanged, skipped)


async def sync(
    collection: Collection,
    folder: Path,
    *,
    filler: Filler,
    engine: AsyncEngine,
    named: str = "",
    retry_failed: bool = False,
    allow_empty: bool = False,
) -> Summary:
    """Bring a collection in step with a folder."""

    async def work(_: object) -> None:
        plan = await asyncio.to_thread(
            plan_sync, collection, folder, named=named, retry_failed=retry_failed, allow_empty=allow_empty
        )
        done = await filler.add(plan.to_add)
        vanished = await asyncio.to_thread(_vanished, folder, plan.to_add, done)
        removed = 0
        for name in (*plan.gone, *(one.name for one in vanished)):
            removed += await asyncio.to_thread(_remove, collection, name)
        stayed = [one for one in done if one not in vanished]
        summary = Summary.of(stayed, removed=removed, unchanged=plan.unchanged, vanished=vanished)
        # Raised, so that the claim is given back: whoever waits, or comes later, looks for themselves.
        raise _InStep(msgspec.structs.replace(summary, failed=summary.failed + plan.skipped))

    place = readable_path(await asyncio.to_thread(folder.resolve))
    key = sha256_hex(f"{collection.id} {place}".encode())
    try:
        await engine.record(work, scope=SCOPE, key=key, lease=_LEASE)
    except _InStep as end:
        return end.summary
    raise FolderError(f"the claim on {folder} was completed by somebody else; try again")


class _InStep(Exception):
    """A folder and its collection are in step."""

    def __init__(self, summary: Summary) -> None:
        super().__init__("in step")
        self.summary = summary


def _vanished(folder: Path, given: Sequence[Given], done: Sequence[Done]) -> list[Done]:
    """What could not be read because its file went away meanwhile."""
    found = [
        one
        for one, asked in zip(done, given, strict=True)
        if one.outcome == "failed" and asked.file is not None and not asked.file.exists()
    ]
    if found and not folder.is_dir():
        raise FolderError(f"{folder} went away while it was read. Nothing was taken out of the collection")
    return found


def _remove(collection: Collection, name: str) -> int:
    """Take a name out, also of what could not be read; how many documents it stood for."""
    stood_for = collection.has_name(name)
    try:
        collection.remove_name(name)
    except DocumentNotFoundError:
        return 0
    return int(stood_for)
