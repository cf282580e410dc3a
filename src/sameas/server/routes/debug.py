"""`GET /api/v1/debug/idempotency-key` and `POST /api/v1/estimate`: what would be done, without doing it.

Rule: nothing is run, claimed or kept here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.types import ASGIApp

from sameas.extraction.chunking import iter_chunks
from sameas.once.record import State
from sameas.server import examples
from sameas.server.models import model_estimate
from sameas.server.problems import Problem
from sameas.server.replies import json_reply, query_of
from sameas.server.route import Asked, Parameter, Reply, Route
from sameas.server.routes.extract import decode_request
from sameas.server.runner import Prepared
from sameas.server.wire import Estimate, ExtractionParams, ExtractRequest, KeyParts, KeyQuestion


async def get_key(asked: Asked) -> ASGIApp:
    query = query_of(asked.request, "text", "ontologyId", "extractionParams")
    for name in ("text", "ontologyId"):
        if not query.get(name):
            raise Problem(400, "parameter-missing", f"the parameter {name} is needed")
    params = msgspec.json.decode(query.get("extractionParams", "{}"), type=ExtractionParams)
    request = _checked({"text": query["text"], "ontologyId": query["ontologyId"]}, params)
    prepared = await asked.service.do(asked.service.runner.prepare(asked.visitor.space, request))
    metadata = await asyncio.to_thread(asked.service.runs(asked.visitor.space).at(prepared.key.key).peek)
    parts = prepared.key.components
    return json_reply(
        KeyQuestion(
            key=prepared.key.key,
            components=KeyParts(
                text=parts.text,
                text_hash=parts.text_hash,
                ontology_id=parts.ontology_id,
                ontology_version=parts.ontology_version,
                extraction_params_hash=parts.extraction_params_hash,
            ),
            known=None if metadata is None else metadata.status,
        )
    )


async def estimate(asked: Asked) -> ASGIApp:
    query_of(asked.request)
    request = decode_request(asked.body)
    service, space = asked.service, asked.visitor.space
    prepared = await service.do(service.runner.prepare(space, request))
    record = await service.do(service.runner.record(space, prepared.key.key))
    is_known = record is not None and record.state is State.DONE
    return json_reply(await service.do(_estimate(prepared, is_known=is_known)))


async def _estimate(prepared: Prepared, *, is_known: bool) -> Estimate:
    text = prepared.key.components.text
    known: dict[str, Any] = {
        "idempotency_key": prepared.key.key,
        "cache_hit": is_known,
        "characters": len(text),
        "extractor": prepared.extractor.name,
    }
    asking = await model_estimate(prepared.extractor, prepared.ontology, text, settings=prepared.settings)
    if asking is not None and not is_known:
        return Estimate(**known, **asking)
    chunks = await asyncio.to_thread(_count, text, prepared)
    return Estimate(**known, chunks=chunks)


def _count(text: str, prepared: Prepared) -> int:
    return sum(1 for _ in iter_chunks((text,), settings=prepared.settings.chunking))


def _checked(given: Mapping[str, Any], params: ExtractionParams) -> ExtractRequest:
    request = decode_request(msgspec.json.encode(given))
    return msgspec.structs.replace(request, extraction_params=params)


_COMPONENTS = {
    "text": examples.TEXT,
    "textHash": "9f" * 32,
    "ontologyId": examples.IRI,
    "ontologyVersion": examples.VERSION,
    "extractionParamsHash": "7c" * 32,
}
_ESTIMATE = Estimate(idempotency_key=examples.KEY, cache_hit=False, characters=30, chunks=1, extractor="lexicon")
ROUTES = (
    Route(
        method="GET",
        path="/api/v1/debug/idempotency-key",
        handle=get_key,
        name="debugIdempotencyKey",
        tag="extraction",
        summary="The key of an extraction and what goes into it; nothing is run.",
        parameters=(
            Parameter(name="text", required=True, schema={"type": "string", "minLength": 1}, example=examples.TEXT),
            Parameter(name="ontologyId", required=True, example="company"),
            Parameter(name="extractionParams", description="As JSON.", example='{"extractor":"lexicon"}'),
        ),
        replies={
            200: Reply(
                description="The key.",
                schema=KeyQuestion,
                example={"key": examples.KEY, "components": _COMPONENTS, "known": None},
            )
        },
        problems=(400, 404, 422),
    ),
    Route(
        method="POST",
        path="/api/v1/estimate",
        handle=estimate,
        name="estimate",
        tag="extraction",
        summary="What a run would take, before it is started.",
        body=ExtractRequest,
        body_example=examples.REQUEST,
        replies={
            200: Reply(description="The estimate.", schema=Estimate, example=msgspec.to_builtins(_ESTIMATE)),
        },
        problems=(400, 404, 409, 413, 422),
    ),
)
