/* The registry's tables and statements. */
#include "store/internal.h"

static const char *const migrations[] = {
	"CREATE TABLE sandboxes ("
	"  seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE,"
	"  generation INTEGER NOT NULL, template TEXT NOT NULL, spec TEXT NOT NULL, source TEXT,"
	"  memory INTEGER NOT NULL, disk INTEGER NOT NULL, pids INTEGER NOT NULL,"
	" cpu INTEGER NOT NULL,"
	"  state TEXT NOT NULL, retention TEXT NOT NULL, created INTEGER NOT NULL,"
	"  changed INTEGER NOT NULL, deadline INTEGER NOT NULL, ttl INTEGER NOT NULL,"
	"  idle INTEGER NOT NULL, code TEXT, why TEXT) STRICT;"
	"CREATE TABLE events ("
	"  seq INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL, sandbox TEXT NOT NULL,"
	"  kind TEXT NOT NULL, detail TEXT) STRICT;"
	"CREATE INDEX events_of ON events (sandbox, seq);"
	"CREATE TABLE keys ("
	"  scope TEXT NOT NULL, key TEXT NOT NULL, digest BLOB NOT NULL, run TEXT NOT NULL,"
	"  at INTEGER NOT NULL, plan TEXT NOT NULL, done INTEGER NOT NULL, status INTEGER NOT NULL,"
	"  body BLOB NOT NULL, bytes INTEGER NOT NULL, PRIMARY KEY (scope, key)) STRICT;"
	"CREATE INDEX keys_by_age ON keys (at);",
	"CREATE TABLE jobs ("
	"  sandbox INTEGER NOT NULL, id TEXT NOT NULL, command TEXT NOT NULL, state TEXT NOT NULL,"
	"  started INTEGER NOT NULL, ended INTEGER NOT NULL, exit INTEGER NOT NULL,"
	"  signal INTEGER NOT NULL, hit_memory INTEGER NOT NULL, hit_pids INTEGER NOT NULL,"
	"  wall INTEGER NOT NULL, out INTEGER NOT NULL, err INTEGER NOT NULL, code TEXT, why TEXT,"
	"  PRIMARY KEY (sandbox, id)) STRICT;",
	/* one row: the highest generation of a deleted sandbox */
	"CREATE TABLE forgotten (generation INTEGER NOT NULL) STRICT;"
	"INSERT INTO forgotten VALUES (0);",
	"CREATE TABLE snapshots ("
	"  seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, name TEXT NOT NULL,"
	"  of INTEGER NOT NULL, source TEXT NOT NULL, template TEXT NOT NULL, base TEXT NOT NULL,"
	"  spec TEXT NOT NULL, created INTEGER NOT NULL, expires INTEGER NOT NULL,"
	"  bytes INTEGER NOT NULL, unpacked INTEGER NOT NULL, digest TEXT NOT NULL,"
	"  memory INTEGER NOT NULL, disk INTEGER NOT NULL, pids INTEGER NOT NULL,"
	"  cpu INTEGER NOT NULL) STRICT;",
	"ALTER TABLE sandboxes ADD COLUMN files INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE snapshots ADD COLUMN files INTEGER NOT NULL DEFAULT 0;",
	"ALTER TABLE sandboxes ADD COLUMN debug INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE snapshots ADD COLUMN debug INTEGER NOT NULL DEFAULT 0;",
	"ALTER TABLE sandboxes ADD COLUMN labels TEXT;",
	"ALTER TABLE sandboxes ADD COLUMN root INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE snapshots ADD COLUMN root INTEGER NOT NULL DEFAULT 0;",
	"ALTER TABLE sandboxes ADD COLUMN network TEXT;",
	"CREATE TABLE api_keys ("
	"  name TEXT PRIMARY KEY, hash BLOB NOT NULL UNIQUE, scopes INTEGER NOT NULL,"
	"  created INTEGER NOT NULL, expires INTEGER NOT NULL, used INTEGER NOT NULL) STRICT;",
	"ALTER TABLE sandboxes ADD COLUMN owner TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE snapshots ADD COLUMN owner TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE events ADD COLUMN owner TEXT NOT NULL DEFAULT '';",
	"CREATE TABLE approvals ("
	"  seq INTEGER PRIMARY KEY, rev INTEGER NOT NULL, id TEXT NOT NULL UNIQUE,"
	"  principal TEXT NOT NULL, action TEXT NOT NULL, target TEXT NOT NULL,"
	"  sandbox INTEGER NOT NULL, digest TEXT NOT NULL, arguments TEXT NOT NULL,"
	"  size INTEGER NOT NULL, conversation TEXT NOT NULL, rule TEXT NOT NULL,"
	"  state TEXT NOT NULL, scope TEXT NOT NULL, pattern TEXT NOT NULL, who TEXT NOT NULL,"
	"  surface TEXT NOT NULL, created INTEGER NOT NULL, deadline INTEGER NOT NULL,"
	"  answered INTEGER NOT NULL, used INTEGER NOT NULL) STRICT;",
	"ALTER TABLE sandboxes ADD COLUMN spent_cpu INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE sandboxes ADD COLUMN spent_out INTEGER NOT NULL DEFAULT 0;",
	/* sandbox: seq of the one that writes to it, 0: none; base: what that one began with */
	"CREATE TABLE workspaces ("
	"  seq INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, owner TEXT NOT NULL,"
	"  tip TEXT NOT NULL, created INTEGER NOT NULL, sandbox INTEGER NOT NULL,"
	"  base TEXT NOT NULL, UNIQUE (owner, name)) STRICT;"
	"CREATE TABLE revisions ("
	"  id TEXT PRIMARY KEY, parent TEXT NOT NULL, tree TEXT NOT NULL, files INTEGER NOT NULL,"
	"  bytes INTEGER NOT NULL, created INTEGER NOT NULL, source TEXT NOT NULL,"
	"  message TEXT NOT NULL) STRICT;",
	/* The revisions of each workspace from its first one, 1, on; forks share rows of them. */
	"CREATE TABLE history ("
	"  workspace INTEGER NOT NULL, number INTEGER NOT NULL, revision TEXT NOT NULL,"
	"  PRIMARY KEY (workspace, number)) STRICT, WITHOUT ROWID;"
	"CREATE INDEX history_of_revision ON history (revision);"
	"WITH RECURSIVE chain (workspace, back, id) AS ("
	"  SELECT seq, 0, tip FROM workspaces"
	"  UNION ALL SELECT workspace, back + 1, parent FROM chain JOIN revisions USING (id)"
	"  WHERE parent <> '')"
	" INSERT INTO history SELECT workspace,"
	"  row_number() OVER (PARTITION BY workspace ORDER BY back DESC), id FROM chain;",
	"CREATE TABLE modules ("
	"  name TEXT PRIMARY KEY, digest TEXT NOT NULL, who TEXT NOT NULL,"
	"  approved INTEGER NOT NULL, disabled INTEGER NOT NULL) STRICT;"
	/* one row: the key of their digests */
	"CREATE TABLE module_key (key TEXT NOT NULL) STRICT;"
	"INSERT INTO module_key VALUES (lower(hex(randomblob(32))));",
	"ALTER TABLE modules ADD COLUMN pins TEXT NOT NULL DEFAULT '';",
	/* exports: a JSON array of names */
	"CREATE TABLE code ("
	"  owner TEXT NOT NULL, name TEXT NOT NULL, description TEXT NOT NULL,"
	"  exports TEXT NOT NULL, source TEXT NOT NULL, PRIMARY KEY (owner, name)) STRICT;",
	"CREATE TABLE questions ("
	"  seq INTEGER PRIMARY KEY, rev INTEGER NOT NULL, id TEXT NOT NULL UNIQUE,"
	"  principal TEXT NOT NULL, session TEXT NOT NULL, kind TEXT NOT NULL,"
	"  origin TEXT NOT NULL, state TEXT NOT NULL, spec TEXT NOT NULL, reply TEXT NOT NULL,"
	"  who TEXT NOT NULL, surface TEXT NOT NULL, created INTEGER NOT NULL,"
	"  deadline INTEGER NOT NULL, ended INTEGER NOT NULL) STRICT;",
	/* the owners of the keys that made it, one by the other, with blanks between (those that
	 * are older than ended_keys have the first alone); '': no key did */
	"ALTER TABLE api_keys ADD COLUMN root TEXT NOT NULL DEFAULT '';",
	"ALTER TABLE revisions ADD COLUMN left_out INTEGER NOT NULL DEFAULT 0;",
	/* What a key that a key made has left counts for its line. A conversation's sandboxes are
	 * those of some key. */
	"CREATE TABLE ended_keys (owner TEXT PRIMARY KEY, root TEXT NOT NULL) STRICT;"
	"CREATE TRIGGER key_ends AFTER DELETE ON api_keys WHEN OLD.root <> '' BEGIN"
	"  DELETE FROM ended_keys WHERE owner NOT IN"
	"    (SELECT owner FROM sandboxes UNION SELECT owner FROM code) AND NOT EXISTS"
	"    (SELECT 1 FROM sandboxes WHERE owner LIKE 'conversation:%');"
	"  INSERT OR REPLACE INTO ended_keys VALUES"
	"    ('key:' || OLD.name || '@' || lower(hex(substr(OLD.hash, 1, 8))), OLD.root);"
	"END;",
	/* digests of images: what a module runs, and what waits to be approved instead */
	"ALTER TABLE modules ADD COLUMN package TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE modules ADD COLUMN package_update TEXT NOT NULL DEFAULT '';",
};

static const char *const statements[STATEMENTS] = {
	[SANDBOX_ADD] =
		"INSERT OR REPLACE INTO sandboxes (seq, id, generation, template, spec, source,"
		" state,"
		" retention, created, changed, deadline, ttl, idle, code, why, memory, disk, pids,"
		" cpu,"
		" files, debug, labels, root, network, owner, spent_cpu, spent_out)"
		" VALUES (?1, ?2, ?3, ?4, coalesce(?5,"
		" (SELECT spec FROM sandboxes WHERE seq = ?20)),"
		" ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19,"
		" ?21, ?22, ?23, ?24, ?25, coalesce(?26, ''), ?27, ?28)",
	[SANDBOX_CHANGE] = "UPDATE sandboxes SET state = ?2, changed = ?3, deadline = ?4, ttl = ?5,"
			   " code = ?6, why = ?7, generation = ?8, network = ?9,"
			   " spent_cpu = ?10, spent_out = ?11"
			   " WHERE seq = ?1",
	[SANDBOX_DROP] = "DELETE FROM sandboxes WHERE seq = ?1",
	[SANDBOX_ALL] =
		"SELECT seq, id, generation, template, spec, source, state, retention, created,"
		" changed,"
		" deadline, ttl, idle, code, why, memory, disk, pids, cpu,"
		" files, debug, labels, root, network, owner, spent_cpu, spent_out"
		" FROM sandboxes ORDER BY seq",
	[SANDBOX_LAST] =
		"SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'sandboxes'",
	[JOB_PUT] =
		"INSERT OR REPLACE INTO jobs (sandbox, id, command, state, started, ended, exit,"
		" signal, hit_memory, hit_pids, wall, out, err, code, why)"
		" VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
	[JOB_DROP] = "DELETE FROM jobs WHERE sandbox = ?1 AND id = ?2",
	[JOB_ALL] = "SELECT j.sandbox, s.id, j.id, j.command, j.state, j.started, j.ended, j.exit,"
		    " j.signal,"
		    " j.hit_memory, j.hit_pids, j.wall, j.out, j.err, j.code, j.why FROM jobs j"
		    " JOIN sandboxes s ON s.seq = j.sandbox WHERE s.state <> 'terminated'"
		    " ORDER BY j.started, j.id",
	[JOB_CLEAR] = "DELETE FROM jobs WHERE sandbox NOT IN"
		      " (SELECT seq FROM sandboxes WHERE state <> 'terminated')",
	[FORGOTTEN] = "SELECT generation FROM forgotten",
	[FORGOTTEN_SET] = "UPDATE forgotten SET generation = max(generation, ?1)",
	[SNAPSHOT_ADD] =
		"INSERT INTO snapshots (seq, id, name, of, source, template, base, spec, created,"
		" expires,"
		" bytes, unpacked, digest, memory, disk, pids, cpu, files, debug, root, owner)"
		" VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7,"
		" coalesce(?8, (SELECT spec FROM sandboxes WHERE seq = ?9)), ?10, ?11, ?12, ?13,"
		" ?14,"
		" ?15, ?16, ?17, ?18, ?19, ?20, ?21, coalesce(?22, ''))",
	[SNAPSHOT_DROP] = "DELETE FROM snapshots WHERE seq = ?1",
	[SNAPSHOT_ALL] =
		"SELECT seq, id, name, of, source, template, base, spec, created, expires, bytes,"
		" unpacked,"
		" digest, memory, disk, pids, cpu,"
		" files, debug, root, owner FROM snapshots WHERE ?1 = 0 OR seq = ?1 ORDER BY seq",
	[SNAPSHOT_LAST] =
		"SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'snapshots'",
	[EVENT_ADD] = "INSERT INTO events (at, sandbox, kind, detail, owner)"
		      " VALUES (?1, ?2, ?3, ?4, coalesce(?5, ''))"
		      " RETURNING seq",
	[EVENT_TRIM] = "DELETE FROM events WHERE seq <= ?1",
	[EVENT_AFTER] = "SELECT seq, at, sandbox, kind, detail, owner FROM events"
			" WHERE seq > ?1 AND (?3 IS NULL OR owner = ?3) ORDER BY seq LIMIT ?2",
	[EVENT_AFTER_OF] = "SELECT seq, at, sandbox, kind, detail, owner FROM events"
			   " WHERE sandbox = ?4 AND seq > ?1 AND (?3 IS NULL OR owner = ?3)"
			   " ORDER BY seq LIMIT ?2",
	[EVENT_KEPT] = "SELECT coalesce(min(seq), 0), coalesce(max(seq), 0) FROM events",
	[KEY_FIND] = "SELECT digest, run, at, plan, done, status, body FROM keys"
		     " WHERE scope = ?1 AND key = ?2",
	[KEY_PUT] = "INSERT OR REPLACE INTO keys (scope, key, digest, run, at, plan, done, status,"
		    " body,"
		    " bytes) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
	[KEY_DROP] = "DELETE FROM keys WHERE scope = ?1 AND key = ?2 RETURNING bytes",
	[KEY_DROP_OLDEST] = "DELETE FROM keys WHERE rowid = (SELECT rowid FROM keys WHERE done = 1"
			    " ORDER BY at LIMIT 1) RETURNING bytes",
	[KEY_EXPIRE] = "DELETE FROM keys WHERE at < ?1 RETURNING bytes",
	[KEY_COUNT] = "SELECT count(*), coalesce(sum(bytes), 0) FROM keys",
	[API_KEY_PUT] = "INSERT OR REPLACE INTO api_keys (name, hash, scopes, created, expires,"
			" used, root) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
	[API_KEY_USED] = "UPDATE api_keys SET used = ?2 WHERE name = ?1",
	[API_KEY_DROP] = "DELETE FROM api_keys WHERE name = ?1",
	[API_KEY_ALL] = "SELECT name, hash, scopes, created, expires, used, root FROM api_keys"
			" ORDER BY created, name",
	[API_KEY_ENDED] = "SELECT owner, root FROM ended_keys",
	[APPROVAL_PUT] =
		"INSERT OR REPLACE INTO approvals (seq, rev, id, principal, action, target,"
		" sandbox, digest, arguments, size, conversation, rule, state, scope, pattern,"
		" who, surface, created, deadline, answered, used)"
		" VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16,"
		" ?17, ?18, ?19, ?20, ?21)",
	[APPROVAL_DROP] = "DELETE FROM approvals WHERE seq = ?1",
	[APPROVAL_ALL] =
		"SELECT seq, rev, id, principal, action, target, sandbox, digest, arguments,"
		" size, conversation, rule, state, scope, pattern, who, surface, created,"
		" deadline, answered, used FROM approvals ORDER BY seq",
	[QUESTION_PUT] =
		"INSERT OR REPLACE INTO questions (seq, rev, id, principal, session, kind, origin,"
		" state, spec, reply, who, surface, created, deadline, ended)"
		" VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
	[QUESTION_DROP] = "DELETE FROM questions WHERE seq = ?1",
	[QUESTION_ALL] = "SELECT seq, rev, id, principal, session, kind, origin, state, spec,"
			 " reply, who, surface, created, deadline, ended"
			 " FROM questions ORDER BY seq",
	[WORKSPACE_PUT] = "INSERT OR REPLACE INTO workspaces (seq, name, owner, tip, created,"
			  " sandbox, base) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
	[WORKSPACE_DROP] = "DELETE FROM workspaces WHERE seq = ?1",
	[WORKSPACE_ALL] = "SELECT seq, name, owner, tip, created, sandbox, base"
			  " FROM workspaces ORDER BY seq",
	[WORKSPACE_LAST] =
		"SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'workspaces'",
	[REVISION_ADD] = "INSERT OR REPLACE INTO revisions (id, parent, tree, files, bytes,"
			 " created, source, message, left_out)"
			 " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
	[REVISION_DROP] = "DELETE FROM revisions WHERE id = ?1",
	[MODULE_PUT] =
		"INSERT OR REPLACE INTO modules (name, digest, who, approved, disabled, pins,"
		" package, package_update) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
	[MODULE_ALL] = "SELECT name, digest, who, approved, disabled, pins, package, package_update"
		       " FROM modules ORDER BY name",
	[MODULE_KEY] = "SELECT key FROM module_key",
	[CODE_PUT] = "INSERT OR REPLACE INTO code (owner, name, source, description, exports)"
		     " VALUES (?1, ?2, ?3, ?4, ?5)",
	[CODE_DROP] = "DELETE FROM code WHERE owner = ?1 AND name = ?2 RETURNING 1",
	[CODE_DROP_OWNER] = "DELETE FROM code WHERE owner = ?1",
	[CODE_OF] = "SELECT name, source, description, exports FROM code"
		    " WHERE owner = ?1 AND (?2 IS NULL OR name = ?2) ORDER BY name",
	[CODE_OWNERS] = "SELECT DISTINCT owner FROM code",
	[REVISION_ALL] = "SELECT id, parent, tree, files, bytes, created, source, message, left_out"
			 " FROM revisions WHERE ?1 = '' OR id = ?1",
	[REVISION_AFTER] = "SELECT id, parent, tree, files, bytes, created, source, message,"
			   " left_out, EXISTS (SELECT 1 FROM history WHERE revision = id)"
			   " FROM revisions WHERE id > ?1 ORDER BY id LIMIT ?2",
	[HISTORY_ADD] = "INSERT INTO history (workspace, number, revision) VALUES (?1, ?2, ?3)",
	[HISTORY_COPY] = "INSERT INTO history SELECT ?2, number, revision FROM history"
			 " WHERE workspace = ?1 AND number <= ?3",
	[HISTORY_BEFORE] = "SELECT id, parent, tree, files, bytes, created, source, message,"
			   " left_out, number FROM history JOIN revisions ON id = revision"
			   " WHERE workspace = ?1 AND number < ?2 ORDER BY number DESC LIMIT ?3",
	[HISTORY_FORGET] = "DELETE FROM history WHERE (workspace, number) IN"
			   " (SELECT workspace, number FROM history"
			   "  WHERE workspace NOT IN (SELECT seq FROM workspaces) LIMIT ?1)"
			   " RETURNING number",
	[HISTORY_FIND] = "SELECT id, parent, tree, files, bytes, created, source, message,"
			 " left_out, number FROM revisions"
			 " JOIN history ON revision = id AND workspace = ?1"
			 " WHERE id >= ?2 AND id < ?2 || 'g' ORDER BY number DESC LIMIT 2",
};

/* Nothing is promised with these: running sandboxes and their programs are lost in a power cut, and
 * the rest is dropped again. What must last of a sandbox calls db_must_last(). */
static const bool passing[STATEMENTS] = {
	[SANDBOX_ADD] = true,	[SANDBOX_CHANGE] = true, [SANDBOX_DROP] = true,
	[JOB_PUT] = true,	[JOB_DROP] = true,	 [JOB_CLEAR] = true,
	[FORGOTTEN_SET] = true, [EVENT_ADD] = true,	 [EVENT_TRIM] = true,
	[KEY_PUT] = true,	[KEY_DROP] = true,	 [KEY_DROP_OLDEST] = true,
	[KEY_EXPIRE] = true,	[API_KEY_USED] = true,	 [HISTORY_FORGET] = true,
	[REVISION_DROP] = true,
};

const struct db_schema store_schema = {
	.migrations = migrations,
	.n_migrations = ARRAY_LEN(migrations),
	.statements = statements,
	.n_statements = ARRAY_LEN(statements),
	.passing = passing,
};
