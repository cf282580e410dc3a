"""Reading a document in a child process, so that a trap in it costs a child and not the run.

The child has a bound on memory and is ended after the time limit; it is given the bytes on its input and
answers with the document or the error. Nothing is unpickled: both directions are MessagePack of plain fields.
"""

import contextlib
import subprocess
import sys

import msgspec

from sameas.extraction.text.document import Document, PartUnit, Segment
from sameas.extraction.text.inputs import errors
from sameas.extraction.text.inputs.assembly import InputLimits
from sameas.extraction.text.inputs.errors import DamagedDocumentError, DocumentError, DocumentLimitError

# Starting Python and importing a reader is not the document's fault.
_STARTUP_SECONDS = 20.0
_ERRORS: dict[str, type[DocumentError]] = {
    kind.__name__: kind
    for kind in (
        errors.UnsupportedDocumentError,
        errors.MissingExtraError,
        DocumentLimitError,
        DamagedDocumentError,
    )
}


class _Task(msgspec.Struct, array_like=True):
    media_type: str
    limits: InputLimits
    data: bytes


class _Answer(msgspec.Struct, array_like=True):
    text: str = ""
    unit: PartUnit = "text"
    segments: tuple[tuple[int, int, int, int, int, bool], ...] = ()
    error: str = ""
    message: str = ""
    title: str = ""


def read_apart(data: bytes, *, media_type: str, limits: InputLimits) -> Document:
    """The document in these bytes, read by a child process."""
    task = msgspec.msgpack.encode(_Task(media_type, limits, data))
    command = [sys.executable, "-m", "sameas.extraction.text.inputs.isolation"]
    try:
        # Our own module in our own Python; the document comes in as data.
        done = subprocess.run(  # noqa: S603
            command, input=task, capture_output=True, timeout=limits.seconds + _STARTUP_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise DocumentLimitError("taken too long to read", limit=limits.seconds, unit="seconds") from None
    if done.returncode != 0 or not done.stdout:
        raise DamagedDocumentError(
            f"the reader of {media_type} ended with code {done.returncode}: the document is damaged, or needs "
            "more than "
            f"{limits.memory_bytes} bytes of memory"
        )
    answer = msgspec.msgpack.decode(done.stdout, type=_Answer)
    if answer.error:
        error = _ERRORS.get(answer.error, DocumentError)
        # The message is whole already; only the class is needed.
        raised = error.__new__(error)
        DocumentError.__init__(raised, answer.message)
        raise raised
    segments = tuple(Segment(*fields) for fields in answer.segments)
    return Document(answer.text, media_type=media_type, unit=answer.unit, segments=segments, title=answer.title)


def _serve() -> None:
    from sameas.extraction.text.inputs.reader import convert

    task = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=_Task)
    _bound_memory(task.limits.memory_bytes)
    try:
        document = convert(task.data, media_type=task.media_type, limits=task.limits)
        segments = tuple((s.start, s.end, s.source_start, s.source_end, s.part, s.exact) for s in document.segments)
        answer = _Answer(text=document.text, unit=document.unit, segments=segments, title=document.title)
    except DocumentError as error:
        answer = _Answer(error=type(error).__name__, message=str(error))
    except MemoryError:
        answer = _Answer(error=DocumentLimitError.__name__, message="the document needs too much memory to read")
    sys.stdout.buffer.write(msgspec.msgpack.encode(answer))


def _bound_memory(limit: int) -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


if __name__ == "__main__":
    _serve()
