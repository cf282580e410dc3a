"""A file that exists whole or not at all: written beside its place, forced to the disk, then renamed.

Rule: after a crash a reader finds the old content or the new, never a part. The temporary file that a crash leaves
behind is recognised by its name and removed by the next writer, who sees that nobody holds it any more.
"""

import fcntl
import glob
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

_SUFFIX = ".writing"
# Seconds from the making of a file until its writer surely holds it.
_HELD_WITHIN = 2.0


def write_durably(path: Path, data: bytes, *, settle: bool = True) -> None:
    """Replace the file. Without `settle`, call `settle_folder` after the last file to make names durable."""
    with writing(path, settle=settle) as target:
        target.write(data)


def write_copy(path: Path, data: bytes) -> None:
    """Replace the file without forcing it to the disk: after a power cut what it is a copy of is fetched again."""
    with writing(path, settle=False, forced=False) as target:
        target.write(data)


@contextmanager
def writing(path: Path, *, settle: bool = True, forced: bool = True) -> Iterator[BinaryIO]:
    """`write_durably` for what comes in pieces: an error leaves the old file as it was. One that is not `forced` to the
    disk is whole while the machine is up.
    """
    temporary = path.with_name(f".{path.name}-{secrets.token_hex(8)}{_SUFFIX}")
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        fcntl.flock(handle, fcntl.LOCK_SH)
        with os.fdopen(handle, "wb") as target:
            yield target
            target.flush()
            if forced:
                os.fsync(target.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if settle:
        settle_folder(path.parent)


def settle_folder(folder: Path) -> None:
    """Force the names in a folder to the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sweep_beside(path: Path) -> None:
    """Remove what killed writers of one file left beside it; whoever writes it now is left alone."""
    for left in path.parent.glob(f".{glob.escape(path.name)}-*{_SUFFIX}"):
        try:
            handle = os.open(left, os.O_RDONLY)
        except FileNotFoundError:
            continue
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # One that was made just now may not be held yet.
            if time.time() - os.fstat(handle).st_mtime >= _HELD_WITHIN:
                left.unlink(missing_ok=True)
        except BlockingIOError:
            continue
        finally:
            os.close(handle)


def sweep(folder: Path) -> None:
    """Remove what killed writers left behind."""
    for left in folder.glob(f".*{_SUFFIX}"):
        left.unlink(missing_ok=True)
