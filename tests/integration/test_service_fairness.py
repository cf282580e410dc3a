"""One tenant's flood of requests takes neither the places nor the time of another's."""

import asyncio

import httpx
import pytest

from sameas.identity.normalize import normalize_context
from sameas.server.app import open_entry
from sameas.tenancy.api_keys import ApiKeys
from sameas.tenancy.directory import TenantDirectory, open_tables
from tests.unit.server.house import SLOW, TEXT, TURTLE, WITHIN, Hold, running, settings_for

SETTINGS = {"auth": "api-key", "max_requests": 40, "max_runs": 4}


@pytest.fixture
def house(tmp_path):
    """A service whose model is held, and the headers of two tenants."""
    database = open_tables(f"sqlite:///{tmp_path}/tenants.db")
    directory, keys, headers = TenantDirectory(database), ApiKeys(database), []
    for name in ("many", "one"):
        ctx = normalize_context(service_id="setup", tenant_id=directory.bootstrap(name, service_id="setup").tenant_id)
        user = directory.add_user(ctx, "user")
        headers.append({"X-API-Key": keys.create(ctx, "key", user_id=user.user_id).token})
    hold = Hold(after=0)
    entry = open_entry(settings_for(tmp_path, **SETTINGS), models=hold.extractor)
    with running(tmp_path, hold=hold, entry=entry, **SETTINGS) as service:
        for mine in headers:
            assert service.client.put("/api/v1/ontologies/co", content=TURTLE, headers=mine).status_code == 201
        yield service, hold, *headers
    database.close()


@pytest.mark.anyio
async def test_a_tenant_is_answered_while_another_has_asked_for_more_than_there_is(house):
    service, hold, many, one = house
    async with httpx.AsyncClient(base_url=service.url, timeout=WITHIN, limits=httpx.Limits()) as client:

        def ask(number, headers, **params):
            body = {"text": f"{TEXT} Number {number}.", "ontologyId": "co", "extractionParams": params}
            return client.post("/api/v1/extract", json=body, headers=headers)

        flood = [asyncio.ensure_future(ask(number, many, **SLOW)) for number in range(60)]
        assert await asyncio.to_thread(hold.reached.wait, WITHIN)
        while sum(task.done() for task in flood) < 20:
            await asyncio.wait([task for task in flood if not task.done()], return_when=asyncio.FIRST_COMPLETED)
        refused = [task.result() for task in flood if task.done()]
        assert {(one.status_code, one.json()["type"]) for one in refused} == {
            (429, "urn:sameas:problem:too-many-requests")
        }
        assert all(int(answer.headers["retry-after"]) >= 1 for answer in refused)
        for number in range(5):
            answered = await ask(number, one)
            assert answered.status_code == 200, answered.text
        assert sum(not task.done() for task in flood) > 20, "the flood was to be held"
        hold.let_go()
        answers = await asyncio.gather(*flood)
        assert {answer.status_code for answer in answers} == {200, 429}
        assert (await ask(0, many)).status_code == 200


@pytest.mark.anyio
async def test_graphs_that_one_tenant_has_written_keep_no_other_waiting(house):
    service, _, many, one = house
    long = "\n".join(f"Anna{n} Stone works for Acme{n} Ltd in Paris{n}." for n in range(2_500))
    async with httpx.AsyncClient(base_url=service.url, timeout=2 * WITHIN, limits=httpx.Limits()) as client:

        async def extracted(text, headers):
            body = {"text": text, "ontologyId": "co", "extractionParams": {"extractor": "lexicon"}}
            answer = await client.post("/api/v1/extract", json=body, headers=headers)
            assert answer.status_code == 200, answer.text
            return f"/api/v1/runs/{answer.json()['idempotencyKey']}"

        large, small = await extracted(long, many), await extracted(TEXT, one)
        flood = [
            asyncio.ensure_future(client.get(f"{large}/graph", params={"format": "nquads"}, headers=many))
            for _ in range(24)
        ]
        await asyncio.wait(flood, return_when=asyncio.FIRST_COMPLETED)
        for place in (small, f"{small}/graph", "/api/v1/runs", "/health/ready"):
            answer = await client.get(place, headers=one)
            assert answer.status_code == 200, answer.text
        assert sum(not task.done() for task in flood) > 12, "others were answered after the graphs"
        answers = await asyncio.gather(*flood)
        assert {answer.status_code for answer in answers} == {200}
        assert len({answer.content for answer in answers}) == 1
