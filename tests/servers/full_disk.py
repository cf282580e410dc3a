"""Full disks: files that end, of which the system takes a part of a write and nothing of the next; and a small disk."""

import os
import resource
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def files_end_at(size: int) -> Iterator[None]:
    """Let no file of this process grow beyond so many bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


class SmallDisk:
    """A disk of its own that can be filled to the last byte, and emptied of what filled it."""

    def __init__(self, at: Path) -> None:
        self.at = at
        self._filling = at / "filling"

    def fill(self) -> None:
        with self._filling.open("ab", buffering=0) as file:
            for size in (1 << 16, 1):
                try:
                    while file.write(b"x" * size):
                        pass
                except OSError:
                    continue

    def make_room(self) -> None:
        self._filling.unlink()


@contextmanager
def small_disk(at: Path, *, size: int) -> Iterator[SmallDisk]:
    """A disk in memory of so many bytes at a folder that is there; only root may have one."""
    mount, umount = shutil.which("mount"), shutil.which("umount")
    if os.geteuid() != 0 or mount is None or umount is None:
        pytest.skip("a disk of its own needs root, mount and umount")
    made = subprocess.run(
        [mount, "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(at)], capture_output=True, text=True, check=False
    )
    if made.returncode != 0:
        pytest.skip(f"this machine lets nobody mount a disk: {made.stderr.strip()}")
    try:
        yield SmallDisk(at)
    finally:
        subprocess.run([umount, "--lazy", str(at)], check=True)
