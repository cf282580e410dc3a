"""`/api/v1/session`: sign in, see who is signed in, sign out.

Rule: a credential is sent once and judged by the door itself; what the browser keeps is a cookie that scripts cannot
read. Where no credential is needed, everybody is signed in as the one user.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from sameas.identity.scope import ScopeError
from sameas.server.http.route import Asked, Reply, Route, json_reply, query_of
from sameas.server.problems import Problem
from sameas.server.schemas import Answer, Schema
from sameas.server.tenants.access import set_cookie
from sameas.settings_rules import SINGLE

_UNAUTHENTICATED = 401


class SignIn(Schema, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A credential, sent once."""

    kind: Literal["api-key", "jwt"]
    credential: Annotated[str, msgspec.Meta(min_length=1, max_length=8_192, pattern=r"^[\x21-\x7e]+$")]


class SessionAnswer(Answer, frozen=True, kw_only=True, rename="camel"):
    """Who is signed in, and by what the service lets people in."""

    signed_in: bool
    auth: str
    actor: str = ""
    tenant: str = ""
    roles: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    """The models that a request may name."""


async def get_session(asked: Asked) -> ASGIApp:
    query_of(asked.request)
    auth = asked.service.settings.auth
    try:
        caller = await asked.service.access.enter(asked.request.scope)
    except ScopeError as refusal:
        if refusal.status != _UNAUTHENTICATED:
            raise
        return json_reply(SessionAnswer(signed_in=False, auth=auth))
    answer = SessionAnswer(
        signed_in=True,
        auth=auth,
        actor=caller.actor,
        tenant=caller.ctx.tenant_id,
        roles=tuple(caller.principal.roles),
        models=asked.service.model_names,
    )
    return json_reply(answer, headers={"Cache-Control": "no-store"})


async def sign_in(asked: Asked) -> ASGIApp:
    query_of(asked.request)
    service, request = asked.service, asked.request
    if service.settings.auth == SINGLE:
        raise Problem(409, "no-sign-in", "this service has one user and asks for no credential")
    given = msgspec.json.decode(asked.body, type=SignIn)
    token = given.credential.encode()
    header = (b"x-api-key", token) if given.kind == "api-key" else (b"authorization", b"Bearer " + token)
    scope = {**request.scope, "headers": [header]}
    caller = await service.access.enter(scope)
    cookie = await service.web_sessions.open(header)
    service.audit(caller, "signed-in")
    return Response(status_code=204, headers={"Set-Cookie": set_cookie(cookie, is_secure=_is_secure(request))})


async def sign_out(asked: Asked) -> ASGIApp:
    query_of(asked.request)
    await asked.service.web_sessions.end(asked.request.scope)
    cookie = set_cookie("", is_secure=_is_secure(asked.request), lasts=0)
    return Response(status_code=204, headers={"Set-Cookie": cookie})


def _is_secure(request: Request) -> bool:
    """Whether the browser speaks TLS. To a proxy it may: then the origin of its page says so, not the scheme."""
    return request.url.scheme == "https" or request.headers.get("origin", "").startswith("https://")


_EXAMPLE = SessionAnswer(signed_in=True, auth=SINGLE, actor="local")
ROUTES = (
    Route(
        method="GET",
        path="/api/v1/session",
        handle=get_session,
        name="getSession",
        tag="sessions",
        summary="Who is signed in.",
        replies={200: Reply(description="Who.", schema=SessionAnswer, example=msgspec.to_builtins(_EXAMPLE))},
        problems=(400, 403, 500),
        public=True,
    ),
    Route(
        method="POST",
        path="/api/v1/session",
        handle=sign_in,
        name="signIn",
        tag="sessions",
        summary="Exchange an API key or a token for a cookie of this browser.",
        body=SignIn,
        body_example={"kind": "api-key", "credential": "key-id.secret"},
        replies={204: Reply(description="Signed in.", headers=("Set-Cookie",))},
        problems=(400, 401, 403, 409, 413, 422, 500),
        public=True,
    ),
    Route(
        method="DELETE",
        path="/api/v1/session",
        handle=sign_out,
        name="signOut",
        tag="sessions",
        summary="End the session of this browser.",
        replies={204: Reply(description="Signed out.", headers=("Set-Cookie",))},
        problems=(400, 500),
        public=True,
    ),
)
