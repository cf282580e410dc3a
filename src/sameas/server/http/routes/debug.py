"""`GET /api/v1/debug/idempotency-key` and `POST /api/v1/estimate`: what would be done, without doing it.

Rule: nothing is run, claimed or kept here.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from starlette.types import ASGIApp

from sameas.extraction.text.chunking import iter_chunks
from sameas.extraction.text.document import normalized_pieces
from sameas.once.record import State
from sameas.server.http import examples
from sameas.server.http.route import Asked, Parameter, Reply, Route, json_reply, query_of
from sameas.server.http.routes.extract import decode_request
from sameas.server.problems import Problem
from sameas.server.runs.preparation import Prepared
from sameas.server.schemas import Estimate, ExtractionParams, KeyParts, KeyQuestion, SentRequest
from sameas.server.service import Service

_SLICE = 1 << 16


async def get_key(asked: Asked) -> ASGIApp:
    query = query_of(asked.request, "text", "ontologyId", "extractionParams")
    for name in ("text", "ontologyId"):
        if not query.get(name):
            raise Problem(400, "parameter-missing", f"the parameter {name} is needed")
    params = msgspec.json.decode(query.get("extractionParams", "{}"), type=ExtractionParams)
    # As a POST of the same would be read, other words for a wish included.
    sent = {"text": query["text"], "ontologyId": query["ontologyId"], "extractionParams": params}
    request = decode_request(msgspec.json.encode(sent))
    prepared = await asked.service.do(asked.service.runner.prepare(asked.caller.space, request))
    metadata = await asyncio.to_thread(asked.service.runs(asked.caller.space).at(prepared.key.key).peek)
    parts = prepared.key.components
    service, tenant = asked.service, asked.caller.ctx.tenant_id
    names = await service.do(service.ontologies.names(tenant, parts.ontology_id))
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
            ontology_names=names,
        )
    )


async def estimate(asked: Asked) -> ASGIApp:
    query_of(asked.request)
    request = decode_request(asked.body)
    service, space = asked.service, asked.caller.space
    prepared = await service.do(service.runner.prepare(space, request))
    record = await service.do(service.runner.record(space, prepared.key.key))
    is_known = record is not None and record.state is State.DONE
    return json_reply(await service.do(_estimate(service, prepared, is_known=is_known)))


async def _estimate(service: Service, prepared: Prepared, *, is_known: bool) -> Estimate:
    # Of a long text the key alone came back from where it was computed.
    text = prepared.key.components.text or prepared.request.text
    known: dict[str, Any] = {
        "idempotency_key": prepared.key.key,
        "cache_hit": is_known,
        "characters": len(text),
        "extractor": prepared.extractor.name,
    }
    found = None if is_known else await service.preparer.estimate(prepared)
    if found is not None:
        return Estimate(
            **known,
            chunks=found.chunks,
            calls=found.calls,
            input_tokens=found.input_tokens,
            output_tokens=found.output_tokens,
            most_tokens=found.most_tokens,
            cost=None if found.cost is None else float(found.cost),
            most_cost=None if found.most_cost is None else float(found.most_cost),
        )
    chunks = await asyncio.to_thread(_count, prepared)
    return Estimate(**known, chunks=chunks)


def _count(prepared: Prepared) -> int:
    text = prepared.request.text
    # In slices: normalising a long text at once would keep everybody else waiting.
    slices = (text[start : start + _SLICE] for start in range(0, len(text), _SLICE))
    return sum(1 for _ in iter_chunks(normalized_pieces(slices), settings=prepared.settings.chunking))


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
                example={
                    "key": examples.KEY,
                    "components": _COMPONENTS,
                    "known": None,
                    "ontologyNames": ["company"],
                },
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
        body=SentRequest,
        body_example=examples.REQUEST,
        replies={
            200: Reply(description="The estimate.", schema=Estimate, example=msgspec.to_builtins(_ESTIMATE)),
        },
        problems=(400, 404, 409, 413, 422),
    ),
)
