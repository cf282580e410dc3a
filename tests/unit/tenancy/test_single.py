"""Single-tenant mode: chosen by name, and for this machine."""

import asyncio

import pytest

from sameas.identity.normalize import Credentials, normalize_request
from sameas.tenancy import SingleTenant


@pytest.mark.parametrize("shown", [None, Credentials("bearer", "x")])
def test_everybody_is_the_one_user_of_the_one_tenant(shown):
    principal = asyncio.run(SingleTenant().authenticate(shown))
    ctx = normalize_request({"headers": []}, principal=principal, allow_any_tenant=True)
    assert (ctx.tenant_id, ctx.user_id, ctx.is_public) == ("", "local", False)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "[::1]", "localhost", "LOCALHOST"])
def test_it_listens_on_loopback(host):
    assert SingleTenant().check_bind(host) == host


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "", "192.168.1.7", "example.org", "localhost.example.org", "127.0.0.1.example.org", "*"]
)
def test_it_listens_elsewhere_only_when_it_is_told_so(host):
    with pytest.raises(ValueError, match="allow_remote"):
        SingleTenant().check_bind(host)
    assert SingleTenant(allow_remote=True).check_bind(host) == host


def test_only_loopback_names_are_hosts_unless_others_are_let_in():
    assert "localhost" in SingleTenant().allowed_hosts
    assert "*" not in SingleTenant().allowed_hosts
    assert SingleTenant(allow_remote=True).allowed_hosts == ("*",)
