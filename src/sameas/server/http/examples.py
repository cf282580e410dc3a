"""The examples that the OpenAPI document shows: one small story, the same in every endpoint."""

from __future__ import annotations

from typing import Any

KEY = "sha256-" + "3f2a9c41" * 8
IRI = "https://example.org/company"
VERSION = "sha256:" + "b7e2" * 16
TEXT = "Anna Stone works for Acme Ltd."
INSTANT = "2026-01-31T12:00:00.000Z"

REQUEST: dict[str, Any] = {"text": TEXT, "ontologyId": "company", "extractionParams": {"extractor": "lexicon"}}
ENTITY: dict[str, Any] = {
    "id": "anna-stone-0a1b2c3d4e5f6071",
    "name": "Anna Stone",
    "types": [f"{IRI}#Person"],
    "mentions": [{"start": 0, "end": 10, "text": "Anna Stone"}],
}
RELATION: dict[str, Any] = {
    "subject": "anna-stone-0a1b2c3d4e5f6071",
    "predicate": f"{IRI}#worksFor",
    "object": "acme-ltd-1a2b3c4d5e6f7081",
    "evidence": [{"start": 0, "end": 30, "text": TEXT}],
}
ANSWER: dict[str, Any] = {
    "idempotencyKey": KEY,
    "entities": [ENTITY],
    "relations": [RELATION],
    "cacheHit": False,
    "computedAt": INSTANT,
    "status": "complete",
    "outcome": "COMPLETE",
    "ontologyId": IRI,
    "ontologyVersion": VERSION,
    "ontologyNames": ["company"],
    "notes": [],
}
RUN: dict[str, Any] = {
    "idempotencyKey": KEY,
    "status": "complete",
    "ontologyId": IRI,
    "ontologyVersion": VERSION,
    "entityCount": 2,
    "relationCount": 1,
    "startedAt": INSTANT,
    "completedAt": INSTANT,
    "durationMs": 42,
    "events": [{"timestamp": INSTANT, "type": "started"}],
    "errors": [],
    "outcome": "COMPLETE",
    "extractor": {"name": "lexicon", "version": "1"},
    "settings": {},
    "base": "urn:sameas:",
    "textHash": "9f" * 32,
    "extractionParamsHash": "7c" * 32,
}
ACCEPTED: dict[str, Any] = {
    "idempotencyKey": KEY,
    "status": "running",
    "run": f"/api/v1/runs/{KEY}",
    "events": f"/api/v1/runs/{KEY}/events",
}
ONTOLOGY: dict[str, Any] = {
    "id": IRI,
    "names": ["company"],
    "version": VERSION,
    "iri": IRI,
    "label": "Companies",
    "classes": 3,
    "properties": 4,
    "mediaType": "text/turtle",
    "size": 2048,
    "shared": False,
    "updatedAt": INSTANT,
    "source": "registry",
}
TURTLE = f"@prefix owl: <http://www.w3.org/2002/07/owl#> .\n<{IRI}> a owl:Ontology .\n<{IRI}#Person> a owl:Class .\n"
RECORD: dict[str, Any] = {
    "id": "5d" * 32,
    "key": KEY,
    "clientKey": KEY,
    "statusCode": None,
    "scope": "extraction",
    "tenant": "",
    "state": "done",
    "attempt": 1,
    "fence": 1769860800000000,
    "owner": "host:1",
    "createdAt": INSTANT,
    "leaseUntil": INSTANT,
    "completedAt": INSTANT,
    "expiresAt": INSTANT,
    "tags": [f"ontology:{IRI}"],
    "route": "",
    "method": "",
    "fingerprint": "",
    "audit": {},
    "nextCaller": "gets this result again, nothing is run",
    "words": ["The same request now gets this result again, nothing is run."],
}
STREAM = (
    "retry: 1000\n\n"
    "id: 1\nevent: extraction_started\n"
    f'data: {{"type":"extraction_started","eventId":"01890000-0000-7000-8000-000000000000","requestId":"{KEY}",'
    '"timestamp":1769860800000,"sequenceNumber":1,"progress":0.0}\n\n'
)
