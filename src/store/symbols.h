#pragma once
/*
 * An index of symbols in files, to be searched by their names and the words of these (SQLite FTS5).
 * It has no file of its own that stays. Who fills it says which files there are, and of those that
 * have changed what is in them.
 *
 * Names and paths may have any bytes. After a failure the index is useless, and is to be freed.
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

enum {
	SYMBOLS_FILES_MAX = 20000,
	SYMBOLS_MAX = 100000,
	SYMBOLS_OF_FILE_MAX = 2000,
	SYMBOLS_TEXT_MAX = 200, /* bytes of a name, and of the text of a symbol */
};

struct symbols;

struct symbols *symbols_new(struct err *e) MUST_USE;
void symbols_free(struct symbols *s); /* NULL-safe */
AUTO_DEFINE(symbols_free, struct symbols)

/* ---- files --------------------------------------------------------------------------------- */

/* Names all files, one after the other; the others are forgotten at the end. */
int symbols_list_begin(struct symbols *s, struct err *e) MUST_USE;
/* stamp: another one where the content may be another; 0: always. Beyond SYMBOLS_FILES_MAX it is
 * left out. */
int symbols_list_file(struct symbols *s, struct str path, int64_t stamp, uint64_t size,
		      struct err *e) MUST_USE;
int symbols_list_end(struct symbols *s, struct err *e) MUST_USE;

/* Calls each with up to n files that are new or have changed. */
int symbols_unread(struct symbols *s, uint32_t n,
		   int (*each)(void *data, struct str path, struct err *e), void *data,
		   struct err *e) MUST_USE;
/* Before a file is read: what was known of it is dropped. And once it was read to its end. */
int symbols_read_begin(struct symbols *s, struct str path, struct err *e) MUST_USE;
int symbols_read_end(struct symbols *s, struct str path, struct err *e) MUST_USE;

struct symbols_count {
	uint64_t files, unread, left_out;
	bool full; /* there were more symbols */
};
int symbols_count(struct symbols *s, struct symbols_count *ret, struct err *e) MUST_USE;

struct symbol {
	struct str path, name, kind;
	struct str about; /* where it is, and what it takes */
	struct str text; /* its line */
	uint64_t line;
};
/* Adds one to the file that is being read. Those over the limits are left out. once: unless the
 * file has the name. */
int symbols_add(struct symbols *s, const struct symbol *y, bool once, struct err *e) MUST_USE;

/* ---- searching ----------------------------------------------------------------------------- */

/* Calls each with the best of them, the best first: names as they are asked for, then by the words
 * of names, then by all else. *ret_total: how many there are. A query without a word finds none. */
int symbols_find(struct symbols *s, struct str query, uint32_t limit,
		 int (*each)(void *data, const struct symbol *y, struct err *e), void *data,
		 uint64_t *ret_total, struct err *e) MUST_USE;
