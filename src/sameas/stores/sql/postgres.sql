-- Records on PostgreSQL 13 and later. Times are microseconds since 1970 by the server's clock; the view
-- idempotency_keys shows them as date-times under the names of source document 003. :skew moves the clock, for tests.

-- name: schema_1
-- purpose: the table, its rules and its indexes
CREATE TABLE sameas_records (
  digest bytea NOT NULL CHECK (octet_length(digest) = 32),
  id uuid NOT NULL DEFAULT gen_random_uuid(),
  tenant text NOT NULL,
  scope text NOT NULL,
  key text NOT NULL,
  fingerprint text NOT NULL,
  state text NOT NULL CHECK (state IN ('held', 'done', 'failed')),
  fence bigint NOT NULL,
  attempt integer NOT NULL CHECK (attempt >= 1),
  attempt_id text NOT NULL,
  owner text NOT NULL DEFAULT '',
  lease_until bigint NOT NULL,
  created_at bigint NOT NULL,
  expires_at bigint NOT NULL,
  processing_completed_at bigint,
  is_processed boolean NOT NULL DEFAULT false CHECK (is_processed = (state <> 'held')),
  route text CHECK (length(route) <= 256 AND left(route, 1) = '/' AND position('?' IN route) = 0),
  http_method text CHECK (http_method IN ('GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'HEAD', 'OPTIONS')),
  status_code integer CONSTRAINT ck_status_code_valid CHECK (status_code BETWEEN 100 AND 599),
  content_type text CHECK (length(content_type) <= 256 AND content_type ~ '^[^/;\s]+/[^/;\s]+[ \t]*(;|$)'),
  outcome bytea,
  response_body text,
  meta text NOT NULL DEFAULT '',
  tags text NOT NULL DEFAULT '',
  audit_meta json,
  watched boolean NOT NULL DEFAULT false,
  CONSTRAINT pk_sameas_records PRIMARY KEY (digest),
  CONSTRAINT ck_expires_at_greater_than_created_at CHECK (expires_at > created_at),
  CHECK ((state = 'held') = (outcome IS NULL)),
  CHECK ((state = 'held') = (processing_completed_at IS NULL))
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX sameas_records_expires_at ON sameas_records (expires_at) INCLUDE (key, is_processed);
CREATE INDEX sameas_records_route_created_at ON sameas_records (route, created_at DESC)
  INCLUDE (http_method, status_code, is_processed) WHERE route IS NOT NULL;
CREATE INDEX sameas_records_scope ON sameas_records (tenant, scope, created_at DESC);
CREATE INDEX sameas_records_tags ON sameas_records USING gin (string_to_array(tags, chr(10))) WHERE tags <> '';
CREATE VIEW idempotency_keys AS
SELECT id, tenant, scope, key, route, http_method, status_code, response_body, content_type,
       to_timestamp(created_at / 1000000.0) AS created_at, to_timestamp(expires_at / 1000000.0) AS expires_at,
       is_processed, to_timestamp(processing_completed_at / 1000000.0) AS processing_completed_at,
       state, fence, attempt, owner, to_timestamp(lease_until / 1000000.0) AS lease_until, audit_meta
FROM sameas_records;
-- One round trip that reads and, where it may, writes. Each turn has a fresh snapshot, so that a record which another
-- transaction made meanwhile is seen in the next one. The clock is read under the lock of the key: a later claim always
-- has a higher fence.
CREATE FUNCTION sameas_claim_1(
  a_digest bytea, a_tenant text, a_scope text, a_key text, a_fingerprint text, a_attempt_id text, a_owner text,
  a_lease_for bigint, a_retain_for bigint, a_route text, a_method text, a_tags text, a_audit_meta text,
  a_latch bigint, a_patience text, a_skew bigint,
  OUT taken_fence bigint, OUT taken_attempt integer,
  OUT o_fingerprint text, OUT o_state text, OUT o_fence bigint, OUT o_attempt integer, OUT o_attempt_id text,
  OUT o_lease_until bigint, OUT o_created_at bigint, OUT o_expires_at bigint, OUT o_completed_at bigint,
  OUT o_outcome bytea, OUT o_content_type text, OUT o_meta text, OUT o_owner text, OUT o_tags text, OUT o_route text,
  OUT o_method text, OUT o_audit_meta text, OUT o_now bigint)
LANGUAGE plpgsql VOLATILE AS $body$
BEGIN
  FOR turn IN 1..4 LOOP
    SELECT r.fingerprint, r.state, r.fence, r.attempt, r.attempt_id, r.lease_until, r.created_at, r.expires_at,
           r.processing_completed_at, r.outcome, r.content_type, r.meta, r.owner, r.tags, r.route, r.http_method,
           r.audit_meta, CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint) + a_skew
    INTO o_fingerprint, o_state, o_fence, o_attempt, o_attempt_id, o_lease_until, o_created_at, o_expires_at,
         o_completed_at, o_outcome, o_content_type, o_meta, o_owner, o_tags, o_route, o_method, o_audit_meta, o_now
    FROM sameas_records AS r WHERE r.digest = a_digest;
    IF FOUND AND o_expires_at > o_now
       AND (o_state <> 'held' OR o_fingerprint <> a_fingerprint
            OR (o_attempt_id <> a_attempt_id AND o_lease_until > o_now)) THEN
      RETURN;
    END IF;
    PERFORM set_config('lock_timeout', a_patience, true), pg_advisory_xact_lock(a_latch);
    o_now := CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint) + a_skew;
    INSERT INTO sameas_records AS r (digest, tenant, scope, key, fingerprint, state, fence, attempt, attempt_id, owner,
                                     lease_until, created_at, expires_at, route, http_method, tags, audit_meta)
    VALUES (a_digest, a_tenant, a_scope, a_key, a_fingerprint, 'held', o_now, 1, a_attempt_id, a_owner,
            o_now + a_lease_for, o_now, o_now + a_retain_for, a_route, a_method, a_tags,
            CAST(nullif(a_audit_meta, '') AS json))
    ON CONFLICT (digest) DO UPDATE SET
      fingerprint = excluded.fingerprint,
      state = 'held',
      fence = CASE WHEN r.attempt_id = excluded.attempt_id AND r.state = 'held' AND r.expires_at > o_now
                   THEN r.fence ELSE greatest(r.fence + 1, o_now) END,
      attempt = CASE WHEN r.expires_at <= o_now THEN 1
                     WHEN r.attempt_id = excluded.attempt_id THEN r.attempt ELSE r.attempt + 1 END,
      expires_at = CASE WHEN r.attempt_id = excluded.attempt_id THEN greatest(r.expires_at, excluded.expires_at)
                        ELSE excluded.expires_at END,
      created_at = CASE WHEN r.expires_at <= o_now THEN o_now ELSE r.created_at END,
      attempt_id = excluded.attempt_id,
      owner = excluded.owner,
      lease_until = excluded.lease_until,
      processing_completed_at = NULL,
      is_processed = false,
      status_code = NULL,
      content_type = NULL,
      outcome = NULL,
      response_body = NULL,
      meta = '',
      route = excluded.route,
      http_method = excluded.http_method,
      tags = excluded.tags,
      audit_meta = excluded.audit_meta
    WHERE r.expires_at <= o_now
       OR (r.state = 'held' AND r.fingerprint = excluded.fingerprint
           AND (r.attempt_id = excluded.attempt_id OR r.lease_until <= o_now))
    RETURNING r.fence, r.attempt INTO taken_fence, taken_attempt;
    IF FOUND THEN
      RETURN;
    END IF;
  END LOOP;
  o_state := NULL;
END
$body$

-- name: look
-- purpose: one record as it is, live or not
SELECT fingerprint, state, fence, attempt, attempt_id, lease_until, created_at, expires_at, processing_completed_at,
       outcome, content_type, meta, owner, tags, route, http_method, CAST(audit_meta AS text),
       CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint) + CAST(:skew AS bigint)
FROM sameas_records WHERE digest = :digest

-- name: claim
-- purpose: take the record where that is allowed: fence and attempt, else the record as it is; a row of nulls where it changed meanwhile
SELECT * FROM sameas_claim_1(
  :digest, :tenant, :scope, :key, :fingerprint, :attempt_id, :owner, :lease_for, :retain_for, :route, :http_method,
  :tags, :audit_meta, :latch, :patience, :skew)

-- name: renew
-- purpose: move the holder's lease on
UPDATE sameas_records AS r
SET lease_until = at.now + :lease_for, expires_at = greatest(r.expires_at, at.now + :retain_for)
FROM (SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint) + CAST(:skew AS bigint) AS now) AS at
WHERE r.digest = :digest AND r.fence = :fence AND r.attempt_id = :attempt_id AND r.state = 'held'
  AND r.expires_at > at.now
RETURNING at.now, r.expires_at

-- name: settle
-- purpose: the holder hands in a result or a failure that is kept; those who watch the record are told
UPDATE sameas_records AS r
SET state = :state, is_processed = true, processing_completed_at = at.now, expires_at = at.now + :retain_for,
    outcome = :outcome, response_body = :response_body, content_type = :content_type, status_code = :status_code,
    meta = :meta
FROM (SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint) + CAST(:skew AS bigint) AS now) AS at
WHERE r.digest = :digest AND r.fence = :fence AND r.attempt_id = :attempt_id AND r.state = 'held'
  AND r.expires_at > at.now
RETURNING r.processing_completed_at, r.expires_at,
          CASE WHEN r.watched THEN CAST(pg_notify('sameas', encode(r.digest, 'hex')) AS text) END

-- name: settled_by_me
-- purpose: whether a settle of this attempt was applied before, its reply lost
SELECT processing_completed_at, expires_at FROM sameas_records
WHERE digest = :digest AND fence = :fence AND attempt_id = :attempt_id AND state = :state
  AND expires_at > (SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint) + CAST(:skew AS bigint))

-- name: release
-- purpose: the holder gives the work back; those who watch the record are told
DELETE FROM sameas_records AS r
USING (SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint) + CAST(:skew AS bigint) AS now) AS at
WHERE r.digest = :digest AND r.fence = :fence AND r.attempt_id = :attempt_id AND r.state = 'held'
  AND r.expires_at > at.now
RETURNING at.now, at.now, CASE WHEN r.watched THEN CAST(pg_notify('sameas', encode(r.digest, 'hex')) AS text) END

-- name: forget
-- purpose: remove one record, whoever holds it, and tell everybody who listens
DELETE FROM sameas_records AS r
USING (SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint) + CAST(:skew AS bigint) AS now) AS at
WHERE r.digest = :digest
RETURNING CASE WHEN r.expires_at > at.now THEN at.now END, at.now,
          CAST(pg_notify('sameas', encode(r.digest, 'hex')) AS text)

-- name: forget_where
-- purpose: remove the records of a tenant, a scope or a tag; everybody who listens is told once
WITH gone AS (DELETE FROM sameas_records WHERE {conditions} RETURNING digest)
SELECT count(*), CASE WHEN count(*) > 0 THEN CAST(pg_notify('sameas', '*') AS text) END FROM gone

-- name: find
-- purpose: a page of live records, newest first
SELECT digest, tenant, scope, key,
       fingerprint, state, fence, attempt, attempt_id, lease_until, created_at, expires_at, processing_completed_at,
       CAST(NULL AS bytea), content_type, meta, owner, tags, route, http_method, CAST(audit_meta AS text),
       CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint) + CAST(:skew AS bigint)
FROM sameas_records WHERE {conditions} ORDER BY created_at DESC, digest DESC LIMIT :limit

-- name: prune
-- purpose: delete one batch of what has expired, leaving alone what somebody else is at
WITH gone AS (
  DELETE FROM sameas_records WHERE digest IN (
    SELECT digest FROM sameas_records WHERE expires_at <= (SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint) + CAST(:skew AS bigint))
    ORDER BY expires_at LIMIT :limit FOR UPDATE SKIP LOCKED)
  RETURNING 1)
SELECT count(*) FROM gone

-- name: watch
-- purpose: ask to be told when these records change; nobody waits for anybody here
UPDATE sameas_records SET watched = true WHERE digest IN (
  SELECT digest FROM sameas_records WHERE digest = ANY(:digests) AND state = 'held' AND NOT watched
  FOR UPDATE SKIP LOCKED)

-- name: guard
-- purpose: in the caller's transaction: idle for no longer than the lease; answers the lock time-out that is in force
SELECT current_setting('lock_timeout'), CASE
  WHEN CAST(current_setting('idle_in_transaction_session_timeout') AS interval) NOT BETWEEN interval '1 microsecond'
       AND CAST(:lease_for AS bigint) * interval '1 millisecond'
  THEN set_config('idle_in_transaction_session_timeout', CAST(:lease_for AS bigint) || 'ms', true) END

-- name: unguard
-- purpose: give the caller's transaction its lock time-out back
SELECT set_config('lock_timeout', CAST(:waited_before AS text), true)

-- name: lock_schema
-- purpose: one process at a time makes or upgrades the tables; the lock ends with the transaction
SELECT pg_advisory_xact_lock(7308324465928955251)

-- name: versions_there
-- purpose: whether the table of versions is there
SELECT to_regclass('sameas_schema')

-- name: versions_table
-- purpose: the table of migrations that were made
CREATE TABLE IF NOT EXISTS sameas_schema (version integer PRIMARY KEY, made_at timestamptz NOT NULL DEFAULT now())

-- name: version_last
-- purpose: the last migration that was made
SELECT coalesce(max(version), 0) FROM sameas_schema

-- name: version_made
-- purpose: note a migration
INSERT INTO sameas_schema (version) VALUES (:version)

-- name: where_live
-- purpose: not expired
expires_at > (SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint) + CAST(:skew AS bigint))

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
tags <> '' AND string_to_array(tags, chr(10)) @> ARRAY[CAST(trim(chr(10) FROM :tag) AS text)]

-- name: where_key_prefix
-- purpose: whose key begins so
left(key, CAST(:key_length AS integer)) = :key

-- name: where_created_from
-- purpose: made at this time or later
created_at >= :created_from

-- name: where_created_before
-- purpose: made before this time
created_at < :created_before

-- name: where_after
-- purpose: further down the list than a cursor
(created_at, digest) < (CAST(:after_time AS bigint), CAST(:after_digest AS bytea))
