"""Whose answer it is: tenants, principals and scopes never meet, and nobody is authenticated by a replay."""

import hashlib
import json

import pytest

from sameas import StoreUnavailable
from sameas.identity.scope import Principal, current_scope
from sameas.once.store import Query
from sameas.tenancy.authenticator import Unauthorized
from sameas.web import RoutePolicy, fingerprint
from tests.unit.web.asking import Handler, ask, guarded

pytestmark = pytest.mark.anyio

KEY = '"order-1"'


class Desk:
    """Tokens are `tenant/user`; some are revoked."""

    def __init__(self):
        self.revoked = set()
        self.asked = 0

    async def authenticate(self, credentials):
        self.asked += 1
        if credentials is None:
            return None
        if credentials.token in self.revoked:
            raise Unauthorized("this credential was revoked")
        tenant, user = credentials.token.split("/")
        return Principal(tenant_id=tenant, user_id=user)


def bearer(token):
    return [("Authorization", f"Bearer {token}")]


class Echo(Handler):
    async def __call__(self, scope, receive, send):
        ctx = current_scope.get()
        self.body = f'"{ctx.tenant_id}/{ctx.user_id}"'.encode()
        await super().__call__(scope, receive, send)


async def test_a_principal_gets_only_its_own_answers():
    handler = Echo()
    app = guarded(handler, authenticator=Desk())
    for who in ("t1/ann", "t1/bob", "t2/ann", "a:b/c", "a/b:c"):
        assert (await ask(app, key=KEY, headers=bearer(who))).json == who
        again = await ask(app, key=KEY, headers=bearer(who))
        assert (again.json, again.replayed) == (who, "true")
    assert handler.runs == 5


async def test_how_long_a_body_takes_tells_nothing_of_what_others_sent(monkeypatch):
    parsed = []
    monkeypatch.setattr(fingerprint, "parse_json", lambda data: parsed.append(data) or json.loads(data))
    app = guarded(Handler(), authenticator=Desk())
    for who, known in (("acme/ann", 1), ("acme/ann", 1), ("acme/bob", 2), ("other/ann", 3), ("acme/ann", 3)):
        await ask(app, key=KEY, json={"a": 1.0}, headers=bearer(who))
        assert len(parsed) == known


async def test_a_shared_scope_is_shared_within_the_tenant():
    handler = Echo()
    app = guarded(handler, authenticator=Desk(), shared=True)
    await ask(app, key=KEY, headers=bearer("t1/ann"))
    assert (await ask(app, key=KEY, headers=bearer("t1/bob"))).json == "t1/ann"
    assert (await ask(app, key=KEY, headers=bearer("t2/bob"))).json == "t2/bob"


async def test_scopes_never_meet():
    handler = Echo()
    routes = {"POST /a": RoutePolicy(scope="a"), "POST /b": RoutePolicy(scope="b")}
    app = guarded(handler, authenticator=Desk(), routes=routes)
    await ask(app, "/a", key=KEY, headers=bearer("t/u"))
    assert (await ask(app, "/b", key=KEY, headers=bearer("t/u"))).replayed == "false"


async def test_a_revoked_credential_is_refused_before_any_replay():
    desk, handler = Desk(), Echo()
    app = guarded(handler, authenticator=desk)
    await ask(app, key=KEY, headers=bearer("t/u"))
    desk.revoked.add("t/u")
    refused = await ask(app, key=KEY, headers=bearer("t/u"))
    assert (refused.status, refused.headers["www-authenticate"]) == (401, "Bearer")
    assert handler.runs == 1
    assert desk.asked == 2


@pytest.mark.parametrize("headers", [[], [("Authorization", "nonsense")], [*bearer("t/u"), ("X-API-Key", "k")]])
async def test_nobody_is_refused_where_the_route_is_not_public(headers):
    handler = Handler()
    refused = await ask(guarded(handler, authenticator=Desk()), key=KEY, headers=headers)
    assert refused.status in (400, 401)
    assert handler.runs == 0


async def test_a_header_that_contradicts_the_credential_is_refused():
    handler = Handler()
    refused = await ask(
        guarded(handler, authenticator=Desk()), key=KEY, headers=[*bearer("t/u"), ("X-Tenant-ID", "other")]
    )
    assert (refused.status, handler.runs) == (403, 0)


async def test_a_public_route_keeps_strangers_apart_from_principals():
    handler = Handler()
    app = guarded(handler, authenticator=Desk(), public=True)
    await ask(app, key=KEY, headers=bearer("t/ann"))
    digest = Principal(tenant_id="t", user_id="ann").digest
    assert (await ask(app, key=KEY)).replayed == "false"
    assert (await ask(app, key=f'"{digest}.order-1"')).replayed == "false"
    assert (await ask(app, key=KEY)).replayed == "true"


async def test_a_public_route_takes_its_tenant_from_routing():
    app = guarded(
        Handler(), authenticator=Desk(), public=True, tenant_of=lambda scope: dict(scope["headers"])[b"host"].decode()
    )
    for host in ("one", "two"):
        await ask(app, key=KEY, headers=[("Host", host)])
    assert {record.identity.tenant for record in (await app.engine.find(Query())).records} == {"one", "two"}


async def test_an_authenticator_that_cannot_answer_is_a_503():
    class Down:
        async def authenticate(self, credentials):
            raise StoreUnavailable

    handler = Handler()
    refused = await ask(guarded(handler, authenticator=Down()), key=KEY)
    assert (refused.status, handler.runs) == (503, 0)


async def test_ten_thousand_pairs_of_tenant_user_and_key_never_meet():
    digests = set()
    app = guarded(Handler(), authenticator=Desk())
    names = ["a", "b", "a:b", "b:c", "1:a", "a/", "é", "ab", "a1:", ":"]
    seen = 0

    async def begin(**options):
        digests.add(hashlib.sha256(repr((options["tenant"], options["scope"], options["key"])).encode()).digest())
        raise StoreUnavailable

    app.engine.begin = begin
    for tenant in names:
        for user in names:
            for number in range(100):
                seen += 1
                desk = await_principal(tenant, user)
                app.authenticator = desk
                await ask(app, key=f'"k{number}"')
    assert len(digests) == seen == 10_000


def await_principal(tenant, user):
    class Fixed:
        async def authenticate(self, credentials):
            return Principal(tenant_id=tenant, user_id=user)

    return Fixed()


async def test_audit_meta_goes_with_the_record():
    app = guarded(Handler(), authenticator=Desk())
    await ask(app, key=KEY, headers=bearer("t/u"))
    (record,) = (await app.engine.find(Query())).records
    assert record.about.audit["created_by_user_id"] == "u"
    assert record.about.audit["idempotency_key"] == "order-1"


async def test_a_record_says_its_trace_and_invocation_also_where_nobody_authenticates():
    app = guarded(Handler())
    traced = ("traceparent", f"00-{'a' * 32}-{'b' * 16}-01")
    await ask(app, key=KEY, headers=[traced])
    (record,) = (await app.engine.find(Query())).records
    assert record.about.audit["trace_id"] == "a" * 32
    assert record.about.audit["invocation_id"]
    assert record.about.audit["idempotency_key"] == "order-1"
    assert "created_by_user_id" not in record.about.audit
