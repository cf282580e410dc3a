"""Without an authenticator callers are told apart all the same, and nobody gets another's answer."""

import asyncio
import functools
from types import SimpleNamespace
from uuid import UUID

import pytest
from starlette.authentication import SimpleUser, UnauthenticatedUser

from sameas import AsyncEngine
from sameas.identity.ids import uuid7
from sameas.identity.scope import Case
from sameas.once.store import AsyncStore, Query
from sameas.stores.memory import MemoryBackend
from sameas.web import IdempotencyMiddleware, RoutePolicy, fingerprint
from tests.unit.web.asking import Handler, ask, guarded
from tests.unit.web.test_tenants import Desk

pytestmark = pytest.mark.anyio

KEY = '"order-1"'
ANN, BOB = SimpleUser("ann"), SimpleUser("bob")


def bearer(token):
    return [("Authorization", f"Bearer {token}")]


class Numbered(Handler):
    """Answers with the number of its run."""

    async def __call__(self, scope, receive, send):
        self.body = b"%d" % (self.runs + 1)
        await super().__call__(scope, receive, send)


async def test_a_tenant_that_is_routed_counts_without_an_authenticator():
    app = guarded(Numbered(), tenant_of=lambda scope: dict(scope["headers"])[b"host"].decode())
    for number, host in ((1, "one"), (2, "two"), (1, "one"), (2, "two")):
        assert (await ask(app, key=KEY, headers=[("Host", host)])).json == number
    assert {record.identity.tenant for record in (await app.engine.find(Query())).records} == {"one", "two"}


async def test_a_tenant_that_is_none_is_refused_where_one_is_insisted_on():
    handler = Handler()
    for tenant_of in (None, lambda scope: None, lambda scope: "acme"):
        refused = await ask(guarded(handler, tenant_of=tenant_of, any_tenant=False), key=KEY)
        assert refused.status == 400
    assert handler.runs == 0


@pytest.mark.parametrize(
    "who",
    [
        [ANN, BOB],
        ["ann", "bob"],
        [1, 2],
        [{"sub": "ann"}, {"sub": "bob"}],
        [SimpleNamespace(id=UUID(int=1)), SimpleNamespace(id=UUID(int=2))],
        [SimpleNamespace(pk=1, is_authenticated=True), SimpleNamespace(pk=2, is_authenticated=lambda: True)],
        [SimpleNamespace(id=1), {"id": 1}],
        [{"id": 5}, {"sub": "5"}],
        [type("User", (), {"__module__": module, "pk": 1})() for module in ("shop.customers", "shop.clerks")],
    ],
)
async def test_the_user_of_the_scope_has_keys_of_their_own(who):
    handler = Numbered()
    app = guarded(handler)
    for number, user in enumerate([*who, *who]):
        reply = await ask(app, key=KEY, user=user, headers=bearer(f"token {number}"))
        assert reply.json == number % 2 + 1
    assert handler.runs == 2


async def test_a_user_who_cannot_be_told_from_others_is_refused_with_what_to_do():
    handler = Handler()
    refused = await ask(guarded(handler), key=KEY, user=SimpleNamespace(display_name="Ann"))
    assert (refused.status, handler.runs) == (500, 0)
    assert refused.json["type"] == "urn:sameas:problem:caller-unknown"
    assert "principal_of=" in refused.json["detail"]


@pytest.mark.parametrize("nobody", [None, "", {}, UnauthenticatedUser(), SimpleNamespace(is_authenticated=False, pk=0)])
async def test_a_user_who_is_nobody_is_known_by_the_credential(nobody):
    handler = Handler()
    app = guarded(handler)
    assert (await ask(app, key=KEY, user=nobody, headers=bearer("a"))).status == 201
    assert (await ask(app, key=KEY, user=nobody, headers=bearer("b"))).status == 422
    assert handler.runs == 1


async def named_later(scope):
    await asyncio.sleep(0)
    return scope["session"].get("user")


@pytest.mark.parametrize("principal_of", [lambda scope: scope["session"].get("user"), named_later])
async def test_a_function_of_the_whole_scope_says_who_asks(principal_of):
    handler = Numbered()
    app = guarded(handler, principal_of=principal_of)
    for number, who in ((1, "ann"), (2, 7), (1, "ann"), (2, 7)):
        reply = await ask(app, key=KEY, session={"user": who}, user=ANN, headers=bearer(f"{number} {who}"))
        assert reply.json == number
    assert (await ask(app, key=KEY, session={}, user=BOB)).json == 3
    assert (await ask(app, key=KEY, session={}, user=BOB)).replayed == "true"


@pytest.mark.parametrize("named", [True, "", b"ann", 1.5, {"id": 1}])
async def test_what_names_nobody_is_an_error_and_no_run(named):
    handler = Handler()
    with pytest.raises(TypeError, match="principal_of"):
        await ask(guarded(handler, principal_of=lambda scope: named), key=KEY)
    assert handler.runs == 0


@pytest.mark.parametrize("names", ["principal_of", "authenticator"])
async def test_who_says_who_asks_and_fails_is_not_taken_for_a_full_disk(names):
    class Failing:
        async def __call__(self, asked):
            raise ConnectionError("canary")

        authenticate = __call__

    handler = Handler()
    with pytest.raises(ConnectionError, match="canary"):
        await ask(guarded(handler, **{names: Failing()}), key=KEY)
    assert handler.runs == 0


@pytest.mark.parametrize("key", ["optional", "content"])
@pytest.mark.parametrize("others", [bearer("b"), [], [("X-API-Key", "a")], [*bearer("a"), ("X-API-Key", "k")]])
async def test_another_credential_under_the_same_key_is_refused_and_nothing_runs_again(key, others):
    handler = Handler()
    app = guarded(handler, key=key)
    first = await ask(app, key=KEY, json={"amount": 1}, headers=bearer("a"))
    refused = await ask(app, key=KEY, json={"amount": 1}, headers=others)
    assert (refused.status, refused.json["fields"]) == (422, [":credential"])
    assert first.body not in refused.body
    assert (await ask(app, key=KEY, json={"amount": 1}, headers=bearer("a"))).replayed == "true"
    assert handler.runs == 1


async def test_another_credential_is_refused_while_the_first_is_in_progress():
    handler = Handler(gate=asyncio.Event())
    app = guarded(handler)
    first = asyncio.create_task(ask(app, key=KEY, headers=bearer("a")))
    await handler.started.wait()
    assert (await ask(app, key=KEY, headers=bearer("b"))).status == 422
    handler.gate.set()
    await first
    assert handler.runs == 1


async def test_another_credential_is_told_nothing_of_what_was_sent():
    app = guarded(Handler())
    await ask(app, key=KEY, json={"amount": 1, "to": "ann"}, headers=bearer("a"))
    guess = await ask(app, key=KEY, json={"amount": 2, "to": "ann"}, headers=bearer("b"))
    assert guess.json["fields"] == [":credential"]
    own = await ask(app, key=KEY, json={"amount": 2, "to": "ann"}, headers=bearer("a"))
    assert own.json["fields"] == ["amount"]


async def test_headers_that_a_deployment_lists_are_credentials_and_cookies_never_are():
    handler = Handler()
    app = guarded(handler, credential_headers=["X-Session"])
    for session, cookie, status in (("s1", "a=1", 201), ("s1", "a=2", 201), ("s2", "a=1", 422)):
        reply = await ask(app, key=KEY, headers=[("X-Session", session), ("Cookie", cookie)])
        assert reply.status == status
    for name in ("Authorization", "X-API-Key"):
        assert (await ask(app, key=KEY, headers=[("X-Session", "s1"), (name, "k")])).status == 422
    assert handler.runs == 1
    with pytest.raises(ValueError, match="principal_of"):
        guarded(handler, credential_headers=["Cookie"])


async def test_callers_who_show_nothing_are_one():
    handler = Handler()
    app = guarded(handler)
    await ask(app, key=KEY, headers=[("Cookie", "visitor=1")])
    assert (await ask(app, key=KEY, headers=[("Cookie", "visitor=2")])).replayed == "true"


async def test_a_key_that_looks_like_anothers_is_not():
    handler = Numbered()
    app = guarded(handler)
    await ask(app, key=KEY, user=ANN)
    (record,) = (await app.engine.find(Query())).records
    assert (await ask(app, key=f'"{record.identity.key}"')).json == 2
    assert (await ask(app, key=f'"{record.identity.key}"')).replayed == "true"


async def test_a_shared_scope_is_everybodys():
    handler = Handler()
    app = guarded(handler, shared=True)
    for who in ({"user": ANN}, {"user": BOB}, {"headers": bearer("a")}, {"headers": bearer("b")}, {}):
        await ask(app, key=KEY, **who)
    assert handler.runs == 1


async def test_no_credential_is_in_the_record():
    app = guarded(Handler(), secret=b"of this deployment")
    await ask(app, key=KEY, headers=bearer("credential-canary"))
    (record,) = (await app.engine.find(Query())).records
    kept = await app.engine.store.read(record.identity)
    assert "canary" not in repr((record, kept))


async def test_how_long_a_body_takes_tells_nothing_of_what_other_credentials_sent(monkeypatch):
    import json

    parsed = []
    monkeypatch.setattr(fingerprint, "parse_json", lambda data: parsed.append(data) or json.loads(data))
    app = guarded(Handler())
    for who, known in (("a", 1), ("a", 1), ("b", 2), ("a", 2)):
        await ask(app, key=KEY, json={"a": 1.0}, headers=bearer(who))
        assert len(parsed) == known


@pytest.mark.parametrize("mode", ["enforce", "shadow"])
async def test_what_needs_an_authenticator_says_so(mode):
    engine = AsyncEngine(AsyncStore(MemoryBackend()))
    with pytest.raises(ValueError, match="authenticator"):
        IdempotencyMiddleware(Handler(), engine=engine, case_of=lambda principal, scope: None)
    with pytest.raises(ValueError, match="not both"):
        guarded(Handler(), authenticator=object(), principal_of=lambda scope: "ann")
    handler = Handler()
    app = guarded(handler, mode=mode, routes={"POST /orders": RoutePolicy(case_required=True)})
    if mode == "enforce":
        with pytest.raises(RuntimeError, match="authenticator"):
            await ask(app, key=KEY)
    else:
        await ask(app, key=KEY)
        assert [shadowed.code for shadowed in app.shadow.latest] == ["RuntimeError"]


@pytest.mark.parametrize("credential", [[], [("X-API-Key", "of the app that both use")]])
@pytest.mark.parametrize("delivery", ["hold", "passthrough"])
async def test_a_caller_who_is_recognised_too_late_gets_an_answer_that_nobody_else_gets(delivery, credential, caplog):
    """The session's cookie is read inside of the middleware, which took both for one caller."""
    from starlette.applications import Starlette
    from starlette.authentication import AuthCredentials, AuthenticationBackend
    from starlette.middleware import Middleware
    from starlette.middleware.authentication import AuthenticationMiddleware
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    class Sessions(AuthenticationBackend):
        async def authenticate(self, connection):
            who = connection.cookies.get("session")
            return (AuthCredentials(), SimpleUser(who)) if who else None

    runs = []

    async def pay(request):
        runs.append(request.user.display_name)
        return JSONResponse({"paid by": request.user.display_name})

    inner = Starlette(
        routes=[Route("/orders", pay, methods=["POST"])],
        middleware=[Middleware(AuthenticationMiddleware, backend=Sessions())],
    )
    app = guarded(inner, delivery=delivery)
    ann, bob = ([("Cookie", f"session={who}"), *credential] for who in ("ann", "bob"))
    assert (await ask(app, key=KEY, headers=ann)).json == {"paid by": "ann"}
    for who in (ann, bob):
        refused = await ask(app, key=KEY, headers=who)
        assert (refused.status, refused.json["type"]) == (409, "urn:sameas:problem:answer-not-kept")
        assert "inside of what authenticates" in refused.json["detail"]
    assert runs == ["ann"]
    assert "inside of what authenticates" in caplog.text
    # Where nobody is recognised, there is nobody to tell apart.
    await ask(app, key='"order-2"')
    assert (await ask(app, key='"order-2"')).replayed == "true"


async def test_credentials_without_a_secret_are_warned_about_once(caplog):
    app = guarded(Handler())
    for _ in range(2):
        await ask(app, key=KEY, headers=bearer("a"))
    assert caplog.text.count("give the engine a secret") == 1
    caplog.clear()
    await ask(guarded(Handler(), secret=b"of this deployment"), key=KEY, headers=bearer("a"))
    assert "secret" not in caplog.text


async def tenant_later(scope):
    return "acme"


class TenantLater:
    async def __call__(self, scope):
        return "acme"


@pytest.mark.parametrize("tenant_of", [tenant_later, TenantLater(), functools.partial(tenant_later)])
def test_an_async_tenant_of_is_refused_with_what_to_do(tenant_of):
    with pytest.raises(TypeError, match=r"tenant_of.*middleware outside of this one.*tenant_of=lambda"):
        guarded(Handler(), tenant_of=tenant_of)


@pytest.mark.parametrize("authenticator", [None, Desk()])
@pytest.mark.parametrize(
    ("tenant_of", "said"),
    [(lambda scope: tenant_later(scope), r"tenant_of=lambda"), (lambda scope: 7, r"as text, or None.*not int")],
)
async def test_so_is_one_that_shows_it_only_when_it_is_asked(tenant_of, said, authenticator):
    handler = Handler()
    app = guarded(handler, tenant_of=tenant_of, authenticator=authenticator)
    with pytest.raises(TypeError, match=said):
        await ask(app, key=KEY, headers=bearer("acme/ann"))
    assert handler.runs == 0


async def test_case_of_may_be_async_or_not():
    case = Case(case_id=str(uuid7()), tenant_id="acme")

    async def later(principal, scope):
        return case

    for case_of in (later, lambda principal, scope: case):
        app = guarded(Handler(), authenticator=Desk(), case_of=case_of, case_required=True)
        assert (await ask(app, key=KEY, headers=bearer("acme/ann"))).status == 201


def test_an_async_rule_for_statuses_is_refused():
    async def keeps(status):
        return False

    with pytest.raises(TypeError, match="keeps must not be async"):
        RoutePolicy(keeps=keeps)
