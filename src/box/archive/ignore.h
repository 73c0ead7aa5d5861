#pragma once
/*
 * Patterns of files to leave out, in the syntax of .dockerignore: one pattern a line, matched
 * against paths below the folder.
 *
 * 	# …		at the start of a line: a comment
 * 	a/b		the file or folder a/b, and all that is below it;
 * 			/a/b, ./a/b/ and a/c/../b mean the same
 * 	* ? [a-z] [^a]	any characters, one, one of these, one of the others; never a slash
 * 	**		any number of folders, or none; at the end of a pattern, everything below
 * 	\*		the character itself
 * 	!a/b/c		except this one; the last line that matches a path decides
 *
 * No I/O. Matching one pattern takes at most the product of its length and the path's length,
 * whatever they contain.
 */
#include <stdbool.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

enum { IGNORE_BYTES_MAX = 64 * 1024, IGNORE_PATTERNS_MAX = 512, IGNORE_PATTERN_MAX = 1024 };

struct ignore;

/* ERR_INVALID names the invalid line: an open or empty bracket, a final backslash, a lone "!";
 * or too many lines. */
struct ignore *ignore_new(struct str text, struct err *e) MUST_USE;
void ignore_free(struct ignore *g); /* NULL-safe */
AUTO_DEFINE(ignore_free, struct ignore)

/* Whether the path is left out. path: from ignore_clean(), in UTF-8 or any other bytes. */
bool ignore_has(const struct ignore *g, struct str path);

/* Whether a folder that is left out may contain something that is not. */
bool ignore_has_exceptions(const struct ignore *g, struct str path);

/* The shortest equivalent path, by text alone: "." for the folder itself; it begins with a slash
 * only if the input did. Returns its length. path has room for at least 2 bytes. */
size_t ignore_clean(char *path);
