"""The runs that this service has promised to finish, as files: what was asked for, until it is answered.

Rule: a request is on the disk before its run begins and goes when the run has ended, however it ended. What is there
and nobody works on is a run whose server died: any server of the same home folder takes it over. Names are digests. A
file that is no promise, or is not where its promise belongs, is set aside; one of another release is left alone.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from sameas.extraction.durable_file import write_durably
from sameas.extraction.folder_names import is_key, key_folder, tenant_folder
from sameas.server.wire import ExtractRequest

_SUFFIX = ".json"
_ASIDE = ".unreadable"

_LOG = logging.getLogger("sameas.server")


class Promise(msgspec.Struct, frozen=True, kw_only=True):
    """A run that was promised: for whom, under which key, and what was asked."""

    tenant: str
    key: str
    request: ExtractRequest
    audit: Mapping[str, Any] = {}
    case_id: str | None = None


class Promises:
    """The folder `requests/` of a home."""

    def __init__(self, home: Path) -> None:
        self._folder = home / "requests"

    def keep(self, promise: Promise) -> None:
        path = self._path(promise.tenant, promise.key)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_durably(path, msgspec.json.encode(promise))

    def done(self, tenant: str, key: str) -> None:
        self._path(tenant, key).unlink(missing_ok=True)

    def has(self, tenant: str, key: str) -> bool:
        return self._path(tenant, key).is_file()

    def all(self) -> Iterator[Promise]:
        """Every promise that can be read, oldest first."""
        paths = [path for path in self._folder.glob(f"*/*{_SUFFIX}") if is_key(path.name.removesuffix(_SUFFIX))]
        for path in sorted(paths, key=_age):
            promise = self._read(path)
            if promise is not None:
                yield promise

    def _read(self, path: Path) -> Promise | None:
        try:
            promise = msgspec.json.decode(path.read_bytes(), type=Promise)
            is_here = is_key(promise.key) and self._path(promise.tenant, promise.key) == path
        except FileNotFoundError:
            return None
        except msgspec.ValidationError as trouble:
            _LOG.warning("the promise %s is left to a release that can read it: %s", path.name, trouble)
            return None
        except (msgspec.DecodeError, UnicodeDecodeError, OSError) as trouble:
            _LOG.warning("the promise %s cannot be read: %s", path.name, trouble)
            is_here = False
        if is_here:
            return promise
        _LOG.warning("the file %s is not a promise that was kept here; it is set aside", path)
        path.replace(path.with_name(path.name + _ASIDE))
        return None

    def _path(self, tenant: str, key: str) -> Path:
        return self._folder / tenant_folder(tenant) / f"{key_folder(key)}{_SUFFIX}"


def _age(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
