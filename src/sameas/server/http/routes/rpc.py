"""`POST /api/rpc`: the calls of the WebSocket for those who have none, as lines of JSON."""

from __future__ import annotations

from collections.abc import AsyncIterator

from starlette.responses import StreamingResponse
from starlette.types import ASGIApp

from sameas.server.http import examples
from sameas.server.http.replies import query_of
from sameas.server.http.route import Asked, Reply, Route
from sameas.server.http.rpc import Rpc
from sameas.server.schemas import Call

MEDIA_TYPE = "application/x-ndjson"


async def call(asked: Asked) -> ASGIApp:
    query_of(asked.request)
    scope = asked.request.scope
    admission = asked.service.admissions.enter(scope, asked.caller)
    rpc = Rpc(asked.service, asked.caller, admission)
    try:
        calls = rpc.read(asked.body)
    except BaseException:
        admission.leave()
        raise

    async def lines() -> AsyncIterator[bytes]:
        scope["sameas.note"].leave()
        try:
            for number, one in enumerate(calls, 1):
                async for message in rpc.answer(one, f"call-{number}" if one.id is None else one.id):
                    yield message + b"\n"
        finally:
            admission.leave()

    return StreamingResponse(lines(), media_type=MEDIA_TYPE)


ROUTES = (
    Route(
        method="POST",
        path="/api/rpc",
        handle=call,
        name="rpc",
        tag="extraction",
        summary="Calls as on the WebSocket of this address; messages come back as lines of JSON.",
        body=Call,
        body_example={
            "tag": "extraction.streamExtract",
            "payload": {"text": examples.TEXT, "ontologyId": "company"},
            "id": "1",
        },
        replies={
            200: Reply(
                description="One message a line, the last of each call a result or an error.",
                media_types=(MEDIA_TYPE,),
                example='{"id":"1","tag":"extraction.streamExtract","type":"result","result":{}}\n',
            )
        },
        problems=(400, 413, 422, 429),
    ),
)
