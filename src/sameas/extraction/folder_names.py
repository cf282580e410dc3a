"""The names under which keys and tenants reach the disk.

Rule: only what is a digest, or harmless by its very letters, becomes the name of a folder; every other name
is replaced by its digest. No tenant's folder can have the name of a run or of another tenant's folder, also
where the file system does not tell upper from lower case.
"""

import hashlib
import re

_KEY = re.compile(r"sha256-[0-9a-f]{64}")
_SAFE = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_MADE = re.compile(r"tenant-[0-9a-f]{64}")
_NOBODY = "_"

QUARANTINE = ".quarantine"


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
