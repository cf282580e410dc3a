"""`sameas tenants`: from an empty folder to a key that lets somebody in, and out again."""

import asyncio
import json

import pytest
from typer.testing import CliRunner

from sameas.cli.errors import CliError
from sameas.cli.root import build_app
from sameas.identity.ids import uuid7
from sameas.identity.normalize import Credentials
from sameas.server.app import open_entry
from sameas.settings import SettingsError, api_key_secret, load_settings
from sameas.tenancy import ApiKeyAuthenticator, Unauthorized, open_tables

SECRET = "a secret of the deployment"


@pytest.fixture
def sameas(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SAMEAS_DATABASE", f"sqlite:///{tmp_path / 'tenants.db'}")
    app = build_app(["tenants"])

    def run(*arguments):
        result = CliRunner().invoke(app, ["tenants", *arguments], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result.stdout.strip()

    return run


def rows(text):
    return [json.loads(line) for line in text.splitlines()]


def show(tmp_path, token, *, secret=b""):
    database = open_tables(f"sqlite:///{tmp_path / 'tenants.db'}")
    try:
        return asyncio.run(ApiKeyAuthenticator(database, secret=secret).authenticate(Credentials("apikey", token)))
    finally:
        database.close()


def test_from_nothing_to_a_key_and_its_end(sameas, tmp_path):
    tenant = sameas("create", "Acme")
    user = sameas("users", "add", tenant, "First")
    token = sameas("keys", "create", tenant, "laptop", "--user", user, "--role", "tenant-admin", "--days", "7")
    principal = show(tmp_path, token)
    assert (principal.tenant_id, principal.user_id, principal.roles) == (tenant, user, ("tenant-admin",))
    (listed,) = rows(sameas("keys", "list", tenant, "--json"))
    assert listed["name"] == "laptop"
    assert token.rpartition("_")[2] not in sameas("keys", "list", tenant)
    sameas("keys", "revoke", tenant, listed["key_id"])
    with pytest.raises(Unauthorized):
        show(tmp_path, token)


def test_a_key_of_the_command_line_is_good_at_every_door_that_has_the_secret(sameas, tmp_path, monkeypatch):
    monkeypatch.setenv("SAMEAS_API_KEY_SECRET", SECRET)
    monkeypatch.setenv("SAMEAS_AUTH", "api-key")
    tenant = sameas("create", "Acme")
    user = sameas("users", "add", tenant, "First")
    token = sameas("keys", "create", tenant, "laptop", "--user", user)
    assert show(tmp_path, token, secret=api_key_secret()).user_id == user
    entry = open_entry(load_settings())
    try:
        principal = asyncio.run(entry.authenticator.authenticate(Credentials("apikey", token)))
    finally:
        entry.close()
    assert (principal.tenant_id, principal.user_id) == (tenant, user)
    for wrong in (b"", b"another secret, as long"):
        with pytest.raises(Unauthorized):
            show(tmp_path, token, secret=wrong)


def test_a_secret_that_can_be_guessed_is_refused_and_not_repeated(sameas, tmp_path, monkeypatch):
    tenant = sameas("create", "Acme")
    user = sameas("users", "add", tenant, "First")
    monkeypatch.setenv("SAMEAS_API_KEY_SECRET", "hunter2")
    with pytest.raises(SettingsError, match="SAMEAS_API_KEY_SECRET.*at least 16") as refused:
        sameas("keys", "create", tenant, "laptop", "--user", user)
    assert "hunter2" not in str(refused.value)
    monkeypatch.delenv("SAMEAS_API_KEY_SECRET")
    assert sameas("keys", "list", tenant, "--json") == ""


def test_a_suspended_tenant_is_out_and_comes_back(sameas, tmp_path):
    tenant = sameas("create", "Acme")
    sameas("services", "add", tenant, "worker")
    token = sameas("keys", "create", tenant, "worker", "--service", "worker")
    assert show(tmp_path, token).service_id == "worker"
    for end, begin in ((("suspend", tenant), ("resume", tenant)), (("services", "disable", tenant, "worker"), None)):
        sameas(*end)
        with pytest.raises(Unauthorized):
            show(tmp_path, token)
        if begin:
            sameas(*begin)
            assert show(tmp_path, token)
    assert rows(sameas("services", "list", tenant, "--json"))[0]["disabled_at"]


def test_cases_are_listed_without_the_system_case(sameas):
    tenant = sameas("create", "Acme")
    assert sameas("cases", "list", tenant, "--json") == ""
    case = sameas("cases", "create", tenant, "General")
    user = sameas("users", "add", tenant, "Counsel", "--external-counsel")
    sameas("cases", "put", tenant, case, user, "--role", "viewer")
    sameas("cases", "remove", tenant, case, user)
    assert [entry["case_id"] for entry in rows(sameas("cases", "list", tenant, "--json"))] == [case]
    sameas("users", "disable", tenant, user)
    assert rows(sameas("users", "list", tenant, "--json"))[0]["kind"] == "external_counsel"


def test_the_tables_are_for_people_too(sameas):
    tenant = sameas("create", "Acme")
    assert tenant in sameas("list")
    assert rows(sameas("list", "--json"))[0]["name"] == "Acme"
    assert "case_id" in sameas("cases", "list", tenant)


def test_what_is_not_there_is_said(sameas):
    for arguments in (
        ("users", "add", str(uuid7()), "First"),
        ("users", "add", "acme", "First"),
        ("keys", "revoke", sameas("create", "Acme"), "nothing"),
        ("keys", "create", sameas("create", "Acme"), "nobodys"),
        # What a shell hands over when it was typed in another encoding.
        ("users", "disable", sameas("create", "Acme"), "\udcff"),
        ("keys", "revoke", sameas("create", "Acme"), "\udcff"),
    ):
        with pytest.raises(CliError, match="sameas tenants list"):
            sameas(*arguments)


def test_without_a_database_the_file_in_the_home_folder_is_used(sameas, tmp_path, monkeypatch):
    monkeypatch.delenv("SAMEAS_DATABASE")
    sameas("create", "Acme")
    assert (tmp_path / "tenants.db").exists()
