"""Tenants, principals and cases: nobody sees, changes or replays what is another's."""

import time
from typing import NamedTuple

import pytest

from sameas.identity.normalize import normalize_context
from sameas.server.app import open_entry
from sameas.server.tenants.access import OPERATOR
from sameas.settings import SettingsError
from sameas.tenancy.api_keys import ApiKeys
from sameas.tenancy.directory import ADMIN_ROLE, TenantDirectory, open_tables
from tests.unit.server.house import REQUEST, TURTLE, running, settings_for
from tests.unit.tenancy import tokens

SHARED = {**REQUEST, "ontologyId": "shared"}


class Somebody(NamedTuple):
    """A tenant with a user, that user's key, one of an admin, and a case of the user's."""

    tenant_id: str
    user: dict
    admin: dict
    other_user: dict
    case_id: str
    other_id: str


class House(NamedTuple):
    service: object
    one: Somebody
    two: Somebody


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    home = tmp_path_factory.mktemp("tenants")
    database = open_tables(f"sqlite:///{home}/tenants.db")
    one, two = (_enrol(database, name) for name in ("one", "two"))
    database.close()
    entry = open_entry(settings_for(home, auth="api-key"))
    with running(home, entry=entry, auth="api-key") as service:
        put = service.client.put(
            "/api/v1/ontologies/shared", params={"shared": "true"}, content=TURTLE, headers=one.admin
        )
        assert put.status_code == 201, put.text
        yield House(service.client, one, two)


def _enrol(database, name):
    directory, keys = TenantDirectory(database), ApiKeys(database)
    tenant = directory.bootstrap(name, service_id="setup")
    ctx = normalize_context(service_id="setup", tenant_id=tenant.tenant_id)
    user, other = directory.add_user(ctx, "user"), directory.add_user(ctx, "other")
    case = directory.create_case(ctx, "a case")
    directory.put_member(ctx, case.case_id, user.user_id)

    def header(who, *roles):
        made = keys.create(ctx, "key", user_id=who.user_id, roles=roles)
        return {"X-API-Key": made.token}

    return Somebody(
        tenant.tenant_id,
        header(user),
        header(user, ADMIN_ROLE, OPERATOR),
        header(other),
        case.case_id,
        str(other.user_id),
    )


def extract(house, who, request=SHARED, **headers):
    return house.service.post("/api/v1/extract", json=request, headers={**who, **headers})


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/api/v1/extract"),
        ("GET", "/api/v1/runs"),
        ("GET", "/api/v1/ontologies"),
        ("GET", "/api/v1/keys"),
        ("GET", "/api/v1/debug/idempotency-key"),
        ("POST", "/api/rpc"),
    ],
)
def test_without_a_credential_nothing_is_answered(house, method, path):
    answer = house.service.request(method, path, content=b"{}")
    assert (answer.status_code, answer.headers["content-type"]) == (401, "application/problem+json")


def test_health_needs_no_credential(house):
    assert house.service.get("/health/ready").status_code == 200


def test_a_result_of_one_tenant_is_no_hit_and_no_run_for_another(house):
    request = {**SHARED, "text": "Anna Stone works for Acme Ltd in the case of two tenants."}
    mine = extract(house, house.one.user, request).json()
    assert extract(house, house.one.user, request).json()["cacheHit"] is True
    key = mine["idempotencyKey"]
    for path in (f"/api/v1/runs/{key}", f"/api/v1/runs/{key}/graph", f"/api/v1/runs/{key}/events"):
        assert house.service.get(path, headers=house.one.user).status_code == 200
        assert house.service.get(path, headers=house.two.user).status_code == 404
    assert house.service.delete(f"/api/v1/runs/{key}", headers=house.two.user).status_code == 404
    theirs = extract(house, house.two.user, request).json()
    assert (theirs["idempotencyKey"], theirs["cacheHit"]) == (key, False)


def test_an_ontology_belongs_to_its_tenant_unless_it_is_shared(house):
    put = house.service.put("/api/v1/ontologies/mine", content=TURTLE, headers=house.one.user)
    assert put.status_code == 201
    assert house.service.get("/api/v1/ontologies/mine", headers=house.two.user).status_code == 404
    assert extract(house, house.two.user, {**SHARED, "ontologyId": "mine"}).status_code == 404
    assert house.service.get("/api/v1/ontologies/shared", headers=house.two.user).json()["shared"] is True
    listed = house.service.get("/api/v1/ontologies", headers=house.two.user).json()["ontologies"]
    assert [entry["names"] for entry in listed if entry["source"] == "registry"] == [["shared"]]
    refused = house.service.put(
        "/api/v1/ontologies/x", params={"shared": "true"}, content=TURTLE, headers=house.one.user
    )
    assert refused.status_code == 403
    assert house.service.delete("/api/v1/ontologies/shared", headers=house.two.user).status_code == 404


def test_keys_are_one_tenant_s_and_changing_them_needs_the_role(house):
    key = extract(house, house.one.user).json()["idempotencyKey"]
    listed = house.service.get("/api/v1/keys", headers=house.one.user).json()["keys"]
    assert {entry["tenant"] for entry in listed} == {house.one.tenant_id}
    change = {"key": key, "reason": "a test"}
    for who in (house.one.user, house.two.user):
        assert house.service.post("/api/v1/keys/forget", json=change, headers=who).status_code == 403
    clear = {"reason": "a test"}
    assert house.service.post("/api/v1/cache/clear", json=clear, headers=house.one.user).status_code == 403
    assert house.service.post("/api/v1/keys/forget", json=change, headers=house.one.admin).status_code == 200


def test_a_client_s_own_key_finds_its_record_with_status_expiry_and_id(house):
    sent = {"Idempotency-Key": "report-7"}
    extract(house, house.one.user, {**SHARED, "text": "Ida Stone works for Acme Ltd."}, **sent)
    for who in (house.one.user, house.one.admin):
        found = house.service.get("/api/v1/keys/explain", params={"key": "report-7"}, headers=who).json()
        assert (found["clientKey"], found["statusCode"], len(found["id"])) == ("report-7", 200, 64)
        assert found["expiresAt"] > found["createdAt"]
        listed = house.service.get("/api/v1/keys", params={"scope": "extract"}, headers=who).json()["keys"]
        same = ("clientKey", "statusCode", "id", "expiresAt")
        assert [found[name] for name in same] in [[entry[name] for name in same] for entry in listed]
    params = {"key": "report-7"}
    assert house.service.get("/api/v1/keys/explain", params=params, headers=house.one.other_user).status_code == 404


def test_keys_of_others_are_shown_to_those_with_a_role_for_it(house):
    sent = {"Idempotency-Key": "of-the-user"}
    extract(house, house.one.user, {**SHARED, "text": "Zoe Stone works for Acme Ltd."}, **sent)

    def seen(who):
        listed = house.service.get("/api/v1/keys", params={"scope": "extract"}, headers=who).json()["keys"]
        return {entry["key"].partition(":")[2]: entry["key"] for entry in listed}

    assert "of-the-user" in seen(house.one.admin)
    assert "of-the-user" not in seen(house.one.other_user)
    record = {"key": seen(house.one.user)["of-the-user"]}
    assert house.service.get("/api/v1/keys/explain", params=record, headers=house.one.user).status_code == 200
    assert house.service.get("/api/v1/keys/explain", params=record, headers=house.one.other_user).status_code == 404


def test_external_counsel_works_in_its_cases_and_nowhere_else(tmp_path):
    database = open_tables(f"sqlite:///{tmp_path}/tenants.db")
    directory, keys = TenantDirectory(database), ApiKeys(database)
    tenant = directory.bootstrap("one", service_id="setup")
    ctx = normalize_context(service_id="setup", tenant_id=tenant.tenant_id)
    user, counsel = directory.add_user(ctx, "user"), directory.add_user(ctx, "counsel", kind="external_counsel")
    mine, other = (directory.create_case(ctx, name) for name in ("mine", "other"))
    directory.put_member(ctx, mine.case_id, counsel.user_id)
    inside = {"X-API-Key": keys.create(ctx, "key", user_id=user.user_id).token}
    # Whatever roles somebody gave the key: what its user is counts.
    made = keys.create(ctx, "key", user_id=counsel.user_id, roles=(ADMIN_ROLE, OPERATOR))
    outside = {"X-API-Key": made.token}
    in_case = {**outside, "X-Case-ID": mine.case_id}
    entry = open_entry(settings_for(tmp_path, auth="api-key"))
    with running(tmp_path, entry=entry, auth="api-key") as service:
        client = service.client
        assert client.put("/api/v1/ontologies/co", content=TURTLE, headers=inside).status_code == 201
        request = {**REQUEST, "ontologyId": "co"}
        run = client.post("/api/v1/extract", json=request, headers=inside).json()["idempotencyKey"]
        for path in ("/api/v1/runs", f"/api/v1/runs/{run}", "/api/v1/keys", "/api/v1/ontologies"):
            refused = client.get(path, headers=outside)
            assert (refused.status_code, refused.json()["type"]) == (403, "urn:sameas:problem:case-required"), path
        assert client.get("/api/v1/runs", headers={**outside, "X-Case-ID": other.case_id}).status_code == 403
        assert client.get("/api/v1/runs", headers=in_case).json()["runs"] == []
        assert client.get(f"/api/v1/runs/{run}", headers=in_case).status_code == 404
        assert client.post("/api/v1/extract", json=request, headers=in_case).status_code == 200
        for refused in (
            client.delete("/api/v1/ontologies/co", headers=in_case),
            client.delete("/api/v1/ontologies/co", params={"shared": "true"}, headers=in_case),
            client.put("/api/v1/ontologies/co", content=TURTLE + b"\n", headers=in_case),
            client.post("/api/v1/cache/clear", json={"reason": "none"}, headers=in_case),
        ):
            assert (refused.status_code, refused.json()["type"]) == (403, "urn:sameas:problem:internal-only")
        assert client.get("/api/v1/ontologies/co", headers=inside).status_code == 200
        # Nor do those roles show what they show to others: settings of the service, keys and collections of members.
        directory.put_member(ctx, mine.case_id, user.user_id)
        member = {**inside, "X-Case-ID": mine.case_id}
        sent = {**member, "Idempotency-Key": "of-the-member"}
        assert client.post("/api/v1/extract", json={**request, "text": "Ida."}, headers=sent).status_code == 200
        wish = {"name": "press", "ontologyId": "co"}
        assert client.post("/api/v1/collections", json=wish, headers=member).status_code == 201
        assert "of-the-member" in client.get("/api/v1/keys", headers=member).text
        assert "of-the-member" not in client.get("/api/v1/keys", headers=in_case).text
        assert client.get("/api/v1/collections/press", headers=member).status_code == 200
        assert client.get("/api/v1/collections/press", headers=in_case).status_code == 404
        assert client.get("/api/v1/system", headers=in_case).json()["settings"] is None
        assert client.get("/api/v1/counts", headers=in_case).json()["pruned"] is None
    database.close()


def test_a_client_key_of_another_principal_is_another_key(house):
    header = {"Idempotency-Key": '"same"'}
    first = extract(house, house.one.user, {**SHARED, "text": "One text."}, **header)
    other = extract(house, house.one.other_user, {**SHARED, "text": "Another text."}, **header)
    assert (first.status_code, other.status_code) == (200, 200)
    assert other.headers["x-idempotency-replayed"] == "false"


def test_keys_are_off_for_the_tenant_that_operators_name_and_in_force_for_others_in_cases_too(tmp_path):
    database = open_tables(f"sqlite:///{tmp_path}/tenants.db")
    one, two = (_enrol(database, name) for name in ("one", "two"))
    database.close()
    settings = {"auth": "api-key", "mode": f"enforce, tenant:{two.tenant_id}=off"}
    with running(tmp_path, entry=open_entry(settings_for(tmp_path, **settings)), **settings) as service:
        put = {"params": {"shared": "true"}, "content": TURTLE, "headers": one.admin}
        assert service.client.put("/api/v1/ontologies/shared", **put).status_code == 201

        def said(who, **headers):
            there = House(service.client, one, two)
            first, second = (extract(there, who.user, **headers).json()["cacheHit"] for _ in range(2))
            sent = {**headers, "Idempotency-Key": "mine"}
            reused = [extract(there, who.user, {**SHARED, "text": text}, **sent).status_code for text in ("A.", "B.")]
            return first, second, reused

        for case in ({}, {"X-Case-ID": one.case_id}):
            assert said(one, **case) == (False, True, [200, 422])
        for case in ({}, {"X-Case-ID": two.case_id}):
            assert said(two, **case) == (False, False, [200, 200])


def test_a_case_is_worked_in_by_its_members_alone(house):
    case = {"X-Case-ID": house.one.case_id}
    request = {**SHARED, "text": "Anna Stone works for Acme Ltd in a case."}
    mine = extract(house, house.one.user, request, **case)
    assert mine.status_code == 200
    key = mine.json()["idempotencyKey"]
    assert house.service.get(f"/api/v1/runs/{key}", headers={**house.one.user, **case}).status_code == 200
    for who in (house.one.other_user, house.two.user):
        assert extract(house, who, request, **case).status_code == 403
        assert house.service.get(f"/api/v1/runs/{key}", headers={**who, **case}).status_code == 403
        assert house.service.get(f"/api/v1/runs/{key}", headers=who).status_code == 404
    assert house.service.get(f"/api/v1/runs/{key}", headers=house.one.user).status_code == 404


def test_clearing_the_cache_of_a_tenant_reaches_cases_that_another_process_worked_in(tmp_path):
    database = open_tables(f"sqlite:///{tmp_path}/tenants.db")
    one, two = (_enrol(database, name) for name in ("one", "two"))
    database.close()

    def hits(calls):
        return [
            calls.post("/api/v1/extract", json=SHARED, headers={**who.user, "X-Case-ID": who.case_id}).json()[
                "cacheHit"
            ]
            for who in (one, two)
        ]

    for expected in ([False, False], [True, True]):
        # Each time a process that has no case in memory.
        with running(tmp_path, entry=open_entry(settings_for(tmp_path, auth="api-key")), auth="api-key") as service:
            if not expected[0]:
                put = {"params": {"shared": "true"}, "content": TURTLE, "headers": one.admin}
                assert service.client.put("/api/v1/ontologies/shared", **put).status_code == 201
            assert hits(service.client) == expected
    with running(tmp_path, entry=open_entry(settings_for(tmp_path, auth="api-key")), auth="api-key") as service:
        cleared = service.client.post("/api/v1/cache/clear", json={"reason": "all of it"}, headers=one.admin)
        assert cleared.json() == {"entriesInvalidated": 1}
        assert hits(service.client) == [False, True]


def test_a_token_of_a_key_set_on_the_disk_lets_its_user_in(tmp_path):
    (tmp_path / "keys.json").write_bytes(tokens.key_set(tokens.public_jwk("ES256")))
    database = open_tables(f"sqlite:///{tmp_path}/tenants.db")
    directory = TenantDirectory(database)
    tenant = directory.bootstrap("one", service_id="setup")
    ctx = normalize_context(service_id="setup", tenant_id=tenant.tenant_id)
    user = directory.add_user(ctx, "user")
    settings = {
        "auth": "jwt",
        "jwt_issuer": tokens.ISSUER,
        "jwt_audience": tokens.AUDIENCE,
        "jwt_keys": str(tmp_path / "keys.json"),
    }
    mine = {"tenant_id": tenant.tenant_id, "sub": user.user_id, "roles": [ADMIN_ROLE]}
    with running(tmp_path, entry=open_entry(settings_for(tmp_path, **settings)), **settings) as service:

        def status(token):
            sent = {"Authorization": f"Bearer {token}"} if token else {}
            return service.client.get("/api/v1/keys", headers=sent).status_code

        good = tokens.signed("ES256", **mine)
        sent = {"Authorization": f"Bearer {good}"}
        assert service.client.put("/api/v1/ontologies/shared", content=TURTLE, headers=sent).status_code == 201
        assert service.client.post("/api/v1/extract", json=SHARED, headers=sent).status_code == 200
        assert status(good) == 200
        for bad in (
            "",
            "nonsense",
            tokens.signed("ES256", **mine, exp=1),
            tokens.signed("ES256", **mine, aud="another"),
            tokens.signed("ES256", name="two", **mine),
            tokens.signed("ES256", **{**mine, "sub": tokens.USER}),
            tokens.signed("HS256", key="secret-that-is-long-enough-for-hmac", **mine),
        ):
            assert status(bad) == 401
        directory.disable_user(ctx, user.user_id)
        assert status(good) == 401
    database.close()


def test_a_header_that_names_another_tenant_is_refused(house):
    assert extract(house, house.one.user, **{"X-Tenant-ID": house.two.tenant_id}).status_code == 403
    assert extract(house, house.one.user, **{"X-Tenant-ID": house.one.tenant_id}).status_code == 200


def test_one_tenant_without_credentials_listens_on_loopback_only(tmp_path):
    with pytest.raises(SettingsError, match="loopback"):
        open_entry(settings_for(tmp_path, host="0.0.0.0"))


def test_the_collections_of_another_tenant_are_not_there_in_any_way(house):
    everything = {"query": "SELECT * { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }"}
    for who, person in ((house.one, "Alice Stone"), (house.two, "Carol Flint")):
        made = house.service.post(
            "/api/v1/collections", json={"name": "press", "ontologyId": "shared"}, headers=who.admin
        )
        assert made.status_code == 201, made.text
        texts = {"documents": [{"name": f"{person}.txt", "text": f"{person} works for Acme Robotics."}]}
        put = house.service.post("/api/v1/collections/press/documents", json=texts, headers=who.admin)
        assert put.status_code == 202, put.text
        ends_at = time.monotonic() + 60
        while house.service.get("/api/v1/collections/press/sync", headers=who.admin).json()["waiting"]:
            assert time.monotonic() < ends_at
            time.sleep(0.05)
    theirs = house.service.get("/api/v1/collections/press", headers=house.two.admin).json()["id"]
    mine = house.service.get("/api/v1/collections/press/sparql", params=everything, headers=house.one.admin)
    assert mine.status_code == 200, mine.text
    assert "Alice Stone.txt" in mine.text
    assert "Carol" not in mine.text
    for path in ("", "/sparql?query=ASK{}", "/documents", "/entities", "/export", "/find?q=Carol"):
        reply = house.service.get(f"/api/v1/collections/{theirs}{path}", headers=house.one.admin)
        assert reply.status_code == 404, (path, reply.text)
    # Of the tenant, but without a role in the collection.
    assert house.service.get("/api/v1/collections/press", headers=house.one.other_user).status_code == 404


ROLES = ("reader", "contributor", "curator", "owner")
# What only whoever has the role may do in a collection, those above it too.
NEEDS = {
    ("GET", ""): "reader",
    ("GET", "/documents"): "reader",
    ("GET", "/entities"): "reader",
    ("GET", "/entities/nobody"): "reader",
    ("GET", "/statements"): "reader",
    ("GET", "/pairs"): "reader",
    ("GET", "/decisions"): "reader",
    ("GET", "/contradictions"): "reader",
    ("GET", "/sync"): "reader",
    ("GET", "/export"): "reader",
    ("GET", "/graph"): "reader",
    ("GET", "/outline"): "reader",
    ("GET", "/find?q=Alice"): "reader",
    ("GET", "/path?a=x&b=y"): "reader",
    ("GET", "/sparql?query=ASK{}"): "reader",
    ("POST", "/sparql"): "reader",
    ("POST", "/ask"): "reader",
    ("POST", "/documents"): "contributor",
    ("POST", "/retry"): "contributor",
    ("DELETE", "/documents?name=none.txt"): "contributor",
    ("DELETE", "/documents?name=known:staff.csv"): "curator",
    ("POST", "/decisions"): "curator",
    ("DELETE", "/decisions/none"): "curator",
    ("PUT", "/known?name=staff.csv"): "curator",
    ("GET", "/members"): "owner",
    ("PUT", "/members/somebody"): "owner",
    ("DELETE", "/members/somebody"): "owner",
    ("GET", "/check"): "owner",
    ("DELETE", "/entities/nobody"): "owner",
    ("DELETE", ""): "owner",
}
BODIES = {
    "/sparql": ("application/sparql-query", b"ASK {}"),
    "/ask": ("application/json", b'{"question": "Who?"}'),
    "/documents": ("application/json", b'{"documents": [{"name": "none.txt", "text": "Nobody."}]}'),
    "/decisions": ("application/json", b'{"verdict": "same", "a": "x", "b": "y"}'),
    "/known?name=staff.csv": ("text/csv", b"iri,name\nhttps://example.org/id/1,Acme\n"),
    "/members/somebody": ("application/json", b'{"role": "reader"}'),
}


def test_every_request_of_the_contract_for_a_collection_has_a_role(house):
    paths = house.service.get("/openapi.json").json()["paths"]
    within = "/api/v1/collections/{id}"
    found = {(method.upper(), path) for path in paths if path.startswith(within) for method in paths[path]}
    asked = {(method, within + path.partition("?")[0]) for method, path in NEEDS}
    named = {("/entities/nobody", "/entities/{entity}"), ("/decisions/none", "/decisions/{decision}")}
    named |= {("/members/somebody", "/members/{principal}")}
    for one, other in named:
        asked = {(method, path.replace(one, other)) for method, path in asked}
    assert found - asked == {("GET", f"{within}/documents/{{digest}}")}


@pytest.mark.parametrize("role", [None, *ROLES])
def test_whoever_has_a_role_may_do_what_it_allows_and_nothing_more(house, role):
    here = f"/api/v1/collections/{role}"
    owner, member = house.one.user, house.one.other_user
    made = house.service.post("/api/v1/collections", json={"name": str(role), "ontologyId": "shared"}, headers=owner)
    assert made.status_code == 201, made.text
    if role is not None:
        given = house.service.put(f"{here}/members/{house.one.other_id}", json={"role": role}, headers=owner)
        assert given.status_code == 204, given.text
    for (method, path), needed in NEEDS.items():
        kind, body = BODIES.get(path, ("application/json", b"")) if method in ("POST", "PUT") else ("", b"")
        answer = house.service.request(
            method, here + path, content=body, headers={**member, **({"Content-Type": kind} if body else {})}
        )
        known = "there is no collection" not in answer.text
        allowed = role is not None and ROLES.index(role) >= ROLES.index(needed)
        assert known == (role is not None), (method, path, answer.text)
        assert ("this needs the role" in answer.text) == (known and not allowed), (method, path, answer.text)
        assert answer.status_code != 500
        if not allowed:
            assert answer.status_code == (403 if known else 404), (method, path, answer.text)
