"""API keys: shown once, kept as digests, refused from the moment they are revoked."""

import asyncio
import re
from datetime import timedelta

import pytest

from sameas.databases import RowRefused
from sameas.identity.normalize import Credentials, normalize_context
from sameas.identity.scope import ScopeError
from sameas.once.errors import StoreUnavailable
from sameas.tenancy import ApiKeyAuthenticator, ApiKeys, Unauthorized, open_tables


@pytest.fixture
def user(directory, ctx):
    return directory.add_user(ctx, "First")


@pytest.fixture
def made(keys, ctx, user):
    return keys.create(ctx, "laptop", user_id=user.user_id, roles=("reader",))


def authenticator(keys):
    return ApiKeyAuthenticator(keys._database, secret=keys._secret, clock=keys._clock)


def show(keys, token, scheme="apikey"):
    return asyncio.run(authenticator(keys).authenticate(Credentials(scheme, token)))


def test_a_key_stands_for_its_user(keys, tenant, user, made):
    for scheme in ("apikey", "bearer"):
        principal = show(keys, made.token, scheme)
        assert (principal.tenant_id, principal.user_id, principal.service_id) == (tenant.tenant_id, user.user_id, None)
        assert principal.credential_id == made.key_id
        assert principal.roles == ("reader",)


def test_a_key_stands_for_its_service(directory, keys, ctx):
    directory.add_service(ctx, "worker")
    principal = show(keys, keys.create(ctx, "worker", service_id="worker").token)
    assert (principal.user_id, principal.service_id) == (None, "worker")


def test_nothing_shown_is_nobody(keys):
    assert asyncio.run(authenticator(keys).authenticate(None)) is None


def test_a_key_names_itself_and_has_256_bits_of_secret(made):
    assert re.fullmatch(r"sameas_[a-z2-7]{16}_[a-z2-7]{52}", made.token)
    assert made.token.split("_")[1] == made.key_id


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_the_file_holds_no_secret(tmp_path, made):
    secret = made.token.rpartition("_")[2].encode()
    files = [path.read_bytes() for path in tmp_path.iterdir()]
    assert any(made.key_id.encode() in content for content in files)
    assert not any(secret in content for content in files)


@pytest.mark.parametrize("end", ["revoke", "user", "service", "tenant", "expiry"])
def test_a_key_is_refused_at_the_next_request_after_it_was_ended(end, directory, keys, ctx, user, clock):
    directory.add_service(ctx, "worker")
    owner = {"service_id": "worker"} if end == "service" else {"user_id": user.user_id}
    made = keys.create(ctx, "one", **owner, expires_at=clock() + timedelta(days=30))
    kept = keys.create(ctx, "two", user_id=directory.add_user(ctx, "Second").user_id)
    assert show(keys, made.token)
    match end:
        case "revoke":
            keys.revoke(ctx, made.key_id)
        case "user":
            directory.disable_user(ctx, user.user_id)
        case "service":
            directory.disable_service(ctx, "worker")
        case "tenant":
            directory.suspend(ctx)
        case "expiry":
            clock.move(days=30)
    with pytest.raises(Unauthorized) as caught:
        show(keys, made.token)
    assert caught.value.status == 401
    if end == "tenant":
        directory.resume(ctx)
        assert show(keys, made.token)
    assert show(keys, kept.token)


def test_a_revocation_reaches_the_other_nodes_at_once(url, keys, ctx, made):
    elsewhere = open_tables(url)
    others = ApiKeys(elsewhere, secret=b"of the deployment")
    assert show(others, made.token)
    keys.revoke(ctx, made.key_id)
    with pytest.raises(Unauthorized):
        show(others, made.token)
    elsewhere.close()


def test_a_wrong_key_is_refused_as_an_unknown_one_is(keys, ctx, made):
    other = keys.create(ctx, "other", user_id=keys.keys(ctx)[0].user_id)
    swapped = made.token[:24] + other.token[24:]
    unknown = "sameas_" + "a" * 16 + "_" + "b" * 52
    wrong = made.token[:-1] + ("a" if made.token[-1] != "a" else "b")
    answers = set()
    for token in (
        swapped,
        unknown,
        wrong,
        made.token[:-1],
        made.token + "a",
        made.token.upper(),
        "",
        "é",
        "a" * 10_000,
    ):
        with pytest.raises(Unauthorized) as caught:
            show(keys, token)
        answers.add(str(caught.value))
    assert len(answers) == 1


def test_without_the_secret_of_the_deployment_the_table_lets_nobody_in(database, made):
    with pytest.raises(Unauthorized):
        show(ApiKeys(database, secret=b"another"), made.token)


def test_a_tenant_cannot_revoke_or_see_the_keys_of_another(directory, keys, ctx, made):
    other = directory.bootstrap("Other", service_id="setup")
    theirs = normalize_context(service_id="setup", tenant_id=other.tenant_id)
    assert keys.keys(theirs) == []
    with pytest.raises(ScopeError, match="no such key"):
        keys.revoke(theirs, made.key_id)
    assert show(keys, made.token)


def test_a_key_needs_exactly_one_owner_who_is_there(keys, ctx, tenant, user, database):
    with pytest.raises(ScopeError, match="exactly one"):
        keys.create(ctx, "none")
    with pytest.raises(ScopeError, match="exactly one"):
        keys.create(ctx, "both", user_id=user.user_id, service_id="worker")
    with pytest.raises(ScopeError, match="no such service"):
        keys.create(ctx, "ghost", service_id="ghost")
    row = {"salt": "0" * 32, "digest": "0" * 64, "roles": "[]", "now": "", "expires_at": None, "audit_meta": "{}"}
    with pytest.raises(RowRefused, match="one_principal"), database.transaction() as session:
        session.run(
            "add_key", key_id="k", tenant_id=tenant.tenant_id, user_id=None, service_id=None, name="none", **row
        )


def test_the_first_revocation_stays(keys, ctx, made, clock):
    keys.revoke(ctx, made.key_id)
    first = keys.keys(ctx)[0].revoked_at
    clock.move(hours=1)
    keys.revoke(ctx, made.key_id)
    assert keys.keys(ctx)[0].revoked_at == first


def test_use_is_noted_once_an_hour(keys, ctx, made, clock):
    def noted():
        show(keys, made.token)
        return keys.keys(ctx)[0].last_used_at

    first = noted()
    clock.move(minutes=59)
    assert noted() == first
    clock.move(minutes=2)
    assert noted() > first


def test_a_use_that_cannot_be_noted_is_no_reason_to_refuse(keys, database, made, monkeypatch, caplog):
    def full(**_):
        raise StoreUnavailable("the disk is full")

    monkeypatch.setattr(database, "transaction", full)
    assert show(keys, made.token)
    assert made.key_id in caplog.text
    assert made.token not in caplog.text


def test_a_database_that_cannot_answer_is_not_a_refusal(keys, database, made):
    database.close()
    with pytest.raises(StoreUnavailable):
        show(keys, made.token)


def test_another_scheme_is_told_what_to_send(keys, made):
    with pytest.raises(Unauthorized, match="X-API-Key"):
        show(keys, made.token, "basic")
