"""Local copies of the journals of runs that other machines work on, for as long as anybody listens.

Rule: a line is appended only if its number is the next. Live events over Redis are quick; the objects fill every gap,
and replace Redis while it is away. Whether a run has ended is decided by its stored request, and only after its last
line was read; that a request is gone is found by one look at all of them, or told.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import shutil
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sameas.extraction.events.journal import JournalLine
from sameas.extraction.runs.folder import tenant_folder
from sameas.extraction.runs.run_objects import RunObjects
from sameas.identity.errors import SameasError
from sameas.server.leftovers import own

if TYPE_CHECKING:
    from sameas.cluster.live_events import EventReader
    from sameas.server.runs.dispatch import Dispatch

_LOG = logging.getLogger("sameas.server")
# Seconds between two looks at the objects of a run: without live events, where they did not bring all of it, and where
# they did.
_LOOK_EVERY, _LOOK_FOR_MISSED, _LOOK_WITH_WORD = 0.5, 2.0, 10.0


class JournalMirror:
    """One journal. Lives in the background loop; `is_over` and `number` may be read from anywhere."""

    def __init__(
        self,
        objects: RunObjects,
        key: str,
        path: Path,
        *,
        is_open: Callable[[], Awaitable[bool]],
        hears_word: Callable[[], bool] = lambda: False,
    ) -> None:
        self.path = path
        self.listeners = 0
        self.is_over = False
        self._objects = objects
        self._key = key
        self._is_open = is_open
        self._number = 0
        self._fence = 0
        self._hears_word = hears_word
        self.wanted = asyncio.Event()
        """Set when the run may have ended, or has told something that was not heard."""

    def open(self) -> None:
        """Begin an empty file; readers of an earlier one go on by the numbers of lines."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.path.with_name(f".{self.path.name}.writing")
        fresh.write_bytes(b"")
        fresh.replace(self.path)

    def hear(self, first: int, lines: list[bytes], fence: int) -> None:
        """Append live lines of the writer with this fence."""
        if 0 < fence < self._fence:
            # The writer was replaced and has not noticed; its lines are in no journal.
            return
        self._fence = max(fence, self._fence)
        if first > self._number + 1:
            self.wanted.set()
            return
        self._append([JournalLine(first + place, line) for place, line in enumerate(lines)])

    async def follow(self) -> None:
        """Keep the file up to date until cancelled."""
        while True:
            self.wanted.clear()
            try:
                is_open = await self._is_open()
                has_missed = self._append(await asyncio.to_thread(self._told))
                self.is_over = not is_open
            except (SameasError, OSError) as trouble:
                _LOG.warning("the events of the run %s cannot be read yet: %s", self._key, trouble)
                await asyncio.sleep(_LOOK_EVERY)
                continue
            pause = _LOOK_EVERY
            if self._hears_word():
                pause = _LOOK_FOR_MISSED if has_missed else _LOOK_WITH_WORD
            with suppress(TimeoutError):
                await asyncio.wait_for(self.wanted.wait(), pause)

    def _told(self) -> list[JournalLine]:
        return [*self._objects.lines(self._key, after=self._number)]

    def _append(self, lines: list[JournalLine]) -> bool:
        """Whether there was anything new."""
        new = [line for line in lines if line.number > self._number]
        if not new or new[0].number != self._number + 1:
            return False
        handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            os.write(handle, b"".join(line.data + b"\n" for line in new))
        finally:
            os.close(handle)
        self._number = new[-1].number
        return True


class JournalMirrors:
    """The journals that somebody listens to here. Lives in the background loop; any thread may call `is_over`."""

    def __init__(self, folder: Path, reader: EventReader | None, *, dispatch: Dispatch) -> None:
        self._dispatch = dispatch
        # A name that no process had before; what a killed process left is removed by `keep_swept`.
        self._folder = folder / f"{os.getpid()}-{secrets.token_hex(4)}"
        self._owned = own(self._folder)
        self._reader = reader
        self._mirrors: dict[tuple[str, str], tuple[JournalMirror, asyncio.Task[None]]] = {}

    async def enter(self, space: str, key: str, objects: RunObjects, *, is_open: Callable[[], Awaitable[bool]]) -> Path:
        """The file that has the journal, from its beginning, until `leave`."""
        known = self._mirrors.get((space, key))
        if known is None:
            mirror = JournalMirror(
                objects,
                key,
                self._folder / f"{tenant_folder(space)}-{key}.jsonl",
                is_open=is_open,
                hears_word=self._hears_word,
            )
            mirror.open()
            if self._reader is not None:
                self._reader.listen(space, key, mirror.hear)
            self._dispatch.watch(space, key, mirror.wanted)
            known = self._mirrors[space, key] = mirror, asyncio.create_task(mirror.follow())
        known[0].listeners += 1
        return known[0].path

    async def leave(self, space: str, key: str) -> None:
        mirror, task = self._mirrors[space, key]
        mirror.listeners -= 1
        if mirror.listeners:
            return
        del self._mirrors[space, key]
        self._dispatch.leave(space, key, mirror.wanted)
        if self._reader is not None:
            self._reader.leave(space, key)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        mirror.path.unlink(missing_ok=True)

    def is_over(self, space: str, key: str) -> bool:
        """Whether the run has ended and all its events are in the file."""
        known = self._mirrors.get((space, key))
        return known is None or known[0].is_over

    def _hears_word(self) -> bool:
        return self._reader is not None and self._reader.is_hearing

    async def close(self) -> None:
        for _, task in self._mirrors.values():
            task.cancel()
        await asyncio.gather(*(task for _, task in self._mirrors.values()), return_exceptions=True)
        if self._reader is not None:
            await self._reader.close()
        await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)
        os.close(self._owned)
