"""The runs that this service has promised to finish, as files: what was asked for, until it is answered.

Rule: a request is on the disk before anybody is told that it was accepted, and goes when its run has ended, unless a
store or a disk that could not be reached ended it. What is there and nobody works on is a run to be taken up: any
server of the same home folder does so. Names are digests. A file that is no promise, or is not where its promise
belongs, is set aside; one of another release is left alone.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from sameas.extraction.runs.durable_file import settle_folder, write_durably
from sameas.extraction.runs.folder import is_key, key_folder, tenant_folder
from sameas.extraction.runs.metadata import RunMetadata
from sameas.objects import Objects
from sameas.server.runs.day_accounts import Reserved
from sameas.server.schemas import ExtractRequest

FORM = 1
"""Raised whenever an older release would do something else with a request than the one that accepted it."""

_SUFFIX = ".json"
_ASIDE = ".unreadable"

_LOG = logging.getLogger("sameas.server")


class PendingRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run that was promised: for whom, under which key, and what was asked."""

    tenant: str
    key: str
    request: ExtractRequest
    audit: Mapping[str, Any] = {}
    case_id: str | None = None
    pending: RunMetadata | None = None
    """What can be shown of the run before it begins."""
    reserved: Reserved | None = None
    """What was set aside for it of the tenant's day."""
    form: int = FORM


class PendingRuns:
    """The folder `requests/` of a home."""

    def __init__(self, home: Path) -> None:
        self._folder = home / "requests"

    def keep(self, pending_run: PendingRun) -> None:
        path = self.path(pending_run.tenant, pending_run.key)
        if not path.parent.is_dir():
            path.parent.mkdir(parents=True, exist_ok=True)
            settle_folder(self._folder)
            settle_folder(self._folder.parent)
        write_durably(path, msgspec.json.encode(pending_run))

    def done(self, tenant: str, key: str) -> None:
        self.path(tenant, key).unlink(missing_ok=True)

    def remove(self, tenant: str, key: str) -> None:
        """Delete a promise and what was set aside under its name."""
        path = self.path(tenant, key)
        path.unlink(missing_ok=True)
        path.with_name(path.name + _ASIDE).unlink(missing_ok=True)

    def read(self, tenant: str, key: str) -> PendingRun | None:
        """The promise of a run, if there is one that can be read."""
        return self.read_file(self.path(tenant, key))

    def has(self, tenant: str, key: str) -> bool:
        return self.path(tenant, key).is_file()

    def all(self) -> Iterator[PendingRun]:
        """Every promise that can be read, oldest first."""
        for path in self.paths():
            pending_run = self.read_file(path)
            if pending_run is not None:
                yield pending_run

    def paths(self) -> list[Path]:
        """The files of all promises, oldest first; they hold whole texts, and are read one at a time."""
        paths = [path for path in self._folder.glob(f"*/*{_SUFFIX}") if is_key(path.name.removesuffix(_SUFFIX))]
        return sorted(paths, key=_age)

    def read_file(self, path: Path) -> PendingRun | None:
        """The promise in a file; None where it is gone, or cannot be read here."""
        try:
            pending_run = msgspec.json.decode(path.read_bytes(), type=PendingRun)
            is_here = is_key(pending_run.key) and self.path(pending_run.tenant, pending_run.key) == path
        except FileNotFoundError:
            return None
        except msgspec.ValidationError as trouble:
            _LOG.warning("the promise %s is left to a release that can read it: %s", path.name, trouble)
            return None
        except (msgspec.DecodeError, UnicodeDecodeError, OSError) as trouble:
            _LOG.warning("the promise %s cannot be read: %s", path.name, trouble)
            is_here = False
        if is_here:
            return _readable(pending_run)
        _LOG.warning("the file %s is not a promise that was kept here; it is set aside", path)
        path.replace(path.with_name(path.name + _ASIDE))
        return None

    def path(self, tenant: str, key: str) -> Path:
        return self._folder / tenant_folder(tenant) / f"{key_folder(key)}{_SUFFIX}"


class PendingObjects:
    """The same as objects that every machine sees, `requests/{tenant}/{key}`."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def keep(self, pending_run: PendingRun) -> None:
        self._objects.put(_name(pending_run.tenant, pending_run.key), msgspec.json.encode(pending_run))

    def done(self, tenant: str, key: str) -> None:
        self._objects.delete([_name(tenant, key)])

    def remove(self, tenant: str, key: str) -> None:
        """Delete a promise."""
        self.done(tenant, key)

    def read(self, tenant: str, key: str) -> PendingRun | None:
        """The promise of a run, if there is one that can be read here."""
        data = self._objects.get(_name(tenant, key))
        if data is None:
            return None
        try:
            pending_run = msgspec.json.decode(data, type=PendingRun)
        except (msgspec.ValidationError, msgspec.DecodeError) as trouble:
            _LOG.warning("the promise %s is left to a release that can read it: %s", key, trouble)
            return None
        return _readable(pending_run) if (pending_run.tenant, pending_run.key) == (tenant, key) else None

    def has(self, tenant: str, key: str) -> bool:
        return self._objects.has(_name(tenant, key))

    def all(self) -> Iterator[PendingRun]:
        """Every promise that can be read, oldest first."""
        for (tenant, key), _ in self.places():
            pending_run = self.read(tenant, key)
            if pending_run is not None:
                yield pending_run

    def places(self) -> list[tuple[tuple[str, str], float]]:
        """The tenant and key of every promise and when it was written, oldest first; none is read for it."""
        found = []
        for one in self._objects.list(_REQUESTS):
            _, _, place = one.name.partition("/")
            folder, _, key = place.partition("/")
            tenant = _tenant_of(folder)
            # Whatever else lies there is nobody's request.
            if is_key(key) and tenant is not None:
                found.append(((tenant, key), one.modified_at.timestamp()))
        return sorted(found, key=lambda one: one[1])


def _readable(pending_run: PendingRun) -> PendingRun | None:
    if pending_run.form <= FORM:
        return pending_run
    _LOG.warning("the promise %s has a later form and is left to the release that wrote it", pending_run.key)
    return None


_REQUESTS = "requests"
_NOBODY = "_"


def _name(tenant: str, key: str) -> str:
    folder = base64.urlsafe_b64encode(tenant.encode("utf-8", "surrogatepass")).decode().rstrip("=")
    return f"{_REQUESTS}/{folder or _NOBODY}/{key_folder(key)}"


def _tenant_of(folder: str) -> str | None:
    if folder == _NOBODY:
        return ""
    try:
        return base64.urlsafe_b64decode(folder + "=" * (-len(folder) % 4)).decode("utf-8", "surrogatepass")
    except ValueError:
        return None


def _age(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
