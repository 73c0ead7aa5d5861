#pragma once
/*
 * SQLite as the registry uses it: one file of the hub's own, in WAL mode, written by one thread.
 *
 * A commit is in the kernel when it returns and survives whatever happens to this process, kill -9
 * included; it is on the disk only with the next checkpoint (synchronous=NORMAL), so that a power
 * cut may take the last seconds with it, though never a part of a transaction or the file. In
 * return no write waits for the disk.
 *
 * The file belongs to one process: a lock beside it keeps a second out (ERR_STORE_LOCKED), and goes
 * away with the process. What else can be wrong with it has a code each: ERR_STORE_FULL,
 * ERR_STORE_CORRUPT, ERR_STORE_READONLY, ERR_STORE_NEWER. Messages name no path.
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

struct db;

/* Static, for ever. A file's user_version is how many of the migrations it has had; they run in
 * order, each in a transaction of its own, and are never changed once they are released. */
struct db_schema {
	const char *const *migrations;
	size_t n_migrations;
	const char *const *statements; /* prepared at the first use, then kept */
	size_t n_statements;
};

/* Opens the file or makes it (0600). ERR_DENIED for one that is not ours alone. */
struct db *db_open(const char *path, const struct db_schema *schema, struct err *e) MUST_USE;
void db_close(struct db *db); /* NULL-safe; no checkpoint may be under way */
AUTO_DEFINE(db_close, struct db)

/* Transactions do not nest. What runs outside of one is one of its own. A commit that fails is
 * rolled back. */
int db_begin(struct db *db, struct err *e) MUST_USE;
int db_commit(struct db *db, struct err *e) MUST_USE;
void db_rollback(struct db *db);
/* One has begun, and no failure in it has undone it already. */
bool db_is_open(const struct db *db);

/* ---- statements ---------------------------------------------------------------------------- */

struct db_value {
	enum { DB_IS_INT, DB_IS_TEXT, DB_IS_BLOB } kind;
	int64_t i;
	struct str s; /* borrowed until the statement is done; STR_NONE is NULL */
};
#define DB_INT(x) ((struct db_value){ .kind = DB_IS_INT, .i = (int64_t)(x) })
#define DB_TEXT(x) ((struct db_value){ .kind = DB_IS_TEXT, .s = (x) })
#define DB_BLOB(x) ((struct db_value){ .kind = DB_IS_BLOB, .s = (x) })

/* The statement of this number with its parameters, in order; runs it to its end. */
int db_run_values(struct db *db, size_t which, const struct db_value *values, size_t n,
		  struct err *e) MUST_USE;
#define db_run(db, which, e, ...)                                                                  \
	db_run_values(db, which, (const struct db_value[]){ __VA_ARGS__ },                         \
		      sizeof((const struct db_value[]){ __VA_ARGS__ }) / sizeof(struct db_value),  \
		      e)

/* One that gives rows: begin, then next until it is not 1, then end in any case. */
struct db_rows {
	struct db *db;
	void *statement; /* NULL: none */
};
int db_rows_values(struct db *db, size_t which, const struct db_value *values, size_t n,
		   struct db_rows *ret, struct err *e) MUST_USE;
#define db_rows(db, which, ret, e, ...)                                                            \
	db_rows_values(db, which, (const struct db_value[]){ __VA_ARGS__ },                        \
		       sizeof((const struct db_value[]){ __VA_ARGS__ }) / sizeof(struct db_value), \
		       ret, e)
int db_next(struct db_rows *rows, struct err *e) MUST_USE; /* 1: a row, 0: the end, -1 */
void db_rows_end(struct db_rows *rows);
#define autorows __attribute__((cleanup(db_rows_end)))

/* Of the row; borrowed until the next one. */
int64_t db_int(const struct db_rows *rows, int column);
struct str db_text(const struct db_rows *rows, int column); /* STR_NONE for NULL; blobs too */

/* ---- the file behind the log ----------------------------------------------------------------- */

/* The log has grown so far that it should be copied into the file. */
bool db_wants_checkpoint(const struct db *db);

/* Does that, waiting for the disk. From another thread, while this one goes on writing; once at a
 * time. */
int db_checkpoint(struct db *db, struct err *e) MUST_USE;
