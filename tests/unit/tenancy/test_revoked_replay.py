"""A credential that has ended gets 401 before any replay: real keys, real tokens, through the middleware."""

import pytest

from sameas.tenancy import ApiKeyAuthenticator, BySchemeAuthenticator, EnrolledAuthenticator
from sameas.tenancy.jwt import JwtAuthenticator
from tests.unit.tenancy.tokens import AUDIENCE, ISSUER, signed
from tests.unit.web.asking import Handler, ask, guarded

pytestmark = pytest.mark.anyio

SECRET = b"s" * 32


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("scheme", ["X-API-Key", "Authorization"])
async def test_nothing_is_replayed_to_a_credential_that_has_ended(scheme, directory, keys, database, ctx, tenant):
    user = directory.add_user(ctx, "First")
    made = keys.create(ctx, "laptop", user_id=user.user_id)
    tokens = JwtAuthenticator(SECRET, issuer=ISSUER, audience=AUDIENCE, algorithms=["HS256"])
    door = BySchemeAuthenticator(
        {
            "bearer": EnrolledAuthenticator(tokens, database=database),
            "apikey": ApiKeyAuthenticator(database, secret=b"of the deployment", clock=keys._clock),
        }
    )
    token = signed("HS256", key=SECRET, tenant_id=tenant.tenant_id, sub=user.user_id)
    shown = made.token if scheme == "X-API-Key" else f"Bearer {token}"
    handler = Handler()
    app = guarded(handler, authenticator=door)

    async def request():
        return await ask(app, key='"order-1"', headers=[(scheme, shown)])

    assert [(await request()).replayed for _ in range(2)] == ["false", "true"]
    if scheme == "X-API-Key":
        keys.revoke(ctx, made.key_id)
    else:
        directory.disable_user(ctx, user.user_id)
    refused = await request()
    assert refused.status == 401
    assert refused.headers["www-authenticate"]
    assert "x-idempotency-replayed" not in refused.headers
    assert handler.runs == 1
