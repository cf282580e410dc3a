"""The decisions about one document as a file: a line of JSON each, who and when, never changed.

Rule: the file is named by the document and not by a run, so that decisions outlive the run that was looked at. One
writer at a time: a decision is checked and written under the same lock. The file is deleted with the last run that one
of its decisions was made on.
"""

import fcntl
import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from sameas.extraction.runs.durable_file import settle_folder
from sameas.extraction.runs.metadata import RunMetadata, instant
from sameas.extraction.runs.review import Decision, Wish
from sameas.identity.ids import uuid7

if TYPE_CHECKING:
    from sameas.extraction.runs.run_objects import RunObjects

REVIEWS = ".reviews"
_decoder = msgspec.json.Decoder(Decision)


class ReviewFile:
    """The decisions about the document of a run."""

    def __init__(self, runs: Path, metadata: RunMetadata, *, objects: "RunObjects | None" = None) -> None:
        document = f"name:{metadata.document}" if metadata.document else f"text:{metadata.text_hash}"
        digest = hashlib.sha256(document.encode("utf-8", "surrogatepass")).hexdigest()
        self._path = runs / REVIEWS / f"{digest}.jsonl"
        # If all machines must see decisions, each is an object of its own, and the file is not used.
        self._objects, self._document = objects, digest
        self._run = metadata.idempotency_key

    def read(self, *, up_to: int | None = None) -> tuple[Decision, ...]:
        """All decisions, or only the first `up_to`."""
        if self._objects is not None:
            return tuple(_decoder.decode(data) for data in self._objects.decisions(self._document)[:up_to])
        try:
            lines = self._path.read_bytes().split(b"\n")
        except FileNotFoundError:
            return ()
        # A writer that was killed may have left half a line at the end; it was never confirmed.
        return tuple(_decoder.decode(line) for line in lines[:-1][:up_to])

    def add(self, wish: Wish, *, by: str, now: float, check: Callable[[Sequence[Decision]], None]) -> Decision:
        """Write a decision after `check`, which is given the earlier ones, has accepted it."""
        if self._objects is not None:
            check(self.read())
            decision = Decision(id=str(uuid7()), at=instant(now), by=by, run=self._run, wish=wish)
            self._objects.add_decision(self._document, decision.id, msgspec.json.encode(decision))
            return decision
        with self._alone() as handle:
            check(self.read())
            decision = Decision(id=str(uuid7()), at=instant(now), by=by, run=self._run, wish=wish)
            whole = os.pread(handle, os.fstat(handle).st_size, 0)
            if whole and not whole.endswith(b"\n"):
                os.ftruncate(handle, whole.rfind(b"\n") + 1)
            os.lseek(handle, 0, os.SEEK_END)
            os.write(handle, msgspec.json.encode(decision) + b"\n")
            os.fsync(handle)
        return decision

    def forget_run(self, exists: Callable[[str], bool]) -> None:
        """Delete the decisions, unless another run that they were made on is still there."""
        if (self._objects is not None or self._path.exists()) and not any(
            exists(decision.run) for decision in self.read()
        ):
            self._path.unlink(missing_ok=True)
            if self._objects is not None:
                self._objects.forget_decisions(self._document)

    @contextmanager
    def _alone(self) -> Iterator[int]:
        if not self._path.parent.is_dir():
            self._path.parent.mkdir(parents=True, exist_ok=True)
            settle_folder(self._path.parent.parent)
        handle = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield handle
        finally:
            os.close(handle)
