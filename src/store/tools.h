#pragma once
/*
 * An index of tools, to be searched by natural words (SQLite FTS5, BM25). It has no file of its own
 * that stays. Words are compared by their stems; those of names count more than those of
 * descriptions. Texts may have any bytes. After a failure the index is useless, and is to be freed.
 */
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

enum { TOOLS_TEXT_MAX = 2000 /* bytes of each text that is searched */ };

struct tools;

struct tools *tools_new(struct err *e) MUST_USE;
void tools_free(struct tools *t); /* NULL-safe */
AUTO_DEFINE(tools_free, struct tools)

struct tools_entry {
	/* What it is searched by. arguments: their names and descriptions. */
	struct str name, title, description, arguments;
	/* What is given back as it is. */
	struct str module, tool, function, shown;
};
size_t tools_count(const struct tools *t);
int tools_add(struct tools *t, const struct tools_entry *x, struct err *e) MUST_USE;

/* Calls each with the best, the best first, of which only what is given back is there. *ret_total:
 * how many there are. A query without a word finds none. */
int tools_find(struct tools *t, struct str query, uint32_t limit,
	       int (*each)(void *data, const struct tools_entry *x, struct err *e), void *data,
	       uint64_t *ret_total, struct err *e) MUST_USE;
