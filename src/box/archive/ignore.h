#pragma once
/*
 * Which files of a folder are left out, as .dockerignore files say it: a pattern a line, of paths below the folder.
 *
 *	# …		at the begin of a line: a comment
 *	a/b		the file or folder a/b, and all that is below it; so are /a/b, ./a/b/ and a/c/../b
 *	* ? [a-z] [^a]	any characters, one, one of these, one of the others; none of them is a slash
 *	**		any number of folders, none too; all that is there at the end of a pattern
 *	\*		the character itself
 *	!a/b/c		but not that one: the last line that means a path decides
 *
 * No I/O. Time is bounded by the length of a pattern times that of a path, for each pattern, whatever is in them.
 */
#include <stdbool.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

enum { IGNORE_BYTES_MAX = 64 * 1024, IGNORE_PATTERNS_MAX = 512, IGNORE_PATTERN_MAX = 1024 };

struct ignore;

/* ERR_INVALID names the line that is no pattern: with an open or empty bracket, a backslash at its end, "!" alone;
 * or where there is more of it than allowed. */
struct ignore *ignore_new(struct str text, struct err *e) MUST_USE;
void ignore_free(struct ignore *g); /* NULL-safe */
AUTO_DEFINE(ignore_free, struct ignore)

/* Whether it is left out. path: as ignore_clean() leaves it, in UTF-8 or any other bytes. */
bool ignore_has(const struct ignore *g, struct str path);

/* Whether something below that folder, which is left out, may not be. */
bool ignore_has_exceptions(const struct ignore *g, struct str path);

/* The shortest path that means the same, by its letters alone: "." for the folder itself; it begins with a slash
 * only where it did before. Gives its length; path has room for 2 bytes at least. */
size_t ignore_clean(char *path);
