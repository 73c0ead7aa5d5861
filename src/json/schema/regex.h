#pragma once
/*
 * Regular expressions of JSON Schema: ECMA-262 with the u flag, searched for anywhere in a text.
 *
 * The engine is PCRE2. POSIX was the other choice; it has neither \d nor lookahead, which schemas
 * use, and glibc's takes time and memory without bound on expressions such as ((a{0,255}){0,255})
 * {0,255}. What PCRE2 has beyond ECMA-262 (recursion, verbs, \K, \Q…) is refused before it sees the
 * expression. It backtracks, so every step of a search is counted against the caller's budget; an
 * expression that is slow on a text ends with an error, never with a wrong answer.
 *
 * Beyond the u flag, and as schemas in use want it, an escaped punctuation mark is itself.
 */
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

enum {
	REGEX_BYTES_MAX = 4096, /* of an expression */
	REGEX_TEXT_MAX = 1 << 20, /* bytes of a text that is searched */
	REGEX_HEAP_MAX = 4096, /* KiB that one search may take */
	REGEX_STRIDE = 32, /* bytes that are run over in the time of a step */
};

struct regex;

/* source: valid UTF-8, copied. NULL with ERR_INVALID where it is no expression, ERR_TOO_LARGE where
 * it is too long or complex, ERR_LIMIT without memory. */
struct regex *regex_new(struct str source, struct err *e) MUST_USE;
void regex_free(struct regex *r); /* NULL-safe */
AUTO_DEFINE(regex_free, struct regex)

size_t regex_footprint(const struct regex *r); /* bytes of memory */

/* Whether it matches somewhere in text, which is valid UTF-8: 1 or 0. *steps is what the search may
 * cost, and is lowered by what it did cost: about one for each item of the expression that is tried
 * at a place, and for each REGEX_STRIDE of the text, as each may have run over all of it. -1 with
 * ERR_TOO_LARGE where that, or the memory, does not suffice. */
int regex_search(const struct regex *r, struct str text, uint64_t *steps, struct err *e) MUST_USE;

/* The same in what may be a part of a text, where its ends are not those of the whole: ^ and $ do
 * not match there. *ret_end: behind the first match. */
enum {
	REGEX_PART_BEHIND = 1 /* something stands before it */,
	REGEX_PART_BEFORE = 2 /* or follows */
};
int regex_find(const struct regex *r, struct str text, unsigned part, uint64_t *steps,
	       size_t *ret_end, struct err *e) MUST_USE;
