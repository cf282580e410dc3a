-- The tables of source document 000, part 5: tenant first, whole digests. Times are UTC, JSON is kept to the byte.

-- name: schema_sqlite_1
-- purpose: make the tables on SQLite, where an earlier release has not made them.
CREATE TABLE IF NOT EXISTS extraction_results (
  tenant_id TEXT NOT NULL,
  idempotency_key TEXT NOT NULL,
  ontology_id TEXT NOT NULL,
  ontology_version TEXT NOT NULL,
  text_hash TEXT NOT NULL CHECK (length(text_hash) = 64),
  extraction_params_hash TEXT NOT NULL CHECK (length(extraction_params_hash) = 64),
  entities TEXT NOT NULL CHECK (json_valid(entities)),
  relations TEXT NOT NULL CHECK (json_valid(relations)),
  rejected TEXT NOT NULL CHECK (json_valid(rejected)),
  graph TEXT NOT NULL,
  metadata TEXT NOT NULL CHECK (json_valid(metadata)),
  audit_meta TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(audit_meta)),
  created_at TEXT NOT NULL,
  expires_at TEXT NOT NULL,
  accessed_at TEXT NOT NULL,
  PRIMARY KEY (tenant_id, idempotency_key),
  UNIQUE (tenant_id, ontology_id, ontology_version, text_hash, extraction_params_hash)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS idx_results_ontology ON extraction_results (tenant_id, ontology_id);
CREATE INDEX IF NOT EXISTS idx_results_expires ON extraction_results (expires_at);
CREATE TABLE IF NOT EXISTS execution_handles (
  tenant_id TEXT NOT NULL,
  idempotency_key TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('running', 'completed', 'failed')),
  result TEXT CHECK (result IS NULL OR json_valid(result)),
  error TEXT CHECK (error IS NULL OR json_valid(error)),
  audit_meta TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(audit_meta)),
  started_at TEXT NOT NULL,
  completed_at TEXT,
  PRIMARY KEY (tenant_id, idempotency_key)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS idx_handles_status ON execution_handles (tenant_id, status);
CREATE INDEX IF NOT EXISTS idx_handles_started ON execution_handles (started_at);
CREATE TABLE IF NOT EXISTS extraction_audit_log (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant_id TEXT NOT NULL,
  idempotency_key TEXT NOT NULL,
  ontology_id TEXT NOT NULL,
  event_type TEXT NOT NULL CHECK (event_type IN (
    'extraction_started', 'extraction_completed', 'extraction_failed', 'cache_hit', 'cache_miss',
    'concurrent_deduplicated', 'ontology_updated', 'result_removed'
  )),
  metadata TEXT NOT NULL CHECK (json_valid(metadata)),
  audit_meta TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(audit_meta)),
  created_at TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS idx_audit_idempotency_key ON extraction_audit_log (tenant_id, idempotency_key);
CREATE INDEX IF NOT EXISTS idx_audit_ontology ON extraction_audit_log (tenant_id, ontology_id);
CREATE INDEX IF NOT EXISTS idx_audit_created ON extraction_audit_log (created_at);
CREATE TABLE IF NOT EXISTS ontologies (
  tenant_id TEXT NOT NULL,
  id TEXT NOT NULL,
  version TEXT NOT NULL,
  content TEXT NOT NULL CHECK (json_valid(content)),
  metadata TEXT CHECK (metadata IS NULL OR json_valid(metadata)),
  content_hash TEXT NOT NULL CHECK (length(content_hash) = 64),
  audit_meta TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(audit_meta)),
  updated_at TEXT NOT NULL,
  PRIMARY KEY (tenant_id, id),
  UNIQUE (tenant_id, id, version)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS idx_ontologies_version ON ontologies (tenant_id, version)

-- name: schema_postgres_1
-- purpose: make the tables on PostgreSQL.
CREATE TABLE extraction_results (
  tenant_id TEXT NOT NULL,
  idempotency_key TEXT COLLATE "C" NOT NULL,
  ontology_id VARCHAR(2048) NOT NULL,
  ontology_version TEXT NOT NULL,
  text_hash TEXT NOT NULL CHECK (length(text_hash) = 64),
  extraction_params_hash TEXT NOT NULL CHECK (length(extraction_params_hash) = 64),
  entities JSON NOT NULL,
  relations JSON NOT NULL,
  rejected JSON NOT NULL,
  graph TEXT NOT NULL,
  metadata JSON NOT NULL,
  audit_meta JSON NOT NULL DEFAULT '{}',
  created_at TIMESTAMPTZ NOT NULL,
  expires_at TIMESTAMPTZ NOT NULL,
  accessed_at TIMESTAMPTZ NOT NULL,
  PRIMARY KEY (tenant_id, idempotency_key),
  UNIQUE (tenant_id, ontology_id, ontology_version, text_hash, extraction_params_hash)
);
CREATE INDEX idx_results_ontology ON extraction_results (tenant_id, ontology_id);
CREATE INDEX idx_results_expires ON extraction_results (expires_at);
CREATE TABLE execution_handles (
  tenant_id TEXT NOT NULL,
  idempotency_key TEXT COLLATE "C" NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('running', 'completed', 'failed')),
  result JSON,
  error JSON,
  audit_meta JSON NOT NULL DEFAULT '{}',
  started_at TIMESTAMPTZ NOT NULL,
  completed_at TIMESTAMPTZ,
  PRIMARY KEY (tenant_id, idempotency_key)
);
CREATE INDEX idx_handles_status ON execution_handles (tenant_id, status);
CREATE INDEX idx_handles_started ON execution_handles (started_at);
CREATE TABLE extraction_audit_log (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  tenant_id TEXT NOT NULL,
  idempotency_key TEXT COLLATE "C" NOT NULL,
  ontology_id VARCHAR(2048) NOT NULL,
  event_type TEXT NOT NULL CHECK (event_type IN (
    'extraction_started', 'extraction_completed', 'extraction_failed', 'cache_hit', 'cache_miss',
    'concurrent_deduplicated', 'ontology_updated', 'result_removed'
  )),
  metadata JSON NOT NULL,
  audit_meta JSON NOT NULL DEFAULT '{}',
  created_at TIMESTAMPTZ NOT NULL
);
CREATE INDEX idx_audit_idempotency_key ON extraction_audit_log (tenant_id, idempotency_key);
CREATE INDEX idx_audit_ontology ON extraction_audit_log (tenant_id, ontology_id);
CREATE INDEX idx_audit_created ON extraction_audit_log (created_at);
CREATE TABLE ontologies (
  tenant_id TEXT NOT NULL,
  id VARCHAR(2048) NOT NULL,
  version TEXT NOT NULL,
  content JSON NOT NULL,
  metadata JSON,
  content_hash TEXT NOT NULL CHECK (length(content_hash) = 64),
  audit_meta JSON NOT NULL DEFAULT '{}',
  updated_at TIMESTAMPTZ NOT NULL,
  PRIMARY KEY (tenant_id, id),
  UNIQUE (tenant_id, id, version)
);
CREATE INDEX idx_ontologies_version ON ontologies (tenant_id, version)

-- name: save_result
-- purpose: keep a complete result; the same work done again replaces it.
INSERT INTO extraction_results (
  tenant_id, idempotency_key, ontology_id, ontology_version, text_hash, extraction_params_hash,
  entities, relations, rejected, graph, metadata, audit_meta, created_at, expires_at, accessed_at
) VALUES (
  :tenant, :key, :ontology_id, :ontology_version, :text_hash, :params_hash,
  :entities, :relations, :rejected, :graph, :metadata, :audit, :now, :expires_at, :now
) ON CONFLICT (tenant_id, idempotency_key) DO UPDATE SET
  entities = excluded.entities, relations = excluded.relations, rejected = excluded.rejected,
  graph = excluded.graph, metadata = excluded.metadata, created_at = excluded.created_at,
  expires_at = excluded.expires_at, accessed_at = excluded.accessed_at

-- name: load_result
-- purpose: a result that has not expired.
SELECT CAST(entities AS TEXT), CAST(relations AS TEXT), CAST(rejected AS TEXT), graph, CAST(metadata AS TEXT)
FROM extraction_results
WHERE tenant_id = :tenant AND idempotency_key = :key AND expires_at > :now

-- name: find_keys
-- purpose: the keys of kept results that begin with something.
SELECT idempotency_key FROM extraction_results
WHERE tenant_id = :tenant AND idempotency_key >= :first AND idempotency_key < :beyond AND expires_at > :now
ORDER BY idempotency_key LIMIT 100

-- name: touch_result
-- purpose: note that a result was used.
UPDATE extraction_results SET accessed_at = :now WHERE tenant_id = :tenant AND idempotency_key = :key

-- name: remove_result
-- purpose: delete one result.
DELETE FROM extraction_results WHERE tenant_id = :tenant AND idempotency_key = :key

-- name: remove_handle
-- purpose: delete one execution handle.
DELETE FROM execution_handles WHERE tenant_id = :tenant AND idempotency_key = :key

-- name: remove_of_ontology
-- purpose: delete every result of an ontology but those of its new version.
DELETE FROM extraction_results
WHERE tenant_id = :tenant AND ontology_id = :ontology_id AND ontology_version <> :new_version

-- name: remove_expired
-- purpose: delete results whose time is over, one batch.
DELETE FROM extraction_results WHERE (tenant_id, idempotency_key) IN (
  SELECT tenant_id, idempotency_key FROM extraction_results WHERE expires_at <= :now LIMIT 1000
)

-- name: begin_handle
-- purpose: an execution begins, or begins again.
INSERT INTO execution_handles (tenant_id, idempotency_key, status, audit_meta, started_at)
VALUES (:tenant, :key, 'running', :audit, :now)
ON CONFLICT (tenant_id, idempotency_key) DO UPDATE SET
  status = 'running', result = NULL, error = NULL, started_at = excluded.started_at, completed_at = NULL

-- name: end_handle
-- purpose: an execution ended, with a result or an error.
UPDATE execution_handles SET status = :status, result = :result, error = :error, completed_at = :now
WHERE tenant_id = :tenant AND idempotency_key = :key

-- name: log
-- purpose: one line of the audit log.
INSERT INTO extraction_audit_log (
  tenant_id, idempotency_key, ontology_id, event_type, metadata, audit_meta, created_at
) VALUES (:tenant, :key, :ontology_id, :event_type, :metadata, :audit, :now)

-- name: save_ontology
-- purpose: the content of an ontology's present version.
INSERT INTO ontologies (tenant_id, id, version, content, metadata, content_hash, audit_meta, updated_at)
VALUES (:tenant, :id, :version, :content, :metadata, :content_hash, :audit, :now)
ON CONFLICT (tenant_id, id) DO UPDATE SET
  version = excluded.version, content = excluded.content, metadata = excluded.metadata,
  content_hash = excluded.content_hash, updated_at = excluded.updated_at
WHERE ontologies.version <> excluded.version

-- name: remove_ontology
-- purpose: delete the content of an ontology: of one version, or of any where that is empty.
DELETE FROM ontologies WHERE tenant_id = :tenant AND id = :id AND :version IN ('', version)

-- name: remove_ontology_before
-- purpose: delete the content of an ontology unless it is the new version's.
DELETE FROM ontologies WHERE tenant_id = :tenant AND id = :id AND version <> :new_version

-- name: ontology_version
-- purpose: the version of an ontology that is kept.
SELECT version FROM ontologies WHERE tenant_id = :tenant AND id = :id
