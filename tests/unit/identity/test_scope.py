"""ScopeContext, Principal and AuditMeta: what they refuse, and what they never print."""

import json
import pickle

import msgspec
import pytest

from sameas.identity.ids import TraceContext, uuid7
from sameas.identity.scope import AuditMeta, Principal, ScopeContext, ScopeError

TENANT, USER = str(uuid7()), str(uuid7())
BUSINESS = ["tenant_id", "user_id", "case_id", "collection_id", "workflow_id"]
RUNS = ["workflow_run_id", "ingestion_run_id", "invocation_id"]


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


@pytest.mark.parametrize("field", BUSINESS + RUNS)
@pytest.mark.parametrize(
    "value",
    [
        "",
        " ",
        "acme",
        TENANT.upper(),
        TENANT.replace("-", ""),
        f"{{{TENANT}}}",
        TENANT + "\n",
        TENANT[:14] + "4" + TENANT[15:],
    ],
)
def test_an_id_has_one_spelling(field, value):
    with pytest.raises(ScopeError) as caught:
        scope(**{field: value})
    assert caught.value.status == 400


@pytest.mark.parametrize("field", BUSINESS)
def test_the_library_takes_business_ids_of_any_kind_that_can_be_printed(field):
    assert getattr(scope(any_tenant=True, **{field: "Größe 7|:/"}), field) == "Größe 7|:/"
    for value in ("a\nb", "a\x00", "\ud800", "x" * 256, "\u202e"):
        with pytest.raises(ScopeError):
            scope(any_tenant=True, **{field: value})


def test_the_library_may_leave_the_tenant_out_but_nothing_else():
    assert scope(any_tenant=True, tenant_id="").tenant_id == ""
    for field in RUNS + BUSINESS[1:]:
        with pytest.raises(ScopeError):
            scope(any_tenant=True, **{field: ""})


@pytest.mark.parametrize("trace_id", ["", "0" * 32, "1" * 31, "g" * 32, "A" * 32, "1" * 32])
def test_the_trace_id_is_that_of_the_trace(trace_id):
    with pytest.raises(ScopeError):
        scope(trace_id=trace_id)


def test_a_scope_cannot_be_changed_and_a_changed_copy_is_checked_again():
    ctx = scope()
    with pytest.raises(AttributeError):
        ctx.tenant_id = str(uuid7())
    with pytest.raises(ScopeError):
        msgspec.structs.replace(ctx, service_id="worker")
    with pytest.raises(ScopeError):
        ctx.with_key(scope_name="", key="k")
    with pytest.raises(ScopeError):
        ctx.with_key(scope_name="s", key="k" * 1_025)


def test_a_scope_that_was_decoded_is_checked_too():
    ctx = scope()
    sent = msgspec.to_builtins(ctx)
    assert msgspec.convert(sent, ScopeContext) == ctx
    assert pickle.loads(pickle.dumps(ctx)) == ctx
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({**sent, "service_id": "worker"}, ScopeContext)


def test_principals_of_two_kinds_or_ids_have_two_digests():
    named = [
        Principal(tenant_id=TENANT, user_id="a"),
        Principal(tenant_id=TENANT, service_id="a"),
        Principal(tenant_id=TENANT, user_id="a1:"),
        Principal(tenant_id=TENANT, user_id="b"),
    ]
    assert len({principal.digest for principal in named}) == 4
    assert {len(principal.digest) for principal in named} == {64}


@pytest.mark.parametrize(
    "ids", [{}, {"user_id": "a", "service_id": "b"}, {"user_id": ""}, {"service_id": "a\n"}, {"user_id": 7}]
)
def test_a_principal_is_exactly_one_of_user_and_service(ids):
    with pytest.raises(ScopeError):
        Principal(tenant_id=TENANT, **ids)


@pytest.mark.parametrize("odd", ["", "a\nb", "\ud800", "x" * 256])
def test_a_credentials_name_and_roles_are_text_that_can_be_printed(odd):
    with pytest.raises(ScopeError):
        Principal(tenant_id="acme", user_id="u", roles=("reader", odd))
    with pytest.raises(ScopeError):
        Principal(tenant_id="acme", user_id="u", credential_id=odd or " \t")


def test_keys_are_not_printed():
    ctx = scope().with_key(scope_name="send_invite", key="canary-key")
    audit = AuditMeta.created_in(ctx)
    assert json.loads(audit.to_json())["idempotency_key"] == "canary-key"
    for printed in (repr(ctx), str(ctx), f"{ctx}", repr(ctx.__rich_repr__()), repr(audit), repr(audit.__rich_repr__())):
        assert "canary" not in printed
        assert ctx.trace_id in printed


def test_audit_meta_has_the_keys_of_the_contract_and_no_empty_ones():
    audit = AuditMeta.created_in(scope())
    assert set(json.loads(audit.to_json())) == {
        "trace_id",
        "invocation_id",
        "created_by_user_id",
        "initiated_by_user_id",
    }
    assert set(AuditMeta.__struct_fields__) == {
        "trace_id", "invocation_id", "workflow_run_id", "ingestion_run_id", "idempotency_key", "created_by_user_id",
        "initiated_by_user_id", "last_hop_service_id",
    }  # fmt: skip


def test_audit_meta_is_read_back_and_what_a_later_release_added_is_passed_over():
    audit = AuditMeta.created_in(scope(workflow_run_id=str(uuid7())))
    assert AuditMeta.from_json(audit.to_json()) == audit
    assert AuditMeta.from_json(json.dumps({**json.loads(audit.to_json()), "later": 1})) == audit
    for text in ("", "{}", "[]", "null", b"\xff"):
        with pytest.raises(ScopeError):
            AuditMeta.from_json(text)


def test_a_write_is_the_hops_and_the_owner_stays():
    made = AuditMeta.created_in(scope())
    service = scope(user_id=None, service_id="worker", ingestion_run_id=str(uuid7()))
    cause = str(uuid7())
    written = made.written_by(service, initiated_by_user_id=cause)
    assert written.created_by_user_id == USER
    assert (written.trace_id, written.invocation_id) == (service.trace_id, service.invocation_id)
    assert written.ingestion_run_id == service.ingestion_run_id
    assert (written.initiated_by_user_id, written.last_hop_service_id) == (cause, "worker")
    again = written.written_by(scope())
    assert (again.created_by_user_id, again.last_hop_service_id) == (USER, None)


def test_a_thing_without_an_owner_does_not_get_one_by_being_written():
    made = AuditMeta.created_in(scope(user_id=None, service_id="worker"))
    assert made.written_by(scope()).created_by_user_id is None


def test_the_cause_in_a_users_hop_is_that_user():
    with pytest.raises(ScopeError, match="cannot be another"):
        AuditMeta.created_in(scope(), initiated_by_user_id=str(uuid7()))
    owner = str(uuid7())
    assert AuditMeta.created_in(scope(), created_by_user_id=owner).created_by_user_id == owner
