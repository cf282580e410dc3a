"""Who may come in: authenticators, tenants, cases and memberships.

`sameas.tenancy.jwt` and `sameas.tenancy.jwks` stand apart, for they need the extra `auth`.
"""

from sameas.tenancy.api_keys import ApiKeyAuthenticator, ApiKeys
from sameas.tenancy.authenticator import Authenticator, BySchemeAuthenticator, Unauthorized
from sameas.tenancy.directory import TenantDirectory, require_admin
from sameas.tenancy.enrolled import EnrolledAuthenticator
from sameas.tenancy.single import SingleTenant
from sameas.tenancy.tables import open_tables

__all__ = [
    "ApiKeyAuthenticator",
    "ApiKeys",
    "Authenticator",
    "BySchemeAuthenticator",
    "EnrolledAuthenticator",
    "SingleTenant",
    "TenantDirectory",
    "Unauthorized",
    "open_tables",
    "require_admin",
]
