"""What processes that were killed left behind: files that were being written, and copies of journals for listeners.

Rule: what is deleted must not live on in what nobody knows of any more. A file that is being written is as old as its
last byte; what has lain so for `SETTLES` seconds has no writer. A folder of journals has an owner that holds its lock.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from random import uniform

# Seconds after which nobody writes a file any more that was not renamed.
SETTLES = 600.0
_EVERY = 600.0
_LOCK = ".lock"
# What is written beside its place, in folders that outlive the runs.
_WRITING = ("requests/*/.*.writing", "cache/ontologies/.writing-*", "cache/batches/*.writing")

_LOG = logging.getLogger("sameas.server")


async def keep_swept(home: Path) -> None:
    """Remove what was left behind, now and from time to time, until it is cancelled."""
    while True:
        try:
            removed = await asyncio.to_thread(sweep, home)
        except OSError as trouble:
            _LOG.warning("what was left behind could not be removed: %s", trouble)
        else:
            if removed:
                _LOG.info("files removed that a killed process had left: %d", removed)
        await asyncio.sleep(_EVERY * uniform(0.5, 1.5))


def sweep(home: Path, *, now: float | None = None) -> int:
    """Remove what has no owner any more; how many. Blocking."""
    moment, removed = time.time() if now is None else now, 0
    for path in _half_written(home):
        try:
            if moment - path.stat().st_mtime < SETTLES:
                continue
            path.unlink()
        except FileNotFoundError:
            continue
        removed += 1
    for folder in journal_folders(home).glob("*/"):
        removed += _remove_deserted(folder)
    return removed


def journal_folders(home: Path) -> Path:
    """Where each process has a folder for the journals that its clients listen to."""
    return home / "cache" / "journals"


def own(folder: Path) -> int:
    """Make a folder this process's own until the handle that is given is closed, or the process ends."""
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(handle, fcntl.LOCK_SH)
    return handle


def _half_written(home: Path) -> Iterator[Path]:
    for pattern in _WRITING:
        yield from home.glob(pattern)


def _remove_deserted(folder: Path) -> bool:
    try:
        handle = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        # Of an earlier release, or another is at it.
        handle = None
    try:
        if handle is not None:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        elif time.time() - folder.stat().st_mtime < SETTLES:
            return False
        shutil.rmtree(folder, ignore_errors=True)
    except (BlockingIOError, FileNotFoundError):
        return False
    finally:
        if handle is not None:
            os.close(handle)
    return True
