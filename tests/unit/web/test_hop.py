"""A request is a hop: its trace goes on, and what runs inside shares one scope, whoever asks and in every mode."""

import errno

import pytest

from sameas import current_context
from sameas.identity.scope import Case, ScopeError, current_principal, current_scope
from sameas.once.store import Query
from sameas.stores.memory import MemoryBackend
from sameas.testing.clock import MovableClock
from sameas.web import RoutePolicy, capture
from tests.unit.web.asking import Handler, ask, guarded
from tests.unit.web.test_tenants import Desk, bearer

pytestmark = pytest.mark.anyio

KEY = '"order-1"'
TRACE = "0af7651916cd43dd8448eb211c80319c"
TRACED = [("traceparent", f"00-{TRACE}-b7ad6b7169203331-01")]
MODES = ["enforce", "shadow"]


class Inside(Handler):
    """Looks at its scope, twice."""

    async def __call__(self, scope, receive, send):
        self.scope, self.again = current_scope.get(), current_scope.get()
        self.principal = current_principal.get()
        await super().__call__(scope, receive, send)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("key", [KEY, None], ids=["keyed", "keyless"])
async def test_the_trace_goes_on_where_nobody_authenticates(mode, key):
    handler = Inside()
    await ask(guarded(handler, mode=mode), key=key, headers=[*TRACED, ("X-Tenant-ID", "somebody's")])
    assert handler.scope.trace_id == TRACE
    assert handler.scope.tenant_id == ""
    assert handler.scope.idempotency_key == ("order-1" if key else None)
    assert handler.again is handler.scope
    assert current_scope.get() is None


async def test_requests_that_are_not_acted_on_are_hops_too():
    handler = Inside()
    app = guarded(handler, authenticator=Desk())
    await ask(app, method="GET", headers=TRACED)
    assert handler.scope.trace_id == TRACE
    assert handler.principal is None


async def test_without_a_tenant_there_is_no_scope():
    handler = Inside()
    await ask(guarded(handler, any_tenant=False), headers=TRACED)
    assert handler.scope is None
    await ask(guarded(handler, tenant_of=lambda scope: "acme"), headers=TRACED)
    assert handler.scope.tenant_id == "acme"


@pytest.mark.parametrize("mode", MODES)
async def test_the_record_and_the_scope_that_somebody_asks_for_are_of_one_hop(mode):
    handler = Inside()
    app = guarded(handler, mode=mode)
    await ask(app, key=KEY)
    (record,) = (await app.engine.find(Query())).records
    assert record.about.audit == {
        "trace_id": handler.scope.trace_id,
        "invocation_id": handler.scope.invocation_id,
        "idempotency_key": "order-1",
    }


async def test_a_scope_that_nobody_asks_for_is_not_made():
    asked = []
    app = guarded(Handler(), tenant_of=lambda scope: asked.append(1) or "acme")
    assert (await ask(app, key=KEY)).status == 201
    # For the record alone.
    assert len(asked) == 1


@pytest.mark.parametrize("mode", MODES)
async def test_the_handler_knows_who_was_authenticated(mode):
    handler = Inside()
    app = guarded(handler, mode=mode, authenticator=Desk())
    await ask(app, key=KEY, headers=[*bearer("acme/ann"), *TRACED])
    assert handler.principal.user_id == "ann"
    assert (handler.scope.user_id, handler.scope.trace_id) == ("ann", TRACE)
    assert current_principal.get() is None


async def case_of(principal, scope):
    wanted = dict(scope["headers"]).get(b"x-case-id")
    if wanted is None:
        return None
    if wanted != b"case-1":
        raise ScopeError("there is no such case", code="case-unknown", status=403)
    return Case(case_id="case-1", tenant_id=principal.tenant_id)


async def test_a_route_can_require_a_case_that_the_principal_may_see():
    handler = Inside()
    app = guarded(handler, authenticator=Desk(), case_of=case_of, case_required=True)
    named = [*bearer("acme/ann"), ("X-Case-ID", "case-1")]
    assert (await ask(app, key=KEY, headers=named)).status == 201
    assert handler.scope.case_id == "case-1"
    assert (await ask(app, key=KEY, headers=bearer("acme/ann"))).status == 400
    assert (await ask(app, key=KEY, headers=[*bearer("acme/ann"), ("X-Case-ID", "case-2")])).status == 403
    assert handler.runs == 1


async def test_a_route_that_starts_a_run_needs_its_id():
    app = guarded(Inside(), authenticator=Desk(), routes={"POST /orders": RoutePolicy(starts="ingestion")})
    assert (await ask(app, key=KEY, headers=bearer("acme/ann"))).status == 400


@pytest.mark.parametrize("mode", MODES)
async def test_work_finds_its_context_in_every_mode(mode):
    class Charging(Handler):
        async def __call__(self, scope, receive, send):
            self.child = current_context().child_key("payment")
            await super().__call__(scope, receive, send)

    handler = Charging()
    assert (await ask(guarded(handler, mode=mode), key=KEY)).status == 201
    assert handler.child.startswith("sha256-")
    with pytest.raises(LookupError):
        current_context()


class Charging(Handler):
    """Calls on with a key of its own, as a handler that pays does."""

    def __init__(self, **settings):
        super().__init__(**settings)
        self.children = []

    async def __call__(self, scope, receive, send):
        self.children.append(current_context().child_key("payment"))
        assert current_scope.get() is not None
        await super().__call__(scope, receive, send)


@pytest.mark.parametrize(
    ("settings", "request_"),
    [
        ({}, {"key": KEY}),
        ({}, {"key": KEY, "headers": bearer("acme/ann")}),
        ({}, {"key": KEY, "user": "ann"}),
        ({"tenant_of": lambda scope: "acme"}, {"key": KEY}),
        ({"principal_of": lambda scope: "ann"}, {"key": KEY}),
    ],
)
async def test_a_child_key_is_the_same_in_every_mode_and_at_every_attempt(settings, request_):
    handler = Charging()
    for mode in ("enforce", "shadow", "off"):
        app = guarded(handler, mode=mode, **settings)
        for _ in range(2):
            assert (await ask(app, **request_)).status == 201
    # Enforced it ran once; the others ran both.
    assert (len(handler.children), len(set(handler.children))) == (5, 1)
    with pytest.raises(LookupError):
        current_context()


@pytest.mark.parametrize("mode", ["shadow", "off"])
@pytest.mark.parametrize(
    "settings",
    [{"key": "required"}, {"key": "required", "authenticator": Desk()}, {"key": "content", "authenticator": Desk()}],
)
async def test_a_request_that_would_be_refused_has_a_context_of_its_own(mode, settings):
    handler = Charging()
    app = guarded(handler, mode=mode, **settings)
    for key in (None, None, "a b"):
        assert (await ask(app, key=key)).status == 201
    assert len(set(handler.children)) == 3


async def test_under_shadow_callers_whom_the_authenticator_refuses_do_not_share_a_child_key():
    handler = Charging()
    app = guarded(handler, mode="shadow", authenticator=Desk())
    for _ in range(2):
        assert (await ask(app, key=KEY)).status == 201
    assert len(set(handler.children)) == 2


async def test_off_tells_the_callers_of_an_authenticator_apart_without_asking_it():
    desk, handler = Desk(), Charging()
    app = guarded(handler, mode="off", authenticator=desk)
    for who in ("acme/ann", "acme/bob", "acme/ann"):
        await ask(app, key=KEY, headers=bearer(who))
    assert handler.children[0] == handler.children[2] != handler.children[1]
    assert desk.asked == 0


@pytest.mark.parametrize("mode", ["shadow", "off"])
async def test_two_credentials_under_one_key_have_child_keys_of_their_own(mode):
    handler = Charging()
    app = guarded(handler, mode=mode)
    for headers in (bearer("acme/ann"), bearer("acme/bob"), [], bearer("acme/bob"), bearer("acme/ann"), []):
        assert (await ask(app, key=KEY, headers=headers)).status == 201
    ann, bob, nobody, *again = handler.children
    assert len({ann, bob, nobody}) == 3
    assert again == [bob, ann, nobody]


async def test_a_key_that_comes_with_another_credential_when_its_record_is_gone_has_child_keys_of_its_own():
    handler, clock = Charging(), MovableClock()
    app = guarded(handler, backend=MemoryBackend(clock), expires_after=60)
    for who in ("acme/ann", "acme/bob"):
        assert (await ask(app, key=KEY, headers=bearer(who))).status == 201
        clock.advance(61)
    assert len(set(handler.children)) == 2


async def test_under_shadow_another_request_under_a_key_has_child_keys_of_its_own():
    handler = Charging()
    app = guarded(handler, mode="shadow")
    for amount in (1, 2, 2, 1):
        assert (await ask(app, key=KEY, json={"amount": amount})).status == 201
    one, two, *again = handler.children
    assert one != two
    assert again == [two, one]


async def test_under_shadow_the_content_gives_the_same_child_key():
    handler = Charging()
    for mode in ("enforce", "shadow", "shadow"):
        await ask(guarded(handler, mode=mode, key="content"), json={"a": 1})
    assert len(set(handler.children)) == 1


async def test_two_lengths_are_refused():
    handler = Handler()
    both = [("Content-Length", "2"), ("Transfer-Encoding", "chunked")]
    reply = await ask(guarded(handler), key=KEY, body=b"{}", headers=both)
    assert (reply.status, reply.json["type"]) == (400, "urn:sameas:problem:body-ambiguous")
    assert handler.runs == 0


@pytest.fixture
def full_disk(monkeypatch):
    def full(**options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(capture, "TemporaryFile", full)


PIECES = [b"x" * capture.IN_MEMORY, b"y" * 10, b"z" * 10]


@pytest.mark.usefixtures("full_disk")
async def test_under_shadow_a_full_disk_changes_nothing():
    handler = Handler(pieces=PIECES, body=b"end")
    app = guarded(handler, mode="shadow")
    reply = await ask(app, key=KEY, pieces=PIECES, body=b"last")
    assert handler.bodies == [b"".join(PIECES) + b"last"]
    assert (reply.status, reply.body) == (201, b"".join(PIECES) + b"end")
    assert [shadowed.code for shadowed in app.shadow.latest] == ["no-room"]


@pytest.mark.usefixtures("full_disk")
async def test_an_answer_for_which_there_is_no_room_is_not_run_again():
    handler = Handler(pieces=PIECES)
    app = guarded(handler)
    first, second = [await ask(app, key=KEY) for _ in range(2)]
    assert handler.runs == 1
    assert [first.status, second.status] == [409, 409]
    assert first.json["original_status"] == second.json["original_status"] == 201
    assert first.json["type"] == "urn:sameas:problem:answer-not-kept"


async def test_under_shadow_an_authenticator_that_fails_is_a_verdict():
    class Broken:
        async def authenticate(self, credentials):
            raise ZeroDivisionError

    handler = Handler()
    app = guarded(handler, mode="shadow", authenticator=Broken())
    assert (await ask(app, key=KEY, json={"a": 1})).status == 201
    assert handler.bodies == [b'{"a": 1}']
    assert [shadowed.code for shadowed in app.shadow.latest] == ["ZeroDivisionError"]


async def test_under_shadow_a_body_over_the_limit_reaches_the_handler_whole():
    handler = Handler()
    app = guarded(handler, mode="shadow", body_limit=15)
    await ask(app, key=KEY, pieces=[b"0123456789", b"0123456789"], body=b"end")
    await ask(app, key=KEY, body=b"0" * 20, headers=[("Content-Length", "20")])
    assert handler.bodies == [b"01234567890123456789end", b"0" * 20]
