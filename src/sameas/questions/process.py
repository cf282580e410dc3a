"""The process that runs queries: it opens a snapshot, answers one query at a time, and may be ended at any moment.

Rule: nothing here can change an index, and nothing here can stop a query once it runs: the store cannot. That is why it
is a process of its own, with a bound on its memory, that whoever asks ends when the time is over. Both directions are
MessagePack of plain fields, each with its length before it.
"""

import contextlib
import struct
import sys
import time
from collections import OrderedDict
from typing import IO, Any

import msgspec

_LENGTH = struct.Struct(">I")
_OPEN_SNAPSHOTS = 8
READY = b"!"
_TYPES = {"NamedNode": "uri", "BlankNode": "bnode"}


class QueryLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of one query. `memory_bytes` is of the process that runs it."""

    seconds: float = 10.0
    rows: int = 10_000
    result_bytes: int = 64 * 1024 * 1024
    memory_bytes: int = 2 * 1024 * 1024 * 1024

    def __post_init__(self) -> None:
        if not 0 < self.seconds <= 3_600:
            raise ValueError("seconds must be above 0 and at most 3600")
        if self.rows < 1 or self.result_bytes < 1_024 or self.memory_bytes < 256 * 1024 * 1024:
            raise ValueError("rows must be at least 1, result_bytes 1024, memory_bytes 256 MB")


class Asked(msgspec.Struct, frozen=True, array_like=True):
    """A query and the snapshot it is for."""

    snapshot: str
    query: str
    prefixes: dict[str, str]
    limits: QueryLimits
    default_graphs: tuple[str, ...] = ()
    named_graphs: tuple[str, ...] = ()


class Told(msgspec.Struct, frozen=True, array_like=True):
    """The answer. `error` is syntax, rows, bytes or failed, with the reason in `body`."""

    kind: str
    body: bytes
    rows: int = 0
    seconds: float = 0.0
    error: str = ""


def send(pipe: IO[bytes], message: msgspec.Struct) -> None:
    """A message into a pipe."""
    data = msgspec.msgpack.encode(message)
    pipe.write(_LENGTH.pack(len(data)) + data)
    pipe.flush()


def receive(pipe: IO[bytes]) -> bytes | None:
    """The next message of a pipe; None at its end."""
    head = pipe.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    data = pipe.read(length)
    return data if len(data) == length else None


class Snapshots:
    """The snapshots that were asked for last, open."""

    def __init__(self) -> None:
        self._open: OrderedDict[str, Any] = OrderedDict()

    def get(self, path: str) -> Any:
        import pyoxigraph

        if path not in self._open:
            self._open[path] = pyoxigraph.Store.read_only(path)
        self._open.move_to_end(path)
        while len(self._open) > _OPEN_SNAPSHOTS:
            self._open.popitem(last=False)
        return self._open[path]


def answer(asked: Asked, snapshots: Snapshots) -> Told:
    """Run a query."""
    import pyoxigraph

    began = time.perf_counter()
    graphs: dict[str, Any] = {}
    try:
        if asked.default_graphs:
            graphs["default_graph"] = [pyoxigraph.NamedNode(iri) for iri in asked.default_graphs]
        if asked.named_graphs:
            graphs["named_graphs"] = [pyoxigraph.NamedNode(iri) for iri in asked.named_graphs]
        store = snapshots.get(asked.snapshot)
        found = store.query(asked.query, prefixes=asked.prefixes, **graphs)
        if isinstance(found, pyoxigraph.QueryBoolean):
            body = b'{"head":{},"boolean":%s}' % (b"true" if bool(found) else b"false")
            return Told("boolean", body, 1, time.perf_counter() - began)
        if isinstance(found, pyoxigraph.QueryTriples):
            return _triples(found, asked.limits, began)
        return _rows(found, asked.limits, began)
    except SyntaxError as error:
        return Told("", str(error).encode(), error="syntax")
    except (OSError, ValueError, RuntimeError) as error:
        return Told("", str(error).encode(), error="failed")


def _rows(found: Any, limits: QueryLimits, began: float) -> Told:
    variables = [variable.value for variable in found.variables]
    encode = msgspec.json.encode
    pieces: list[bytes] = []
    size = 0
    for solution in found:
        if len(pieces) >= limits.rows:
            return Told("", b"", len(pieces), error="rows")
        bound = {name: _term(value) for name, value in zip(variables, solution, strict=True) if value is not None}
        pieces.append(encode(bound))
        size += len(pieces[-1])
        if size > limits.result_bytes:
            return Told("", b"", len(pieces), error="bytes")
    body = b'{"head":{"vars":%s},"results":{"bindings":[%s]}}' % (encode(variables), b",".join(pieces))
    return Told("table", body, len(pieces), time.perf_counter() - began)


def _triples(found: Any, limits: QueryLimits, began: float) -> Told:
    lines: list[bytes] = []
    size = 0
    for triple in found:
        if len(lines) >= limits.rows:
            return Told("", b"", len(lines), error="rows")
        lines.append(f"{triple.subject} {triple.predicate} {triple.object} .\n".encode())
        size += len(lines[-1])
        if size > limits.result_bytes:
            return Told("", b"", len(lines), error="bytes")
    return Told("graph", b"".join(lines), len(lines), time.perf_counter() - began)


def _term(term: Any) -> dict[str, Any]:
    """A term as SPARQL 1.1 Query Results JSON has it."""
    kind = _TYPES.get(type(term).__name__)
    if kind is not None:
        return {"type": kind, "value": term.value}
    if type(term).__name__ == "Triple":
        parts = {"subject": term.subject, "predicate": term.predicate, "object": term.object}
        return {"type": "triple", "value": {name: _term(part) for name, part in parts.items()}}
    told = {"type": "literal", "value": term.value}
    if term.language:
        told["xml:lang"] = term.language
    elif term.datatype.value != "http://www.w3.org/2001/XMLSchema#string":
        told["datatype"] = term.datatype.value
    return told


def serve() -> None:
    """Answer what comes in, until nothing more does."""
    asking, telling = sys.stdin.buffer, sys.stdout.buffer
    snapshots = Snapshots()
    bound = 0
    import pyoxigraph  # noqa: F401 (loaded before the clock of a query runs)

    telling.write(READY)
    telling.flush()
    while (data := receive(asking)) is not None:
        asked = msgspec.msgpack.decode(data, type=Asked)
        if asked.limits.memory_bytes != bound:
            bound = asked.limits.memory_bytes
            _bound_memory(bound)
        try:
            told = answer(asked, snapshots)
        except MemoryError:
            told = Told("", b"", error="memory")
        send(telling, told)


def _bound_memory(limit: int) -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))


if __name__ == "__main__":
    serve()
