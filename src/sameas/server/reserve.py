"""Room on the disk of the home that is kept for deleting: whoever deletes on a full disk would need what they free.

Rule: a file holds the room and nothing in it means anything. It is given up while somebody deletes on a disk that has
less than it free, and taken back afterwards, as much of it as there is.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

# A log of SQLite for a run, its checkpoints and what the caches have of it, several times over.
SIZE = 8 << 20
_LEAST = 1 << 20
# Whatever is left free is taken by others before the next deletion, so no more than this is left.
_PIECE = 1 << 14
_EVERY = 60.0

_LOG = logging.getLogger("sameas.server")


class DiskReserve:
    """The file `.reserve` of a home. Any loop may ask; `hold` and `give_up` block."""

    def __init__(self, home: Path, *, size: int = SIZE) -> None:
        self._path = home / ".reserve"
        self._size = size
        self._deleting = 0

    def hold(self) -> int:
        """Take as much as there is, and give how many bytes are held."""
        handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            held = os.fstat(handle).st_size
            piece = self._size
            while held < self._size and piece >= _PIECE:
                size = min(held + piece, self._size)
                try:
                    os.posix_fallocate(handle, held, size - held)
                except OSError:
                    # There is not so much; what some systems have taken of it all the same is not counted.
                    os.ftruncate(handle, held)
                    piece //= 2
                else:
                    held = size
            return held
        finally:
            os.close(handle)

    def give_up(self) -> None:
        """Let others have the room."""
        self._path.unlink(missing_ok=True)

    @asynccontextmanager
    async def lent(self) -> AsyncIterator[None]:
        """Have the room free inside the block, where the disk has no other."""
        self._deleting += 1
        try:
            if await asyncio.to_thread(self._is_needed):
                await asyncio.to_thread(self.give_up)
            yield
        finally:
            self._deleting -= 1
            await self._hold_again()

    async def keep(self) -> None:
        """Take it, and take back from time to time what could not be taken, until it is cancelled."""
        while True:
            await self._hold_again()
            await asyncio.sleep(_EVERY)

    def _is_needed(self) -> bool:
        return shutil.disk_usage(self._path.parent).free < self._size

    async def _hold_again(self) -> None:
        if self._deleting:
            return
        try:
            held = await asyncio.to_thread(self.hold)
        except OSError as trouble:
            _LOG.warning("no room on the disk could be kept for deleting: %s", trouble)
            return
        if held < _LEAST:
            _LOG.warning("the disk is full: no room is left for deleting what is on it")
