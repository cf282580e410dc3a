-- Records on MariaDB 10.6 and later and MySQL 8. Times are microseconds since 1970 by the server's clock; the view
-- idempotency_keys shows them as date-times under the names of source document 003. :skew moves the clock, for tests.
-- MySQL has no RETURNING: what a statement computed comes back as the number it "generated", by LAST_INSERT_ID(x).
-- A write to one record finds it by its primary key (FORCE INDEX, or expires_at + 0): by the index of expires_at it would
-- lock the gap beside it, where every new record goes, until the caller's transaction ends.
-- Text is compared as bytes where it decides anything, because = ignores trailing blanks.

-- name: schema_1
-- purpose: the table, its rules and its indexes
CREATE TABLE IF NOT EXISTS sameas_records (
  digest BINARY(32) NOT NULL,
  id CHAR(36) CHARACTER SET ascii NOT NULL DEFAULT (UUID()),
  tenant VARCHAR(255) NOT NULL,
  scope VARCHAR(255) NOT NULL,
  `key` VARCHAR(1024) NOT NULL,
  fingerprint TEXT NOT NULL,
  state VARCHAR(6) CHARACTER SET ascii NOT NULL,
  fence BIGINT NOT NULL,
  attempt INT NOT NULL,
  attempt_id VARCHAR(255) NOT NULL,
  owner VARCHAR(512) NOT NULL DEFAULT '',
  lease_until BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  processing_completed_at BIGINT NULL,
  is_processed BOOLEAN NOT NULL DEFAULT FALSE,
  route VARCHAR(256) NULL,
  http_method VARCHAR(10) CHARACTER SET ascii NULL,
  status_code INT NULL,
  content_type VARCHAR(256) NULL,
  outcome LONGBLOB NULL,
  response_body LONGTEXT NULL,
  meta LONGTEXT NOT NULL,
  tags TEXT NOT NULL,
  audit_meta JSON NULL,
  CONSTRAINT pk_sameas_records PRIMARY KEY (digest),
  INDEX sameas_records_expires_at (expires_at, is_processed),
  INDEX sameas_records_route_created_at (route, created_at DESC, http_method, status_code, is_processed),
  INDEX sameas_records_scope (tenant, scope, created_at DESC),
  CONSTRAINT ck_sameas_state CHECK (state IN ('held', 'done', 'failed')),
  CONSTRAINT ck_sameas_attempt CHECK (attempt >= 1),
  CONSTRAINT ck_sameas_is_processed CHECK (is_processed = (state <> 'held')),
  CONSTRAINT ck_sameas_route CHECK (route LIKE '/%' AND LOCATE('?', route) = 0),
  CONSTRAINT ck_sameas_http_method
    CHECK (http_method IN ('GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'HEAD', 'OPTIONS')),
  CONSTRAINT ck_sameas_status_code_valid CHECK (status_code BETWEEN 100 AND 599),
  CONSTRAINT ck_sameas_content_type CHECK (content_type REGEXP '^[^/; ]+/[^/; ]+ *(;|$)'),
  CONSTRAINT ck_sameas_expires_at_greater_than_created_at CHECK (expires_at > created_at),
  CONSTRAINT ck_sameas_outcome CHECK ((state = 'held') = (outcome IS NULL)),
  CONSTRAINT ck_sameas_completed CHECK ((state = 'held') = (processing_completed_at IS NULL))
) ENGINE = InnoDB, CHARACTER SET utf8mb4, COLLATE utf8mb4_bin;
CREATE OR REPLACE VIEW idempotency_keys AS
SELECT id, tenant, scope, `key`, route, http_method, status_code, response_body, content_type,
       TIMESTAMPADD(MICROSECOND, created_at, CAST('1970-01-01' AS DATETIME(6))) AS created_at,
       TIMESTAMPADD(MICROSECOND, expires_at, CAST('1970-01-01' AS DATETIME(6))) AS expires_at, is_processed,
       TIMESTAMPADD(MICROSECOND, processing_completed_at, CAST('1970-01-01' AS DATETIME(6))) AS processing_completed_at,
       state, fence, attempt, owner,
       TIMESTAMPADD(MICROSECOND, lease_until, CAST('1970-01-01' AS DATETIME(6))) AS lease_until, audit_meta
FROM sameas_records

-- name: look
-- purpose: one record as it is, live or not
SELECT fingerprint, state, fence, attempt, attempt_id, lease_until, created_at, expires_at, processing_completed_at,
       outcome, content_type, meta, owner, tags, route, http_method, audit_meta,
       (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + :skew)
FROM sameas_records WHERE digest = :digest

-- name: look_locked
-- purpose: one record as it is now, whatever snapshot the caller's transaction has; the row is then the caller's
SELECT fingerprint, state, fence, attempt, attempt_id, lease_until, created_at, expires_at, processing_completed_at,
       outcome, content_type, meta, owner, tags, route, http_method, audit_meta,
       (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + :skew)
FROM sameas_records WHERE digest = :digest FOR UPDATE

-- name: impatient
-- purpose: before a statement: MariaDB does not wait for rows then; MySQL cannot, and passes over it
/*M! SET STATEMENT innodb_lock_wait_timeout = 0 FOR */

-- name: look_now
-- purpose: fails where another transaction holds the row, or is making it
SELECT fence FROM sameas_records WHERE digest = :digest FOR UPDATE NOWAIT

-- name: moment
-- purpose: let a lock pass that a single statement holds
DO SLEEP(0.02)

-- name: insert
-- purpose: make the record where there is none; generates the fence, or 0 where there was one
INSERT INTO sameas_records (digest, tenant, scope, `key`, fingerprint, state, fence, attempt, attempt_id, owner,
                            lease_until, created_at, expires_at, route, http_method, meta, tags, audit_meta)
VALUES (:digest, :tenant, :scope, :key, :fingerprint, 'held', LAST_INSERT_ID((TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + :skew)), 1, :attempt_id, :owner,
        (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + :skew) + :lease_for, (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + :skew), (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + :skew) + :retain_for, :route, :http_method, '', :tags, NULLIF(:audit_meta, ''))
ON DUPLICATE KEY UPDATE fence = fence + LAST_INSERT_ID(0)

-- name: take
-- purpose: take a record that was seen to be free, as it was seen; generates the fence
UPDATE sameas_records FORCE INDEX (PRIMARY) SET
  fingerprint = :fingerprint,
  state = 'held',
  fence = LAST_INSERT_ID(IF(:mine, fence, GREATEST(fence + 1, (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + :skew)))),
  attempt = :attempt,
  created_at = IF(expires_at <= (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + :skew), (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + :skew), created_at),
  expires_at = IF(:mine, GREATEST(expires_at, (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + :skew) + :retain_for), (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + :skew) + :retain_for),
  attempt_id = :attempt_id,
  owner = :owner,
  lease_until = (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + :skew) + :lease_for,
  processing_completed_at = NULL,
  is_processed = FALSE,
  status_code = NULL,
  content_type = NULL,
  outcome = NULL,
  response_body = NULL,
  meta = '',
  route = :route,
  http_method = :http_method,
  tags = :tags,
  audit_meta = NULLIF(:audit_meta, '')
WHERE digest = :digest AND fence = :seen_fence AND state = :seen_state AND lease_until = :seen_lease_until
  AND expires_at = :seen_expires_at

-- name: renew
-- purpose: move the holder's lease on; generates the time
UPDATE sameas_records FORCE INDEX (PRIMARY)
SET lease_until = LAST_INSERT_ID((TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + :skew)) + :lease_for, expires_at = GREATEST(expires_at, (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + :skew) + :retain_for)
WHERE digest = :digest AND fence = :fence AND CAST(attempt_id AS BINARY) = CAST(CONVERT(:attempt_id USING utf8mb4) AS BINARY) AND state = 'held'
  AND expires_at > (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + :skew)

-- name: renew_many
-- purpose: move many leases of one length on; generates the time
UPDATE sameas_records FORCE INDEX (PRIMARY)
SET lease_until = LAST_INSERT_ID((TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + :skew)) + :lease_for, expires_at = GREATEST(expires_at, (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + :skew) + :retain_for)
WHERE digest IN ({digests}) AND ({holders}) AND state = 'held'
  AND expires_at > (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + :skew)

-- name: renewed
-- purpose: which of many leases are their holders' still, and how long the records are kept
SELECT digest, fence, attempt_id, expires_at FROM sameas_records
WHERE digest IN ({digests}) AND ({holders}) AND state = 'held'
  AND expires_at > (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + :skew)

-- name: where_holder
-- purpose: one of many leases
digest = :digest{number} AND fence = :fence{number} AND CAST(attempt_id AS BINARY) = CAST(CONVERT(:attempt_id{number} USING utf8mb4) AS BINARY)

-- name: expiry
-- purpose: how long a record is kept
SELECT expires_at FROM sameas_records WHERE digest = :digest

-- name: settle
-- purpose: the holder hands in a result or a failure that is kept; generates the time
UPDATE sameas_records FORCE INDEX (PRIMARY)
SET state = :state, is_processed = TRUE, processing_completed_at = LAST_INSERT_ID((TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + :skew)),
    expires_at = (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + :skew) + :retain_for, outcome = :outcome, response_body = :response_body,
    content_type = :content_type, status_code = :status_code, meta = :meta
WHERE digest = :digest AND fence = :fence AND CAST(attempt_id AS BINARY) = CAST(CONVERT(:attempt_id USING utf8mb4) AS BINARY) AND state = 'held'
  AND expires_at > (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + :skew)

-- name: settled_by_me
-- purpose: whether a settle of this attempt was applied before, its reply lost
SELECT processing_completed_at, expires_at FROM sameas_records
WHERE digest = :digest AND fence = :fence AND CAST(attempt_id AS BINARY) = CAST(CONVERT(:attempt_id USING utf8mb4) AS BINARY) AND state = :state
  AND expires_at > (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + :skew)

-- name: release
-- purpose: the holder gives the work back
DELETE FROM sameas_records
WHERE digest = :digest AND fence = :fence AND CAST(attempt_id AS BINARY) = CAST(CONVERT(:attempt_id USING utf8mb4) AS BINARY) AND state = 'held'
  AND expires_at + 0 > (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + :skew)

-- name: clock
-- purpose: the server's time
SELECT (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + :skew)

-- name: forget
-- purpose: remove one live record, whoever holds it
DELETE FROM sameas_records WHERE digest = :digest AND expires_at + 0 > (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + :skew)

-- name: forget_expired
-- purpose: remove what is left of one record
DELETE FROM sameas_records WHERE digest = :digest AND expires_at + 0 <= (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + :skew)

-- name: forget_where
-- purpose: remove the records of a tenant, a scope or a tag
DELETE FROM sameas_records WHERE {conditions}

-- name: find
-- purpose: a page of live records, newest first
SELECT digest, tenant, scope, `key`,
       fingerprint, state, fence, attempt, attempt_id, lease_until, created_at, expires_at, processing_completed_at,
       NULL, content_type, meta, owner, tags, route, http_method, audit_meta, (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + :skew)
FROM sameas_records WHERE {conditions} ORDER BY created_at DESC, digest DESC LIMIT :limit

-- name: prune
-- purpose: delete one batch of what has expired
DELETE FROM sameas_records WHERE expires_at <= (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + :skew) ORDER BY expires_at LIMIT :limit

-- name: home
-- purpose: which records these are: the database, the server
SELECT CONCAT_WS('/', DATABASE(), @@GLOBAL.port)

-- name: guard
-- purpose: the home and the time-outs of the caller's session: for a row, and (where the server has it) for an idle transaction
SELECT CONCAT_WS('/', DATABASE(), @@GLOBAL.port), @@SESSION.innodb_lock_wait_timeout

-- name: guard_idle
-- purpose: the same, where the server ends idle transactions
SELECT CONCAT_WS('/', DATABASE(), @@GLOBAL.port), @@SESSION.innodb_lock_wait_timeout, @@SESSION.idle_transaction_timeout

-- name: wait_for_rows
-- purpose: how many seconds the caller's session waits for a row
SET SESSION innodb_lock_wait_timeout = :seconds

-- name: idle_for
-- purpose: how many seconds the caller's transaction may idle
SET SESSION idle_transaction_timeout = :seconds

-- name: versions_there
-- purpose: whether the table of versions is there
SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = 'sameas_schema'

-- name: versions_table
-- purpose: the table of migrations that were made
CREATE TABLE IF NOT EXISTS sameas_schema (version INT PRIMARY KEY, made_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP)

-- name: version_last
-- purpose: the last migration that was made
SELECT COALESCE(MAX(version), 0) FROM sameas_schema

-- name: version_made
-- purpose: note a migration, which another process may have made as well
INSERT INTO sameas_schema (version) VALUES (:version) ON DUPLICATE KEY UPDATE version = version

-- name: where_live
-- purpose: not expired
expires_at > (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + :skew)

-- name: where_expired
-- purpose: expired, and not pruned yet
expires_at <= (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + :skew)

-- name: where_tenant
-- purpose: of one tenant
tenant = :tenant AND CAST(tenant AS BINARY) = CAST(CONVERT(:tenant USING utf8mb4) AS BINARY)

-- name: where_scope
-- purpose: of one kind of work
scope = :scope AND CAST(scope AS BINARY) = CAST(CONVERT(:scope USING utf8mb4) AS BINARY)

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
tags <> '' AND LOCATE(:tag, tags) > 0

-- name: where_key_prefix
-- purpose: whose key begins so
CAST(LEFT(`key`, :key_length) AS BINARY) = CAST(CONVERT(:key USING utf8mb4) AS BINARY)

-- name: where_created_from
-- purpose: made at this time or later
created_at >= :created_from

-- name: where_created_before
-- purpose: made before this time
created_at < :created_before

-- name: where_after
-- purpose: further down the list than a cursor
(created_at < :after_time OR (created_at = :after_time AND digest < :after_digest))
