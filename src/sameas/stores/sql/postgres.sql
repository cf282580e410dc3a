-- Records on PostgreSQL 13 and later. Times are microseconds since 1970 by the server's clock; the view
-- idempotency_keys shows them as date-times under the names of source document 003. :skew moves the clock, for tests.
-- What is written is on the disk before anybody hears of it: where the session, role or database has synchronous_commit
-- off, each write turns it on for its own transaction. A session is left as it was, so that a pooler may stand between.

-- name: schema_1
-- purpose: the table, its rules and its indexes; a rule of one column is a domain, which the server reads once and not with every write
CREATE DOMAIN sameas_digest AS bytea CHECK (octet_length(VALUE) = 32);
CREATE DOMAIN sameas_state AS text CHECK (VALUE IN ('held', 'done', 'failed'));
CREATE DOMAIN sameas_route AS text CHECK (length(VALUE) <= 256 AND left(VALUE, 1) = '/' AND position('?' IN VALUE) = 0);
CREATE DOMAIN sameas_http_method AS text
  CHECK (VALUE IN ('GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'HEAD', 'OPTIONS'));
CREATE DOMAIN sameas_status_code AS integer CONSTRAINT ck_status_code_valid CHECK (VALUE BETWEEN 100 AND 599);
CREATE DOMAIN sameas_content_type AS text
  CHECK (length(VALUE) <= 256 AND VALUE ~ '^[^/;\s]+/[^/;\s]+[ \t]*(;|$)');
CREATE DOMAIN sameas_attempt AS integer CHECK (VALUE >= 1);
CREATE TABLE sameas_records (
  digest sameas_digest NOT NULL,
  tenant text NOT NULL,
  scope text NOT NULL,
  key text NOT NULL,
  fingerprint text NOT NULL,
  state sameas_state NOT NULL,
  fence bigint NOT NULL,
  attempt sameas_attempt NOT NULL,
  attempt_id text NOT NULL,
  owner text NOT NULL DEFAULT '',
  lease_until bigint NOT NULL,
  created_at bigint NOT NULL,
  expires_at bigint NOT NULL,
  processing_completed_at bigint,
  is_processed boolean NOT NULL DEFAULT false,
  route sameas_route,
  http_method sameas_http_method,
  status_code sameas_status_code,
  content_type sameas_content_type,
  outcome bytea,
  response_body text,
  meta text NOT NULL DEFAULT '',
  tags text NOT NULL DEFAULT '',
  audit_meta json,
  watched boolean NOT NULL DEFAULT false,
  CONSTRAINT pk_sameas_records PRIMARY KEY (digest),
  -- Each rule over columns is read with every write: there are two in one.
  CONSTRAINT ck_expires_at_greater_than_created_at
    CHECK (expires_at > created_at AND is_processed = (outcome IS NOT NULL) AND is_processed = (state <> 'held'))
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX sameas_records_expires_at ON sameas_records (expires_at) INCLUDE (key, is_processed);
CREATE INDEX sameas_records_route_created_at ON sameas_records (route, created_at DESC)
  INCLUDE (http_method, status_code, is_processed) WHERE route IS NOT NULL;
CREATE INDEX sameas_records_scope ON sameas_records (tenant, scope, created_at DESC);
CREATE INDEX sameas_records_tags ON sameas_records USING gin (string_to_array(tags, chr(10))) WHERE tags <> '';
CREATE VIEW idempotency_keys AS
SELECT CAST(encode(substring(digest FROM 1 FOR 16), 'hex') AS uuid) AS id, tenant, scope, key, route, http_method, status_code, response_body, content_type,
       to_timestamp(created_at / 1000000.0) AS created_at, to_timestamp(expires_at / 1000000.0) AS expires_at,
       is_processed, to_timestamp(processing_completed_at / 1000000.0) AS processing_completed_at,
       state, fence, attempt, owner, to_timestamp(lease_until / 1000000.0) AS lease_until, audit_meta
FROM sameas_records;
-- Takes the record where that is allowed and answers its fence and attempt, else nothing. The clock is read under the
-- lock of the key, so that a later claim always has a higher fence; the lock ends with the transaction.
CREATE FUNCTION sameas_take_1(
  a_digest bytea, a_tenant text, a_scope text, a_key text, a_fingerprint text, a_attempt_id text, a_owner text,
  a_lease_for bigint, a_retain_for bigint, a_route text, a_method text, a_tags text, a_audit_meta text,
  a_latch bigint, a_patience text, a_skew bigint)
RETURNS bigint[] LANGUAGE plpgsql VOLATILE AS $body$
DECLARE
  v_now bigint;
  v_taken bigint[];
BEGIN
  PERFORM set_config('lock_timeout', a_patience, true), pg_advisory_xact_lock(a_latch);
  v_now := CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint) + a_skew;
  INSERT INTO sameas_records AS r (digest, tenant, scope, key, fingerprint, state, fence, attempt, attempt_id, owner,
                                   lease_until, created_at, expires_at, route, http_method, tags, audit_meta)
  VALUES (a_digest, a_tenant, a_scope, a_key, a_fingerprint, 'held', v_now, 1, a_attempt_id, a_owner,
          v_now + a_lease_for, v_now, v_now + a_retain_for, a_route, a_method, a_tags,
          CAST(nullif(a_audit_meta, '') AS json))
  ON CONFLICT (digest) DO UPDATE SET
    fingerprint = excluded.fingerprint,
    state = 'held',
    fence = CASE WHEN r.attempt_id = excluded.attempt_id AND r.state = 'held' AND r.expires_at > v_now
                 THEN r.fence ELSE greatest(r.fence + 1, v_now) END,
    attempt = CASE WHEN r.expires_at <= v_now THEN 1
                   WHEN r.attempt_id = excluded.attempt_id THEN r.attempt ELSE r.attempt + 1 END,
    expires_at = CASE WHEN r.attempt_id = excluded.attempt_id THEN greatest(r.expires_at, excluded.expires_at)
                      ELSE excluded.expires_at END,
    created_at = CASE WHEN r.expires_at <= v_now THEN v_now ELSE r.created_at END,
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
  WHERE r.expires_at <= v_now
     OR (r.state = 'held' AND r.fingerprint = excluded.fingerprint
         AND (r.attempt_id = excluded.attempt_id OR r.lease_until <= v_now))
  RETURNING ARRAY[r.fence, r.attempt] INTO v_taken;
  RETURN v_taken;
END
$body$

-- name: look
-- purpose: one record as it is, live or not
SELECT fingerprint, state, fence, attempt, attempt_id, lease_until, created_at, expires_at, processing_completed_at,
       outcome, content_type, meta, owner, tags, route, http_method, CAST(audit_meta AS text),
       CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint) + CAST(:skew AS bigint)
FROM sameas_records WHERE digest = :digest

-- name: claim
-- purpose: take the record where that is allowed: its fence and attempt; in the same row, the record as it was before
SELECT CASE WHEN r.expires_at > at.now
             AND (r.state <> 'held' OR r.fingerprint <> :fingerprint
                  OR (r.attempt_id <> :attempt_id AND r.lease_until > at.now))
       THEN NULL
       -- Never null: the work of this line is done when it is looked at.
       WHEN current_setting('synchronous_commit') = 'off' AND set_config('synchronous_commit', 'on', true) IS NULL
       THEN NULL
       ELSE sameas_take_1(:digest, :tenant, :scope, :key, :fingerprint, :attempt_id, :owner, :lease_for, :retain_for,
                          :route, :http_method, :tags, :audit_meta, :latch, :lock_wait, CAST(:skew AS bigint)) END,
       r.fingerprint, r.state, r.fence, r.attempt, r.attempt_id, r.lease_until, r.created_at, r.expires_at,
       r.processing_completed_at, r.outcome, r.content_type, r.meta, r.owner, r.tags, r.route, r.http_method,
       CAST(r.audit_meta AS text), at.now
FROM (SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint) + CAST(:skew AS bigint) AS now OFFSET 0) AS at
LEFT JOIN sameas_records AS r ON r.digest = :digest

-- name: renew
-- purpose: move the holder's lease on
UPDATE sameas_records AS r
SET lease_until = (CAST(extract(epoch FROM statement_timestamp()) * 1000000 AS bigint) + CAST(:skew AS bigint)) + :lease_for,
    expires_at = greatest(r.expires_at, (CAST(extract(epoch FROM statement_timestamp()) * 1000000 AS bigint) + CAST(:skew AS bigint)) + :retain_for)
WHERE r.digest = :digest AND r.fence = :fence AND r.attempt_id = :attempt_id AND r.state = 'held'
  AND r.expires_at > (CAST(extract(epoch FROM statement_timestamp()) * 1000000 AS bigint) + CAST(:skew AS bigint))
RETURNING (CAST(extract(epoch FROM statement_timestamp()) * 1000000 AS bigint) + CAST(:skew AS bigint)), r.expires_at,
          CASE WHEN current_setting('synchronous_commit') = 'off' THEN set_config('synchronous_commit', 'on', true) END

-- name: renew_many
-- purpose: move many leases on; for each the time and the expiry, or whether it was its holder's when we looked
-- A record that somebody else is at is left alone: it must not keep the others waiting.
WITH asked AS MATERIALIZED (
  SELECT * FROM unnest(CAST(:digests AS bytea[]), CAST(:fences AS bigint[]), CAST(:attempt_ids AS text[]),
                       CAST(:leases_for AS bigint[]), CAST(:retained_for AS bigint[]))
  WITH ORDINALITY AS a (digest, fence, attempt_id, lease_for, retain_for, number)),
mine AS MATERIALIZED (
  SELECT a.number FROM sameas_records AS r JOIN asked AS a
    ON r.digest = a.digest AND r.fence = a.fence AND r.attempt_id = a.attempt_id
  WHERE r.state = 'held' AND r.expires_at > (CAST(extract(epoch FROM statement_timestamp()) * 1000000 AS bigint) + CAST(:skew AS bigint))),
free AS MATERIALIZED (
  SELECT a.number FROM sameas_records AS r JOIN asked AS a
    ON r.digest = a.digest AND r.fence = a.fence AND r.attempt_id = a.attempt_id
  WHERE r.state = 'held' AND r.expires_at > (CAST(extract(epoch FROM statement_timestamp()) * 1000000 AS bigint) + CAST(:skew AS bigint))
  FOR UPDATE OF r SKIP LOCKED),
renewed AS (
  UPDATE sameas_records AS r
  SET lease_until = (CAST(extract(epoch FROM statement_timestamp()) * 1000000 AS bigint) + CAST(:skew AS bigint)) + a.lease_for,
      expires_at = greatest(r.expires_at, (CAST(extract(epoch FROM statement_timestamp()) * 1000000 AS bigint) + CAST(:skew AS bigint)) + a.retain_for)
  FROM asked AS a JOIN free USING (number)
  WHERE r.digest = a.digest
  RETURNING a.number, r.expires_at,
            CASE WHEN current_setting('synchronous_commit') = 'off' THEN set_config('synchronous_commit', 'on', true) END)
SELECT (CAST(extract(epoch FROM statement_timestamp()) * 1000000 AS bigint) + CAST(:skew AS bigint)), renewed.expires_at, mine.number IS NOT NULL
FROM asked LEFT JOIN renewed USING (number) LEFT JOIN mine USING (number) ORDER BY number

-- name: settle
-- purpose: the holder hands in a result or a failure that is kept; those who watch the record are told
UPDATE sameas_records AS r
SET state = :state, is_processed = true,
    processing_completed_at = (CAST(extract(epoch FROM statement_timestamp()) * 1000000 AS bigint) + CAST(:skew AS bigint)),
    expires_at = (CAST(extract(epoch FROM statement_timestamp()) * 1000000 AS bigint) + CAST(:skew AS bigint)) + :retain_for,
    outcome = :outcome, response_body = :response_body, content_type = :content_type, status_code = :status_code,
    meta = :meta
WHERE r.digest = :digest AND r.fence = :fence AND r.attempt_id = :attempt_id AND r.state = 'held'
  AND r.expires_at > (CAST(extract(epoch FROM statement_timestamp()) * 1000000 AS bigint) + CAST(:skew AS bigint))
RETURNING r.processing_completed_at, r.expires_at,
          CASE WHEN r.watched THEN CAST(pg_notify('sameas', encode(r.digest, 'hex')) AS text) END,
          CASE WHEN current_setting('synchronous_commit') = 'off' THEN set_config('synchronous_commit', 'on', true) END

-- name: settled_by_me
-- purpose: whether a settle of this attempt was applied before, its reply lost
SELECT processing_completed_at, expires_at FROM sameas_records
WHERE digest = :digest AND fence = :fence AND attempt_id = :attempt_id AND state = :state
  AND expires_at > (CAST(extract(epoch FROM statement_timestamp()) * 1000000 AS bigint) + CAST(:skew AS bigint))

-- name: release
-- purpose: the holder gives the work back; those who watch the record are told
DELETE FROM sameas_records AS r
WHERE r.digest = :digest AND r.fence = :fence AND r.attempt_id = :attempt_id AND r.state = 'held'
  AND r.expires_at > (CAST(extract(epoch FROM statement_timestamp()) * 1000000 AS bigint) + CAST(:skew AS bigint))
RETURNING (CAST(extract(epoch FROM statement_timestamp()) * 1000000 AS bigint) + CAST(:skew AS bigint)), (CAST(extract(epoch FROM statement_timestamp()) * 1000000 AS bigint) + CAST(:skew AS bigint)),
          CASE WHEN r.watched THEN CAST(pg_notify('sameas', encode(r.digest, 'hex')) AS text) END,
          CASE WHEN current_setting('synchronous_commit') = 'off' THEN set_config('synchronous_commit', 'on', true) END

-- name: forget
-- purpose: remove one record, whoever holds it, and tell everybody who listens
DELETE FROM sameas_records AS r
WHERE r.digest = :digest
RETURNING CASE WHEN r.expires_at > (CAST(extract(epoch FROM statement_timestamp()) * 1000000 AS bigint) + CAST(:skew AS bigint)) THEN (CAST(extract(epoch FROM statement_timestamp()) * 1000000 AS bigint) + CAST(:skew AS bigint)) END, (CAST(extract(epoch FROM statement_timestamp()) * 1000000 AS bigint) + CAST(:skew AS bigint)),
          CAST(pg_notify('sameas', encode(r.digest, 'hex')) AS text),
          CASE WHEN current_setting('synchronous_commit') = 'off' THEN set_config('synchronous_commit', 'on', true) END

-- name: forget_where
-- purpose: remove the records of a tenant, a scope or a tag; everybody who listens is told once
WITH gone AS (DELETE FROM sameas_records WHERE {conditions} RETURNING digest,
  CASE WHEN current_setting('synchronous_commit') = 'off' THEN set_config('synchronous_commit', 'on', true) END)
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
-- An array is chosen once; IN may be planned as a join that chooses again for every row, and so passes the limit.
WITH gone AS (
  DELETE FROM sameas_records WHERE digest = ANY(ARRAY(
    SELECT digest FROM sameas_records WHERE expires_at <= (CAST(extract(epoch FROM statement_timestamp()) * 1000000 AS bigint) + CAST(:skew AS bigint))
    ORDER BY expires_at LIMIT :limit FOR UPDATE SKIP LOCKED))
  RETURNING 1)
SELECT count(*) FROM gone

-- name: watch
-- purpose: ask to be told when these records change; nobody waits for anybody here
UPDATE sameas_records SET watched = true WHERE digest = ANY(ARRAY(
  SELECT digest FROM sameas_records WHERE digest = ANY(:digests) AND state = 'held' AND NOT watched
  FOR UPDATE SKIP LOCKED))

-- name: home
-- purpose: which records these are: the database, the server, the table that the name stands for
SELECT concat_ws('/', current_database(), current_setting('port'), CAST(CAST(to_regclass('sameas_records') AS oid) AS text))

-- name: guard
-- purpose: in the caller's transaction: idle for no longer than the lease; answers its home and the lock time-out in force
SELECT concat_ws('/', current_database(), current_setting('port'), CAST(CAST(to_regclass('sameas_records') AS oid) AS text)),
  current_setting('lock_timeout'), CASE
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
expires_at > (CAST(extract(epoch FROM statement_timestamp()) * 1000000 AS bigint) + CAST(:skew AS bigint))

-- name: where_expired
-- purpose: expired, and not pruned yet
expires_at <= (CAST(extract(epoch FROM statement_timestamp()) * 1000000 AS bigint) + CAST(:skew AS bigint))

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
