"""A collection of the service kept in step with a folder of this machine: what is new is sent, what changed is sent
again, what is gone is taken out.

Rule: a file whose size and time are as the service has them is not read. The documents of a folder are those whose
names begin with its name. A folder that is not there, or is empty all at once, is an error and takes nothing out.
"""

import base64
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from sameas.collections.additions import Summary, file_time
from sameas.collections.model import DocumentInfo, SourceName
from sameas.collections.sync import FolderError
from sameas.extraction.text.document import readable_path
from sameas.extraction.text.inputs.reader import guess_media_type, readable_files

# A request is kept well below what a service takes, unless one file alone is larger.
_BYTES_AT_ONCE = 4 * 1024 * 1024
_FILES_AT_ONCE = 100


class FolderFile(NamedTuple):
    """A file as it was when the folder was looked through."""

    path: Path
    size: int
    time: str


class Look(msgspec.Struct, frozen=True):
    """What a folder has: its files by the names that their documents have."""

    folder: Path
    prefix: str
    files: Mapping[str, FolderFile]

    @classmethod
    def at(cls, folder: Path, *, named: str = "") -> "Look":
        """Look through a folder; blocking."""
        if not folder.is_dir():
            raise FolderError(f"{folder} is not a folder. Nothing was taken out of the collection")
        prefix = f"{named or folder.resolve().name}/"
        files = {}
        for path in sorted(readable_files(folder)):
            try:
                status = path.stat()
            except FileNotFoundError:
                continue
            name = readable_path(f"{prefix}{path.relative_to(folder).as_posix()}")
            files[name] = FolderFile(path, status.st_size, file_time(status.st_mtime))
        return cls(folder, prefix, files)


class SyncPlan(msgspec.Struct, frozen=True):
    """What is to be done. `known` are the names that the service has."""

    known: Mapping[str, SourceName]
    documents: frozenset[str]
    """The names that stand for a document."""
    to_send: tuple[str, ...]
    gone: tuple[str, ...]
    skipped: int
    """Failed before, and not changed since."""

    @property
    def unchanged(self) -> int:
        return len(self.known) - len(self.gone) - self.skipped - len(self.known.keys() & set(self.to_send))

    @classmethod
    def of(cls, look: Look, there: tuple[DocumentInfo, ...], *, retry_failed: bool, allow_empty: bool) -> "SyncPlan":
        listed = {name.name: (name, one.digest) for one in there for name in one.names}
        known = {name: about for name, (about, _) in listed.items() if name.startswith(look.prefix)}
        if known and not look.files and not allow_empty:
            raise FolderError(
                f"{look.folder} is empty, and {len(known)} documents were sent from it. If that is meant, allow it"
            )
        skipped = 0
        to_send = []
        for name, file in look.files.items():
            about = known.get(name)
            is_same = about is not None and (about.size, about.source_time) == (file.size, file.time)
            if about is None or not is_same or about.status == "partial":
                to_send.append(name)
            elif about.status == "failed":
                skipped += not retry_failed
                to_send += [name] if retry_failed else []
        documents = frozenset(name for name in known if listed[name][1])
        return cls(known, documents, tuple(to_send), tuple(sorted(known.keys() - look.files.keys())), skipped)


class Sending(msgspec.Struct):
    """The files of a plan as documents of requests; those that vanished meanwhile are left out."""

    look: Look
    names: tuple[str, ...]
    vanished: list[str] = []

    def batches(self) -> Iterator[list[dict[str, str]]]:
        batch: list[dict[str, str]] = []
        size = 0
        for name in self.names:
            file = self.look.files[name]
            try:
                data = file.path.read_bytes()
            except FileNotFoundError:
                self.vanished.append(name)
                continue
            if batch and (size + len(data) > _BYTES_AT_ONCE or len(batch) >= _FILES_AT_ONCE):
                yield batch
                batch, size = [], 0
            size += len(data)
            batch.append(
                {
                    "name": name,
                    "contentBase64": base64.b64encode(data).decode(),
                    "mediaType": guess_media_type(name, data=data),
                    "path": readable_path(file.path.resolve()),
                    "sourceTime": file.time,
                }
            )
        if batch:
            yield batch


def summary_of(
    plan: SyncPlan, sending: Sending, there: tuple[DocumentInfo, ...], refused: Mapping[str, str], *, removed: int
) -> Summary:
    """What was done, from what the service has now."""
    now = {name.name: name for one in there for name in one.names}
    errors = dict(refused)
    counts = dict.fromkeys(("added", "changed", "partial", "failed"), 0)
    counts["failed"] = plan.skipped + len(refused)
    for name in plan.to_send:
        about = now.get(name)
        if name in sending.vanished or name in refused or about is None:
            continue
        if about.status in ("failed", "partial"):
            counts[about.status] += 1
            errors |= {name: about.error} if about.error else {}
        else:
            counts["changed" if name in plan.documents else "added"] += 1
    errors |= dict.fromkeys(sending.vanished, "the file went away while the folder was sent")
    return Summary(**counts, unchanged=plan.unchanged, removed=removed, vanished=len(sending.vanished), errors=errors)
