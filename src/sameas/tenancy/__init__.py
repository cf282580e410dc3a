"""Who may come in: authenticators, tenants, cases and memberships.

`sameas.tenancy.jwt` and `sameas.tenancy.jwks` stand apart, for they need the extra `auth`.
"""

from sameas.tenancy.api_keys import ApiKeyAuthenticator, ApiKeys
from sameas.tenancy.authenticator import Authenticator, BySchemeAuthenticator, SingleTenant, Unauthorized
from sameas.tenancy.directory import EnrolledAuthenticator, TenantDirectory, open_tables, require_admin

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
