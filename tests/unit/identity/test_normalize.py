"""The ways in: what a request, a task and anything else may say, and how hops follow each other."""

import asyncio
import json

import pytest

from sameas.identity.ids import TraceContext, uuid7
from sameas.identity.normalize import (
    Credentials,
    credentials,
    current_scope,
    idempotency_key_header,
    normalize_context,
    normalize_request,
    normalize_task,
    requested_case_id,
    task_headers,
)
from sameas.identity.scope import Case, Principal, ScopeError

TENANT, USER, CASE = (str(uuid7()) for _ in range(3))
PRINCIPAL = Principal(tenant_id=TENANT, user_id=USER)
PARENT = f"00-{'1' * 32}-{'2' * 16}-01"


def request(*headers):
    return {"type": "http", "headers": [(name, value) for name, value in headers]}


def refused(code, status=None):
    return pytest.raises(ScopeError, check=lambda error: error.code == code and status in {None, error.status})


def test_a_public_endpoint_takes_its_tenant_from_routing():
    ctx = normalize_request(request(), principal=None, public=True, routed_tenant=TENANT)
    assert (ctx.tenant_id, ctx.user_id, ctx.service_id, ctx.is_public) == (TENANT, None, None, True)


def test_a_header_that_names_a_tenant_to_a_deployment_without_tenants_is_refused():
    with refused("tenant-id-mismatch", 403):
        normalize_request(
            request((b"x-tenant-id", b"acme")), principal=None, public=True, routed_tenant="", allow_any_tenant=True
        )


@pytest.mark.parametrize("name", [b"x-tenant-id", b"x-case-id", b"x-workflow-run-id"])
@pytest.mark.parametrize("value", [b"", b"acme", b"\xff\xfe", b"a" * 70_000, b"%s, %s" % (b"1", b"2"), b"x\ny"])
def test_a_malformed_id_in_a_header_is_refused_without_repeating_it(name, value):
    with pytest.raises(ScopeError) as caught:
        normalize_request(request((name, value)), principal=PRINCIPAL)
    assert caught.value.status == 400
    assert len(str(caught.value)) < 200


def test_an_id_header_is_sent_once():
    twice = [(b"x-tenant-id", TENANT.encode())] * 2
    with refused("header-repeated", 400):
        normalize_request(request(*twice), principal=PRINCIPAL)


def test_run_ids_are_technical_and_may_come_from_the_caller():
    run = str(uuid7())
    ctx = normalize_request(
        request((b"x-workflow-run-id", run.encode())), principal=PRINCIPAL, starts="workflow", allow_any_tenant=True
    )
    assert ctx.workflow_run_id == run
    mine = str(uuid7())
    own = normalize_request(request((b"x-workflow-run-id", run.encode())), principal=PRINCIPAL, workflow_run_id=mine)
    assert own.workflow_run_id == mine


def test_the_case_that_is_asked_for_means_nothing_until_it_is_resolved():
    asked = request((b"x-case-id", CASE.encode()))
    assert requested_case_id(asked) == CASE
    assert requested_case_id(request()) is None
    assert requested_case_id(request((b"x-case-id", CASE.upper().encode()))) == CASE
    assert requested_case_id(request((b"x-case-id", b"Merger"))) == "Merger"
    assert normalize_request(asked, principal=PRINCIPAL).case_id is None
    case = Case(case_id=CASE, tenant_id=TENANT)
    assert normalize_request(asked, principal=PRINCIPAL, case=case, case_required=True).case_id == CASE
    with refused("case-id-mismatch", 403):
        normalize_request(asked, principal=PRINCIPAL, case=Case(case_id=str(uuid7()), tenant_id=TENANT))


def test_trace_goes_on_and_each_hop_has_an_invocation_of_its_own():
    http = normalize_request(request((b"traceparent", PARENT.encode()), (b"tracestate", b"a=1")), principal=PRINCIPAL)
    sent = json.loads(json.dumps(task_headers(http)))
    first, audit = normalize_task(sent, service_id="one")
    second, last = normalize_task(task_headers(first, audit), service_id="two")
    hops = [http, first, second]
    assert {hop.trace_id for hop in hops} == {"1" * 32}
    assert {hop.trace.state for hop in hops} == {"a=1"}
    assert len({hop.invocation_id for hop in hops}) == 3
    assert http.trace.parent_id == "2" * 16
    assert len({hop.trace.parent_id for hop in hops} | {hop.trace.span_id for hop in hops}) == 6
    assert last.initiated_by_user_id == USER
    out = second.trace_headers()
    _, _, called, _ = out["traceparent"].split("-")
    assert out["traceparent"] == f"00-{'1' * 32}-{called}-01"
    third = normalize_request(request(*((k.encode(), v.encode()) for k, v in out.items())), principal=PRINCIPAL)
    assert (third.trace_id, third.trace.parent_id) == ("1" * 32, called)


def test_what_runs_inside_a_hop_shares_its_scope():
    async def node():
        await asyncio.sleep(0)
        return current_scope.get().invocation_id

    async def hop():
        ctx = normalize_request(request(), principal=PRINCIPAL)
        current_scope.set(ctx)
        return ctx.invocation_id, await asyncio.gather(
            node(), asyncio.to_thread(lambda: current_scope.get().invocation_id)
        )

    async def two():
        return await asyncio.gather(hop(), hop())

    (one, inside), (other, inside_other) = asyncio.run(two())
    assert inside == [one] * 2
    assert inside_other == [other] * 2
    assert one != other
    assert current_scope.get() is None


def test_a_task_inherits_ids_and_may_be_given_its_own_run():
    ctx = normalize_context(
        principal=PRINCIPAL,
        case=Case(case_id=CASE, tenant_id=TENANT),
        workflow_id=str(uuid7()),
        workflow_run_id=str(uuid7()),
    )
    run = str(uuid7())
    task, audit = normalize_task(task_headers(ctx), service_id="w", case_required=True, ingestion_run_id=run)
    assert (task.case_id, task.workflow_id, task.workflow_run_id) == (CASE, ctx.workflow_id, ctx.workflow_run_id)
    assert task.ingestion_run_id == audit.ingestion_run_id == run
    with refused("case-id-mismatch"):
        normalize_task(task_headers(ctx), service_id="w", case=Case(case_id=str(uuid7()), tenant_id=TENANT))


def test_a_key_for_the_task_travels_only_when_the_sender_says_so():
    ctx = normalize_context(principal=PRINCIPAL).with_key(scope_name="create_document", key="of-the-request")
    assert "idempotency_key" not in task_headers(ctx)["sameas"]
    sent = task_headers(ctx, idempotency_key="of-the-task")
    task, audit = normalize_task(sent, service_id="w", idempotency_scope_name="start_ingestion")
    assert (task.idempotency_scope_name, task.idempotency_key) == ("start_ingestion", "of-the-task")
    assert audit.idempotency_key == "of-the-task"
    task, _ = normalize_task(sent, service_id="w", idempotency_scope_name="s", idempotency_key="own")
    assert task.idempotency_key == "own"
    assert normalize_task(sent, service_id="w")[0].idempotency_key is None
    with refused("idempotency-key-invalid"):
        task_headers(ctx, idempotency_key="a\nb")


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (None, "task-scope-required"),
        ("text", "task-scope-invalid"),
        ([], "task-scope-invalid"),
        ({}, "task-scope-invalid"),
        ({"v": 1, "tenant_id": 7, "traceparent": ""}, "task-scope-invalid"),
        ({"v": 2, "tenant_id": TENANT, "traceparent": ""}, "task-scope-version"),
        ({"v": 1, "tenant_id": "", "traceparent": ""}, "tenant-required"),
        ({"v": 1, "tenant_id": "acme", "traceparent": ""}, "tenant-id-invalid"),
        ({"v": 1, "tenant_id": TENANT, "traceparent": "", "case_id": "x"}, "case-id-invalid"),
        ({"v": 1, "tenant_id": TENANT, "traceparent": "", "initiated_by_user_id": "x"}, "initiated-by-user-id-invalid"),
    ],
)
def test_a_message_without_a_good_scope_is_refused(sent, code):
    with refused(code):
        normalize_task({"sameas": sent} if sent is not None else None, service_id="w")


def test_a_message_with_a_bad_trace_or_of_a_later_release_is_taken():
    sent = {"v": 1, "tenant_id": TENANT, "traceparent": "nonsense", "later": 1}
    ctx, _ = normalize_task({"sameas": sent}, service_id="w")
    assert ctx.trace.parent_id == ""


def test_the_library_takes_a_message_without_a_scope():
    ctx, audit = normalize_task({}, service_id="w", allow_any_tenant=True)
    assert (ctx.tenant_id, ctx.service_id, audit.initiated_by_user_id) == ("", "w", None)


def test_other_ways_in_name_a_principal_or_a_service():
    trace = TraceContext.new()
    ctx = normalize_context(service_id="sameas-cli", tenant_id=TENANT, trace=trace)
    assert (ctx.service_id, ctx.trace_id) == ("sameas-cli", trace.trace_id)
    assert normalize_context(principal=PRINCIPAL, traceparent=PARENT).trace_id == "1" * 32
    assert normalize_context(principal=PRINCIPAL, traceparent="bad").trace_id != "1" * 32
    for ids in ({}, {"principal": PRINCIPAL, "service_id": "s"}):
        with refused("principal-ambiguous"):
            normalize_context(tenant_id=TENANT, **ids)
    with refused("tenant-id-mismatch"):
        normalize_context(principal=PRINCIPAL, tenant_id=str(uuid7()))


def test_the_raw_values_of_the_key_are_given_each_time_it_was_sent():
    asked = request((b"idempotency-key", b'"a"'), (b"accept", b"*/*"), (b"idempotency-key", b"\xff"))
    assert idempotency_key_header(asked) == (b'"a"', b"\xff")
    assert idempotency_key_header(request()) == ()


@pytest.mark.parametrize(
    ("header", "shown"),
    [
        ((b"authorization", b"Bearer abc.def"), Credentials("bearer", "abc.def")),
        ((b"authorization", b"BEARER   abc"), Credentials("bearer", "abc")),
        ((b"authorization", b" ApiKey k "), Credentials("apikey", "k")),
        ((b"authorization", b"Digest a=b, c=d"), Credentials("digest", "a=b, c=d")),
        ((b"x-api-key", b"sameas_x"), Credentials("apikey", "sameas_x")),
    ],
)
def test_a_credential_is_read(header, shown):
    assert credentials(request(header)) == shown
    assert credentials(request()) is None


@pytest.mark.parametrize(
    "header",
    [
        (b"authorization", b""),
        (b"authorization", b"canary"),
        (b"authorization", b"Bearer "),
        (b"authorization", b"Bearer\tcanary"),
        (b"authorization", b"Bearer canary\x00"),
        (b"authorization", b"Bearer canary\r\nX: y"),
        (b"authorization", b"Bearer \xff canary"),
        (b"authorization", b"Bearer " + b"canary" * 10_000),
        (b"x-api-key", b""),
        (b"x-api-key", b"two canary"),
        (b"x-api-key", "canaryé".encode()),
    ],
)
def test_a_credential_that_cannot_be_read_is_refused_without_telling_it(header):
    with refused("credentials-malformed", 401) as caught:
        credentials(request(header))
    assert "canary" not in str(caught.value)
    assert caught.value.challenge == "Bearer"


def test_two_credentials_are_refused():
    for second in (b"authorization", b"x-api-key"):
        with refused("credentials-ambiguous", 400):
            credentials(request((b"authorization", b"Bearer a"), (second, b"Bearer a")))


def test_a_credential_is_never_printed():
    shown = Credentials("bearer", "canary")
    assert "canary" not in f"{shown} {shown!r}"
