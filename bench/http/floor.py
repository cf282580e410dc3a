"""What one writes by hand: SET NX, run, SET. No lease, no fence, no waiting, no comparison of requests.

SET with NX and GET is one round trip for the claim and also for the replay, so that the floor makes as few as can be.
Before Redis 7 they do not go together: then SET NX and GET are sent at once, which is one round trip too.
"""

import json

from redis.asyncio import Redis

RUNNING = b"running"
EXPIRES_SECONDS = 86_400


class FloorMiddleware:
    """A middleware of forty lines, as quick as it can be."""

    def __init__(self, app, *, redis: Redis):
        self.app = app
        self.redis = redis
        self.together = None

    async def _claim(self, name):
        """What is kept, or None where it is ours."""
        if self.together is None:
            self.together = int((await self.redis.info("server"))["redis_version"].partition(".")[0]) >= 7
        if self.together:
            return await self.redis.set(name, RUNNING, nx=True, get=True, ex=EXPIRES_SECONDS)
        async with self.redis.pipeline(transaction=False) as both:
            is_ours, kept = await both.set(name, RUNNING, nx=True, ex=EXPIRES_SECONDS).get(name).execute()
        return None if is_ours else kept

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http" or scope["method"] != "POST":
            await self.app(scope, receive, send)
            return
        key = next((value for name, value in scope["headers"] if name == b"idempotency-key"), None)
        if key is None:
            await self.app(scope, receive, send)
            return
        name = b"floor:" + key
        kept = await self._claim(name)
        if kept == RUNNING:
            await send({"type": "http.response.start", "status": 409, "headers": []})
            await send({"type": "http.response.body", "body": b""})
            return
        if kept is not None:
            head, _, body = kept.partition(b"\n")
            status, headers = json.loads(head)
            raw = [(header.encode("latin-1"), value.encode("latin-1")) for header, value in headers]
            raw.append((b"x-idempotency-replayed", b"true"))
            await send({"type": "http.response.start", "status": status, "headers": raw})
            await send({"type": "http.response.body", "body": body})
            return
        start = {}
        pieces = []

        async def hold(message):
            if message["type"] == "http.response.start":
                start.update(message)
                return
            pieces.append(message.get("body", b""))
            if message.get("more_body"):
                return
            body = b"".join(pieces)
            headers = [(header.decode("latin-1"), value.decode("latin-1")) for header, value in start["headers"]]
            head = json.dumps([start["status"], headers]).encode()
            await self.redis.set(name, head + b"\n" + body, ex=EXPIRES_SECONDS)
            await send({**start, "headers": [*start["headers"], (b"x-idempotency-replayed", b"false")]})
            await send({"type": "http.response.body", "body": body})

        await self.app(scope, receive, hold)
