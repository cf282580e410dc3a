-- Records on SQLite. Times are microseconds since 1970; :now is this machine's clock, read when the write lock is held.
-- The columns of an HTTP record (route, http_method, status_code, content_type, is_processed, ...) are those of source document 003.

-- name: schema_1
-- purpose: the table, its rules and its indexes
CREATE TABLE sameas_records (
  digest BLOB NOT NULL PRIMARY KEY CHECK (length(digest) = 32),
  id TEXT NOT NULL DEFAULT (lower(hex(randomblob(16)))),
  tenant TEXT NOT NULL,
  scope TEXT NOT NULL,
  key TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('held', 'done', 'failed')),
  fence INTEGER NOT NULL,
  attempt INTEGER NOT NULL CHECK (attempt >= 1),
  attempt_id TEXT NOT NULL,
  owner TEXT NOT NULL DEFAULT '',
  lease_until INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  processing_completed_at INTEGER,
  is_processed INTEGER NOT NULL DEFAULT 0 CHECK (is_processed = (state <> 'held')),
  route TEXT CHECK (route IS NULL OR (length(route) <= 256 AND substr(route, 1, 1) = '/' AND instr(route, '?') = 0)),
  http_method TEXT CHECK (http_method IN ('GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'HEAD', 'OPTIONS')),
  status_code INTEGER CHECK (status_code BETWEEN 100 AND 599),
  content_type TEXT,
  outcome BLOB,
  meta TEXT NOT NULL DEFAULT '',
  tags TEXT NOT NULL DEFAULT '',
  audit_meta TEXT NOT NULL DEFAULT '',
  CHECK (expires_at > created_at),
  CHECK ((state = 'held') = (outcome IS NULL)),
  CHECK ((state = 'held') = (processing_completed_at IS NULL))
) WITHOUT ROWID;
CREATE INDEX sameas_records_expires_at ON sameas_records (expires_at);
CREATE INDEX sameas_records_route_created_at ON sameas_records (route, created_at DESC) WHERE route IS NOT NULL;
CREATE INDEX sameas_records_scope ON sameas_records (tenant, scope, created_at DESC);
CREATE INDEX sameas_records_tags ON sameas_records (tags) WHERE tags <> '';

-- name: schema_2
-- purpose: the readable body and the covering indexes of source document 003
ALTER TABLE sameas_records ADD COLUMN response_body TEXT;
DROP INDEX sameas_records_expires_at;
CREATE INDEX sameas_records_expires_at ON sameas_records (expires_at, key, is_processed);
DROP INDEX sameas_records_route_created_at;
CREATE INDEX sameas_records_route_created_at
  ON sameas_records (route, created_at DESC, http_method, status_code, is_processed) WHERE route IS NOT NULL;

-- name: look
-- purpose: one record as it is, live or not
SELECT fingerprint, state, fence, attempt, attempt_id, lease_until, created_at, expires_at, processing_completed_at,
       outcome, content_type, meta, owner, tags, route, http_method, audit_meta, :now
FROM sameas_records WHERE digest = :digest

-- name: claim
-- purpose: take the record where that is allowed; one row with the fence where it was taken, none otherwise
INSERT INTO sameas_records (digest, tenant, scope, key, fingerprint, state, fence, attempt, attempt_id, owner,
                            lease_until, created_at, expires_at, route, http_method, tags, audit_meta)
VALUES (:digest, :tenant, :scope, :key, :fingerprint, 'held', :now, 1, :attempt_id, :owner,
        :now + :lease_for, :now, :now + :retain_for, :route, :http_method, :tags, :audit_meta)
ON CONFLICT (digest) DO UPDATE SET
  fingerprint = excluded.fingerprint,
  state = 'held',
  fence = iif(state = 'held' AND attempt_id = excluded.attempt_id AND expires_at > :now, fence, max(fence + 1, :now)),
  attempt = CASE WHEN expires_at <= :now THEN 1 WHEN attempt_id = excluded.attempt_id THEN attempt ELSE attempt + 1 END,
  expires_at = iif(attempt_id = excluded.attempt_id, max(expires_at, excluded.expires_at), excluded.expires_at),
  created_at = iif(expires_at <= :now, :now, created_at),
  attempt_id = excluded.attempt_id,
  owner = excluded.owner,
  lease_until = excluded.lease_until,
  processing_completed_at = NULL,
  is_processed = 0,
  status_code = NULL,
  content_type = NULL,
  outcome = NULL,
  response_body = NULL,
  meta = '',
  route = excluded.route,
  http_method = excluded.http_method,
  tags = excluded.tags,
  audit_meta = excluded.audit_meta
WHERE expires_at <= :now
   OR (state = 'held' AND fingerprint = excluded.fingerprint
       AND (attempt_id = excluded.attempt_id OR lease_until <= :now))
RETURNING fence, attempt

-- name: renew
-- purpose: move the holder's lease on
UPDATE sameas_records SET lease_until = :now + :lease_for, expires_at = max(expires_at, :now + :retain_for)
WHERE digest = :digest AND fence = :fence AND attempt_id = :attempt_id AND state = 'held' AND expires_at > :now
RETURNING :now, expires_at

-- name: settle
-- purpose: the holder hands in a result or a failure that is kept
UPDATE sameas_records
SET state = :state, is_processed = 1, processing_completed_at = :now, expires_at = :now + :retain_for,
    outcome = :outcome, response_body = :response_body, content_type = :content_type, status_code = :status_code,
    meta = :meta
WHERE digest = :digest AND fence = :fence AND attempt_id = :attempt_id AND state = 'held' AND expires_at > :now
RETURNING processing_completed_at, expires_at

-- name: settled_by_me
-- purpose: whether a settle of this attempt was applied before, its reply lost
SELECT processing_completed_at, expires_at FROM sameas_records
WHERE digest = :digest AND fence = :fence AND attempt_id = :attempt_id AND state = :state AND expires_at > :now

-- name: release
-- purpose: the holder gives the work back
DELETE FROM sameas_records
WHERE digest = :digest AND fence = :fence AND attempt_id = :attempt_id AND state = 'held' AND expires_at > :now
RETURNING :now, :now

-- name: forget
-- purpose: remove one record, whoever holds it
DELETE FROM sameas_records WHERE digest = :digest RETURNING iif(expires_at > :now, :now, NULL), :now

-- name: forget_where
-- purpose: remove the records of a tenant, a scope or a tag
DELETE FROM sameas_records WHERE {conditions}

-- name: find
-- purpose: a page of live records, newest first
SELECT digest, tenant, scope, key,
       fingerprint, state, fence, attempt, attempt_id, lease_until, created_at, expires_at, processing_completed_at,
       NULL, content_type, meta, owner, tags, route, http_method, audit_meta, :now
FROM sameas_records WHERE {conditions} ORDER BY created_at DESC, digest DESC LIMIT :limit

-- name: prune
-- purpose: delete one batch of what has expired
DELETE FROM sameas_records WHERE digest IN
  (SELECT digest FROM sameas_records WHERE expires_at <= :now ORDER BY expires_at LIMIT :limit)

-- name: where_live
-- purpose: not expired
expires_at > :now

-- name: where_expired
-- purpose: expired, and not pruned yet
expires_at <= :now

-- name: where_tenant
-- purpose: of one tenant
tenant = :tenant

-- name: where_scope
-- purpose: of one kind of work
scope = :scope

-- name: where_state
-- purpose: held, done or failed
state = :state

-- name: where_route
-- purpose: of one endpoint
route = :route

-- name: where_method
-- purpose: of one HTTP method
http_method = :http_method

-- name: where_status
-- purpose: with one HTTP status
status_code = :status_code

-- name: where_tag
-- purpose: with one tag, whole
tags <> '' AND instr(tags, :tag) > 0

-- name: where_key_prefix
-- purpose: whose key begins so
substr(key, 1, :key_length) = :key

-- name: where_created_from
-- purpose: made at this time or later
created_at >= :created_from

-- name: where_created_before
-- purpose: made before this time
created_at < :created_before

-- name: where_after
-- purpose: further down the list than a cursor
(created_at, digest) < (:after_time, :after_digest)
