#pragma once
/*
 * SQLite as the registry uses it: one file in WAL mode, written by one thread. A commit has reached
 * the kernel when it returns, and survives any end of this process, even kill -9. It reaches the
 * disk with the next db_sync() or checkpoint (synchronous=NORMAL): a power cut may lose what came
 * after it, but never part of a transaction or of the file. So no write waits for the disk, and
 * who promises something does: db_unsynced() tells whether it has to.
 *
 * The file belongs to one process: a lock beside it keeps others out (ERR_STORE_LOCKED) and ends
 * with the process. Other failures have a code each: ERR_STORE_FULL, ERR_STORE_CORRUPT,
 * ERR_STORE_READONLY, ERR_STORE_NEWER. Messages contain no path.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

struct db;

/* A column, and the member of a struct that has its value. */
struct db_column {
	const char *name;
	size_t offset;
	enum db_type { DB_I64, DB_I32, DB_U32, DB_BOOL, DB_STR, DB_STR_BYTES } type;
};
#define DB_TYPE(S, m)                                                                              \
	_Generic(((S *)0)->m, int64_t                                                              \
		 : DB_I64, uint64_t                                                                \
		 : DB_I64, int32_t                                                                 \
		 : DB_I32, uint32_t                                                                \
		 : DB_I32, bool                                                                    \
		 : DB_BOOL, struct str                                                             \
		 : DB_STR)
#define DB_COLUMN_NAMED(S, m, name_)                                                               \
	{                                                                                          \
		name_, offsetof(S, m), DB_TYPE(S, m)                                               \
	}
#define DB_COLUMN(S, m) DB_COLUMN_NAMED(S, m, #m)
#define DB_BYTES(S, m)                                                                             \
	{                                                                                          \
#m, offsetof(S, m), DB_STR_BYTES                                                   \
	} /* of a column of blobs */

/* What is written of a struct, and read into one: a static table. */
struct db_row {
	const struct db_column *columns;
	size_t n;
};
#define DB_ROW(c)                                                                                  \
	{                                                                                          \
		c, ARRAY_LEN(c)                                                                    \
	}

/* A static table. A file's user_version counts its migrations. They run in order, each in its
 * own transaction, and never change after a release. */
struct db_schema {
	const char *const *migrations;
	size_t n_migrations;
	const char *const *statements; /* prepared at the first use, then kept */
	size_t n_statements;
	/* The rows of statements that name columns by %N (id, name, …) and values by %V (?1, ?2,
	 * …). NULL: none does. */
	const struct db_row *const *rows;
	/* True for statements whose writes a power cut may take, since nothing is promised with
	 * them. NULL: for none. */
	const bool *passing;
};

/* Opens the file, or creates it (0600). ERR_DENIED if others own or may access it. */
struct db *db_open(const char *path, const struct db_schema *schema, struct err *e) MUST_USE;
/* One without a name, for what can be made again: SQLite keeps it in a file that is gone from its
 * folder at once. Nothing of it is written back after a failure: it is closed then. */
struct db *db_open_scratch(const struct db_schema *schema, struct err *e) MUST_USE;
void db_close(struct db *db); /* NULL-safe; no checkpoint may be under way */
AUTO_DEFINE(db_close, struct db)

/* Transactions do not nest. A statement outside of one is its own. A failed commit is rolled
 * back. */
int db_begin(struct db *db, struct err *e) MUST_USE;
int db_commit(struct db *db, struct err *e) MUST_USE;
void db_rollback(struct db *db);
/* True if a transaction is open and no failure has rolled it back. */
bool db_is_open(const struct db *db);

/* Makes what was committed before durable. May run on another thread. */
int db_sync(const struct db *db, struct err *e) MUST_USE;
/* Counts what was written and must outlive a power cut: statements that are not passing, and
 * db_must_last(). db_synced(): what was counted up to this is on the disk. */
uint64_t db_written(const struct db *db);
void db_must_last(struct db *db);
void db_synced(struct db *db, uint64_t written);
bool db_unsynced(const struct db *db);

/* Whether the file can be written. After a failure that is tried. */
int db_check(struct db *db, struct err *e) MUST_USE;

/* ---- statements ---------------------------------------------------------------------------- */

struct db_value {
	enum { DB_IS_INT, DB_IS_TEXT, DB_IS_BLOB } kind;
	int64_t i;
	struct str s; /* borrowed until the statement is done; STR_NONE is NULL */
};
#define DB_INT(x) ((struct db_value){ .kind = DB_IS_INT, .i = (int64_t)(x) })
#define DB_TEXT(x) ((struct db_value){ .kind = DB_IS_TEXT, .s = (x) })
#define DB_BLOB(x) ((struct db_value){ .kind = DB_IS_BLOB, .s = (x) })

/* Binds the parameters, in order, and runs the statement of this number to its end. */
int db_run_values(struct db *db, size_t which, const struct db_value *values, size_t n,
		  struct err *e) MUST_USE;
#define db_run(db, which, e, ...)                                                                  \
	db_run_values(db, which, (const struct db_value[]){ __VA_ARGS__ },                         \
		      sizeof((const struct db_value[]){ __VA_ARGS__ }) / sizeof(struct db_value),  \
		      e)

/* For a statement with rows: begin, next until it is not 1, then end in any case. */
struct db_rows {
	struct db *db;
	void *statement; /* NULL: none */
	size_t which;
};
int db_rows_values(struct db *db, size_t which, const struct db_value *values, size_t n,
		   struct db_rows *ret, struct err *e) MUST_USE;
#define db_rows(db, which, ret, e, ...)                                                            \
	db_rows_values(db, which, (const struct db_value[]){ __VA_ARGS__ },                        \
		       sizeof((const struct db_value[]){ __VA_ARGS__ }) / sizeof(struct db_value), \
		       ret, e)
int db_next(struct db_rows *rows, struct err *e) MUST_USE; /* 1: a row, 0: the end, -1 */
/* The same, and reads the first columns into *ret, whose texts are borrowed until the next row. */
int db_next_row(struct db_rows *rows, const struct db_row *row, void *ret, struct err *e) MUST_USE;
/* Runs a statement with %V and the values of a struct. */
int db_put(struct db *db, size_t which, const struct db_row *row, const void *from,
	   struct err *e) MUST_USE;
void db_rows_end(struct db_rows *rows);
#define autorows __attribute__((cleanup(db_rows_end)))

/* Columns of the row; borrowed until the next row. */
int64_t db_int(const struct db_rows *rows, int column);
struct str db_text(const struct db_rows *rows, int column); /* STR_NONE for NULL; blobs too */

/* ---- checkpoints --------------------------------------------------------------------------- */

/* Whether the log is long enough for a checkpoint. */
bool db_wants_checkpoint(const struct db *db);

/* Copies the log into the file and waits for the disk. Call it from another thread while this
 * one writes; only one at a time. */
int db_checkpoint(struct db *db, struct err *e) MUST_USE;

/* 1: a statement with one parameter selects a number that is not 0 from the database in a file,
 * which another process may have open. 0 also without the file. */
int db_look(const char *path, const char *sql, const char *text, struct err *e) MUST_USE;
