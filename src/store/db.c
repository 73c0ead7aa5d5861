#include "store/db.h"

#include <fcntl.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/library.h"
#include "base/log.h"

enum {
	STATEMENTS_MAX = 64,
	STATEMENT_MAX = 4 << 10, /* bytes */
	COLUMNS_MAX = 32,
	BUSY_MS = 200, /* for people who read the file meanwhile */
	LOG_PAGES = 2000, /* pages of 4 KiB, before they are copied into the file */
	LOG_PAGES_MAX = 16000, /* then the writer itself does it */
};
#define APPLICATION_ID 1215261812 /* "Holt" */

struct db {
	const struct db_schema *schema;
	sqlite3 *sqlite;
	sqlite3 *side; /* of the thread that makes checkpoints */
	sqlite3_stmt *statements[STATEMENTS_MAX];
	int log; /* the write-ahead log, to sync it */
	int lock;
	int log_pages;
	uint64_t written, synced; /* db_written() */
	bool failing; /* the last write failed */
	bool killed; /* who had it last did not close it */
};

/* ---- errors -------------------------------------------------------------------------------- */

static int fail_io(int errnum, struct err *e)
{
	if (errnum == ENOSPC || errnum == EDQUOT || errnum == EFBIG)
		return err_set(e, ERR_STORE_FULL, "there is no room for the registry on its disk");
	if (errnum == EROFS || errnum == EACCES || errnum == EPERM)
		return err_set(e, ERR_STORE_READONLY, "the registry can't be written: %s",
			       strerror(errnum));
	return err_set(e, ERR_IO, "the registry: %s",
		       errnum ? strerror(errnum) : "input or output");
}

/* SQLite mostly loses errno (it keeps ENOSPC, but neither quotas nor limits of the process), so
 * the disk is probed with a byte at the log's length. */
static int ask_disk(sqlite3 *sqlite)
{
	const char *file = sqlite3_db_filename(sqlite, "main");
	char name[PATH_MAX];
	struct stat log = { 0 };
	autoclose int fd = -1;
	int errnum = 0;

	snprintf(name, sizeof(name), "%s-wal", file ? file : "");
	if (stat(name, &log) < 0)
		log.st_size = 0;
	snprintf(name, sizeof(name), "%s-lock", file ? file : "");
	fd = open(name, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || pwrite(fd, "", 1, log.st_size + 65536) != 1)
		errnum = errno;
	if (fd >= 0 && ftruncate(fd, 0) < 0)
		errnum = errno;
	return errnum;
}

/* SQLite opens a file to read where opening it to write fails, and loses why. */
static int fail_readonly(sqlite3 *sqlite, struct err *e)
{
	static const char *const suffixes[] = { "", "-wal", "-shm" };
	const char *file = sqlite ? sqlite3_db_filename(sqlite, "main") : NULL;
	char name[PATH_MAX];

	for (size_t i = 0; i < ARRAY_LEN(suffixes) && file; i++) {
		snprintf(name, sizeof(name), "%s%s", file, suffixes[i]);
		if (access(name, W_OK) < 0 && errno != ENOENT)
			return fail_io(errno, e);
	}
	return err_set(e, file ? ERR_IO : ERR_STORE_READONLY, "the registry can't be written");
}

static int db_fail(sqlite3 *sqlite, int rc, struct err *e)
{
	int errnum = sqlite ? sqlite3_system_errno(sqlite) : 0;

	switch (rc & 0xff) {
	case SQLITE_FULL:
		return fail_io(ENOSPC, e);
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return err_set(e, ERR_STORE_CORRUPT, "the registry is damaged: %s",
			       sqlite3_errstr(rc));
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return err_set(e, ERR_STORE_LOCKED, "another program has locked the registry");
	case SQLITE_READONLY:
	case SQLITE_PERM:
		return fail_readonly(sqlite, e);
	case SQLITE_IOERR:
	case SQLITE_CANTOPEN:
		return fail_io(errnum || !sqlite ? errnum : ask_disk(sqlite), e);
	case SQLITE_NOMEM:
		return err_set(e, ERR_LIMIT, "out of memory");
	default:
		return err_set(e, ERR_BUG, "the registry: %s",
			       sqlite ? sqlite3_errmsg(sqlite) : sqlite3_errstr(rc));
	}
}

/* ---- opening ------------------------------------------------------------------------------- */

/* SQLite would create the file with the umask's mode, and follow a link. Closing the file
 * releases all locks of this process on it, so this happens before SQLite has any. */
static int make_file(const char *path, struct err *e)
{
	autoclose int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	struct stat st;

	if (fd < 0 && errno == ELOOP)
		return err_set(e, ERR_DENIED, "the registry must be a file, not a link");
	if (fd < 0 || fstat(fd, &st) < 0)
		return fail_io(errno, e);
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077) != 0)
		return err_set(e, ERR_DENIED,
			       "the registry must be a file of yours that nobody else may read or "
			       "write (chmod 600)");
	return 0;
}

/* Locks a separate file: SQLite's locks on its own belong to the process, and come and go. */
static int take_lock(struct db *db, const char *path, struct err *e)
{
	char name[PATH_MAX];

	if (snprintf(name, sizeof(name), "%s-lock", path) >= (int)sizeof(name))
		return err_set(e, ERR_INVALID, "the path of the registry is too long");
	db->lock = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (db->lock < 0)
		return fail_io(errno, e);
	if (fd_lock(db->lock) < 0)
		return errno == EWOULDBLOCK ? err_set(e, ERR_STORE_LOCKED,
						      "another hub runs with the same data folder")
					    : fail_io(errno, e);
	return 0;
}

static int exec(sqlite3 *sqlite, const char *sql, struct err *e)
{
	int rc = sqlite3_exec(sqlite, sql, NULL, NULL, NULL);

	return rc == SQLITE_OK ? 0 : db_fail(sqlite, rc, e);
}

/* The one value of a pragma, copied. */
static int db_ask(sqlite3 *sqlite, const char *sql, char *ret, size_t room, struct err *e)
{
	sqlite3_stmt *s = NULL;
	int rc = sqlite3_prepare_v2(sqlite, sql, -1, &s, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_step(s);
	if (rc == SQLITE_ROW)
		snprintf(ret, room, "%s", (const char *)sqlite3_column_text(s, 0));
	if (rc != SQLITE_ROW)
		db_fail(sqlite, rc, e);
	sqlite3_finalize(s);
	return rc == SQLITE_ROW ? 0 : -1;
}

static int ask_int(sqlite3 *sqlite, const char *sql, long *ret, struct err *e)
{
	char text[32];

	if (db_ask(sqlite, sql, text, sizeof(text), e) < 0)
		return -1;
	*ret = strtol(text, NULL, 10);
	return 0;
}

static int open_file(const char *path, sqlite3 **ret, struct err *e)
{
	int rc = sqlite3_open_v2(path, ret, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);

	if (rc != SQLITE_OK)
		return db_fail(*ret, rc, e);
	sqlite3_extended_result_codes(*ret, 1);
	sqlite3_busy_timeout(*ret, BUSY_MS);
	sqlite3_db_config(*ret, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	return exec(
		*ret,
		"PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON; PRAGMA foreign_keys=ON;"
		"PRAGMA synchronous=NORMAL; PRAGMA wal_autocheckpoint=0; PRAGMA temp_store=MEMORY;"
		"PRAGMA cache_size=-1024",
		e);
}

/* Checks that the file is a registry, intact, and not from a later version of Holt. */
static int check_file(struct db *db, long *ret_version, struct err *e)
{
	char text[128];
	const char *code;
	int rc;
	long id;

	if (ask_int(db->sqlite, "PRAGMA application_id", &id, e) < 0 ||
	    ask_int(db->sqlite, "PRAGMA user_version", ret_version, e) < 0)
		return -1;
	if ((*ret_version != 0 || id != 0) && id != APPLICATION_ID)
		return err_set(e, ERR_STORE_CORRUPT, "the file is no registry of Holt");
	if (*ret_version < 0 || (size_t)*ret_version > db->schema->n_migrations)
		return err_set(e, ERR_STORE_NEWER,
			       "the registry has version %ld, and this Holt knows %zu at most",
			       *ret_version, db->schema->n_migrations);
	if (db_ask(db->sqlite, "PRAGMA quick_check(1)", text, sizeof(text), e) < 0)
		return -1;
	if (strcmp(text, "ok") == 0)
		return 0;
	/* A page that can't be read now is no damage. */
	code = strstr(text, "error code=");
	rc = code ? (int)strtol(code + strlen("error code="), NULL, 10) : SQLITE_CORRUPT;
	if ((rc & 0xff) != SQLITE_CORRUPT)
		return db_fail(NULL, rc, e);
	return err_set(e, ERR_STORE_CORRUPT, "the registry is damaged: %.100s", text);
}

static int migrate(struct db *db, long version, struct err *e)
{
	char set[96];

	for (size_t i = (size_t)version; i < db->schema->n_migrations; i++) {
		snprintf(set, sizeof(set), "PRAGMA application_id=%d; PRAGMA user_version=%zu",
			 APPLICATION_ID, i + 1);
		if (db_begin(db, e) < 0)
			return -1;
		if (exec(db->sqlite, db->schema->migrations[i], e) < 0 ||
		    exec(db->sqlite, set, e) < 0) {
			db_rollback(db);
			return err_wrap(e, "migration %zu", i + 1);
		}
		if (db_commit(db, e) < 0)
			return -1;
	}
	return 0;
}

static int on_log(void *arg, sqlite3 *sqlite, const char *name, int pages)
{
	struct db *db = arg;

	db->log_pages = pages;
	if (pages >= LOG_PAGES_MAX) {
		sqlite3_wal_checkpoint_v2(sqlite, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
		log_debug("the registry's log was copied by its writer");
	}
	return SQLITE_OK;
}

/* Writes what is there already. */
static int write_version(struct db *db, struct err *e)
{
	char set[64];

	snprintf(set, sizeof(set), "PRAGMA user_version=%zu", db->schema->n_migrations);
	return exec(db->sqlite, set, e);
}

static void log_name(const char *path, char ret[PATH_MAX])
{
	snprintf(ret, PATH_MAX, "%s-wal", path);
}

/* The log's name must be on the disk before the first db_sync(). A hub that was killed may have
 * named files that it did not sync. What is there counts as kept from now on, so it has to be. */
static int open_log(struct db *db, const char *path, struct err *e)
{
	char name[PATH_MAX];
	char *slash;
	autoclose int folder = -1;

	log_name(path, name);
	db->log = open(name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (db->log < 0)
		return fail_io(errno, e);
	slash = strrchr(name, '/');
	snprintf(slash ? slash + 1 : name, 2, ".");
	folder = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (folder < 0 || fsync(db->log) < 0 || (db->killed ? syncfs : fsync)(folder) < 0)
		return fail_io(errno, e);
	return 0;
}

static int open_files(struct db *db, const char *path, struct err *e)
{
	char mode[16];
	long version;

	if (make_file(path, e) < 0 || open_file(path, &db->sqlite, e) < 0 ||
	    check_file(db, &version, e) < 0 ||
	    db_ask(db->sqlite, "PRAGMA journal_mode=WAL", mode, sizeof(mode), e) < 0)
		return -1;
	if (strcmp(mode, "wal") != 0)
		return err_set(e, ERR_STORE_READONLY,
			       "the registry's file system can't hold its log (WAL)");
	if (migrate(db, version, e) < 0)
		return -1;
	/* With a full disk the hub starts, so that people can free some of it. */
	db->failing = write_version(db, e) < 0;
	if ((db->failing && e->code != ERR_STORE_FULL) || open_log(db, path, e) < 0)
		return -1;
	sqlite3_wal_hook(db->sqlite, on_log, db);
	return open_file(path, &db->side, e);
}

static void close_files(struct db *db)
{
	for (size_t i = 0; i < STATEMENTS_MAX; i++)
		sqlite3_finalize(take_ptr(db->statements[i]));
	sqlite3_close(take_ptr(db->side));
	sqlite3_close(take_ptr(db->sqlite)); /* the last close copies the log into the file */
	close_fd(&db->log);
}

/* Reads a file that looks damaged once more, since a read that failed can look so. */
static int open_all(struct db *db, const char *path, struct err *e)
{
	char log[PATH_MAX];

	if (take_lock(db, path, e) < 0)
		return -1;
	log_name(path, log);
	db->killed = access(log, F_OK) == 0;
	for (int tries = 2; open_files(db, path, e) < 0; tries--) {
		if (e->code != ERR_STORE_CORRUPT || tries == 1)
			return -1;
		close_files(db);
	}
	return 0;
}

static struct db *db_new(const struct db_schema *schema, struct err *e)
{
	struct db *db;

	if (library_load("sqlite3", e) < 0)
		return NULL;
	db = calloc(1, sizeof(*db));
	if (!db || schema->n_statements > STATEMENTS_MAX) {
		err_set(e, ERR_LIMIT, "out of memory");
		free(db);
		return NULL;
	}
	db->schema = schema;
	db->log = db->lock = -1;
	return db;
}

struct db *db_open(const char *path, const struct db_schema *schema, struct err *e)
{
	AUTO(db_close) struct db *db = db_new(schema, e);

	return db && open_all(db, path, e) == 0 ? take_ptr(db) : NULL;
}

struct db *db_open_scratch(const struct db_schema *schema, struct err *e)
{
	AUTO(db_close) struct db *db = db_new(schema, e);
	int rc = db ? sqlite3_open_v2("", &db->sqlite,
				      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE |
					      SQLITE_OPEN_NOMUTEX,
				      NULL)
		    : SQLITE_OK;

	if (!db)
		return NULL;
	if (rc != SQLITE_OK) {
		db_fail(db->sqlite, rc, e);
		return NULL;
	}
	return exec(db->sqlite,
		    "PRAGMA trusted_schema=OFF; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;"
		    "PRAGMA cache_size=-2048",
		    e) == 0 && migrate(db, 0, e) == 0
		     ? take_ptr(db)
		     : NULL;
}

void db_close(struct db *db)
{
	if (!db)
		return;
	close_files(db);
	close_fd(&db->lock);
	free(db);
}

/* ---- transactions -------------------------------------------------------------------------- */

int db_begin(struct db *db, struct err *e)
{
	return exec(db->sqlite, "BEGIN IMMEDIATE", e);
}

int db_commit(struct db *db, struct err *e)
{
	if (exec(db->sqlite, "COMMIT", e) == 0) {
		db->written += db_unsynced(db); /* what was counted before is written only now */
		return 0;
	}
	db->failing = true;
	db_rollback(db);
	return -1;
}

bool db_is_open(const struct db *db)
{
	return !sqlite3_get_autocommit(db->sqlite);
}

void db_rollback(struct db *db)
{
	if (db_is_open(db))
		sqlite3_exec(db->sqlite, "ROLLBACK", NULL, NULL, NULL);
}

/* ---- statements ---------------------------------------------------------------------------- */

static int bind(sqlite3_stmt *s, int at, const struct db_value *v)
{
	if (v->kind == DB_IS_INT)
		return sqlite3_bind_int64(s, at, v->i);
	if (!v->s.p)
		return sqlite3_bind_null(s, at);
	if (v->kind == DB_IS_TEXT)
		return sqlite3_bind_text64(s, at, v->s.p, v->s.n, SQLITE_STATIC, SQLITE_UTF8);
	return sqlite3_bind_blob64(s, at, v->s.p, v->s.n, SQLITE_STATIC);
}

/* Names and values of a row's columns take the place of %N and %V. */
static int spell(const struct db_schema *schema, size_t which, struct buf *to, struct err *e)
{
	const struct db_row *row = schema->rows ? schema->rows[which] : NULL;
	const char *at = schema->statements[which];
	const char *mark;

	for (; row && (mark = strchr(at, '%')); at = mark + 2) {
		if (buf_add(to, at, (size_t)(mark - at), e) < 0)
			return -1;
		for (size_t i = 0; i < row->n; i++) {
			const char *comma = i ? ", " : "";

			if ((mark[1] == 'N' ? buf_addf(to, e, "%s%s", comma, row->columns[i].name)
					    : buf_addf(to, e, "%s?%zu", comma, i + 1)) < 0)
				return -1;
		}
	}
	return buf_addf(to, e, "%s", at);
}

static int prepare(struct db *db, size_t which, struct err *e)
{
	autobuf struct buf text = BUF_INIT(STATEMENT_MAX);
	int rc;

	if (db->statements[which])
		return 0;
	if (spell(db->schema, which, &text, e) < 0)
		return -1;
	rc = sqlite3_prepare_v3(db->sqlite, buf_str(&text).p, -1, SQLITE_PREPARE_PERSISTENT,
				&db->statements[which], NULL);
	return rc == SQLITE_OK ? 0 : db_fail(db->sqlite, rc, e);
}

int db_rows_values(struct db *db, size_t which, const struct db_value *values, size_t n,
		   struct db_rows *ret, struct err *e)
{
	int rc = SQLITE_OK;

	*ret = (struct db_rows){ .db = db };
	if (prepare(db, which, e) < 0)
		return -1;
	for (size_t i = 0; rc == SQLITE_OK && i < n; i++)
		rc = bind(db->statements[which], (int)i + 1, &values[i]);
	if (rc != SQLITE_OK)
		return db_fail(db->sqlite, rc, e);
	ret->statement = db->statements[which];
	ret->which = which;
	return 0;
}

int db_next(struct db_rows *rows, struct err *e)
{
	int rc = sqlite3_step(rows->statement);
	struct db *db = rows->db;
	bool failed = rc != SQLITE_DONE;

	if (rc == SQLITE_ROW)
		return 1;
	if (!sqlite3_stmt_readonly(rows->statement)) {
		db->failing = failed;
		if (!failed && !(db->schema->passing && db->schema->passing[rows->which]))
			db->written++;
	}
	return failed ? db_fail(db->sqlite, rc, e) : 0;
}

void db_rows_end(struct db_rows *rows)
{
	sqlite3_stmt *s = take_ptr(rows->statement);

	if (!s)
		return;
	sqlite3_reset(s);
	sqlite3_clear_bindings(s);
}

int db_run_values(struct db *db, size_t which, const struct db_value *values, size_t n,
		  struct err *e)
{
	autorows struct db_rows rows;
	int more;

	if (db_rows_values(db, which, values, n, &rows, e) < 0)
		return -1;
	do {
		more = db_next(&rows, e);
	} while (more > 0);
	return more;
}

int64_t db_int(const struct db_rows *rows, int column)
{
	return sqlite3_column_int64(rows->statement, column);
}

struct str db_text(const struct db_rows *rows, int column)
{
	const char *p = sqlite3_column_blob(rows->statement, column);
	int n = sqlite3_column_bytes(rows->statement, column);

	if (sqlite3_column_type(rows->statement, column) == SQLITE_NULL)
		return STR_NONE;
	return (struct str){ p ? p : "", (size_t)n };
}

/* ---- rows by their tables -------------------------------------------------------------------- */

int db_put(struct db *db, size_t which, const struct db_row *row, const void *from, struct err *e)
{
	struct db_value values[COLUMNS_MAX];

	for (size_t i = 0; i < row->n; i++) {
		const void *at = (const char *)from + row->columns[i].offset;

		switch (row->columns[i].type) {
		case DB_I64:
			values[i] = DB_INT(*(const int64_t *)at);
			break;
		case DB_I32:
			values[i] = DB_INT(*(const int32_t *)at);
			break;
		case DB_U32:
			values[i] = DB_INT(*(const uint32_t *)at);
			break;
		case DB_BOOL:
			values[i] = DB_INT(*(const bool *)at);
			break;
		case DB_STR:
			values[i] = DB_TEXT(*(const struct str *)at);
			break;
		case DB_STR_BYTES:
			values[i] = DB_BLOB(*(const struct str *)at);
			break;
		}
	}
	return db_run_values(db, which, values, row->n, e);
}

int db_next_row(struct db_rows *rows, const struct db_row *row, void *ret, struct err *e)
{
	int more = db_next(rows, e);

	for (size_t i = 0; more > 0 && i < row->n; i++) {
		void *to = (char *)ret + row->columns[i].offset;

		switch (row->columns[i].type) {
		case DB_I64:
			*(int64_t *)to = db_int(rows, (int)i);
			break;
		case DB_I32:
			*(int32_t *)to = (int32_t)db_int(rows, (int)i);
			break;
		case DB_U32:
			*(uint32_t *)to = (uint32_t)db_int(rows, (int)i);
			break;
		case DB_BOOL:
			*(bool *)to = db_int(rows, (int)i) != 0;
			break;
		case DB_STR:
		case DB_STR_BYTES:
			*(struct str *)to = db_text(rows, (int)i);
			break;
		}
	}
	return more;
}

/* ---- durability ---------------------------------------------------------------------------- */

/* Pages that are no longer in the log were synced when they were copied into the file. */
int db_sync(const struct db *db, struct err *e)
{
	return fdatasync(db->log) < 0 ? fail_io(errno, e) : 0;
}

uint64_t db_written(const struct db *db)
{
	return db->written;
}

void db_must_last(struct db *db)
{
	db->written++;
}

void db_synced(struct db *db, uint64_t written)
{
	if (written > db->synced)
		db->synced = written;
}

bool db_unsynced(const struct db *db)
{
	return db->written != db->synced;
}

int db_check(struct db *db, struct err *e)
{
	if (db->failing && !db_is_open(db) && write_version(db, e) < 0)
		return -1;
	db->failing = false;
	return 0;
}

/* ---- checkpoints --------------------------------------------------------------------------- */

bool db_wants_checkpoint(const struct db *db)
{
	return db->log_pages >= LOG_PAGES;
}

int db_checkpoint(struct db *db, struct err *e)
{
	int rc = sqlite3_wal_checkpoint_v2(db->side, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);

	return rc == SQLITE_OK || rc == SQLITE_BUSY ? 0 : db_fail(db->side, rc, e);
}

int db_look(const char *path, const char *sql, const char *text, struct err *e)
{
	sqlite3 *sqlite = NULL;
	sqlite3_stmt *s = NULL;
	int rc, found = -1;

	if (access(path, F_OK) < 0 && errno == ENOENT)
		return 0;
	if (library_load("sqlite3", e) < 0)
		return -1;
	if (open_file(path, &sqlite, e) == 0) {
		rc = sqlite3_prepare_v2(sqlite, sql, -1, &s, NULL);
		if (rc == SQLITE_OK)
			rc = sqlite3_bind_text(s, 1, text, -1, SQLITE_STATIC);
		if (rc == SQLITE_OK)
			rc = sqlite3_step(s);
		found = rc == SQLITE_ROW ? sqlite3_column_int64(s, 0) != 0 : db_fail(sqlite, rc, e);
	}
	sqlite3_finalize(s);
	sqlite3_close(sqlite);
	return found;
}
