-- Tenants and who belongs to them. Times are UTC in RFC 3339 with six decimals, which sort as text. No statement finds a
-- tenant by its schema: the schema is loaded from the tenant, never the reverse.

-- name: schema_sqlite_1
-- purpose: make the tables on SQLite.
CREATE TABLE IF NOT EXISTS sameas_tenants (
  tenant_id TEXT PRIMARY KEY CHECK (length(tenant_id) = 36),
  tenant_schema TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL CHECK (length(name) > 0),
  system_case_id TEXT NOT NULL UNIQUE,
  created_at TEXT NOT NULL,
  suspended_at TEXT,
  audit_meta TEXT NOT NULL CHECK (json_valid(audit_meta))
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sameas_users (
  tenant_id TEXT NOT NULL REFERENCES sameas_tenants (tenant_id),
  user_id TEXT NOT NULL CHECK (length(user_id) = 36),
  kind TEXT NOT NULL CHECK (kind IN ('internal', 'external_counsel')),
  name TEXT NOT NULL,
  created_at TEXT NOT NULL,
  disabled_at TEXT,
  audit_meta TEXT NOT NULL CHECK (json_valid(audit_meta)),
  PRIMARY KEY (tenant_id, user_id),
  UNIQUE (tenant_id, user_id, kind)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sameas_services (
  tenant_id TEXT NOT NULL REFERENCES sameas_tenants (tenant_id),
  service_id TEXT NOT NULL CHECK (length(service_id) > 0),
  created_at TEXT NOT NULL,
  disabled_at TEXT,
  audit_meta TEXT NOT NULL CHECK (json_valid(audit_meta)),
  PRIMARY KEY (tenant_id, service_id)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sameas_cases (
  tenant_id TEXT NOT NULL REFERENCES sameas_tenants (tenant_id),
  case_id TEXT NOT NULL CHECK (length(case_id) = 36),
  kind TEXT NOT NULL CHECK (kind IN ('business', 'system')),
  name TEXT NOT NULL CHECK (length(name) > 0),
  created_at TEXT NOT NULL,
  audit_meta TEXT NOT NULL CHECK (json_valid(audit_meta)),
  PRIMARY KEY (tenant_id, case_id),
  UNIQUE (tenant_id, case_id, kind)
) WITHOUT ROWID;
CREATE UNIQUE INDEX IF NOT EXISTS ux_cases_one_system ON sameas_cases (tenant_id) WHERE kind = 'system';
CREATE TABLE IF NOT EXISTS sameas_memberships (
  tenant_id TEXT NOT NULL,
  case_id TEXT NOT NULL,
  case_kind TEXT NOT NULL,
  user_id TEXT NOT NULL,
  user_kind TEXT NOT NULL,
  role TEXT NOT NULL CHECK (role IN ('owner', 'member', 'viewer')),
  created_at TEXT NOT NULL,
  audit_meta TEXT NOT NULL CHECK (json_valid(audit_meta)),
  PRIMARY KEY (tenant_id, case_id, user_id),
  CONSTRAINT no_external_counsel_in_the_system_case CHECK (case_kind = 'business' OR user_kind = 'internal'),
  FOREIGN KEY (tenant_id, case_id, case_kind) REFERENCES sameas_cases (tenant_id, case_id, kind),
  FOREIGN KEY (tenant_id, user_id, user_kind) REFERENCES sameas_users (tenant_id, user_id, kind)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS ix_memberships_user ON sameas_memberships (tenant_id, user_id);
CREATE TABLE IF NOT EXISTS sameas_api_keys (
  key_id TEXT PRIMARY KEY,
  tenant_id TEXT NOT NULL REFERENCES sameas_tenants (tenant_id),
  user_id TEXT,
  service_id TEXT,
  name TEXT NOT NULL,
  salt TEXT NOT NULL CHECK (length(salt) = 32),
  digest TEXT NOT NULL CHECK (length(digest) = 64),
  roles TEXT NOT NULL CHECK (json_valid(roles)),
  created_at TEXT NOT NULL,
  expires_at TEXT,
  revoked_at TEXT,
  last_used_at TEXT,
  audit_meta TEXT NOT NULL CHECK (json_valid(audit_meta)),
  CONSTRAINT one_principal CHECK ((user_id IS NULL) <> (service_id IS NULL)),
  FOREIGN KEY (tenant_id, user_id) REFERENCES sameas_users (tenant_id, user_id),
  FOREIGN KEY (tenant_id, service_id) REFERENCES sameas_services (tenant_id, service_id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS ix_api_keys_tenant ON sameas_api_keys (tenant_id, created_at);

-- name: schema_postgres_1
-- purpose: make the tables on PostgreSQL.
CREATE TABLE sameas_tenants (
  tenant_id TEXT COLLATE "C" PRIMARY KEY CHECK (length(tenant_id) = 36),
  tenant_schema TEXT COLLATE "C" NOT NULL UNIQUE,
  name TEXT NOT NULL CHECK (length(name) > 0),
  system_case_id TEXT COLLATE "C" NOT NULL UNIQUE,
  created_at TEXT COLLATE "C" NOT NULL,
  suspended_at TEXT COLLATE "C",
  audit_meta JSON NOT NULL
);
CREATE TABLE sameas_users (
  tenant_id TEXT COLLATE "C" NOT NULL REFERENCES sameas_tenants (tenant_id),
  user_id TEXT COLLATE "C" NOT NULL CHECK (length(user_id) = 36),
  kind TEXT NOT NULL CHECK (kind IN ('internal', 'external_counsel')),
  name TEXT NOT NULL,
  created_at TEXT COLLATE "C" NOT NULL,
  disabled_at TEXT COLLATE "C",
  audit_meta JSON NOT NULL,
  PRIMARY KEY (tenant_id, user_id),
  UNIQUE (tenant_id, user_id, kind)
);
CREATE TABLE sameas_services (
  tenant_id TEXT COLLATE "C" NOT NULL REFERENCES sameas_tenants (tenant_id),
  service_id TEXT COLLATE "C" NOT NULL CHECK (length(service_id) > 0),
  created_at TEXT COLLATE "C" NOT NULL,
  disabled_at TEXT COLLATE "C",
  audit_meta JSON NOT NULL,
  PRIMARY KEY (tenant_id, service_id)
);
CREATE TABLE sameas_cases (
  tenant_id TEXT COLLATE "C" NOT NULL REFERENCES sameas_tenants (tenant_id),
  case_id TEXT COLLATE "C" NOT NULL CHECK (length(case_id) = 36),
  kind TEXT NOT NULL CHECK (kind IN ('business', 'system')),
  name TEXT NOT NULL CHECK (length(name) > 0),
  created_at TEXT COLLATE "C" NOT NULL,
  audit_meta JSON NOT NULL,
  PRIMARY KEY (tenant_id, case_id),
  UNIQUE (tenant_id, case_id, kind)
);
CREATE UNIQUE INDEX ux_cases_one_system ON sameas_cases (tenant_id) WHERE kind = 'system';
CREATE TABLE sameas_memberships (
  tenant_id TEXT COLLATE "C" NOT NULL,
  case_id TEXT COLLATE "C" NOT NULL,
  case_kind TEXT NOT NULL,
  user_id TEXT COLLATE "C" NOT NULL,
  user_kind TEXT NOT NULL,
  role TEXT NOT NULL CHECK (role IN ('owner', 'member', 'viewer')),
  created_at TEXT COLLATE "C" NOT NULL,
  audit_meta JSON NOT NULL,
  PRIMARY KEY (tenant_id, case_id, user_id),
  CONSTRAINT no_external_counsel_in_the_system_case CHECK (case_kind = 'business' OR user_kind = 'internal'),
  FOREIGN KEY (tenant_id, case_id, case_kind) REFERENCES sameas_cases (tenant_id, case_id, kind),
  FOREIGN KEY (tenant_id, user_id, user_kind) REFERENCES sameas_users (tenant_id, user_id, kind)
);
CREATE INDEX ix_memberships_user ON sameas_memberships (tenant_id, user_id);
CREATE TABLE sameas_api_keys (
  key_id TEXT COLLATE "C" PRIMARY KEY,
  tenant_id TEXT COLLATE "C" NOT NULL REFERENCES sameas_tenants (tenant_id),
  user_id TEXT COLLATE "C",
  service_id TEXT COLLATE "C",
  name TEXT NOT NULL,
  salt TEXT NOT NULL CHECK (length(salt) = 32),
  digest TEXT NOT NULL CHECK (length(digest) = 64),
  roles JSON NOT NULL,
  created_at TEXT COLLATE "C" NOT NULL,
  expires_at TEXT COLLATE "C",
  revoked_at TEXT COLLATE "C",
  last_used_at TEXT COLLATE "C",
  audit_meta JSON NOT NULL,
  CONSTRAINT one_principal CHECK ((user_id IS NULL) <> (service_id IS NULL)),
  FOREIGN KEY (tenant_id, user_id) REFERENCES sameas_users (tenant_id, user_id),
  FOREIGN KEY (tenant_id, service_id) REFERENCES sameas_services (tenant_id, service_id)
);
CREATE INDEX ix_api_keys_tenant ON sameas_api_keys (tenant_id, created_at);

-- name: add_tenant
-- purpose: a tenant, with the id of its one system case.
INSERT INTO sameas_tenants (tenant_id, tenant_schema, name, system_case_id, created_at, audit_meta)
VALUES (:tenant_id, :tenant_schema, :name, :system_case_id, :now, :audit_meta)

-- name: tenant
-- purpose: one tenant.
SELECT tenant_id, tenant_schema, name, created_at, suspended_at FROM sameas_tenants WHERE tenant_id = :tenant_id

-- name: tenants
-- purpose: all tenants, oldest first.
SELECT tenant_id, tenant_schema, name, created_at, suspended_at FROM sameas_tenants ORDER BY tenant_id

-- name: tenant_audit
-- purpose: the audit_meta of a tenant.
SELECT CAST(audit_meta AS TEXT) FROM sameas_tenants WHERE tenant_id = :tenant_id

-- name: suspend_tenant
-- purpose: refuse all credentials of a tenant from now on.
UPDATE sameas_tenants SET suspended_at = :now, audit_meta = :audit_meta WHERE tenant_id = :tenant_id

-- name: resume_tenant
-- purpose: accept the credentials of a tenant again.
UPDATE sameas_tenants SET suspended_at = NULL, audit_meta = :audit_meta WHERE tenant_id = :tenant_id

-- name: system_case_id
-- purpose: the system case of a tenant, for work inside the house.
SELECT system_case_id FROM sameas_tenants WHERE tenant_id = :tenant_id

-- name: add_user
-- purpose: a user of a tenant.
INSERT INTO sameas_users (tenant_id, user_id, kind, name, created_at, audit_meta)
VALUES (:tenant_id, :user_id, :kind, :name, :now, :audit_meta)

-- name: user
-- purpose: one user.
SELECT user_id, kind, name, created_at, disabled_at, CAST(audit_meta AS TEXT) FROM sameas_users
WHERE tenant_id = :tenant_id AND user_id = :user_id

-- name: users
-- purpose: the users of a tenant, oldest first.
SELECT user_id, kind, name, created_at, disabled_at FROM sameas_users WHERE tenant_id = :tenant_id ORDER BY user_id

-- name: disable_user
-- purpose: refuse a user from now on.
UPDATE sameas_users SET disabled_at = :now, audit_meta = :audit_meta
WHERE tenant_id = :tenant_id AND user_id = :user_id

-- name: add_service
-- purpose: a service that may act in a tenant.
INSERT INTO sameas_services (tenant_id, service_id, created_at, audit_meta)
VALUES (:tenant_id, :service_id, :now, :audit_meta)

-- name: service
-- purpose: one service.
SELECT service_id, created_at, disabled_at, CAST(audit_meta AS TEXT) FROM sameas_services
WHERE tenant_id = :tenant_id AND service_id = :service_id

-- name: services
-- purpose: the services of a tenant, by name.
SELECT service_id, created_at, disabled_at FROM sameas_services WHERE tenant_id = :tenant_id ORDER BY service_id

-- name: disable_service
-- purpose: refuse a service from now on.
UPDATE sameas_services SET disabled_at = :now, audit_meta = :audit_meta
WHERE tenant_id = :tenant_id AND service_id = :service_id

-- name: add_case
-- purpose: a case; a second system case is refused by the index.
INSERT INTO sameas_cases (tenant_id, case_id, kind, name, created_at, audit_meta)
VALUES (:tenant_id, :case_id, :kind, :name, :now, :audit_meta)

-- name: case
-- purpose: one case that people may name.
SELECT case_id, name, created_at FROM sameas_cases
WHERE tenant_id = :tenant_id AND case_id = :case_id AND kind = 'business'

-- name: cases
-- purpose: the cases of a tenant that people may name, oldest first.
SELECT case_id, name, created_at FROM sameas_cases WHERE tenant_id = :tenant_id AND kind = 'business' ORDER BY case_id

-- name: cases_of_user
-- purpose: the cases of a tenant that a user is a member of, oldest first.
SELECT c.case_id, c.name, c.created_at FROM sameas_cases c
JOIN sameas_memberships m ON m.tenant_id = c.tenant_id AND m.case_id = c.case_id
WHERE c.tenant_id = :tenant_id AND c.kind = 'business' AND m.user_id = :user_id ORDER BY c.case_id

-- name: member
-- purpose: the role of a user in a case.
SELECT role, CAST(audit_meta AS TEXT) FROM sameas_memberships
WHERE tenant_id = :tenant_id AND case_id = :case_id AND user_id = :user_id

-- name: members
-- purpose: who is a member of a case.
SELECT user_id, role, created_at FROM sameas_memberships
WHERE tenant_id = :tenant_id AND case_id = :case_id ORDER BY user_id

-- name: put_member
-- purpose: make a user a member, or change the role.
INSERT INTO sameas_memberships (tenant_id, case_id, case_kind, user_id, user_kind, role, created_at, audit_meta)
VALUES (:tenant_id, :case_id, :case_kind, :user_id, :user_kind, :role, :now, :audit_meta)
ON CONFLICT (tenant_id, case_id, user_id) DO UPDATE SET role = excluded.role, audit_meta = excluded.audit_meta

-- name: remove_member
-- purpose: end a membership in a case that people may name.
DELETE FROM sameas_memberships
WHERE tenant_id = :tenant_id AND case_id = :case_id AND user_id = :user_id AND case_kind = 'business'

-- name: add_key
-- purpose: an API key; its secret is kept as a salted digest only.
INSERT INTO sameas_api_keys
  (key_id, tenant_id, user_id, service_id, name, salt, digest, roles, created_at, expires_at, audit_meta)
VALUES
  (:key_id, :tenant_id, :user_id, :service_id, :name, :salt, :digest, :roles, :now, :expires_at, :audit_meta)

-- name: check_key
-- purpose: what a key that was shown stands for, and whether anything has ended it.
SELECT k.salt, k.digest, k.tenant_id, k.user_id, k.service_id, CAST(k.roles AS TEXT), k.expires_at, k.last_used_at,
  COALESCE(k.revoked_at, t.suspended_at, u.disabled_at, s.disabled_at), u.kind
FROM sameas_api_keys k
JOIN sameas_tenants t ON t.tenant_id = k.tenant_id
LEFT JOIN sameas_users u ON u.tenant_id = k.tenant_id AND u.user_id = k.user_id
LEFT JOIN sameas_services s ON s.tenant_id = k.tenant_id AND s.service_id = k.service_id
WHERE k.key_id = :key_id

-- name: keys
-- purpose: the keys of a tenant, oldest first, without their digests.
SELECT key_id, name, user_id, service_id, CAST(roles AS TEXT), created_at, expires_at, revoked_at, last_used_at
FROM sameas_api_keys WHERE tenant_id = :tenant_id ORDER BY created_at, key_id

-- name: key_audit
-- purpose: the audit_meta of a key.
SELECT CAST(audit_meta AS TEXT) FROM sameas_api_keys WHERE tenant_id = :tenant_id AND key_id = :key_id

-- name: revoke_key
-- purpose: end a key; the time of the first revocation stays.
UPDATE sameas_api_keys SET revoked_at = COALESCE(revoked_at, :now), audit_meta = :audit_meta
WHERE tenant_id = :tenant_id AND key_id = :key_id

-- name: note_use
-- purpose: when a key was last used, to the hour.
UPDATE sameas_api_keys SET last_used_at = :now WHERE key_id = :key_id

-- name: user_ended
-- purpose: whether a user, or the user's tenant, was refused, and since when; and what kind of user it is.
SELECT COALESCE(u.disabled_at, t.suspended_at), u.kind FROM sameas_users u
JOIN sameas_tenants t ON t.tenant_id = u.tenant_id WHERE u.tenant_id = :tenant_id AND u.user_id = :user_id

-- name: service_ended
-- purpose: whether a service, or its tenant, was refused, and since when.
SELECT COALESCE(s.disabled_at, t.suspended_at), NULL FROM sameas_services s
JOIN sameas_tenants t ON t.tenant_id = s.tenant_id WHERE s.tenant_id = :tenant_id AND s.service_id = :service_id
