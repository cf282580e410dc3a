"""The names under which keys and tenants reach the disk.

Rule: only what is a digest, or harmless by its very letters, becomes the name of a folder; every other name
is replaced by its digest. No tenant's folder can have the name of a run or of another tenant's folder, also
where the file system does not tell upper from lower case.
"""

import hashlib
import os
import re
from pathlib import Path
from typing import NamedTuple

_KEY = re.compile(r"sha256-[0-9a-f]{64}")
_SAFE = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_MADE = re.compile(r"tenant-[0-9a-f]{64}")
_NOBODY = "_"

QUARANTINE = ".quarantine"
USED = ".used"


def is_key(name: str) -> bool:
    """Whether it is a whole extraction key."""
    return _KEY.fullmatch(name) is not None


def key_folder(key: str) -> str:
    """The folder name of a run; refuses everything that is not a key."""
    if not is_key(key):
        raise ValueError(f"{key!r} is not an extraction key: it must be 'sha256-' and 64 hex digits")
    return key


def tenant_folder(tenant: str) -> str:
    """The folder name of a tenant; `_` stands for the anonymous one."""
    if not tenant:
        return _NOBODY
    if _SAFE.fullmatch(tenant) and not is_key(tenant) and not _MADE.fullmatch(tenant):
        return tenant
    return "tenant-" + hashlib.sha256(tenant.encode("utf-8", "surrogatepass")).hexdigest()


STARTED = ".started"
_BETWEEN = "~"


class Mark(NamedTuple):
    """When a run began, as its metadata writes it, and its key."""

    started_at: str
    key: str


class RunOrder:
    """The marks in the folder of a tenant's runs."""

    def __init__(self, runs: Path) -> None:
        self._path = runs / STARTED

    def marks(self) -> set[Mark]:
        """All that are there."""
        try:
            with os.scandir(self._path) as entries:
                parted = (entry.name.partition(_BETWEEN) for entry in entries)
                return {Mark(started_at, key) for started_at, _, key in parted if is_key(key)}
        except FileNotFoundError:
            return set()

    def add(self, mark: Mark) -> None:
        self._path.mkdir(parents=True, exist_ok=True)
        self._file(mark).touch()

    def remove(self, mark: Mark) -> None:
        self._file(mark).unlink(missing_ok=True)

    def _file(self, mark: Mark) -> Path:
        return self._path / f"{mark.started_at}{_BETWEEN}{mark.key}"
