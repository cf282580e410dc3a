"""Two releases at once: what one writes down for the other. `./run bench two_releases` has both at work."""

import json
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from sameas.server.runs.pending_runs import PendingRun, PendingRuns
from sameas.server.schemas import ExtractRequest
from tests.unit.server.house import REQUEST, running

# As the release before this one wrote it down.
RECORDED = (Path(__file__).parent / "former" / "request.json").read_bytes()


def names_in(value: Any, place: str = "") -> set[str]:
    """Where something has a name, in JSON."""
    if not isinstance(value, dict):
        return {place}
    return {name for key, inner in value.items() for name in names_in(inner, f"{place}.{key}")} or {place}


def test_a_request_of_the_former_release_is_read_whole():
    found = msgspec.json.decode(RECORDED, type=PendingRun)
    assert (found.tenant, found.request.text, found.request.document) == (
        "acme", "Ada Long works for Initech Robotics.", "story.txt",
    )  # fmt: skip
    assert found.reserved is not None
    assert (found.reserved.most.tokens, str(found.reserved.most.cost)) == (10, "0.5")
    assert found.pending is not None
    assert json.loads(msgspec.json.encode(found)) == json.loads(RECORDED)


def test_a_request_has_no_name_that_the_former_release_does_not_know():
    """One that has is left alone there: raise `FORM`, record the new request, and say so in the changelog."""
    now = msgspec.json.encode(msgspec.json.decode(RECORDED, type=PendingRun))
    assert names_in(json.loads(now)) == names_in(json.loads(RECORDED))


def test_a_request_whose_key_another_release_computes_otherwise_is_left_to_that(tmp_path):
    home = tmp_path / "home"
    with running(home) as service:
        said = service.client.post("/api/v1/extract", json={**REQUEST, "text": "Ada Long works for Initech Robotics."})
        version = said.json()["ontologyVersion"]
    former = msgspec.json.decode(RECORDED, type=PendingRun)
    assert former.pending is not None
    request = ExtractRequest(text="Ada Long works for Initech Robotics.", ontology_id="company")
    pending_runs = PendingRuns(home)
    theirs = "sha256-" + "ab" * 32
    overtaken = "sha256-" + "cd" * 32
    for key, of_ontology in ((theirs, version), (overtaken, "sha256-" + "0" * 64)):
        pending = replace(former.pending, idempotency_key=key, ontology_version=of_ontology)
        pending_runs.keep(replace(former, tenant="", key=key, request=request, pending=pending, reserved=None))
    with running(home) as service:
        # Both were looked at before it started.
        assert pending_runs.has("", theirs)
        assert service.client.get(f"/api/v1/runs/{theirs}").json()["status"] == "pending"
        assert not pending_runs.has("", overtaken)
