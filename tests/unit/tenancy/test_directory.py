"""Tenants, cases and memberships: what the contract says of them, held by code and by the tables."""

import pytest

from sameas.databases import RowRefused
from sameas.identity.ids import is_uuid7, uuid7
from sameas.identity.normalize import normalize_context
from sameas.identity.scope import AuditMeta, Case, Principal, ScopeError
from sameas.tenancy.directory import ADMIN_ROLE, TenantDirectory, require_admin, tenant_schema


def user_ctx(tenant, user):
    return normalize_context(principal=Principal(tenant_id=tenant.tenant_id, user_id=user.user_id))


def audit_of(database, table, tenant):
    sql = f"SELECT CAST(audit_meta AS TEXT) FROM {table} WHERE tenant_id = :tenant_id"
    with database._driver.transaction(writes=False, durable=False) as work:
        rows, _ = work.execute(sql, {"tenant_id": tenant.tenant_id})
    return [AuditMeta.from_json(row[0]) for row in rows]


def refused(code):
    return pytest.raises(ScopeError, check=lambda error: error.code == code)


def test_a_tenant_has_a_uuid7_and_a_schema_derived_from_it(directory, tenant):
    assert is_uuid7(tenant.tenant_id)
    assert tenant.tenant_schema == tenant_schema(tenant.tenant_id) == "t_" + tenant.tenant_id.replace("-", "")
    assert directory.tenant(tenant.tenant_id) == tenant
    with pytest.raises(ScopeError):
        tenant_schema("acme")


def test_a_tenant_is_there_after_the_directory_was_opened_again(database, directory, tenant):
    assert tenant in TenantDirectory(database).tenants()


def test_each_tenant_has_exactly_one_system_case_from_the_beginning(database, directory, tenant, ctx):
    other = directory.bootstrap("Other", service_id="setup")
    system = directory.system_case(ctx)
    assert is_uuid7(system.case_id)
    assert system.is_system
    theirs = directory.system_case(normalize_context(service_id="setup", tenant_id=other.tenant_id))
    assert theirs.case_id != system.case_id
    with pytest.raises(RowRefused), database.transaction() as session:
        session.run(
            "add_case",
            tenant_id=tenant.tenant_id,
            case_id=str(uuid7()),
            kind="system",
            name="x",
            now="",
            audit_meta="{}",
        )


def test_the_system_case_cannot_be_named_by_anybody(directory, tenant, ctx):
    system = directory.system_case(ctx)
    user = directory.add_user(ctx, "First")
    assert user.user_id in {member.user_id for member in directory.members(ctx, system)}
    assert directory.cases(ctx) == []
    assert directory.cases(user_ctx(tenant, user)) == []
    for principal in (
        Principal(tenant_id=tenant.tenant_id, user_id=user.user_id, roles=(ADMIN_ROLE,)),
        Principal(tenant_id=tenant.tenant_id, service_id="worker"),
    ):
        with refused("case-unknown"):
            directory.resolve_case(principal, system.case_id)
    with refused("case-unknown"):
        directory.put_member(ctx, system.case_id, user.user_id)


def test_a_customer_may_have_a_case_that_is_named_general(directory, tenant, ctx):
    made = [directory.create_case(ctx, "general"), directory.create_case(ctx, "General")]
    assert directory.cases(ctx) == made


def test_external_counsel_is_never_in_the_system_case(database, directory, tenant, ctx):
    counsel = directory.add_user(ctx, "Counsel", kind="external_counsel")
    system = directory.system_case(ctx)
    with refused("external-counsel"):
        directory.put_member_of_system_case(ctx, counsel.user_id)
    assert directory.members(ctx, system) == []
    with pytest.raises(RowRefused, match="external_counsel"), database.transaction() as session:
        session.run(
            "put_member",
            tenant_id=tenant.tenant_id,
            case_id=system.case_id,
            case_kind="system",
            user_id=counsel.user_id,
            user_kind="external_counsel",
            role="member",
            now="",
            audit_meta="{}",
        )


def test_external_counsel_works_in_the_cases_it_was_put_into(directory, tenant, ctx):
    counsel = directory.add_user(ctx, "Counsel", kind="external_counsel")
    case, other = directory.create_case(ctx, "Merger"), directory.create_case(ctx, "Other")
    directory.put_member(ctx, case.case_id, counsel.user_id, role="viewer")
    principal = Principal(tenant_id=tenant.tenant_id, user_id=counsel.user_id)
    assert directory.resolve_case(principal, case.case_id).case_id == case.case_id
    assert directory.cases(user_ctx(tenant, counsel)) == [case]
    with refused("case-unknown"):
        directory.resolve_case(principal, other.case_id)


def test_being_in_the_system_case_opens_no_admin_door(directory, tenant, ctx):
    user = directory.add_user(ctx, "First")
    directory.put_member_of_system_case(ctx, user.user_id, role="owner")
    principal = Principal(tenant_id=tenant.tenant_id, user_id=user.user_id)
    with refused("admin-required"):
        require_admin(principal)
    require_admin(Principal(tenant_id=tenant.tenant_id, user_id=user.user_id, roles=(ADMIN_ROLE,)))


def test_a_case_of_another_tenant_is_like_one_that_never_was(directory, tenant, ctx):
    case = directory.create_case(ctx, "Merger")
    other = directory.bootstrap("Other", service_id="setup")
    stranger = Principal(tenant_id=other.tenant_id, service_id="worker")
    answers = set()
    for case_id in (case.case_id, str(uuid7()), "general", "' OR 1=1 --"):
        with refused("case-unknown") as caught:
            directory.resolve_case(stranger, case_id)
        answers.add(str(caught.value))
    assert len(answers) == 1
    theirs = normalize_context(service_id="setup", tenant_id=other.tenant_id)
    with refused("user-unknown"):
        directory.put_member(theirs, case.case_id, directory.add_user(ctx, "First").user_id)
    with refused("case-unknown"):
        directory.put_member(theirs, case.case_id, directory.add_user(theirs, "Second").user_id)
    with refused("case-unknown"):
        directory.members(
            theirs, directory.resolve_case(Principal(tenant_id=tenant.tenant_id, service_id="w"), case.case_id)
        )


def test_who_made_a_case_owns_it_and_can_be_taken_out_of_it(directory, tenant, ctx):
    user = directory.add_user(ctx, "First")
    principal = Principal(tenant_id=tenant.tenant_id, user_id=user.user_id)
    entry = directory.create_case(user_ctx(tenant, user), "Merger")
    case = directory.resolve_case(principal, entry.case_id)
    assert [(member.user_id, member.role) for member in directory.members(ctx, case)] == [(user.user_id, "owner")]
    directory.remove_member(ctx, case.case_id, user.user_id)
    with refused("case-unknown"):
        directory.resolve_case(principal, entry.case_id)
    with refused("member-unknown"):
        directory.remove_member(ctx, case.case_id, user.user_id)


def test_who_created_a_row_is_written_once(database, directory, tenant, ctx):
    first, second = directory.add_user(ctx, "First"), directory.add_user(ctx, "Second")
    case = directory.create_case(user_ctx(tenant, first), "Merger")
    directory.put_member(user_ctx(tenant, first), case.case_id, second.user_id)
    changed = user_ctx(tenant, second)
    directory.put_member(changed, case.case_id, second.user_id, role="viewer")
    audits = [
        audit for audit in audit_of(database, "sameas_memberships", tenant) if audit.created_by_user_id == first.user_id
    ]
    assert changed.invocation_id in {audit.invocation_id for audit in audits}


@pytest.mark.parametrize(
    "table",
    ["sameas_tenants", "sameas_users", "sameas_services", "sameas_cases", "sameas_memberships", "sameas_api_keys"],
)
def test_every_table_has_audit_meta_on_every_row(database, directory, keys, tenant, ctx, table):
    user = directory.add_user(ctx, "First")
    directory.add_service(ctx, "worker")
    directory.create_case(ctx, "Merger")
    keys.create(ctx, "laptop", user_id=user.user_id)
    audits = audit_of(database, table, tenant)
    assert audits
    assert {audit.last_hop_service_id for audit in audits} == {"setup"}
    assert all(is_uuid7(audit.invocation_id) for audit in audits)


def test_services_belong_to_a_tenant_and_are_named_once(directory, ctx):
    assert [directory.add_service(ctx, "worker")] == directory.services(ctx)
    with refused("service-exists"):
        directory.add_service(ctx, "worker")
    directory.disable_service(ctx, "worker")
    assert directory.services(ctx)[0].disabled_at is not None
    other = directory.bootstrap("Other", service_id="setup")
    assert directory.services(normalize_context(service_id="setup", tenant_id=other.tenant_id)) == []


def test_nothing_is_added_to_a_tenant_that_is_not_there(directory, ctx):
    nowhere = normalize_context(service_id="setup", tenant_id=str(uuid7()))
    with refused("tenant-unknown"):
        directory.add_user(nowhere, "First", kind="external_counsel")
    with refused("tenant-unknown"):
        directory.add_service(nowhere, "worker")
    with refused("tenant-unknown"):
        directory.create_case(nowhere, "Merger")
    with refused("tenant-unknown"):
        directory.tenant(nowhere.tenant_id)


def test_a_user_is_added_once_and_only_with_a_uuid7(directory, ctx):
    user = directory.add_user(ctx, "First")
    with refused("user-exists"):
        directory.add_user(ctx, "First", user_id=user.user_id)
    with refused("user-id-invalid"):
        directory.add_user(ctx, "First", user_id="first")


def test_no_statement_finds_a_tenant_by_its_schema(database):
    for name, sql in database._statements.named.items():
        if not name.startswith("schema_"):
            assert ":tenant_schema" not in sql.partition("WHERE")[2], name


def test_nobody_is_taken_out_of_the_system_case_by_its_id(directory, ctx):
    user = directory.add_user(ctx, "First")
    system = directory.system_case(ctx)
    with refused("member-unknown"):
        directory.remove_member(ctx, system.case_id, user.user_id)
    assert [member.user_id for member in directory.members(ctx, system)] == [user.user_id]


def test_whoever_was_ended_has_no_case_although_the_credential_lives_on(directory, tenant, ctx):
    case = directory.create_case(ctx, "Merger")
    user = directory.add_user(ctx, "First")
    directory.put_member(ctx, case.case_id, user.user_id)
    directory.add_service(ctx, "worker")
    person = Principal(tenant_id=tenant.tenant_id, user_id=user.user_id)
    worker = Principal(tenant_id=tenant.tenant_id, service_id="worker")
    other = Principal(tenant_id=tenant.tenant_id, service_id="of another directory")
    for principal, end in (
        (person, lambda: directory.disable_user(ctx, user.user_id)),
        (worker, lambda: directory.disable_service(ctx, "worker")),
        (other, lambda: directory.suspend(ctx)),
    ):
        assert directory.resolve_case(principal, case.case_id).case_id == case.case_id
        end()
        with refused("case-unknown"):
            directory.resolve_case(principal, case.case_id)


@pytest.mark.parametrize("odd", ["\ud800", "a\0b", "x" * 1_000_000, "' OR 1=1 --", ""])
def test_an_id_that_no_driver_can_send_is_an_unknown_one(directory, keys, tenant, ctx, odd):
    user = directory.add_user(ctx, "First")
    case = directory.create_case(ctx, "Merger")
    for act, code in (
        (lambda: directory.disable_user(ctx, odd), "user-unknown"),
        (lambda: directory.disable_service(ctx, odd), "service-unknown"),
        (lambda: directory.put_member(ctx, case.case_id, odd), "user-unknown"),
        (lambda: directory.put_member(ctx, odd, user.user_id), "case-unknown"),
        (lambda: directory.put_member_of_system_case(ctx, odd), "user-unknown"),
        (lambda: directory.tenant(odd), "tenant-unknown"),
        (lambda: directory.members(ctx, Case(case_id=odd, tenant_id=tenant.tenant_id)), "case-unknown"),
        (lambda: keys.revoke(ctx, odd), "key-unknown"),
    ):
        with refused(code):
            act()
    for ids in ((odd, user.user_id), (case.case_id, odd)):
        with pytest.raises(ScopeError, match="there is no such"):
            directory.remove_member(ctx, *ids)


def test_a_row_that_lies_about_the_kind_of_its_case_is_refused_by_the_table(database, directory, tenant, ctx):
    counsel = directory.add_user(ctx, "Counsel", kind="external_counsel")
    with pytest.raises(RowRefused), database.transaction() as session:
        session.run(
            "put_member",
            tenant_id=tenant.tenant_id,
            case_id=directory.system_case(ctx).case_id,
            case_kind="business",
            user_id=counsel.user_id,
            user_kind="external_counsel",
            role="member",
            now="",
            audit_meta="{}",
        )
