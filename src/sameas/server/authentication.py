"""Who lets people in, from the settings: one tenant for one's own machine, tokens, API keys, or both.

Rule: a deployment of one tenant listens on loopback unless it was told that its network is trusted. Everything else
needs a credential at every request.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from sameas.server.runs.preparation import ModelExtractors
from sameas.server.tenants.access import OPERATOR, CaseDirectory
from sameas.settings import SINGLE, Settings, SettingsError, api_key_secret
from sameas.tenancy.authenticator import Authenticator, BySchemeAuthenticator, SingleTenant
from sameas.tenancy.directory import ADMIN_ROLE


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """How people come in, and what the deployment has besides."""

    authenticator: Authenticator
    single_tenant: bool
    hosts: tuple[str, ...] = ("*",)
    directory: CaseDirectory | None = None
    models: ModelExtractors | None = None
    close: Callable[[], None] = lambda: None


def open_entry(settings: Settings, *, models: ModelExtractors | None = None) -> Entry:
    """What the settings say."""
    if settings.auth == SINGLE:
        single = SingleTenant(
            tenant_id=settings.tenant, roles=(OPERATOR, ADMIN_ROLE), allow_remote=settings.allow_remote
        )
        try:
            single.check_bind(settings.host)
        except ValueError as error:
            raise SettingsError(str(error)) from error
        return Entry(authenticator=single, single_tenant=True, hosts=single.allowed_hosts, models=models)
    from sameas.tenancy.api_keys import ApiKeyAuthenticator
    from sameas.tenancy.directory import EnrolledAuthenticator, TenantDirectory, open_tables

    settings.home.mkdir(parents=True, exist_ok=True)
    database = open_tables(settings.tenants_url)
    schemes: dict[str, Authenticator] = {}
    if "jwt" in settings.auth:
        schemes["bearer"] = EnrolledAuthenticator(_tokens(settings), database=database)
    if "api-key" in settings.auth:
        schemes["apikey"] = ApiKeyAuthenticator(database, secret=api_key_secret())
    return Entry(
        authenticator=BySchemeAuthenticator(schemes),
        single_tenant=False,
        directory=TenantDirectory(database),
        models=models,
        close=database.close,
    )


def _tokens(settings: Settings) -> Authenticator:
    from sameas.tenancy.jwks import KeySet
    from sameas.tenancy.jwt import ASYMMETRIC, JwtAuthenticator

    if not (settings.jwt_issuer and settings.jwt_audience and settings.jwt_keys):
        raise SettingsError("auth by jwt needs SAMEAS_JWT_ISSUER, SAMEAS_JWT_AUDIENCE and SAMEAS_JWT_KEYS")
    keys = (
        KeySet.from_url(settings.jwt_keys) if "://" in settings.jwt_keys else KeySet.from_file(Path(settings.jwt_keys))
    )
    return JwtAuthenticator(keys, issuer=settings.jwt_issuer, audience=settings.jwt_audience, algorithms=ASYMMETRIC)
