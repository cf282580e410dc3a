"""Source document 004, sentence by sentence: each one that says must, required, absent, never, only or unique has a row.

A row quotes its sentence with the lines it stands on; the last test reads the document and finds lines without a row.
"""

import re
import sqlite3
from typing import Any

import pytest

from sameas import Engine, open_store
from sameas.identity.ids import TraceContext, is_uuid7, uuid7
from sameas.identity.normalize import normalize_context, normalize_request, normalize_task, task_headers
from sameas.identity.scope import AuditMeta, Case, Principal, ScopeContext, ScopeError
from sameas.once.policy import Policy
from sameas.tenancy import TenantDirectory, open_tables, require_admin
from sameas.tenancy.directory import tenant_schema
from tests.shared_data import shared

TENANT, USER, CASE, RUN = (str(uuid7()) for _ in range(4))
BY_USER = Principal(tenant_id=TENANT, user_id=USER)
BY_SERVICE = Principal(tenant_id=TENANT, service_id="graph-executor")
ROWS: list[Any] = []


def row(*lines, says):
    """One sentence of the document: its lines, its words, and the check that it holds."""

    def add(check):
        ROWS.append(pytest.param(lines, says, check, id=f"line {lines[0]}: {says}"))
        return check

    return add


def request(**headers):
    return {
        "type": "http",
        "headers": [(name.replace("_", "-").encode(), text.encode()) for name, text in headers.items()],
    }


def refused(code, status=None):
    return pytest.raises(ScopeError, check=lambda error: error.code == code and status in {None, error.status})


def scope(**changes):
    trace = TraceContext.new()
    whole = {
        "tenant_id": TENANT,
        "trace": trace,
        "trace_id": trace.trace_id,
        "invocation_id": str(uuid7()),
        "user_id": USER,
    }
    return ScopeContext(**{**whole, **changes})


def without(field):
    with pytest.raises((ScopeError, TypeError)):
        scope(**{field: None})
    with pytest.raises(ScopeError):
        scope(**{field: ""})


@pytest.fixture
def directory(tmp_path):
    database = open_tables(f"sqlite:///{tmp_path / 'tenants.db'}")
    yield TenantDirectory(database)
    database.close()


@row(15, says="tenant_id (UUIDv7): mandatory tenant scope")
def _(directory):
    with refused("tenant-required"):
        normalize_request(request(), principal=None, public=True)
    with refused("tenant-id-invalid"):
        normalize_request(request(), principal=Principal(tenant_id="acme", user_id=USER))


@row(19, says='"general" is a display name only, not exposed as case_id in APIs')
def _(directory):
    tenant = directory.bootstrap("general", service_id="setup")
    with refused("case-unknown", 403):
        directory.resolve_case(Principal(tenant_id=tenant.tenant_id, service_id="s"), "general")
    with refused("case-id-invalid", 400):
        normalize_request(request(x_case_id="general"), principal=BY_USER)


@row(20, says="only if it is a real permission boundary")
def _(directory):
    # A header makes no boundary: only what the endpoint resolved does.
    assert normalize_request(request(x_collection_id=CASE), principal=BY_USER).collection_id is None
    assert normalize_request(request(), principal=BY_USER, collection_id=CASE).collection_id == CASE
    with refused("collection-id-mismatch", 403):
        normalize_request(request(x_collection_id=CASE), principal=BY_USER, collection_id=str(uuid7()))


@row(25, 26, says="tenant_schema is loaded FROM tenant_id, never the reverse")
def _(directory):
    tenant = directory.bootstrap("one", service_id="setup")
    assert directory.tenant(tenant.tenant_id).tenant_schema == tenant_schema(tenant.tenant_id)
    with refused("tenant-unknown"):
        directory.tenant(tenant.tenant_schema)
    with refused("tenant-id-invalid"):
        normalize_request(request(), principal=None, public=True, routed_tenant=tenant.tenant_schema)


@row(36, says="REQUIRED for S2S")
def _(directory):
    message = task_headers(scope())
    with pytest.raises(TypeError):
        normalize_task(message)
    with refused("service-id-invalid"):
        normalize_task(message, service_id="")
    with refused("unauthenticated"):
        normalize_task(message, service_id=None)


@row(39, says="Causal only, never a principal")
def _(directory):
    ctx, audit = normalize_task(task_headers(scope()), service_id="worker")
    assert audit.initiated_by_user_id == USER
    assert (ctx.user_id, ctx.service_id) == (None, "worker")
    assert not hasattr(ctx, "initiated_by_user_id")


@row(40, 41, says="DISTINCT from initiated_by_user_id")
def _(directory):
    ctx, audit = normalize_task(task_headers(scope()), service_id="worker")
    assert audit.created_by_user_id is None
    owner = str(uuid7())
    made = AuditMeta.created_in(ctx, created_by_user_id=owner, initiated_by_user_id=audit.initiated_by_user_id)
    assert (made.created_by_user_id, made.initiated_by_user_id) == (owner, USER)


@row(46, says="NOT the URL")
@row(97, says="stable string, NOT the URL")
def _(directory):
    for url in ("/api/v1/documents", "https://example.org/documents", "documents?x=1"):
        with refused("idempotency-scope-name-invalid"):
            scope().with_key(scope_name=url, key="k")
    assert scope().with_key(scope_name="create_document", key="k").idempotency_scope_name == "create_document"


@row(50, says="Required: tenant_id, trace_id, invocation_id.")
def _(directory):
    for field in ("tenant_id", "trace_id", "invocation_id"):
        without(field)


@row(52, says="when auth is present, user_id is required")
def _(directory):
    with refused("principal-invalid", 401):
        Principal(tenant_id=TENANT)
    assert normalize_request(request(), principal=BY_USER).user_id == USER
    assert normalize_request(request(), principal=BY_USER, public=True).user_id == USER


@row(52, 53, says="Without auth, user_id must be absent")
def _(directory):
    assert normalize_request(request(), principal=None, public=True, routed_tenant=TENANT).user_id is None
    with refused("user-id-mismatch", 403):
        normalize_request(request(x_user_id=USER), principal=None, public=True, routed_tenant=TENANT)


@row(53, says="the endpoint must be explicitly public")
def _(directory):
    for routed in (TENANT, None):
        with refused("unauthenticated", 401):
            normalize_request(request(), principal=None, routed_tenant=routed)
    with refused("unauthenticated", 401):
        scope(user_id=None)
    assert scope(user_id=None, is_public=True).is_public


@row(56, says="user_id REQUIRED, service_id ABSENT")
def _(directory):
    ctx = normalize_request(request(), principal=BY_USER)
    assert (ctx.user_id, ctx.service_id) == (USER, None)
    with refused("principal-ambiguous"):
        scope(user_id=USER, service_id="worker")
    with refused("service-id-mismatch", 403):
        normalize_request(request(x_service_id="worker"), principal=BY_USER)


@row(57, says="service_id REQUIRED, user_id ABSENT")
def _(directory):
    for ctx in (
        normalize_task(task_headers(scope()), service_id="worker")[0],
        normalize_context(service_id="worker", tenant_id=TENANT),
        normalize_request(request(), principal=BY_SERVICE),
    ):
        assert ctx.service_id
        assert ctx.user_id is None
    with refused("user-id-mismatch", 403):
        normalize_request(request(x_user_id=USER), principal=BY_SERVICE)


@row(58, says="initiated_by_user_id is causal tracking in audit_meta only, never a principal")
def _(directory):
    first, audit = normalize_task(task_headers(scope()), service_id="one")
    second, later = normalize_task(task_headers(first, audit), service_id="two")
    assert later.initiated_by_user_id == USER
    assert second.user_id is None
    assert "user_id" not in task_headers(first, audit)["sameas"]
    assert "initiated_by_user_id" not in ScopeContext.__struct_fields__


@row(64, says="case.tenant_id must equal the context tenant_id")
def _(directory):
    theirs = Case(case_id=CASE, tenant_id=str(uuid7()))
    ours = Case(case_id=CASE, tenant_id=TENANT)
    with refused("case-unknown", 403):
        normalize_request(request(), principal=BY_USER, case=theirs)
    with refused("case-unknown"):
        normalize_context(principal=BY_USER, case=theirs)
    with refused("case-unknown"):
        normalize_task(task_headers(scope()), service_id="worker", case=theirs)
    assert normalize_request(request(), principal=BY_USER, case=ours).case_id == CASE


@row(67, says="every operation must include tenant_id")
def _(directory):
    without("tenant_id")
    with refused("task-scope-required"):
        normalize_task({}, service_id="worker")
    with refused("task-scope-invalid"):
        normalize_task({"sameas": {"v": 1, "traceparent": ""}}, service_id="worker")
    with refused("tenant-required"):
        normalize_context(service_id="worker")


@row(68, says="case_id is required. No defaulting in the normalizer.")
def _(directory):
    with refused("case-required", 400):
        normalize_request(request(), principal=BY_USER, case_required=True)
    with refused("case-required", 400):
        normalize_request(request(x_case_id=CASE), principal=BY_USER, case_required=True)
    with refused("case-required"):
        normalize_task(task_headers(scope()), service_id="worker", case_required=True)
    with refused("case-required"):
        normalize_context(principal=BY_USER, case_required=True)
    assert normalize_request(request(), principal=BY_USER).case_id is None


@row(70, says="Each tenant has exactly one system_case_id (UUIDv7, created at bootstrap)")
def _(directory):
    tenants = [directory.bootstrap(name, service_id="setup") for name in ("one", "two")]
    contexts = [normalize_context(service_id="s", tenant_id=tenant.tenant_id) for tenant in tenants]
    ids = [directory.system_case(ctx).case_id for ctx in contexts for _ in range(2)]
    assert len(set(ids)) == 2
    assert all(map(is_uuid7, ids))


@row(71, says='"general" is a display name only, not exposed as case_id in external APIs')
def _(directory):
    tenant = directory.bootstrap("one", service_id="setup")
    ctx = normalize_context(service_id="s", tenant_id=tenant.tenant_id)
    system = directory.system_case(ctx)
    principal = Principal(tenant_id=tenant.tenant_id, service_id="s")
    assert directory.cases(ctx) == []
    with refused("case-unknown", 403):
        directory.resolve_case(principal, system.case_id)
    with refused("case-unknown", 403):
        normalize_request(request(), principal=principal, case=system)


@row(73, says="System Case MUST NOT be used as backdoor for tenant-scoped admin functions")
def _(directory):
    tenant = directory.bootstrap("one", service_id="setup")
    ctx = normalize_context(service_id="s", tenant_id=tenant.tenant_id)
    user = directory.add_user(ctx, "one")
    directory.put_member_of_system_case(ctx, user.user_id, role="owner")
    with refused("admin-required", 403):
        require_admin(Principal(tenant_id=tenant.tenant_id, user_id=user.user_id))


@row(74, says="External counsel is never auto-membered to System Case")
def _(directory):
    tenant = directory.bootstrap("one", service_id="setup")
    ctx = normalize_context(service_id="s", tenant_id=tenant.tenant_id)
    internal = directory.add_user(ctx, "one")
    external = directory.add_user(ctx, "two", kind="external_counsel")
    assert [member.user_id for member in directory.members(ctx, directory.system_case(ctx))] == [internal.user_id]
    with refused("external-counsel", 403):
        directory.put_member_of_system_case(ctx, external.user_id)


@row(77, says="Starting a workflow requires workflow_run_id")
@row(78, says="Starting ingestion requires ingestion_run_id")
@row(79, says="both IDs can exist")
def _(directory):
    for starts in ("workflow", "ingestion"):
        run_id = {f"{starts}_run_id": RUN}
        with refused(f"{starts}-run-id-required", 400):
            normalize_request(request(), principal=BY_USER, starts=starts)
        with refused(f"{starts}-run-id-required"):
            normalize_task(task_headers(scope()), service_id="worker", starts=starts)
        with refused(f"{starts}-run-id-required"):
            normalize_context(principal=BY_USER, starts=starts)
        assert normalize_request(request(), principal=BY_USER, starts=starts, **run_id)
        assert normalize_task(task_headers(scope(**run_id)), service_id="worker", starts=starts)
    assert scope(workflow_run_id=RUN, ingestion_run_id=str(uuid7()))


@row(80, 81, says="technical execution IDs, not business identities")
def _(directory):
    audit = AuditMeta.created_in(scope(workflow_run_id=RUN))
    assert audit.workflow_run_id == RUN
    assert BY_USER.digest == Principal(tenant_id=TENANT, user_id=USER, roles=("x",), credential_id="c").digest


@row(85, says="Headers are for plausibility checks/debug only, never authority")
def _(directory):
    other = str(uuid7())
    for name, field in (("x_tenant_id", "tenant-id"), ("x_user_id", "user-id"), ("x_service_id", "service-id")):
        with refused(f"{field}-mismatch", 403):
            normalize_request(request(**{name: other}), principal=BY_USER)
    for name in ("x_case_id", "x_collection_id", "x_workflow_id"):
        ctx = normalize_request(request(**{name: other}), principal=BY_USER)
        assert other not in {ctx.case_id, ctx.collection_id, ctx.workflow_id}
    agreed = normalize_request(request(x_tenant_id=TENANT, x_user_id=USER.upper()), principal=BY_USER)
    assert (agreed.tenant_id, agreed.user_id) == (TENANT, USER)
    with refused("tenant-id-mismatch", 403):
        normalize_request(request(), principal=BY_USER, routed_tenant=other)


@row(88, says="trace_id stays constant across hops")
@row(89, says="invocation_id is unique per hop")
@row(90, says="HTTP Request OR Celery Task Start")
def _(directory):
    http = normalize_request(request(traceparent=f"00-{'1' * 32}-{'2' * 16}-01"), principal=BY_USER)
    first, audit = normalize_task(task_headers(http), service_id="one")
    second, _ = normalize_task(task_headers(first, audit), service_id="two")
    again, _ = normalize_task(task_headers(http), service_id="one")
    hops = [http, first, second, again]
    assert {hop.trace_id for hop in hops} == {"1" * 32}
    assert len({hop.invocation_id for hop in hops}) == 4


@row(94, says="Request-level only.")
def _(directory):
    keyed = scope().with_key(scope_name="create_document", key="k")
    later, audit = normalize_task(task_headers(keyed), service_id="worker", idempotency_scope_name="start_ingestion")
    assert (later.idempotency_key, audit.idempotency_key) == (None, None)


@row(96, says="(tenant_id, idempotency_scope_name, idempotency_key)")
def _(directory):
    with refused("idempotency-scope-required"):
        scope(idempotency_key="k")
    engine, runs = Engine(open_store("memory://")), []
    for tenant in ("a", "b"):
        for name in ("create_document", "send_invite"):
            for key in ("1", "2"):
                engine.run(lambda _: runs.append(1), tenant=tenant, scope=name, key=key)
    assert len(runs) == 8


@row(99, says="TTL: 24 hours default, per-scope overridable")
def _(directory):
    assert Policy().retention == 24 * 3600
    assert Policy(retention=60.0).retention == 60.0


@row(100, says="Redis with TTL, required for Pre-MVP")
def _(directory, redis_url):
    import redis

    with open_store(redis_url) as store:
        Engine(store).run(lambda _: "done", scope="send_invite", key="k")
    with redis.Redis.from_url(redis_url) as client:
        ttls = [client.ttl(key) for key in client.keys()]
    assert ttls
    # A second longer, so that a claim finds the fence of what just expired.
    assert all(0 < ttl <= 24 * 3600 + 1 for ttl in ttls)


@row(101, says="Only for critical writes")
def _(directory, tmp_path):
    # Records in SQL have the constraint themselves: nobody, by whatever way, writes a second one.
    with open_store(f"sqlite:///{tmp_path / 'records.db'}") as store:
        Engine(store).run(lambda _: "done", tenant=TENANT, scope="create_document", key="k")
    connection = sqlite3.connect(tmp_path / "records.db")
    (table,) = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE '%ecord%'"
    ).fetchone()
    with pytest.raises(sqlite3.IntegrityError, match="UNIQUE|PRIMARY"):
        connection.execute(f"INSERT INTO {table} SELECT * FROM {table}")
    connection.close()


@row(104, says="Response must mark replay vs fresh consistently")
@row(107, 108, says="Replay responses must be semantically equivalent")
def _(directory):
    engine, runs = Engine(open_store("memory://")), []

    def work(_):
        runs.append(1)
        return {"id": len(runs)}

    records = [engine.record(work, tenant=TENANT, scope="create_document", key="k") for _ in range(3)]
    assert [record.was_replay for record in records] == [False, True, True]
    assert [record.result for record in records] == [{"id": 1}] * 3


@row(119, 120, says="SET ONCE at creation, immutable thereafter")
def _(directory):
    made = AuditMeta.created_in(scope())
    other = scope(user_id=str(uuid7()))
    by_service, _ = normalize_task(task_headers(other), service_id="worker")
    for ctx in (other, by_service):
        assert made.written_by(ctx).created_by_user_id == USER
    with pytest.raises(AttributeError):
        made.created_by_user_id = "x"


@row(124, says="ScopeContext.service_id != audit_meta.last_hop_service_id")
def _(directory):
    by_service, _ = normalize_task(task_headers(scope()), service_id="worker")
    written = AuditMeta.created_in(scope()).written_by(by_service)
    assert written.last_hop_service_id == "worker"
    assert scope().service_id is None
    assert AuditMeta.from_json(written.to_json()).last_hop_service_id == "worker"


@row(128, 129, 130, says="All entry points must build ScopeContext via a canonical normalize_request")
def _(directory):
    from tests.unit.identity.test_scope_entry import findings

    assert findings() == []


@pytest.mark.parametrize(("lines", "says", "check"), ROWS)
def test_the_sentence_holds(lines, says, check, request, directory):
    names = check.__code__.co_varnames[: check.__code__.co_argcount]
    check(*(request.getfixturevalue(name) for name in names))


def test_every_sentence_of_the_document_has_a_row():
    text = shared("sources", "004-id-contract.md").read_text()
    document = dict(enumerate(text.splitlines(), 1))
    for lines, says, _ in (row.values for row in ROWS):
        quoted = " ".join(" ".join(document[line] for line in lines).split())
        assert " ".join(says.split()) in quoted, f"line {lines[0]} of the document does not say: {says}"
    strict = {
        number
        for number, line in document.items()
        if re.search(r"\b(must|required?s?|absent|never|only|unique)\b", line, re.IGNORECASE)
    }
    covered = {line for lines, _, _ in (row.values for row in ROWS) for line in lines}
    assert strict - covered == set()
