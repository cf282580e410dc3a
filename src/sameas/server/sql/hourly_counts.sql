-- What was counted of calls, hour by hour, kept for thirty days. An hour is its first second since 1970.

-- name: schema_sqlite_1
-- purpose: make the table on SQLite.
CREATE TABLE hourly_counts (
  space TEXT NOT NULL,
  scope TEXT NOT NULL,
  hour INTEGER NOT NULL,
  calls INTEGER NOT NULL,
  hits INTEGER NOT NULL,
  shared INTEGER NOT NULL,
  errors INTEGER NOT NULL,
  waits INTEGER NOT NULL,
  waited_ms INTEGER NOT NULL,
  pruned INTEGER NOT NULL,
  forgotten INTEGER NOT NULL,
  PRIMARY KEY (space, scope, hour)
) WITHOUT ROWID;
CREATE INDEX idx_hourly_counts_hour ON hourly_counts (hour)

-- name: schema_postgres_1
-- purpose: make the table on PostgreSQL.
CREATE TABLE hourly_counts (
  space TEXT COLLATE "C" NOT NULL,
  scope TEXT COLLATE "C" NOT NULL,
  hour BIGINT NOT NULL,
  calls BIGINT NOT NULL,
  hits BIGINT NOT NULL,
  shared BIGINT NOT NULL,
  errors BIGINT NOT NULL,
  waits BIGINT NOT NULL,
  waited_ms BIGINT NOT NULL,
  pruned BIGINT NOT NULL,
  forgotten BIGINT NOT NULL,
  PRIMARY KEY (space, scope, hour)
);
CREATE INDEX idx_hourly_counts_hour ON hourly_counts (hour)

-- name: add
-- purpose: add what was counted since the last time; other processes add to the same row.
INSERT INTO hourly_counts (
  space, scope, hour, calls, hits, shared, errors, waits, waited_ms, pruned, forgotten
) VALUES (
  :space, :scope, :hour, :calls, :hits, :shared, :errors, :waits, :waited_ms, :pruned, :forgotten
) ON CONFLICT (space, scope, hour) DO UPDATE SET
  calls = hourly_counts.calls + excluded.calls, hits = hourly_counts.hits + excluded.hits,
  shared = hourly_counts.shared + excluded.shared, errors = hourly_counts.errors + excluded.errors,
  waits = hourly_counts.waits + excluded.waits, waited_ms = hourly_counts.waited_ms + excluded.waited_ms,
  pruned = hourly_counts.pruned + excluded.pruned, forgotten = hourly_counts.forgotten + excluded.forgotten

-- name: of_space
-- purpose: the counts of a space since an hour, oldest first.
SELECT scope, hour, calls, hits, shared, errors, waits, waited_ms, pruned, forgotten FROM hourly_counts
WHERE space = :space AND hour >= :since ORDER BY hour, scope

-- name: remove_old
-- purpose: delete what is older than is kept.
DELETE FROM hourly_counts WHERE hour < :before
