-- Collections: documents, what each of them says, the things that are one, and what people decided. Every row belongs to the
-- number of a collection. `atom`: what several documents name alike and describe without conflict, the unit of resolution.

-- name: schema_sqlite_1
-- purpose: make the tables on SQLite.
CREATE TABLE sameas_collections (
  number INTEGER PRIMARY KEY,
  collection_id TEXT NOT NULL UNIQUE CHECK (length(collection_id) = 36),
  tenant TEXT NOT NULL,
  name TEXT NOT NULL CHECK (length(name) > 0),
  base TEXT NOT NULL,
  ontology_id TEXT NOT NULL,
  ontology_version TEXT NOT NULL,
  ontology BLOB NOT NULL,
  ontology_source TEXT NOT NULL,
  salt BLOB NOT NULL,
  created_at TEXT NOT NULL,
  created_by TEXT NOT NULL,
  revision INTEGER NOT NULL DEFAULT 0,
  next_id INTEGER NOT NULL DEFAULT 1,
  documents INTEGER NOT NULL DEFAULT 0,
  entities INTEGER NOT NULL DEFAULT 0,
  claims INTEGER NOT NULL DEFAULT 0,
  UNIQUE (tenant, name)
);
CREATE TABLE sameas_collection_members (
  collection INTEGER NOT NULL REFERENCES sameas_collections (number) ON DELETE CASCADE,
  principal TEXT NOT NULL,
  role TEXT NOT NULL CHECK (role IN ('reader', 'contributor', 'curator', 'owner')),
  PRIMARY KEY (collection, principal)
) WITHOUT ROWID;
CREATE TABLE sameas_collection_documents (
  collection INTEGER NOT NULL,
  id INTEGER NOT NULL,
  digest TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('text', 'known')),
  status TEXT NOT NULL CHECK (status IN ('complete', 'partial')),
  run TEXT NOT NULL,
  added_at TEXT NOT NULL,
  entities INTEGER NOT NULL,
  claims INTEGER NOT NULL,
  PRIMARY KEY (collection, id),
  UNIQUE (collection, digest)
) WITHOUT ROWID;
CREATE TABLE sameas_collection_sources (
  collection INTEGER NOT NULL,
  name TEXT NOT NULL,
  document INTEGER,
  status TEXT NOT NULL CHECK (status IN ('waiting', 'complete', 'partial', 'failed')),
  path TEXT NOT NULL,
  error TEXT NOT NULL,
  media_type TEXT NOT NULL,
  title TEXT NOT NULL,
  size INTEGER NOT NULL,
  source_time TEXT NOT NULL,
  read_at TEXT NOT NULL,
  folder TEXT NOT NULL,
  content BLOB,
  options TEXT NOT NULL,
  PRIMARY KEY (collection, name)
) WITHOUT ROWID;
CREATE INDEX ix_collection_sources_document ON sameas_collection_sources (collection, document);
CREATE INDEX ix_collection_sources_status ON sameas_collection_sources (collection, status);
CREATE INDEX ix_collection_sources_waiting ON sameas_collection_sources (status) WHERE status = 'waiting';
CREATE TABLE sameas_collection_nodes (
  collection INTEGER NOT NULL,
  id INTEGER NOT NULL,
  document INTEGER NOT NULL,
  atom INTEGER NOT NULL,
  local_id TEXT NOT NULL,
  name TEXT NOT NULL,
  individual TEXT NOT NULL,
  known TEXT NOT NULL,
  aliases TEXT NOT NULL,
  types TEXT NOT NULL,
  mentions TEXT NOT NULL,
  PRIMARY KEY (collection, id)
) WITHOUT ROWID;
CREATE INDEX ix_collection_nodes_document ON sameas_collection_nodes (collection, document);
CREATE INDEX ix_collection_nodes_atom ON sameas_collection_nodes (collection, atom, document);
CREATE TABLE sameas_collection_claims (
  collection INTEGER NOT NULL,
  id INTEGER NOT NULL,
  document INTEGER NOT NULL,
  subject_node INTEGER NOT NULL,
  subject_atom INTEGER NOT NULL,
  subject_token INTEGER NOT NULL,
  predicate TEXT NOT NULL,
  object_node INTEGER,
  object_atom INTEGER,
  object_token INTEGER NOT NULL,
  value TEXT NOT NULL,
  datatype TEXT NOT NULL,
  unit TEXT NOT NULL,
  confidence REAL NOT NULL,
  status TEXT NOT NULL,
  evidence TEXT NOT NULL,
  PRIMARY KEY (collection, id)
) WITHOUT ROWID;
CREATE INDEX ix_collection_claims_document ON sameas_collection_claims (collection, document);
CREATE INDEX ix_collection_claims_subject ON sameas_collection_claims (collection, subject_atom, predicate, object_token);
CREATE INDEX ix_collection_claims_object ON sameas_collection_claims (collection, object_atom, predicate, subject_token)
  WHERE object_atom IS NOT NULL;
CREATE TABLE sameas_collection_atoms (
  collection INTEGER NOT NULL,
  id INTEGER NOT NULL,
  digest TEXT NOT NULL,
  name_key TEXT NOT NULL,
  family TEXT NOT NULL,
  signature TEXT NOT NULL,
  scope INTEGER NOT NULL,
  nodes INTEGER NOT NULL,
  entity INTEGER NOT NULL,
  PRIMARY KEY (collection, id)
) WITHOUT ROWID;
CREATE UNIQUE INDEX ux_collection_atoms_digest ON sameas_collection_atoms (collection, digest);
CREATE INDEX ix_collection_atoms_name ON sameas_collection_atoms (collection, name_key, family);
CREATE INDEX ix_collection_atoms_entity ON sameas_collection_atoms (collection, entity);
CREATE TABLE sameas_collection_names (
  collection INTEGER NOT NULL,
  atom INTEGER NOT NULL,
  alias INTEGER NOT NULL,
  name TEXT NOT NULL,
  uses INTEGER NOT NULL,
  PRIMARY KEY (collection, atom, alias, name)
) WITHOUT ROWID;
CREATE TABLE sameas_collection_types (
  collection INTEGER NOT NULL,
  atom INTEGER NOT NULL,
  type TEXT NOT NULL,
  uses INTEGER NOT NULL,
  PRIMARY KEY (collection, atom, type)
) WITHOUT ROWID;
CREATE TABLE sameas_collection_keys (
  collection INTEGER NOT NULL,
  hash INTEGER NOT NULL,
  atom INTEGER NOT NULL,
  PRIMARY KEY (collection, hash, atom)
) WITHOUT ROWID;
CREATE TABLE sameas_collection_namesakes (
  collection INTEGER NOT NULL,
  name_key TEXT NOT NULL,
  family TEXT NOT NULL,
  PRIMARY KEY (collection, name_key, family)
) WITHOUT ROWID;
CREATE TABLE sameas_collection_pairs (
  collection INTEGER NOT NULL,
  low INTEGER NOT NULL,
  high INTEGER NOT NULL,
  logit REAL NOT NULL,
  apart INTEGER NOT NULL,
  reasons TEXT NOT NULL,
  PRIMARY KEY (collection, low, high)
) WITHOUT ROWID;
CREATE INDEX ix_collection_pairs_high ON sameas_collection_pairs (collection, high, low);
CREATE TABLE sameas_collection_entities (
  collection INTEGER NOT NULL,
  number INTEGER NOT NULL,
  id TEXT NOT NULL,
  name TEXT NOT NULL,
  merged_into INTEGER,
  PRIMARY KEY (collection, number)
) WITHOUT ROWID;
CREATE UNIQUE INDEX ux_collection_entities_id ON sameas_collection_entities (collection, id);
CREATE INDEX ix_collection_entities_name ON sameas_collection_entities (collection, name, id);
CREATE INDEX ix_collection_entities_merged ON sameas_collection_entities (collection, merged_into)
  WHERE merged_into IS NOT NULL;
CREATE TABLE sameas_collection_decisions (
  collection INTEGER NOT NULL,
  id TEXT NOT NULL,
  verdict TEXT NOT NULL CHECK (verdict IN ('same', 'different')),
  a_entity TEXT NOT NULL,
  b_entity TEXT NOT NULL,
  a_name TEXT NOT NULL,
  b_name TEXT NOT NULL,
  decided_by TEXT NOT NULL,
  reason TEXT NOT NULL,
  decided_at TEXT NOT NULL,
  undone_at TEXT NOT NULL,
  undone_by TEXT NOT NULL,
  PRIMARY KEY (collection, id)
) WITHOUT ROWID;
CREATE TABLE sameas_collection_anchors (
  collection INTEGER NOT NULL,
  decision TEXT NOT NULL,
  side TEXT NOT NULL CHECK (side IN ('a', 'b')),
  place INTEGER NOT NULL,
  digest TEXT NOT NULL,
  name_key TEXT NOT NULL,
  family TEXT NOT NULL,
  PRIMARY KEY (collection, decision, side, place)
) WITHOUT ROWID;
CREATE INDEX ix_collection_anchors_name ON sameas_collection_anchors (collection, name_key, family);
CREATE TABLE sameas_collection_changes (
  collection INTEGER NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('entity', 'document')),
  id TEXT NOT NULL,
  revision INTEGER NOT NULL,
  PRIMARY KEY (collection, kind, id)
) WITHOUT ROWID;
CREATE INDEX ix_collection_changes_revision ON sameas_collection_changes (collection, revision);
CREATE TABLE sameas_collection_erased (
  collection INTEGER NOT NULL,
  digest TEXT NOT NULL,
  erased_at TEXT NOT NULL,
  revision INTEGER NOT NULL,
  PRIMARY KEY (collection, digest)
) WITHOUT ROWID;
CREATE TABLE sameas_collection_audit (
  collection INTEGER NOT NULL,
  id TEXT NOT NULL,
  at TEXT NOT NULL,
  done_by TEXT NOT NULL,
  action TEXT NOT NULL,
  detail TEXT NOT NULL,
  PRIMARY KEY (collection, id)
) WITHOUT ROWID

-- name: schema_sqlite_2
-- purpose: tell SQLite beforehand that a collection has many rows of everything, or it would go through all of them.
ANALYZE sqlite_schema;
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
  ('sameas_collection_pairs', 'ix_collection_pairs_high', '1000000 1000000 5 1'),
  ('sameas_collection_pairs', 'sameas_collection_pairs', '1000000 1000000 5 1'),
  ('sameas_collection_keys', 'sameas_collection_keys', '1000000 1000000 2 1'),
  ('sameas_collection_types', 'sameas_collection_types', '1000000 1000000 1 1'),
  ('sameas_collection_names', 'sameas_collection_names', '1000000 1000000 2 2 1'),
  ('sameas_collection_documents', 'sqlite_autoindex_sameas_collection_documents_2', '1000000 1000000 1'),
  ('sameas_collection_documents', 'sameas_collection_documents', '1000000 1000000 1'),
  ('sameas_collection_sources', 'ix_collection_sources_status', '1000000 1000000 100000'),
  ('sameas_collection_sources', 'ix_collection_sources_document', '1000000 1000000 2'),
  ('sameas_collection_sources', 'sameas_collection_sources', '1000000 1000000 1'),
  ('sameas_collection_nodes', 'ix_collection_nodes_atom', '1000000 1000000 5 1'),
  ('sameas_collection_nodes', 'ix_collection_nodes_document', '1000000 1000000 50'),
  ('sameas_collection_nodes', 'sameas_collection_nodes', '1000000 1000000 1'),
  ('sameas_collection_changes', 'ix_collection_changes_revision', '1000000 1000000 50'),
  ('sameas_collection_changes', 'sameas_collection_changes', '1000000 1000000 500000 1'),
  ('sameas_collection_entities', 'ix_collection_entities_merged', '1000000 1000000 2'),
  ('sameas_collection_entities', 'ix_collection_entities_name', '1000000 1000000 2 1'),
  ('sameas_collection_entities', 'ux_collection_entities_id', '1000000 1000000 1'),
  ('sameas_collection_entities', 'sameas_collection_entities', '1000000 1000000 1'),
  ('sameas_collection_claims', 'ix_collection_claims_object', '1000000 1000000 10 3 2'),
  ('sameas_collection_claims', 'ix_collection_claims_subject', '1000000 1000000 10 3 2'),
  ('sameas_collection_claims', 'ix_collection_claims_document', '1000000 1000000 100'),
  ('sameas_collection_claims', 'sameas_collection_claims', '1000000 1000000 1'),
  ('sameas_collection_atoms', 'ix_collection_atoms_entity', '1000000 1000000 3'),
  ('sameas_collection_atoms', 'ix_collection_atoms_name', '1000000 1000000 3 3'),
  ('sameas_collection_atoms', 'ux_collection_atoms_digest', '1000000 1000000 1'),
  ('sameas_collection_atoms', 'sameas_collection_atoms', '1000000 1000000 1'),
  ('sameas_collection_anchors', 'sameas_collection_anchors', '1000000 1000000 4 2 1'),
  ('sameas_collection_anchors', 'ix_collection_anchors_name', '1000000 1000000 2 2'),
  ('sameas_collection_decisions', 'sameas_collection_decisions', '1000000 1000000 1');
ANALYZE sqlite_schema

-- name: schema_postgres_1
-- purpose: make the tables on PostgreSQL.
CREATE TABLE sameas_collections (
  number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  collection_id TEXT NOT NULL UNIQUE CHECK (length(collection_id) = 36),
  tenant TEXT NOT NULL,
  name TEXT COLLATE "C" NOT NULL CHECK (length(name) > 0),
  base TEXT NOT NULL,
  ontology_id TEXT NOT NULL,
  ontology_version TEXT NOT NULL,
  ontology BYTEA NOT NULL,
  ontology_source TEXT NOT NULL,
  salt BYTEA NOT NULL,
  created_at TEXT NOT NULL,
  created_by TEXT NOT NULL,
  revision BIGINT NOT NULL DEFAULT 0,
  next_id BIGINT NOT NULL DEFAULT 1,
  documents BIGINT NOT NULL DEFAULT 0,
  entities BIGINT NOT NULL DEFAULT 0,
  claims BIGINT NOT NULL DEFAULT 0,
  UNIQUE (tenant, name)
);
CREATE TABLE sameas_collection_members (
  collection BIGINT NOT NULL REFERENCES sameas_collections (number) ON DELETE CASCADE,
  principal TEXT NOT NULL,
  role TEXT NOT NULL CHECK (role IN ('reader', 'contributor', 'curator', 'owner')),
  PRIMARY KEY (collection, principal)
);
CREATE TABLE sameas_collection_documents (
  collection BIGINT NOT NULL,
  id BIGINT NOT NULL,
  digest TEXT COLLATE "C" NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('text', 'known')),
  status TEXT NOT NULL CHECK (status IN ('complete', 'partial')),
  run TEXT NOT NULL,
  added_at TEXT NOT NULL,
  entities BIGINT NOT NULL,
  claims BIGINT NOT NULL,
  PRIMARY KEY (collection, id),
  UNIQUE (collection, digest)
);
CREATE TABLE sameas_collection_sources (
  collection BIGINT NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  document BIGINT,
  status TEXT NOT NULL CHECK (status IN ('waiting', 'complete', 'partial', 'failed')),
  path TEXT NOT NULL,
  error TEXT NOT NULL,
  media_type TEXT NOT NULL,
  title TEXT NOT NULL,
  size BIGINT NOT NULL,
  source_time TEXT NOT NULL,
  read_at TEXT NOT NULL,
  folder TEXT NOT NULL,
  content BYTEA,
  options TEXT NOT NULL,
  PRIMARY KEY (collection, name)
);
CREATE INDEX ix_collection_sources_document ON sameas_collection_sources (collection, document);
CREATE INDEX ix_collection_sources_status ON sameas_collection_sources (collection, status);
CREATE INDEX ix_collection_sources_waiting ON sameas_collection_sources (status) WHERE status = 'waiting';
CREATE TABLE sameas_collection_nodes (
  collection BIGINT NOT NULL,
  id BIGINT NOT NULL,
  document BIGINT NOT NULL,
  atom BIGINT NOT NULL,
  local_id TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  individual TEXT NOT NULL,
  known TEXT NOT NULL,
  aliases TEXT NOT NULL,
  types TEXT NOT NULL,
  mentions TEXT NOT NULL,
  PRIMARY KEY (collection, id)
);
CREATE INDEX ix_collection_nodes_document ON sameas_collection_nodes (collection, document);
CREATE INDEX ix_collection_nodes_atom ON sameas_collection_nodes (collection, atom, document);
CREATE TABLE sameas_collection_claims (
  collection BIGINT NOT NULL,
  id BIGINT NOT NULL,
  document BIGINT NOT NULL,
  subject_node BIGINT NOT NULL,
  subject_atom BIGINT NOT NULL,
  subject_token BIGINT NOT NULL,
  predicate TEXT NOT NULL,
  object_node BIGINT,
  object_atom BIGINT,
  object_token BIGINT NOT NULL,
  value TEXT NOT NULL,
  datatype TEXT NOT NULL,
  unit TEXT NOT NULL,
  confidence DOUBLE PRECISION NOT NULL,
  status TEXT NOT NULL,
  evidence TEXT NOT NULL,
  PRIMARY KEY (collection, id)
);
CREATE INDEX ix_collection_claims_document ON sameas_collection_claims (collection, document);
CREATE INDEX ix_collection_claims_subject ON sameas_collection_claims (collection, subject_atom, predicate, object_token);
CREATE INDEX ix_collection_claims_object ON sameas_collection_claims (collection, object_atom, predicate, subject_token)
  WHERE object_atom IS NOT NULL;
CREATE TABLE sameas_collection_atoms (
  collection BIGINT NOT NULL,
  id BIGINT NOT NULL,
  digest TEXT COLLATE "C" NOT NULL,
  name_key TEXT COLLATE "C" NOT NULL,
  family TEXT NOT NULL,
  signature TEXT NOT NULL,
  scope BIGINT NOT NULL,
  nodes BIGINT NOT NULL,
  entity BIGINT NOT NULL,
  PRIMARY KEY (collection, id)
);
CREATE UNIQUE INDEX ux_collection_atoms_digest ON sameas_collection_atoms (collection, digest);
CREATE INDEX ix_collection_atoms_name ON sameas_collection_atoms (collection, name_key, family);
CREATE INDEX ix_collection_atoms_entity ON sameas_collection_atoms (collection, entity);
CREATE TABLE sameas_collection_names (
  collection BIGINT NOT NULL,
  atom BIGINT NOT NULL,
  alias BIGINT NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  uses BIGINT NOT NULL,
  PRIMARY KEY (collection, atom, alias, name)
);
CREATE TABLE sameas_collection_types (
  collection BIGINT NOT NULL,
  atom BIGINT NOT NULL,
  type TEXT COLLATE "C" NOT NULL,
  uses BIGINT NOT NULL,
  PRIMARY KEY (collection, atom, type)
);
CREATE TABLE sameas_collection_keys (
  collection BIGINT NOT NULL,
  hash BIGINT NOT NULL,
  atom BIGINT NOT NULL,
  PRIMARY KEY (collection, hash, atom)
);
CREATE TABLE sameas_collection_namesakes (
  collection BIGINT NOT NULL,
  name_key TEXT COLLATE "C" NOT NULL,
  family TEXT NOT NULL,
  PRIMARY KEY (collection, name_key, family)
);
CREATE TABLE sameas_collection_pairs (
  collection BIGINT NOT NULL,
  low BIGINT NOT NULL,
  high BIGINT NOT NULL,
  logit DOUBLE PRECISION NOT NULL,
  apart BIGINT NOT NULL,
  reasons TEXT NOT NULL,
  PRIMARY KEY (collection, low, high)
);
CREATE INDEX ix_collection_pairs_high ON sameas_collection_pairs (collection, high, low);
CREATE TABLE sameas_collection_entities (
  collection BIGINT NOT NULL,
  number BIGINT NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  merged_into BIGINT,
  PRIMARY KEY (collection, number)
);
CREATE UNIQUE INDEX ux_collection_entities_id ON sameas_collection_entities (collection, id);
CREATE INDEX ix_collection_entities_name ON sameas_collection_entities (collection, name, id);
CREATE INDEX ix_collection_entities_merged ON sameas_collection_entities (collection, merged_into)
  WHERE merged_into IS NOT NULL;
CREATE TABLE sameas_collection_decisions (
  collection BIGINT NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  verdict TEXT NOT NULL CHECK (verdict IN ('same', 'different')),
  a_entity TEXT NOT NULL,
  b_entity TEXT NOT NULL,
  a_name TEXT NOT NULL,
  b_name TEXT NOT NULL,
  decided_by TEXT NOT NULL,
  reason TEXT NOT NULL,
  decided_at TEXT NOT NULL,
  undone_at TEXT NOT NULL,
  undone_by TEXT NOT NULL,
  PRIMARY KEY (collection, id)
);
CREATE TABLE sameas_collection_anchors (
  collection BIGINT NOT NULL,
  decision TEXT NOT NULL,
  side TEXT NOT NULL CHECK (side IN ('a', 'b')),
  place BIGINT NOT NULL,
  digest TEXT COLLATE "C" NOT NULL,
  name_key TEXT COLLATE "C" NOT NULL,
  family TEXT NOT NULL,
  PRIMARY KEY (collection, decision, side, place)
);
CREATE INDEX ix_collection_anchors_name ON sameas_collection_anchors (collection, name_key, family);
CREATE TABLE sameas_collection_changes (
  collection BIGINT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('entity', 'document')),
  id TEXT COLLATE "C" NOT NULL,
  revision BIGINT NOT NULL,
  PRIMARY KEY (collection, kind, id)
);
CREATE INDEX ix_collection_changes_revision ON sameas_collection_changes (collection, revision);
CREATE TABLE sameas_collection_erased (
  collection BIGINT NOT NULL,
  digest TEXT COLLATE "C" NOT NULL,
  erased_at TEXT NOT NULL,
  revision BIGINT NOT NULL,
  PRIMARY KEY (collection, digest)
);
CREATE TABLE sameas_collection_audit (
  collection BIGINT NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  at TEXT NOT NULL,
  done_by TEXT NOT NULL,
  action TEXT NOT NULL,
  detail TEXT NOT NULL,
  PRIMARY KEY (collection, id)
)

-- name: schema_postgres_2
-- purpose: the same number of steps as on SQLite.
SELECT 1

-- name: add_collection
-- purpose: a new collection.
INSERT INTO sameas_collections
  (collection_id, tenant, name, base, ontology_id, ontology_version, ontology, ontology_source, salt, created_at,
   created_by)
VALUES
  (:collection_id, :tenant, :name, :base, :ontology_id, :ontology_version, :ontology, :ontology_source, :salt, :now,
   :created_by)
RETURNING number

-- name: collections
-- purpose: those of a tenant after a name, with the role of a principal.
SELECT c.number, c.collection_id, c.name, c.base, c.ontology_id, c.ontology_version, c.created_at, c.revision, c.documents,
  c.entities, c.claims, m.role
FROM sameas_collections c
LEFT JOIN sameas_collection_members m ON m.collection = c.number AND m.principal = :principal
WHERE c.tenant = :tenant AND c.name > :after ORDER BY c.name

-- name: collection
-- purpose: one, by its name or id, with the role of a principal.
SELECT c.number, c.collection_id, c.name, c.base, c.ontology_id, c.ontology_version, c.created_at, c.revision, c.documents,
  c.entities, c.claims, m.role
FROM sameas_collections c
LEFT JOIN sameas_collection_members m ON m.collection = c.number AND m.principal = :principal
WHERE c.tenant = :tenant AND (c.name = :named OR c.collection_id = :named)
ORDER BY CASE WHEN c.collection_id = :named THEN 0 ELSE 1 END

-- name: collection_info
-- purpose: how much is in one.
SELECT number, collection_id, name, base, ontology_id, ontology_version, created_at, revision, documents, entities, claims,
  NULL
FROM sameas_collections WHERE number = :collection

-- name: collection_ontology
-- purpose: the ontology of one.
SELECT ontology, salt, ontology_source FROM sameas_collections WHERE number = :collection

-- name: is_collection
-- purpose: whether a number still stands for a collection; SQLite gives it to another one afterwards.
SELECT 1 FROM sameas_collections WHERE number = :collection AND collection_id = :id

-- name: remove_collection
-- purpose: the row of a collection; its members go with it.
DELETE FROM sameas_collections WHERE number = :collection

-- name: lock_collection
-- purpose: let nobody else write to it until the transaction ends.
UPDATE sameas_collections SET next_id = next_id WHERE number = :collection AND collection_id = :id
RETURNING revision, next_id

-- name: advance
-- purpose: note what a change has used and done.
UPDATE sameas_collections SET revision = :revision, next_id = :next_id, documents = documents + :documents,
  entities = entities + :entities, claims = claims + :claims
WHERE number = :collection

-- name: members
-- purpose: who may do what.
SELECT principal, role FROM sameas_collection_members WHERE collection = :collection ORDER BY principal

-- name: put_member
-- purpose: give a role.
INSERT INTO sameas_collection_members (collection, principal, role) VALUES (:collection, :principal, :role)
ON CONFLICT (collection, principal) DO UPDATE SET role = excluded.role

-- name: remove_member
-- purpose: take a role away.
DELETE FROM sameas_collection_members WHERE collection = :collection AND principal = :principal

-- name: note_change
-- purpose: what was touched last in which revision.
INSERT INTO sameas_collection_changes (collection, kind, id, revision) VALUES (:collection, :kind, :id, :revision)
ON CONFLICT (collection, kind, id) DO UPDATE SET revision = excluded.revision

-- name: changes
-- purpose: what was touched after a revision.
SELECT kind, id FROM sameas_collection_changes WHERE collection = :collection AND revision > :revision ORDER BY revision, kind, id

-- name: add_audit
-- purpose: who did what, and why.
INSERT INTO sameas_collection_audit (collection, id, at, done_by, action, detail)
VALUES (:collection, :id, :now, :done_by, :action, :detail)

-- name: audit
-- purpose: what was done, newest first.
SELECT id, at, done_by, action, detail FROM sameas_collection_audit WHERE collection = :collection ORDER BY id DESC

-- name: source
-- purpose: one name of a document.
SELECT document, status, source_time, path, error, media_type, title, size, read_at, folder, options
FROM sameas_collection_sources WHERE collection = :collection AND name = :name

-- name: put_source
-- purpose: a name and what it stands for.
INSERT INTO sameas_collection_sources
  (collection, name, document, status, path, error, media_type, title, size, source_time, read_at, folder, content, options)
VALUES
  (:collection, :name, :document, :status, :path, :error, :media_type, :title, :size, :source_time, :read_at, :folder,
   :content, :options)
ON CONFLICT (collection, name) DO UPDATE SET document = excluded.document, status = excluded.status, path = excluded.path,
  error = excluded.error, media_type = excluded.media_type, title = excluded.title, size = excluded.size,
  source_time = excluded.source_time, read_at = excluded.read_at, folder = excluded.folder, content = excluded.content,
  options = excluded.options

-- name: note_failure
-- purpose: why a source could not be read; what it stood for stays.
UPDATE sameas_collection_sources SET status = 'failed', error = :error, read_at = :read_at
WHERE collection = :collection AND name = :name

-- name: note_waiting
-- purpose: have what failed read again, where its content is here.
UPDATE sameas_collection_sources SET status = 'waiting', error = ''
WHERE collection = :collection AND status IN ('failed', 'partial') AND content IS NOT NULL

-- name: remove_source
-- purpose: take a name away.
DELETE FROM sameas_collection_sources WHERE collection = :collection AND name = :name

-- name: sources_of_document
-- purpose: the names of a document.
SELECT name, status, path, error, media_type, title, size, source_time, read_at
FROM sameas_collection_sources WHERE collection = :collection AND document = :document ORDER BY name

-- name: sources
-- purpose: names after a name, with the document that they stand for.
SELECT name, status, path, error, media_type, title, size, source_time, read_at, document, folder
FROM sameas_collection_sources WHERE collection = :collection AND name > :after ORDER BY name LIMIT :most

-- name: sources_of_status
-- purpose: the same, of one status.
SELECT name, status, path, error, media_type, title, size, source_time, read_at, document, folder
FROM sameas_collection_sources WHERE collection = :collection AND status = :status AND name > :after
ORDER BY name LIMIT :most

-- name: sources_of_folder
-- purpose: what was read from a folder.
SELECT name, status, size, source_time, document FROM sameas_collection_sources
WHERE collection = :collection AND folder = :folder ORDER BY name

-- name: count_statuses
-- purpose: how many names are how far.
SELECT status, count(*) FROM sameas_collection_sources WHERE collection = :collection GROUP BY status

-- name: waiting_collections
-- purpose: collections with something to read.
SELECT DISTINCT s.collection, c.tenant, c.collection_id FROM sameas_collection_sources s
JOIN sameas_collections c ON c.number = s.collection WHERE s.status = 'waiting'

-- name: waiting_sources
-- purpose: what is to be read.
SELECT name FROM sameas_collection_sources WHERE collection = :collection AND status = 'waiting' ORDER BY name LIMIT :most

-- name: waiting_source
-- purpose: one of them with its content.
SELECT content, media_type, path, title, source_time, size, options FROM sameas_collection_sources
WHERE collection = :collection AND name = :name AND status = 'waiting'

-- name: document_by_digest
-- purpose: a document by its content.
SELECT id, status, run, added_at, entities, claims FROM sameas_collection_documents
WHERE collection = :collection AND digest = :digest

-- name: document
-- purpose: a document by its number.
SELECT digest, status, run, added_at, entities, claims, kind FROM sameas_collection_documents
WHERE collection = :collection AND id = :document

-- name: documents
-- purpose: documents after a digest.
SELECT id, digest, status, run, added_at, entities, claims FROM sameas_collection_documents
WHERE collection = :collection AND digest > :after ORDER BY digest LIMIT :most

-- name: add_document
-- purpose: a text.
INSERT INTO sameas_collection_documents (collection, id, digest, kind, status, run, added_at, entities, claims)
VALUES (:collection, :document, :digest, :kind, :status, :run, :now, :entities, :claims)

-- name: remove_document
-- purpose: the row of a text.
DELETE FROM sameas_collection_documents WHERE collection = :collection AND id = :document

-- name: add_node
-- purpose: a thing in a document.
INSERT INTO sameas_collection_nodes
  (collection, id, document, atom, local_id, name, individual, known, aliases, types, mentions)
VALUES (:collection, :node, :document, :atom, :local_id, :name, :individual, :known, :aliases, :types, :mentions)

-- name: nodes_of_document
-- purpose: the things in a document.
SELECT id, atom, local_id, name, individual, known, aliases, types, mentions FROM sameas_collection_nodes
WHERE collection = :collection AND document = :document ORDER BY id

-- name: nodes_of_atom
-- purpose: where an atom is found.
SELECT id, document, name, aliases, types, mentions, known, individual FROM sameas_collection_nodes
WHERE collection = :collection AND atom = :atom ORDER BY document, id

-- name: remove_nodes
-- purpose: the things of a document.
DELETE FROM sameas_collection_nodes WHERE collection = :collection AND document = :document

-- name: move_node
-- purpose: a thing in a document belongs to another atom.
UPDATE sameas_collection_nodes SET atom = :atom WHERE collection = :collection AND id = :node

-- name: move_subjects
-- purpose: the same for what it says.
UPDATE sameas_collection_claims SET subject_atom = :atom
WHERE collection = :collection AND document = :document AND subject_node = :node

-- name: move_objects
-- purpose: the same for what is said of it.
UPDATE sameas_collection_claims SET object_atom = :atom
WHERE collection = :collection AND document = :document AND object_node = :node

-- name: add_claim
-- purpose: what a document says.
INSERT INTO sameas_collection_claims
  (collection, id, document, subject_node, subject_atom, subject_token, predicate, object_node, object_atom, object_token,
   value, datatype, unit, confidence, status, evidence)
VALUES
  (:collection, :claim, :document, :subject_node, :subject_atom, :subject_token, :predicate, :object_node, :object_atom,
   :object_token, :value, :datatype, :unit, :confidence, :status, :evidence)

-- name: claims_of_document
-- purpose: what a document says.
SELECT c.id, s.number, s.id, s.name, c.predicate, o.number, o.id, o.name, c.value, c.datatype, c.unit, c.confidence,
  c.evidence, c.document, c.subject_atom, c.object_atom
FROM sameas_collection_claims c
JOIN sameas_collection_atoms sa ON sa.collection = c.collection AND sa.id = c.subject_atom
JOIN sameas_collection_entities s ON s.collection = c.collection AND s.number = sa.entity
LEFT JOIN sameas_collection_atoms oa ON oa.collection = c.collection AND oa.id = c.object_atom
LEFT JOIN sameas_collection_entities o ON o.collection = c.collection AND o.number = oa.entity
WHERE c.collection = :collection AND c.document = :document ORDER BY c.id

-- name: claims_of_subject
-- purpose: what documents say of an atom.
SELECT c.id, s.number, s.id, s.name, c.predicate, o.number, o.id, o.name, c.value, c.datatype, c.unit, c.confidence,
  c.evidence, c.document, c.subject_atom, c.object_atom
FROM sameas_collection_claims c
JOIN sameas_collection_atoms sa ON sa.collection = c.collection AND sa.id = c.subject_atom
JOIN sameas_collection_entities s ON s.collection = c.collection AND s.number = sa.entity
LEFT JOIN sameas_collection_atoms oa ON oa.collection = c.collection AND oa.id = c.object_atom
LEFT JOIN sameas_collection_entities o ON o.collection = c.collection AND o.number = oa.entity
WHERE c.collection = :collection AND c.subject_atom = :atom ORDER BY c.predicate, c.object_token, c.id LIMIT :most

-- name: claims_of_object
-- purpose: where an atom is what something is connected with.
SELECT c.id, s.number, s.id, s.name, c.predicate, o.number, o.id, o.name, c.value, c.datatype, c.unit, c.confidence,
  c.evidence, c.document, c.subject_atom, c.object_atom
FROM sameas_collection_claims c
JOIN sameas_collection_atoms sa ON sa.collection = c.collection AND sa.id = c.subject_atom
JOIN sameas_collection_entities s ON s.collection = c.collection AND s.number = sa.entity
JOIN sameas_collection_atoms oa ON oa.collection = c.collection AND oa.id = c.object_atom
JOIN sameas_collection_entities o ON o.collection = c.collection AND o.number = oa.entity
WHERE c.collection = :collection AND c.object_atom = :atom ORDER BY c.predicate, c.subject_token, c.id LIMIT :most

-- name: remove_claims
-- purpose: what a document says.
DELETE FROM sameas_collection_claims WHERE collection = :collection AND document = :document

-- name: atom_by_digest
-- purpose: an atom by what it is.
SELECT id, digest, name_key, family, signature, scope, nodes, entity FROM sameas_collection_atoms
WHERE collection = :collection AND digest = :digest

-- name: atom
-- purpose: an atom by its number.
SELECT id, digest, name_key, family, signature, scope, nodes, entity FROM sameas_collection_atoms
WHERE collection = :collection AND id = :atom

-- name: atoms_of_name
-- purpose: the atoms of one name.
SELECT id, digest, name_key, family, signature, scope, nodes, entity FROM sameas_collection_atoms
WHERE collection = :collection AND name_key = :name_key AND family = :family ORDER BY id LIMIT :most

-- name: atoms_of_entity
-- purpose: the atoms that are one thing.
SELECT id, digest, name_key, family, signature, scope, nodes, entity FROM sameas_collection_atoms
WHERE collection = :collection AND entity = :entity ORDER BY id

-- name: add_atom
-- purpose: a new atom.
INSERT INTO sameas_collection_atoms (collection, id, digest, name_key, family, signature, scope, nodes, entity)
VALUES (:collection, :atom, :digest, :name_key, :family, :signature, :scope, 0, 0)

-- name: count_atom
-- purpose: so many more places, or fewer.
UPDATE sameas_collection_atoms SET nodes = nodes + :more WHERE collection = :collection AND id = :atom

-- name: set_entity
-- purpose: which thing an atom is.
UPDATE sameas_collection_atoms SET entity = :entity WHERE collection = :collection AND id = :atom

-- name: remove_atom
-- purpose: an atom that is nowhere any more.
DELETE FROM sameas_collection_atoms WHERE collection = :collection AND id = :atom

-- name: use_name
-- purpose: a name of an atom is used once more, or less.
INSERT INTO sameas_collection_names (collection, atom, alias, name, uses) VALUES (:collection, :atom, :alias, :name, :more)
ON CONFLICT (collection, atom, alias, name) DO UPDATE SET uses = sameas_collection_names.uses + excluded.uses

-- name: names_of_atom
-- purpose: the names of an atom.
SELECT alias, name, uses FROM sameas_collection_names WHERE collection = :collection AND atom = :atom AND uses > 0

-- name: names_and_types_of_atom
-- purpose: what an atom is called, as aliases and names, and said to be.
SELECT alias, name FROM sameas_collection_names WHERE collection = :collection AND atom = :atom AND uses > 0
UNION ALL SELECT 2, type FROM sameas_collection_types WHERE collection = :collection AND atom = :atom AND uses > 0

-- name: names_of_entity
-- purpose: the names of a thing, and how often each is used.
SELECT n.alias, n.name, CAST(sum(n.uses) AS INTEGER) FROM sameas_collection_atoms a
JOIN sameas_collection_names n ON n.collection = a.collection AND n.atom = a.id
WHERE a.collection = :collection AND a.entity = :entity AND n.uses > 0 GROUP BY n.alias, n.name

-- name: drop_unused_names
-- purpose: names of an atom that nobody uses any more.
DELETE FROM sameas_collection_names WHERE collection = :collection AND atom = :atom AND uses <= 0

-- name: use_type
-- purpose: a class of an atom is said once more, or less.
INSERT INTO sameas_collection_types (collection, atom, type, uses) VALUES (:collection, :atom, :type, :more)
ON CONFLICT (collection, atom, type) DO UPDATE SET uses = sameas_collection_types.uses + excluded.uses

-- name: types_of_atom
-- purpose: the classes of an atom.
SELECT type, uses FROM sameas_collection_types WHERE collection = :collection AND atom = :atom AND uses > 0

-- name: drop_unused_types
-- purpose: classes of an atom that nobody says any more.
DELETE FROM sameas_collection_types WHERE collection = :collection AND atom = :atom AND uses <= 0

-- name: add_key
-- purpose: an atom can be found under a key.
INSERT INTO sameas_collection_keys (collection, hash, atom) VALUES (:collection, :hash, :atom) ON CONFLICT DO NOTHING

-- name: remove_key
-- purpose: not any more.
DELETE FROM sameas_collection_keys WHERE collection = :collection AND hash = :hash AND atom = :atom

-- name: atoms_of_key
-- purpose: who is found under a key.
SELECT atom FROM sameas_collection_keys WHERE collection = :collection AND hash = :hash LIMIT :most

-- name: namesakes
-- purpose: whether several things are known to have a name.
SELECT 1 FROM sameas_collection_namesakes WHERE collection = :collection AND name_key = :name_key AND family = :family

-- name: add_namesakes
-- purpose: several things have the name.
INSERT INTO sameas_collection_namesakes (collection, name_key, family) VALUES (:collection, :name_key, :family)
ON CONFLICT DO NOTHING

-- name: remove_namesakes
-- purpose: only one has it.
DELETE FROM sameas_collection_namesakes WHERE collection = :collection AND name_key = :name_key AND family = :family

-- name: any_namesakes
-- purpose: whether two atoms of a name are apart.
SELECT 1 FROM sameas_collection_atoms a
JOIN sameas_collection_pairs p ON p.collection = a.collection AND p.low = a.id AND p.apart = 2
JOIN sameas_collection_atoms b ON b.collection = a.collection AND b.id = p.high
WHERE a.collection = :collection AND a.name_key = :name_key AND a.family = :family AND b.name_key = :name_key
  AND b.family = :family AND a.signature <> '[]' AND b.signature <> '[]' LIMIT 1

-- name: add_pair
-- purpose: how likely two atoms are one.
INSERT INTO sameas_collection_pairs (collection, low, high, logit, apart, reasons)
VALUES (:collection, :low, :high, :logit, :apart, :reasons)
ON CONFLICT (collection, low, high) DO UPDATE SET logit = excluded.logit, apart = excluded.apart,
  reasons = excluded.reasons

-- name: remove_pair
-- purpose: two atoms are no pair any more.
DELETE FROM sameas_collection_pairs WHERE collection = :collection AND low = :low AND high = :high

-- name: pairs
-- purpose: the pairs of an atom.
SELECT low, high, logit, apart FROM sameas_collection_pairs WHERE collection = :collection AND low = :atom
UNION ALL
SELECT low, high, logit, apart FROM sameas_collection_pairs WHERE collection = :collection AND high = :atom

-- name: bonds
-- purpose: the pairs of an atom that make it one with others, or keep it apart.
SELECT low, high, logit, apart FROM sameas_collection_pairs
WHERE collection = :collection AND low = :atom AND (logit >= :least OR apart = 2)
UNION ALL SELECT low, high, logit, apart FROM sameas_collection_pairs
WHERE collection = :collection AND high = :atom AND (logit >= :least OR apart = 2)

-- name: entities_before
-- purpose: the things of which some claim ends with an atom.
SELECT DISTINCT e.id FROM sameas_collection_claims c
JOIN sameas_collection_atoms a ON a.collection = c.collection AND a.id = c.subject_atom
JOIN sameas_collection_entities e ON e.collection = a.collection AND e.number = a.entity
WHERE c.collection = :collection AND c.object_atom = :atom

-- name: says
-- purpose: whether an atom says this in another document than one.
SELECT 1 FROM sameas_collection_claims WHERE collection = :collection AND subject_atom = :atom
  AND predicate = :predicate AND object_token = :token AND document <> :document LIMIT 1

-- name: is_said
-- purpose: whether this is said of an atom in another document than one.
SELECT 1 FROM sameas_collection_claims WHERE collection = :collection AND object_atom = :atom
  AND predicate = :predicate AND subject_token = :token AND document <> :document LIMIT 1

-- name: count_said
-- purpose: in how many ways an atom is connected, up to a number in each direction.
SELECT (SELECT count(*) FROM (SELECT DISTINCT predicate, object_token FROM sameas_collection_claims
    WHERE collection = :collection AND subject_atom = :atom LIMIT :most) s),
  (SELECT count(*) FROM (SELECT DISTINCT predicate, subject_token FROM sameas_collection_claims
    WHERE collection = :collection AND object_atom = :atom LIMIT :most) o)

-- name: shared
-- purpose: what two atoms both say, and what is said of both.
SELECT 1, predicate, token FROM (
  SELECT f.predicate, f.token FROM
    (SELECT DISTINCT predicate, object_token AS token FROM sameas_collection_claims
     WHERE collection = :collection AND subject_atom = :one ORDER BY predicate, object_token LIMIT :looked_at) f
  WHERE EXISTS (SELECT 1 FROM sameas_collection_claims g WHERE g.collection = :collection AND g.subject_atom = :other
    AND g.predicate = f.predicate AND g.object_token = f.token)
  ORDER BY f.predicate, f.token LIMIT :most) objects
UNION ALL
SELECT 0, predicate, token FROM (
  SELECT f.predicate, f.token FROM
    (SELECT DISTINCT predicate, subject_token AS token FROM sameas_collection_claims
     WHERE collection = :collection AND object_atom = :one ORDER BY predicate, subject_token LIMIT :looked_at) f
  WHERE EXISTS (SELECT 1 FROM sameas_collection_claims g WHERE g.collection = :collection AND g.object_atom = :other
    AND g.predicate = f.predicate AND g.subject_token = f.token)
  ORDER BY f.predicate, f.token LIMIT :most) subjects

-- name: entity_by_id
-- purpose: a thing by its id.
SELECT number, id, name, merged_into FROM sameas_collection_entities WHERE collection = :collection AND id = :id

-- name: entity_by_number
-- purpose: a thing by its number.
SELECT number, id, name, merged_into FROM sameas_collection_entities WHERE collection = :collection AND number = :entity

-- name: entities
-- purpose: things after a place in their order.
SELECT number, id, name FROM sameas_collection_entities
WHERE collection = :collection AND merged_into IS NULL AND (name > :name OR (name = :name AND id > :id))
ORDER BY name, id LIMIT :most

-- name: all_entities
-- purpose: every thing.
SELECT number, id, name FROM sameas_collection_entities WHERE collection = :collection AND merged_into IS NULL ORDER BY number

-- name: all_merged
-- purpose: every id that leads to another thing.
SELECT m.id, e.id FROM sameas_collection_entities m
JOIN sameas_collection_entities e ON e.collection = m.collection AND e.number = m.merged_into
WHERE m.collection = :collection AND m.merged_into IS NOT NULL ORDER BY m.number

-- name: most_connected
-- purpose: the things with the most claims at either end.
SELECT e.number, e.id, e.name FROM sameas_collection_entities e JOIN (
  SELECT a.entity, sum(n.claims) AS claims FROM (
    SELECT subject_atom AS atom, count(*) AS claims FROM sameas_collection_claims
    WHERE collection = :collection GROUP BY subject_atom
    UNION ALL
    SELECT object_atom, count(*) FROM sameas_collection_claims
    WHERE collection = :collection AND object_atom IS NOT NULL GROUP BY object_atom
  ) n JOIN sameas_collection_atoms a ON a.collection = :collection AND a.id = n.atom
  GROUP BY a.entity ORDER BY claims DESC, a.entity LIMIT :most
) c ON c.entity = e.number
WHERE e.collection = :collection ORDER BY c.claims DESC, e.number

-- name: entities_named
-- purpose: things that have a name among their atoms'.
SELECT DISTINCT e.number, e.id, e.name FROM sameas_collection_keys k
JOIN sameas_collection_atoms a ON a.collection = k.collection AND a.id = k.atom
JOIN sameas_collection_entities e ON e.collection = a.collection AND e.number = a.entity
WHERE k.collection = :collection AND k.hash = :hash ORDER BY e.name, e.id LIMIT :most

-- name: merged_into
-- purpose: ids that lead to a thing.
SELECT number, id FROM sameas_collection_entities WHERE collection = :collection AND merged_into = :entity ORDER BY number

-- name: add_entity
-- purpose: a new thing.
INSERT INTO sameas_collection_entities (collection, number, id, name, merged_into) VALUES (:collection, :entity, :id, :name, NULL)

-- name: set_entity_name
-- purpose: what a thing is called, and that it is one of its own.
UPDATE sameas_collection_entities SET name = :name, merged_into = NULL WHERE collection = :collection AND number = :entity

-- name: merge_entity
-- purpose: an id leads to another thing from now on.
UPDATE sameas_collection_entities SET merged_into = :into WHERE collection = :collection AND number = :entity

-- name: redirect_merged
-- purpose: what led to a thing leads to another.
UPDATE sameas_collection_entities SET merged_into = :into WHERE collection = :collection AND merged_into = :entity

-- name: remove_entity
-- purpose: a thing of which nothing is known any more.
DELETE FROM sameas_collection_entities WHERE collection = :collection AND number = :entity

-- name: remove_merged
-- purpose: the ids that led to it.
DELETE FROM sameas_collection_entities WHERE collection = :collection AND merged_into = :entity

-- name: documents_of_entity
-- purpose: in how many documents a thing is.
SELECT count(DISTINCT n.document) FROM sameas_collection_atoms a
JOIN sameas_collection_nodes n ON n.collection = a.collection AND n.atom = a.id
WHERE a.collection = :collection AND a.entity = :entity

-- name: doubtful_pairs
-- purpose: pairs of atoms that are not one thing, likeliest first.
SELECT p.low, p.high, p.logit, p.reasons, a.entity, b.entity FROM sameas_collection_pairs p
JOIN sameas_collection_atoms a ON a.collection = p.collection AND a.id = p.low
JOIN sameas_collection_atoms b ON b.collection = p.collection AND b.id = p.high
WHERE p.collection = :collection AND p.logit >= :least AND a.entity <> b.entity
ORDER BY p.logit DESC, a.digest, b.digest

-- name: parted_pairs
-- purpose: pairs of atoms of one name that what documents say keeps apart.
SELECT p.reasons, a.entity, b.entity, a.digest, b.digest FROM sameas_collection_pairs p
JOIN sameas_collection_atoms a ON a.collection = p.collection AND a.id = p.low
JOIN sameas_collection_atoms b ON b.collection = p.collection AND b.id = p.high
WHERE p.collection = :collection AND p.apart = 2 AND a.entity <> b.entity AND a.name_key = b.name_key AND a.family = b.family
ORDER BY a.name_key, a.family, CASE WHEN a.digest < b.digest THEN a.digest ELSE b.digest END,
  CASE WHEN a.digest < b.digest THEN b.digest ELSE a.digest END

-- name: add_decision
-- purpose: what somebody decided.
INSERT INTO sameas_collection_decisions
  (collection, id, verdict, a_entity, b_entity, a_name, b_name, decided_by, reason, decided_at, undone_at, undone_by)
VALUES (:collection, :id, :verdict, :a_entity, :b_entity, :a_name, :b_name, :decided_by, :reason, :now, '', '')

-- name: decision
-- purpose: one decision.
SELECT id, verdict, a_entity, b_entity, a_name, b_name, decided_by, reason, decided_at, undone_at, undone_by
FROM sameas_collection_decisions WHERE collection = :collection AND id = :id

-- name: decisions
-- purpose: decisions before an id, newest first.
SELECT id, verdict, a_entity, b_entity, a_name, b_name, decided_by, reason, decided_at, undone_at, undone_by
FROM sameas_collection_decisions WHERE collection = :collection AND (:before = '' OR id < :before) ORDER BY id DESC LIMIT :most

-- name: undo_decision
-- purpose: a decision is not in force any more.
UPDATE sameas_collection_decisions SET undone_at = :now, undone_by = :undone_by
WHERE collection = :collection AND id = :id AND undone_at = ''

-- name: remove_decision
-- purpose: a decision about what was erased.
DELETE FROM sameas_collection_decisions WHERE collection = :collection AND id = :id

-- name: add_anchor
-- purpose: what a decision holds on to.
INSERT INTO sameas_collection_anchors (collection, decision, side, place, digest, name_key, family)
VALUES (:collection, :decision, :side, :place, :digest, :name_key, :family)

-- name: anchors
-- purpose: what a decision holds on to.
SELECT side, digest, name_key, family FROM sameas_collection_anchors
WHERE collection = :collection AND decision = :decision ORDER BY side, place

-- name: remove_anchors
-- purpose: of a decision that is gone.
DELETE FROM sameas_collection_anchors WHERE collection = :collection AND decision = :decision

-- name: decisions_of_name
-- purpose: the decisions in force that hold on to a name.
SELECT DISTINCT d.id, d.verdict FROM sameas_collection_anchors n
JOIN sameas_collection_decisions d ON d.collection = n.collection AND d.id = n.decision
WHERE n.collection = :collection AND n.name_key = :name_key AND n.family = :family AND d.undone_at = '' ORDER BY d.id

-- name: add_erased
-- purpose: a name that must not come back.
INSERT INTO sameas_collection_erased (collection, digest, erased_at, revision)
VALUES (:collection, :digest, :now, :revision) ON CONFLICT DO NOTHING

-- name: erased
-- purpose: names that must not come back.
SELECT digest FROM sameas_collection_erased WHERE collection = :collection

-- name: many_values
-- purpose: things with more than one value of a property.
SELECT a.entity, c.predicate FROM sameas_collection_claims c
JOIN sameas_collection_atoms a ON a.collection = c.collection AND a.id = c.subject_atom
LEFT JOIN sameas_collection_atoms o ON o.collection = c.collection AND o.id = c.object_atom
WHERE c.collection = :collection AND c.predicate = :predicate
GROUP BY a.entity, c.predicate
HAVING count(DISTINCT COALESCE(CAST(o.entity AS TEXT), 'v' || c.value || ' ' || c.unit)) > 1
ORDER BY a.entity

-- name: any_decisions
-- purpose: whether anybody decided anything.
SELECT 1 FROM sameas_collection_decisions WHERE collection = :collection AND undone_at = '' LIMIT 1

-- name: clear_documents
-- purpose: what a collection has of these.
DELETE FROM sameas_collection_documents WHERE collection = :collection

-- name: clear_sources
-- purpose: what a collection has of these.
DELETE FROM sameas_collection_sources WHERE collection = :collection

-- name: clear_nodes
-- purpose: what a collection has of these.
DELETE FROM sameas_collection_nodes WHERE collection = :collection

-- name: clear_claims
-- purpose: what a collection has of these.
DELETE FROM sameas_collection_claims WHERE collection = :collection

-- name: clear_atoms
-- purpose: what a collection has of these.
DELETE FROM sameas_collection_atoms WHERE collection = :collection

-- name: clear_names
-- purpose: what a collection has of these.
DELETE FROM sameas_collection_names WHERE collection = :collection

-- name: clear_types
-- purpose: what a collection has of these.
DELETE FROM sameas_collection_types WHERE collection = :collection

-- name: clear_keys
-- purpose: what a collection has of these.
DELETE FROM sameas_collection_keys WHERE collection = :collection

-- name: clear_namesakes
-- purpose: what a collection has of these.
DELETE FROM sameas_collection_namesakes WHERE collection = :collection

-- name: clear_pairs
-- purpose: what a collection has of these.
DELETE FROM sameas_collection_pairs WHERE collection = :collection

-- name: clear_entities
-- purpose: what a collection has of these.
DELETE FROM sameas_collection_entities WHERE collection = :collection

-- name: clear_decisions
-- purpose: what a collection has of these.
DELETE FROM sameas_collection_decisions WHERE collection = :collection

-- name: clear_anchors
-- purpose: what a collection has of these.
DELETE FROM sameas_collection_anchors WHERE collection = :collection

-- name: clear_changes
-- purpose: what a collection has of these.
DELETE FROM sameas_collection_changes WHERE collection = :collection

-- name: clear_erased
-- purpose: what a collection has of these.
DELETE FROM sameas_collection_erased WHERE collection = :collection

-- name: clear_audit
-- purpose: what a collection has of these.
DELETE FROM sameas_collection_audit WHERE collection = :collection

-- name: entities_after
-- purpose: things after a number.
SELECT number, id, name FROM sameas_collection_entities
WHERE collection = :collection AND merged_into IS NULL AND number > :after ORDER BY number

-- name: example_object
-- purpose: what a token of an atom's objects stands for.
SELECT n.name, c.value FROM sameas_collection_claims c
LEFT JOIN sameas_collection_nodes n ON n.collection = c.collection AND n.id = c.object_node
WHERE c.collection = :collection AND c.subject_atom = :atom AND c.predicate = :predicate AND c.object_token = :token LIMIT 1

-- name: example_subject
-- purpose: what a token of an atom's subjects stands for.
SELECT n.name, '' FROM sameas_collection_claims c
JOIN sameas_collection_nodes n ON n.collection = c.collection AND n.id = c.subject_node
WHERE c.collection = :collection AND c.object_atom = :atom AND c.predicate = :predicate AND c.subject_token = :token LIMIT 1

-- name: types_in_use
-- purpose: the classes that documents give things.
SELECT DISTINCT type FROM sameas_collection_types WHERE collection = :collection AND uses > 0

-- name: entities_of_types
-- purpose: things that are said to be both.
SELECT DISTINCT a.entity FROM sameas_collection_types t
JOIN sameas_collection_atoms a ON a.collection = t.collection AND a.id = t.atom
WHERE t.collection = :collection AND t.type = :one AND t.uses > 0 AND EXISTS (
  SELECT 1 FROM sameas_collection_atoms b JOIN sameas_collection_types u ON u.collection = b.collection AND u.atom = b.id
  WHERE b.collection = :collection AND b.entity = a.entity AND u.type = :other AND u.uses > 0)
ORDER BY a.entity

-- name: move_sources
-- purpose: names stand for a document that was read anew.
UPDATE sameas_collection_sources SET document = :to, status = :status
WHERE collection = :collection AND document = :document

-- name: resolved_nodes
-- purpose: which thing each entity of each document is.
SELECT s.name, n.local_id, a.entity FROM sameas_collection_nodes n
JOIN sameas_collection_atoms a ON a.collection = n.collection AND a.id = n.atom
JOIN sameas_collection_sources s ON s.collection = n.collection AND s.document = n.document
WHERE n.collection = :collection

-- name: all_documents
-- purpose: every document, also lists of known things.
SELECT id, digest, status, run, kind FROM sameas_collection_documents WHERE collection = :collection ORDER BY id

-- name: plain_claims_of_document
-- purpose: what a document says, as it was put in.
SELECT subject_node, predicate, object_node, value, datatype, unit, confidence, status, evidence
FROM sameas_collection_claims WHERE collection = :collection AND document = :document ORDER BY id

-- name: blank_audit
-- purpose: a line of the audit about what was erased keeps who did what and when.
UPDATE sameas_collection_audit SET detail = '{}' WHERE collection = :collection AND id = :id

-- name: unread_sources
-- purpose: names whose content is not in the graph.
SELECT name, error, content FROM sameas_collection_sources
WHERE collection = :collection AND (content IS NOT NULL OR error <> '')

-- name: clear_changed_entity
-- purpose: an id that must not be seen any more.
DELETE FROM sameas_collection_changes WHERE collection = :collection AND kind = 'entity' AND id = :id

-- name: erased_since
-- purpose: how many names were erased after a revision.
SELECT count(*) FROM sameas_collection_erased WHERE collection = :collection AND revision > :revision

-- name: check_nameless_documents
-- purpose: documents without a name.
SELECT d.digest FROM sameas_collection_documents d WHERE d.collection = :collection AND NOT EXISTS
  (SELECT 1 FROM sameas_collection_sources s WHERE s.collection = d.collection AND s.document = d.id)

-- name: check_lost_documents
-- purpose: names that lead nowhere.
SELECT s.name FROM sameas_collection_sources s WHERE s.collection = :collection AND s.document IS NOT NULL AND NOT EXISTS
  (SELECT 1 FROM sameas_collection_documents d WHERE d.collection = s.collection AND d.id = s.document)

-- name: check_statuses
-- purpose: names that are complete without a document.
SELECT name FROM sameas_collection_sources
WHERE collection = :collection AND status IN ('complete', 'partial') AND document IS NULL

-- name: check_document_counts
-- purpose: documents that say more or less than they count.
SELECT d.digest FROM sameas_collection_documents d WHERE d.collection = :collection AND (
  d.entities <> (SELECT count(*) FROM sameas_collection_nodes n WHERE n.collection = d.collection AND n.document = d.id)
  OR d.claims <> (SELECT count(*) FROM sameas_collection_claims c WHERE c.collection = d.collection AND c.document = d.id))

-- name: check_node_atoms
-- purpose: entities of documents without an atom.
SELECT n.id FROM sameas_collection_nodes n WHERE n.collection = :collection AND NOT EXISTS
  (SELECT 1 FROM sameas_collection_atoms a WHERE a.collection = n.collection AND a.id = n.atom)

-- name: check_atom_counts
-- purpose: atoms that are more or less often than they count.
SELECT a.id FROM sameas_collection_atoms a WHERE a.collection = :collection AND (a.nodes < 1 OR a.nodes <>
  (SELECT count(*) FROM sameas_collection_nodes n WHERE n.collection = a.collection AND n.atom = a.id))

-- name: check_name_counts
-- purpose: atoms whose names are used more or less often.
SELECT a.id FROM sameas_collection_atoms a WHERE a.collection = :collection AND a.nodes <>
  (SELECT COALESCE(sum(m.uses), 0) FROM sameas_collection_names m
   WHERE m.collection = a.collection AND m.atom = a.id AND m.alias = 0)

-- name: check_subject_atoms
-- purpose: claims whose beginning is another atom's.
SELECT c.id FROM sameas_collection_claims c
LEFT JOIN sameas_collection_nodes n ON n.collection = c.collection AND n.id = c.subject_node
WHERE c.collection = :collection AND (n.id IS NULL OR n.atom <> c.subject_atom OR n.document <> c.document)

-- name: check_object_atoms
-- purpose: claims whose end is another atom's.
SELECT c.id FROM sameas_collection_claims c
LEFT JOIN sameas_collection_nodes n ON n.collection = c.collection AND n.id = c.object_node
WHERE c.collection = :collection AND c.object_node IS NOT NULL
  AND (n.id IS NULL OR n.atom <> c.object_atom OR n.document <> c.document)

-- name: check_atom_entities
-- purpose: atoms that are no thing.
SELECT a.id FROM sameas_collection_atoms a
LEFT JOIN sameas_collection_entities e ON e.collection = a.collection AND e.number = a.entity
WHERE a.collection = :collection AND (e.number IS NULL OR e.merged_into IS NOT NULL)

-- name: check_empty_entities
-- purpose: things without an atom.
SELECT e.id FROM sameas_collection_entities e WHERE e.collection = :collection AND e.merged_into IS NULL AND NOT EXISTS
  (SELECT 1 FROM sameas_collection_atoms a WHERE a.collection = e.collection AND a.entity = e.number)

-- name: check_merged_entities
-- purpose: merged ids that lead nowhere.
SELECT e.id FROM sameas_collection_entities e
LEFT JOIN sameas_collection_entities t ON t.collection = e.collection AND t.number = e.merged_into
WHERE e.collection = :collection AND e.merged_into IS NOT NULL AND (t.number IS NULL OR t.merged_into IS NOT NULL)

-- name: check_pairs
-- purpose: pairs of which one is missing.
SELECT p.low, p.high FROM sameas_collection_pairs p
LEFT JOIN sameas_collection_atoms a ON a.collection = p.collection AND a.id = p.low
LEFT JOIN sameas_collection_atoms b ON b.collection = p.collection AND b.id = p.high
WHERE p.collection = :collection AND (a.id IS NULL OR b.id IS NULL)

-- name: check_keys
-- purpose: keys of atoms that are missing.
SELECT k.atom FROM sameas_collection_keys k
LEFT JOIN sameas_collection_atoms a ON a.collection = k.collection AND a.id = k.atom
WHERE k.collection = :collection AND a.id IS NULL

-- name: check_counters
-- purpose: what the collection counts wrongly.
SELECT c.documents, c.entities, c.claims FROM sameas_collections c WHERE c.number = :collection AND (
  c.documents <> (SELECT count(*) FROM sameas_collection_documents d WHERE d.collection = c.number AND d.kind = 'text')
  OR c.entities <> (SELECT count(*) FROM sameas_collection_entities e WHERE e.collection = c.number AND e.merged_into IS NULL)
  OR c.claims <> (SELECT count(*) FROM sameas_collection_claims m WHERE m.collection = c.number))

-- name: judged_pairs
-- purpose: pairs with one place of each.
SELECT p.logit, sa.name, na.local_id, sb.name, nb.local_id FROM sameas_collection_pairs p
JOIN sameas_collection_nodes na ON na.collection = p.collection AND na.id =
  (SELECT min(n.id) FROM sameas_collection_nodes n WHERE n.collection = p.collection AND n.atom = p.low)
JOIN sameas_collection_nodes nb ON nb.collection = p.collection AND nb.id =
  (SELECT min(n.id) FROM sameas_collection_nodes n WHERE n.collection = p.collection AND n.atom = p.high)
JOIN sameas_collection_sources sa ON sa.collection = p.collection AND sa.document = na.document
JOIN sameas_collection_sources sb ON sb.collection = p.collection AND sb.document = nb.document
WHERE p.collection = :collection
