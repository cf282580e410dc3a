"""No other way in: over the whole source tree, only `identity/normalize.py` reads an id from a header.

A read is a header's name as a subscript that is loaded, as the first argument of a getter, or beside a comparison.
Naming a header to send it, to document it or to keep it out of a store is no read.
"""

import ast
from functools import cache
from pathlib import Path

import pytest

import sameas

ROOT = Path(sameas.__file__).parent
ONLY_ENTRY = ROOT / "identity" / "normalize.py"
IDS = (
    "tenant",
    "user",
    "service",
    "case",
    "collection",
    "workflow",
    "workflow-run",
    "ingestion-run",
    "trace",
    "invocation",
)
HEADERS = frozenset(
    {*(f"x-{name}-id" for name in IDS), "x-request-id", "x-correlation-id", "traceparent", "tracestate"}
    | {"authorization", "x-api-key", "idempotency-key"}
)
GETTERS = frozenset({"get", "getlist", "get_list", "get_all", "getone", "getall", "pop", "header", "Header"})
# WSGI and CGI spell headers their own way.
SPELLINGS = HEADERS | {f"http_{name.replace('-', '_')}" for name in HEADERS}


def is_header(node):
    if isinstance(node, ast.Name | ast.Attribute):
        return (node.id if isinstance(node, ast.Name) else node.attr) == "TASK_HEADER"
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str | bytes):
        return False
    text = node.value if isinstance(node.value, str) else node.value.decode("latin-1")
    return text.lower() in SPELLINGS


def compared(node):
    for side in (node.left, *node.comparators):
        yield from side.elts if isinstance(side, ast.Set | ast.Tuple | ast.List) else [side]


def reads(tree):
    """The lines on which a tree reads a header of ours, or makes a scope by hand."""
    for node in ast.walk(tree):
        match node:
            case ast.Subscript(slice=name, ctx=ast.Load()) if is_header(name):
                yield node.lineno
            case ast.Call(func=ast.Attribute(value=ast.Attribute(attr="audit"))):
                # What a record says of where it came from: written by this house, not by a caller.
                continue
            case ast.Call(func=ast.Attribute(attr=called) | ast.Name(id=called), args=[name, *_]) if (
                called in GETTERS and is_header(name)
            ):
                yield node.lineno
            case ast.Call(func=ast.Attribute(attr="ScopeContext") | ast.Name(id="ScopeContext")):
                yield node.lineno
            case ast.Compare() if any(isinstance(side, ast.Constant) and is_header(side) for side in compared(node)):
                yield node.lineno
            case ast.MatchValue(value=name) if is_header(name):
                yield node.lineno


@cache
def findings():
    sources = [path for path in ROOT.rglob("*.py") if path != ONLY_ENTRY]
    assert len(sources) > 100
    return [
        f"{path.relative_to(ROOT)}:{line}" for path in sources for line in reads(ast.parse(path.read_text(), str(path)))
    ]


def test_only_normalize_reads_an_id_from_a_header_or_makes_a_scope():
    assert findings() == []


def test_normalize_itself_would_be_found():
    assert [*reads(ast.parse(ONLY_ENTRY.read_text()))]


@pytest.mark.parametrize(
    "source",
    [
        "tenant = request.headers['X-Tenant-ID']",
        "tenant = request.headers.get('x-tenant-id', 'default')",
        "user = environ['HTTP_X_USER_ID']",
        "key = headers.getlist('Idempotency-Key')",
        "for name, value in scope['headers']:\n    if name == b'authorization': token = value",
        "for name, value in scope['headers']:\n    if name in {b'x-api-key', b'cookie'}: token = value",
        "def route(tenant: Annotated[str, Header('X-Tenant-ID')]): ...",
        "envelope = request.headers.get(TASK_HEADER)",
        "match name:\n    case b'traceparent': parent = value",
        "ctx = ScopeContext(tenant_id='x')",
        "ctx = scope.ScopeContext(tenant_id='x')",
    ],
)
def test_a_read_is_found_however_it_is_written(source):
    assert [*reads(ast.parse(source))]


@pytest.mark.parametrize(
    "source",
    [
        "headers = {'traceparent': trace, 'Authorization': token}",
        "headers['Idempotency-Key'] = key",
        "NEVER_KEPT = frozenset({b'authorization', b'set-cookie'})",
        "value = headers.get('content-type')",
        "if TASK_HEADER in headers: return",
        "trace = record.about.audit.get('traceparent')",
    ],
)
def test_sending_or_naming_a_header_is_no_read(source):
    assert [*reads(ast.parse(source))] == []
