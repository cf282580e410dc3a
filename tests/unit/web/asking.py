"""Asking an ASGI application by hand: any header, any pieces of a body, a client that goes away."""

import asyncio
import json as json_module
from dataclasses import dataclass, field

from sameas import AsyncEngine
from sameas.once.store import AsyncStore
from sameas.stores.memory import MemoryBackend
from sameas.web import IdempotencyMiddleware, RoutePolicy


@dataclass
class Reply:
    """What came back; `messages` are the server's view."""

    messages: list = field(default_factory=list)

    @property
    def status(self):
        return self.messages[0]["status"]

    @property
    def headers(self):
        return {name.decode(): value.decode("latin-1") for name, value in self.messages[0]["headers"]}

    @property
    def body(self):
        return b"".join(message.get("body", b"") for message in self.messages[1:])

    @property
    def json(self):
        return json_module.loads(self.body)

    @property
    def replayed(self):
        return self.headers.get("x-idempotency-replayed")

    @property
    def complete(self):
        return bool(self.messages) and not self.messages[-1].get(
            "more_body", self.messages[-1]["type"].endswith("start")
        )


def http_scope(path="/orders", method="POST", headers=(), query=b"", **more):
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query,
        "root_path": "",
        "headers": list(headers),
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
        **more,
    }


async def ask(app, path="/orders", *, key=None, json=None, body=None, pieces=None, headers=(), reply=None, **scope):
    """One request. `pieces` are the messages of its body; `key` is the raw header, or several."""
    sent = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers]
    keys = key if isinstance(key, list) else [] if key is None else [key]
    sent += [(b"idempotency-key", each if isinstance(each, bytes) else each.encode("latin-1")) for each in keys]
    if json is not None:
        body = json_module.dumps(json).encode()
        sent.append((b"content-type", b"application/json"))
    waiting = [{"type": "http.request", "body": piece, "more_body": True} for piece in pieces or ()]
    waiting.append({"type": "http.request", "body": body or b"", "more_body": False})
    reply = reply if reply is not None else Reply()

    async def receive():
        if waiting:
            return waiting.pop(0)
        return await asyncio.Event().wait()

    async def send(message):
        reply.messages.append(message)

    await app(http_scope(path, headers=sent, **scope), receive, send)
    return reply


class Handler:
    """An application that counts its runs and answers what it is told to."""

    def __init__(self, status=201, body=b'{"order": 1}', headers=(), pieces=None, error=None, gate=None, kind=None):
        self.runs = 0
        self.kind = kind or b"application/json"
        self.bodies = []
        self.status = status
        self.body = body
        self.headers = headers
        self.pieces = pieces
        self.error = error
        self.gate = gate
        self.started = asyncio.Event()

    async def __call__(self, scope, receive, send):
        self.runs += 1
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        self.bodies.append(body)
        self.started.set()
        if self.gate is not None:
            await self.gate.wait()
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        headers = [(b"content-type", self.kind), *self.headers]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        for piece in self.pieces or ():
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": self.body})


def guarded(app, *, backend=None, policies=None, engine=None, secret=b"", **options):
    """The application behind the middleware; a RoutePolicy's settings may be given as they are."""
    engine = engine or AsyncEngine(AsyncStore(backend or MemoryBackend()), secret=secret, policies=policies)
    mine = {
        "mode",
        "authenticator",
        "routes",
        "shadow",
        "any_tenant",
        "tenant_of",
        "principal_of",
        "credential_headers",
        "case_of",
        "grace_seconds",
        "prune_every",
    }
    settings = {name: options.pop(name) for name in list(options) if name not in mine}
    return IdempotencyMiddleware(app, engine=engine, defaults=RoutePolicy(**settings), **options)
