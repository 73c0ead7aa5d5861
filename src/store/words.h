#pragma once
/* Words of names and of queries, for indexes of SQLite's FTS5. */
#include "base/buf.h"

/* The next part of a name at *at: of parseHTTPHeader_2 "parse", "HTTP", "Header" and "2". Empty:
 * there are no more. */
struct str words_part(struct str s, size_t *at);

/* Whether a word may have this byte. */
bool words_has(char c);

/* Appends a text, with `before` and `behind` around it. FTS5 wants UTF-8: bytes that are none
 * become blanks. */
int words_add(struct buf *to, const char *before, struct str s, const char *behind,
	      struct err *e) MUST_USE;
/* Appends the first parts of a name, with a blank behind each. */
int words_add_parts(struct buf *to, struct str name, int most, struct err *e) MUST_USE;
