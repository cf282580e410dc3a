-- Checkpoints of chunks that all nodes see, and which run uses what. Times are milliseconds since 1970.

-- name: schema_sqlite_1
-- purpose: make the tables on SQLite.
CREATE TABLE extraction_checkpoints (
  tenant_id TEXT NOT NULL,
  stage TEXT NOT NULL,
  digest BLOB NOT NULL,
  used_at INTEGER NOT NULL,
  size INTEGER NOT NULL,
  seal BLOB NOT NULL,
  data BLOB NOT NULL,
  PRIMARY KEY (tenant_id, stage, digest)
);
CREATE INDEX idx_checkpoints_used ON extraction_checkpoints (tenant_id, used_at, size);
CREATE TABLE extraction_uses (
  tenant_id TEXT NOT NULL,
  idempotency_key TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('begun', 'checkpoint', 'call')),
  stage TEXT NOT NULL,
  name TEXT NOT NULL,
  PRIMARY KEY (tenant_id, idempotency_key, kind, stage, name)
) WITHOUT ROWID

-- name: schema_postgres_1
-- purpose: make the tables on PostgreSQL.
CREATE TABLE extraction_checkpoints (
  tenant_id TEXT NOT NULL,
  stage TEXT NOT NULL,
  digest BYTEA NOT NULL,
  used_at BIGINT NOT NULL,
  size BIGINT NOT NULL,
  seal BYTEA NOT NULL,
  data BYTEA NOT NULL,
  PRIMARY KEY (tenant_id, stage, digest)
);
CREATE INDEX idx_checkpoints_used ON extraction_checkpoints (tenant_id, used_at, size);
CREATE TABLE extraction_uses (
  tenant_id TEXT NOT NULL,
  idempotency_key TEXT COLLATE "C" NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('begun', 'checkpoint', 'call')),
  stage TEXT NOT NULL,
  name TEXT NOT NULL,
  PRIMARY KEY (tenant_id, idempotency_key, kind, stage, name)
)

-- name: save
-- purpose: keep a checkpoint, in the place of one that is there.
INSERT INTO extraction_checkpoints (tenant_id, stage, digest, used_at, size, seal, data)
VALUES (:tenant, :stage, :digest, :now, :size, :seal, :data)
ON CONFLICT (tenant_id, stage, digest) DO UPDATE SET
  used_at = excluded.used_at, size = excluded.size, seal = excluded.seal, data = excluded.data

-- name: load
-- purpose: a checkpoint.
SELECT data, seal, used_at FROM extraction_checkpoints WHERE tenant_id = :tenant AND stage = :stage AND digest = :digest

-- name: touch
-- purpose: note that a checkpoint was used.
UPDATE extraction_checkpoints SET used_at = :now WHERE tenant_id = :tenant AND stage = :stage AND digest = :digest

-- name: size
-- purpose: how much a tenant keeps.
SELECT COALESCE(SUM(size), 0) FROM extraction_checkpoints WHERE tenant_id = :tenant

-- name: shrink
-- purpose: delete what was not used for longest, until the rest fits; the newest stays.
DELETE FROM extraction_checkpoints WHERE tenant_id = :tenant AND (stage, digest) IN (
  SELECT stage, digest FROM (
    SELECT stage, digest, size,
      SUM(size) OVER (ORDER BY used_at DESC, digest, stage ROWS UNBOUNDED PRECEDING) AS with_newer
    FROM extraction_checkpoints WHERE tenant_id = :tenant
  ) AS counted
  WHERE with_newer > :keep AND with_newer > size
)

-- name: forget
-- purpose: delete a checkpoint.
DELETE FROM extraction_checkpoints WHERE tenant_id = :tenant AND stage = :stage AND digest = :digest

-- name: clear
-- purpose: delete all checkpoints of a tenant.
DELETE FROM extraction_checkpoints WHERE tenant_id = :tenant

-- name: note_use
-- purpose: a run uses something.
INSERT INTO extraction_uses (tenant_id, idempotency_key, kind, stage, name)
VALUES (:tenant, :key, :kind, :stage, :name) ON CONFLICT DO NOTHING

-- name: uses
-- purpose: what a run uses.
SELECT kind, stage, name FROM extraction_uses WHERE tenant_id = :tenant AND idempotency_key = :key

-- name: forget_uses
-- purpose: a run is gone.
DELETE FROM extraction_uses WHERE tenant_id = :tenant AND idempotency_key = :key
