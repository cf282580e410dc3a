"""One request as ASGI messages. Needs nothing but the standard library, for the peers' process reads it too."""

import json

HEADERS = [
    (b"host", b"127.0.0.1:8000"),
    (b"user-agent", b"bench"),
    (b"accept", b"*/*"),
    (b"content-type", b"application/json"),
]


def order(number: int) -> bytes:
    customer = {"name": "Ann", "city": "Oslo"}
    return json.dumps({"item": f"a book {number}", "quantity": 3, "amount": 12.5, "customer": customer}).encode()


async def request(app, number: int) -> None:
    body = order(number)
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": "/orders",
        "raw_path": b"/orders",
        "query_string": b"",
        "root_path": "",
        "headers": [*HEADERS, (b"content-length", b"%d" % len(body)), (b"idempotency-key", b'"key-%d"' % number)],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8000),
    }
    statuses = []

    async def receive():
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message):
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    await app(scope, receive, send)
    assert statuses == [201]
