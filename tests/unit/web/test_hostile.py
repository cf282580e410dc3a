"""What clients make up and what applications get wrong: bounded, kept apart, and never kept where it cannot be sent."""

import errno

import httpx
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Host, Mount, Route

from sameas import AsyncEngine, open_async_store
from sameas.once.store import Query
from sameas.web import IdempotencyMiddleware, RoutePolicy, capture
from sameas.web.capture import Spool
from sameas.web.fingerprint import Fingerprints
from sameas.web.table import RouteTable
from tests.unit.web.asking import Handler, ask, guarded, http_scope

pytestmark = pytest.mark.anyio

JSON = b"application/json"
LONG = "n" * 100_000


async def fingerprint(body, *, kind=JSON, query=b"", prints=None):
    return await (prints or Fingerprints(b"")).of(("POST", "/orders", query, kind), b"", Spool(body), RoutePolicy())


def form(*names):
    parts = (f'--b\r\nContent-Disposition: form-data; name="{name}"\r\n\r\nx\r\n' for name in names)
    return "".join(parts).encode() + b"--b--\r\n"


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (JSON, f'{{"{LONG}": 1}}'.encode()),
        (JSON, f'{{"{LONG}": 1.50}}'.encode()),
        (JSON, f'{{"\u00e9{LONG}": 1}}'.encode()),
        (b"multipart/form-data; boundary=b", form("n" * 10_000)),
    ],
    ids=["usual", "strict", "not ascii", "multipart"],
)
async def test_a_name_that_a_client_makes_up_does_not_fill_the_record(kind, body):
    print_ = await fingerprint(body, kind=kind)
    assert len(print_) < 1_000
    assert print_ != await fingerprint(body.replace(b"nn", b"no", 1), kind=kind)


async def test_long_names_count_by_their_content_as_short_ones_do():
    told = {
        await fingerprint(body.replace(b"NAME", LONG.encode()))
        for body in (b'{"NAME":1,"b":2}', b'{ "b": 2, "NAME": 1 }', b'{"b":2.0,"NAME":1}', b'{"\\u0062":2,"NAME":1}')
    }
    assert len(told) == 1


async def test_a_mismatch_does_not_send_back_what_a_client_made_up():
    app = guarded(Handler())
    await ask(app, key="a", json={LONG: 1})
    reply = await ask(app, key="a", json={f"{LONG}o": 1})
    assert reply.status == 422
    assert len(reply.body) < 1_000


async def test_a_second_content_type_is_refused_unread():
    handler = Handler()
    twice = [("Content-Type", "multipart/form-data; boundary=a"), ("Content-Type", "multipart/form-data; boundary=b")]
    reply = await ask(guarded(handler), key='"k"', body=b"--a--", headers=twice)
    assert (reply.status, reply.json["type"]) == (400, "urn:sameas:problem:body-ambiguous")
    assert handler.runs == 0


async def test_long_request_lines_are_not_remembered():
    prints = Fingerprints(b"")
    table = RouteTable(None, {}, RoutePolicy())
    for number in range(3):
        long = f"{number}" * 2_000
        assert await fingerprint(b"{}", query=long.encode(), prints=prints) == await fingerprint(
            b"{}", query=long.encode(), prints=prints
        )
        assert table.find(http_scope(f"/{long}")) is not None
    assert not prints._seen
    assert not prints._line.cache_info().currsize
    assert not table._known


def named(name):
    async def endpoint(request):
        return PlainTextResponse(name)

    return endpoint


def application(name, *middleware):
    return Starlette(routes=[Route("/orders", named(name), methods=["POST"])], middleware=middleware)


async def answers(app, *urls):
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app)) as client:
        replies = [
            # The host as it is written: the client would send it in lower case.
            await client.post(url, json={"item": 1}, headers={"Idempotency-Key": "one", "Host": url.split("/")[2]})
            for url in urls
        ]
    return [(reply.status_code, reply.text) for reply in replies]


@pytest.fixture
async def shield():
    engine = AsyncEngine(open_async_store("memory://"))
    yield Middleware(IdempotencyMiddleware, engine=engine)
    await engine.close()


async def test_two_hosts_with_one_path_and_one_key_never_meet(shield):
    hosts = [
        Host("a.test", application("a")),
        Host("b.test", application("b")),
        Host("{name}.c.test", application("c")),
    ]
    app = Starlette(routes=hosts, middleware=[shield])
    assert await answers(app, "http://a.test/orders", "http://b.test/orders") == [(200, "a"), (200, "b")]
    one, other, again = await answers(
        app, "http://one.c.test/orders", "http://other.c.test/orders", "http://ONE.c.test/orders"
    )
    assert (one, other[0], again) == ((200, "c"), 422, (200, "c"))


@pytest.mark.parametrize("inside", [True, False], ids=["a middleware each", "one for both"])
async def test_two_mounted_applications_with_one_route_and_one_key_never_meet(shield, inside):
    within, around = ([shield], []) if inside else ([], [shield])
    mounts = [Mount(f"/{name}", application(name, *within)) for name in ("a", "b")]
    app = Starlette(routes=mounts, middleware=around)
    assert await answers(app, "http://test/a/orders", "http://test/b/orders") == [(200, "a"), (200, "b")]


def test_where_the_deployment_put_everything_is_no_part_of_a_scopes_name():
    scope = http_scope("/proxy/a/orders", root_path="/proxy/a", app_root_path="/proxy", app=application("a"))
    assert RouteTable(None, {}, RoutePolicy()).find(scope).scope_name == "POST /a/orders"


async def test_clients_do_not_make_up_the_names_of_scopes_by_the_values_of_a_mount(shield):
    app = Starlette(routes=[Mount("/{name}", application("a", shield))])
    assert [status for status, _ in await answers(app, "http://test/one/orders", "http://test/two/orders")] == [
        200,
        422,
    ]
    kept = await shield.kwargs["engine"].find(Query())
    assert [record.identity.scope for record in kept.records] == ["POST /orders"]


async def test_a_body_for_which_the_disk_has_no_room_is_refused_for_now(monkeypatch):
    def full(**options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(capture, "TemporaryFile", full)
    handler = Handler()
    app = guarded(handler)
    reply = await ask(app, key="a", body=b"x" * 300_000, pieces=[b"x"])
    assert (reply.status, reply.json["type"], handler.runs) == (503, "urn:sameas:problem:no-room", 0)
    assert int(reply.headers["retry-after"]) >= 1
    assert (await ask(app, key="a", json={})).status == 201


def start(status=200, *headers):
    return {"type": "http.response.start", "status": status, "headers": list(headers)}


@pytest.mark.parametrize("delivery", ["hold", "passthrough"])
@pytest.mark.parametrize(
    "opening",
    [
        [],
        [start(0)],
        [start(99)],
        [start(600)],
        [start(200, (b"location", b"/a\r\nset-cookie: a=b"))],
        [start(200, (b"x-a\n", b"b"))],
        [start(200, ("content-type", "text/plain"))],
    ],
    ids=["no status", "0", "99", "600", "line break in a value", "in a name", "text for bytes"],
)
async def test_an_answer_that_no_server_can_send_is_not_kept(opening, delivery):
    runs = []

    async def broken(scope, receive, send):
        runs.append(scope)
        for message in opening:
            await send(message)
        await send({"type": "http.response.body", "body": b"done"})

    app = guarded(broken, delivery=delivery)
    for _ in range(2):
        with pytest.raises((RuntimeError, TypeError)):
            await ask(app, key="a", json={})
    assert len(runs) == 2


@pytest.mark.parametrize("delivery", ["hold", "passthrough"])
@pytest.mark.parametrize("size", [100, capture.IN_MEMORY], ids=["in memory", "on disk"])
async def test_an_answer_from_memory_that_is_used_again_is_kept_as_it_was(delivery, size):
    async def reads_into_one_buffer(scope, receive, send):
        buffer = bytearray(size)
        await send(start(200, (b"content-type", b"text/plain")))
        for letter in b"abc":
            buffer[:] = bytes([letter]) * size
            await send({"type": "http.response.body", "body": memoryview(buffer), "more_body": letter != b"c"[0]})
        buffer[:] = b"x" * size

    app = guarded(reads_into_one_buffer, delivery=delivery)
    first, replay = [await ask(app, key="a") for _ in range(2)]
    assert replay.body == b"a" * size + b"b" * size + b"c" * size
    assert replay.replayed == "true"
    if delivery == "hold":
        assert first.body == replay.body


async def test_a_request_from_memory_that_is_used_again_is_compared_as_it_was():
    handler = Handler()
    app = guarded(handler)

    async def asked(amounts):
        buffer, left, said = bytearray(11), list(amounts), []

        async def receive():
            buffer[:] = b"%011d" % left.pop(0)
            return {"type": "http.request", "body": memoryview(buffer), "more_body": bool(left)}

        async def send(message):
            said.append(message)

        await app(http_scope(headers=[(b"idempotency-key", b"a")]), receive, send)
        return said[0]["status"]

    assert await asked([1, 2]) == 201
    assert handler.bodies == [b"%011d%011d" % (1, 2)]
    # Both would be twice the second, if it were read when all is there.
    assert await asked([2, 2]) == 422
    assert await asked([1, 2]) == 201
    assert handler.runs == 1


async def test_headers_that_can_be_read_once_are_read_by_all():
    seen = []

    async def application(scope, receive, send):
        seen.append(dict(scope["headers"]))
        await Handler()(scope, receive, send)

    app = guarded(application)

    async def asked(token):
        said = []

        async def receive():
            return {"type": "http.request", "body": b""}

        async def send(message):
            said.append(message)

        sent = [(b"idempotency-key", b"a"), (b"authorization", token)]
        await app(http_scope(headers=[]) | {"headers": iter(sent)}, receive, send)
        return said[0]["status"]

    assert [await asked(b"Bearer ann"), await asked(b"Bearer bob"), await asked(b"Bearer ann")] == [201, 422, 201]
    assert [headers[b"authorization"] for headers in seen] == [b"Bearer ann"]
