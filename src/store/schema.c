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
	/* Sandboxes of a key that another key made count for its line also when it is gone. Those
	 * of a conversation are some key's. */
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
	/* digests of what they were fetched for; of an earlier version '' */
	"ALTER TABLE modules ADD COLUMN package_for TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE modules ADD COLUMN update_for TEXT NOT NULL DEFAULT '';",
};

/* ---- rows ------------------------------------------------------------------------------------ */

#define C(m) DB_COLUMN(R, m)
#define N(m, name) DB_COLUMN_NAMED(R, m, name)
/* clang-format off */
#define R struct store_sandbox
static const struct db_column sandbox_columns[] = {
	C(seq), C(id), C(generation), C(template), C(spec), C(source), C(state), C(retention),
	N(created_ms, "created"), N(changed_ms, "changed"), N(deadline_ms, "deadline"),
	N(ttl_ms, "ttl"), N(idle_ms, "idle"), C(code), C(why), C(memory), C(disk), C(pids),
	N(cpu_milli, "cpu"), C(files), C(debug), C(labels), C(root), C(network), C(owner),
	N(spent_cpu_ms, "spent_cpu"), C(spent_out),
};
#undef R
#define R struct store_job
static const struct db_column job_columns[] = {
	C(sandbox), C(id), C(command), C(state), N(started_ms, "started"), N(ended_ms, "ended"),
	N(exit_code, "exit"), C(signal), C(hit_memory), C(hit_pids), N(wall_us, "wall"),
	N(bytes[0], "out"), N(bytes[1], "err"), C(code), C(why),
};
#undef R
#define R struct store_snapshot
static const struct db_column snapshot_columns[] = {
	C(seq), C(id), C(name), C(of), C(source), C(template), C(base), C(spec),
	N(created_ms, "created"), N(expires_ms, "expires"), C(bytes), C(unpacked), C(digest),
	C(memory), C(disk), C(pids), N(cpu_milli, "cpu"), C(files), C(debug), C(root), C(owner),
};
#undef R
#define R struct store_event
static const struct db_column event_columns[] = {
	C(seq), N(at_ms, "at"), C(sandbox), C(kind), C(detail), C(owner),
};
#undef R
#define R struct store_api_key
static const struct db_column api_key_columns[] = {
	C(name), DB_BYTES(R, hash), C(scopes), N(created_ms, "created"), N(expires_ms, "expires"),
	N(used_ms, "used"), N(makers, "root"),
};
#undef R
#define R struct store_approval
static const struct db_column approval_columns[] = {
	C(seq), C(rev), C(id), C(principal), C(action), C(target), C(sandbox), C(digest),
	C(arguments), C(size), C(conversation), C(rule), C(state), C(scope), C(pattern), C(who),
	C(surface), N(created_ms, "created"), N(deadline_ms, "deadline"),
	N(answered_ms, "answered"), N(used_ms, "used"),
};
#undef R
#define R struct store_question
static const struct db_column question_columns[] = {
	C(seq), C(rev), C(id), C(principal), C(session), C(kind), C(origin), C(state), C(spec),
	C(reply), C(who), C(surface), N(created_ms, "created"), N(deadline_ms, "deadline"),
	N(ended_ms, "ended"),
};
#undef R
#define R struct store_workspace
static const struct db_column workspace_columns[] = {
	C(seq), C(name), C(owner), C(tip), N(created_ms, "created"), C(sandbox), C(base),
};
#undef R
#define R struct store_revision
static const struct db_column revision_columns[] = {
	C(id), C(parent), C(tree), C(files), C(bytes), N(created_ms, "created"), C(source),
	C(message), C(left_out),
};
#undef R
#define R struct store_module
static const struct db_column module_columns[] = {
	C(name), C(digest), C(who), N(approved_ms, "approved"), C(disabled), C(pins), C(package),
	N(update, "package_update"), C(package_for), C(update_for),
};
#undef R
#define R struct store_code
static const struct db_column code_columns[] = {
	C(owner), C(name), C(source), C(description), C(exports),
};
#undef R
/* clang-format on */
const struct db_row sandbox_row = DB_ROW(sandbox_columns);
const struct db_row job_row = DB_ROW(job_columns);
const struct db_row snapshot_row = DB_ROW(snapshot_columns);
const struct db_row event_row = DB_ROW(event_columns);
const struct db_row api_key_row = DB_ROW(api_key_columns);
const struct db_row approval_row = DB_ROW(approval_columns);
const struct db_row question_row = DB_ROW(question_columns);
const struct db_row workspace_row = DB_ROW(workspace_columns);
const struct db_row revision_row = DB_ROW(revision_columns);
const struct db_row module_row = DB_ROW(module_columns);
const struct db_row code_row = DB_ROW(code_columns);

/* ---- statements ------------------------------------------------------------------------------ */

static const char *const statements[STATEMENTS] = {
	[SANDBOX_ADD] = "INSERT OR REPLACE INTO sandboxes (%N) VALUES (%V)",
	[SANDBOX_CHANGE] = "UPDATE sandboxes SET state = ?2, changed = ?3, deadline = ?4, ttl = ?5,"
			   " code = ?6, why = ?7, generation = ?8, network = ?9,"
			   " spent_cpu = ?10, spent_out = ?11"
			   " WHERE seq = ?1",
	[SANDBOX_DROP] = "DELETE FROM sandboxes WHERE seq = ?1",
	[SANDBOX_ALL] = "SELECT %N FROM sandboxes ORDER BY seq",
	[SANDBOX_LAST] =
		"SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'sandboxes'",
	[JOB_PUT] = "INSERT OR REPLACE INTO jobs (%N) VALUES (%V)",
	[JOB_DROP] = "DELETE FROM jobs WHERE sandbox = ?1 AND id = ?2",
	[JOB_ALL] = "SELECT %N, (SELECT id FROM sandboxes WHERE seq = sandbox) FROM jobs"
		    " WHERE sandbox IN (SELECT seq FROM sandboxes WHERE state <> 'terminated')"
		    " ORDER BY started, id",
	[JOB_CLEAR] = "DELETE FROM jobs WHERE sandbox NOT IN"
		      " (SELECT seq FROM sandboxes WHERE state <> 'terminated')",
	[SPEC_OF] = "SELECT spec FROM sandboxes WHERE seq = ?1",
	[FORGOTTEN] = "SELECT generation FROM forgotten",
	[FORGOTTEN_SET] = "UPDATE forgotten SET generation = max(generation, ?1)",
	[SNAPSHOT_ADD] = "INSERT INTO snapshots (%N) VALUES (%V)",
	[SNAPSHOT_DROP] = "DELETE FROM snapshots WHERE seq = ?1",
	[SNAPSHOT_ALL] = "SELECT %N FROM snapshots WHERE ?1 = 0 OR seq = ?1 ORDER BY seq",
	[SNAPSHOT_LAST] =
		"SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'snapshots'",
	[EVENT_ADD] = "INSERT INTO events (at, sandbox, kind, detail, owner)"
		      " VALUES (?1, ?2, ?3, ?4, coalesce(?5, ''))"
		      " RETURNING seq",
	[EVENT_TRIM] = "DELETE FROM events WHERE seq <= ?1",
	[EVENT_AFTER] = "SELECT %N FROM events"
			" WHERE seq > ?1 AND (?3 IS NULL OR owner = ?3) ORDER BY seq LIMIT ?2",
	[EVENT_AFTER_OF] = "SELECT %N FROM events"
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
	[API_KEY_PUT] = "INSERT OR REPLACE INTO api_keys (%N) VALUES (%V)",
	[API_KEY_USED] = "UPDATE api_keys SET used = ?2 WHERE name = ?1",
	[API_KEY_DROP] = "DELETE FROM api_keys WHERE name = ?1",
	[API_KEY_ALL] = "SELECT %N FROM api_keys ORDER BY created, name",
	[API_KEY_ENDED] = "SELECT owner, root FROM ended_keys",
	[APPROVAL_PUT] = "INSERT OR REPLACE INTO approvals (%N) VALUES (%V)",
	[APPROVAL_DROP] = "DELETE FROM approvals WHERE seq = ?1",
	[APPROVAL_ALL] = "SELECT %N FROM approvals ORDER BY seq",
	[QUESTION_PUT] = "INSERT OR REPLACE INTO questions (%N) VALUES (%V)",
	[QUESTION_DROP] = "DELETE FROM questions WHERE seq = ?1",
	[QUESTION_ALL] = "SELECT %N FROM questions ORDER BY seq",
	[WORKSPACE_PUT] = "INSERT OR REPLACE INTO workspaces (%N) VALUES (%V)",
	[WORKSPACE_DROP] = "DELETE FROM workspaces WHERE seq = ?1",
	[WORKSPACE_ALL] = "SELECT %N FROM workspaces ORDER BY seq",
	[WORKSPACE_LAST] =
		"SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'workspaces'",
	[REVISION_ADD] = "INSERT OR REPLACE INTO revisions (%N) VALUES (%V)",
	[REVISION_DROP] = "DELETE FROM revisions WHERE id = ?1",
	[MODULE_PUT] = "INSERT OR REPLACE INTO modules (%N) VALUES (%V)",
	[MODULE_LET_GO] = "UPDATE modules SET package = '', package_update = '', package_for = '',"
			  " update_for = '' WHERE name = ?1",
	[MODULE_ALL] = "SELECT %N FROM modules ORDER BY name",
	[MODULE_KEY] = "SELECT key FROM module_key",
	[CODE_PUT] = "INSERT OR REPLACE INTO code (%N) VALUES (%V)",
	[CODE_DROP] = "DELETE FROM code WHERE owner = ?1 AND name = ?2 RETURNING 1",
	[CODE_DROP_OWNER] = "DELETE FROM code WHERE owner = ?1",
	[CODE_OF] = "SELECT %N FROM code"
		    " WHERE owner = ?1 AND (?2 IS NULL OR name = ?2) ORDER BY name",
	[CODE_OWNERS] = "SELECT DISTINCT owner FROM code",
	[REVISION_ALL] = "SELECT %N FROM revisions WHERE ?1 = '' OR id = ?1",
	[REVISION_AFTER] = "SELECT %N, EXISTS (SELECT 1 FROM history WHERE revision = id)"
			   " FROM revisions WHERE id > ?1 ORDER BY id LIMIT ?2",
	[HISTORY_ADD] = "INSERT INTO history (workspace, number, revision) VALUES (?1, ?2, ?3)",
	[HISTORY_COPY] = "INSERT INTO history SELECT ?2, number, revision FROM history"
			 " WHERE workspace = ?1 AND number <= ?3",
	[HISTORY_BEFORE] = "SELECT %N, number FROM history JOIN revisions ON id = revision"
			   " WHERE workspace = ?1 AND number < ?2 ORDER BY number DESC LIMIT ?3",
	[HISTORY_FORGET] = "DELETE FROM history WHERE (workspace, number) IN"
			   " (SELECT workspace, number FROM history"
			   "  WHERE workspace NOT IN (SELECT seq FROM workspaces) LIMIT ?1)"
			   " RETURNING number",
	[HISTORY_FIND] = "SELECT %N, number FROM revisions"
			 " JOIN history ON revision = id AND workspace = ?1"
			 " WHERE id >= ?2 AND id < ?2 || 'g' ORDER BY number DESC LIMIT 2",
};

/* The rows of statements with %N, their names, and %V, their values. */
/* clang-format off */
static const struct db_row *const rows[STATEMENTS] = {
	[SANDBOX_ADD] = &sandbox_row, [SANDBOX_ALL] = &sandbox_row, [JOB_PUT] = &job_row,
	[JOB_ALL] = &job_row, [SNAPSHOT_ADD] = &snapshot_row, [SNAPSHOT_ALL] = &snapshot_row,
	[EVENT_AFTER] = &event_row, [EVENT_AFTER_OF] = &event_row, [API_KEY_PUT] = &api_key_row,
	[API_KEY_ALL] = &api_key_row, [APPROVAL_PUT] = &approval_row,
	[APPROVAL_ALL] = &approval_row, [QUESTION_PUT] = &question_row,
	[QUESTION_ALL] = &question_row, [WORKSPACE_PUT] = &workspace_row,
	[WORKSPACE_ALL] = &workspace_row, [REVISION_ADD] = &revision_row,
	[MODULE_PUT] = &module_row, [MODULE_ALL] = &module_row, [CODE_PUT] = &code_row,
	[CODE_OF] = &code_row, [REVISION_ALL] = &revision_row, [REVISION_AFTER] = &revision_row,
	[HISTORY_BEFORE] = &revision_row, [HISTORY_FIND] = &revision_row,
};
/* clang-format on */

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
	.rows = rows,
	.passing = passing,
};
