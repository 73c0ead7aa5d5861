#pragma once
/*
 * Regular expressions of JSON Schema: ECMA-262 with the u flag, searched for anywhere in a text.
 *
 * The engine is PCRE2. POSIX expressions have neither \d nor lookahead, which schemas use, and
 * those of glibc take unbounded time and memory on expressions such as ((a{0,255}){0,255}){0,255}.
 * Features that only PCRE2 has (recursion, verbs, \K, \Q…) are refused before PCRE2 sees the
 * expression. PCRE2 backtracks, so every step of a search counts against the caller's budget. An
 * expression that is slow on a text ends with an error, never with a wrong answer.
 *
 * Beyond the u flag, an escaped punctuation mark stands for itself, since schemas in use rely on
 * that.
 */
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

enum {
	REGEX_BYTES_MAX = 4096, /* bytes of an expression */
	REGEX_TEXT_MAX = 1 << 20, /* bytes of a text that is searched */
	REGEX_HEAP_MAX = 4096, /* KiB that one search may use */
	REGEX_STRIDE = 32, /* bytes of text that cost as much as a step */
};

struct regex;

/* source: valid UTF-8, copied. NULL with ERR_INVALID: not an expression; ERR_TOO_LARGE: too long or
 * complex; ERR_LIMIT: no memory. */
struct regex *regex_new(struct str source, struct err *e) MUST_USE;
void regex_free(struct regex *r); /* NULL-safe */
AUTO_DEFINE(regex_free, struct regex)

size_t regex_footprint(const struct regex *r); /* bytes of memory */

/* Whether the expression matches anywhere in text, which is valid UTF-8: 1 or 0. *steps is the
 * budget of the search and is reduced by its cost: about one for each item that is tried at a
 * place, times one for each REGEX_STRIDE bytes of the text, since each item may run over all of it.
 * -1 with ERR_TOO_LARGE: the budget or the memory limit was exceeded. */
int regex_search(const struct regex *r, struct str text, uint64_t *steps, struct err *e) MUST_USE;

/* The same for a part of a text: where its ends are not those of the whole text, ^ and $ do not
 * match. *ret_end: the end of the first match. */
enum {
	REGEX_PART_BEHIND = 1 /* something stands before it */,
	REGEX_PART_BEFORE = 2 /* or follows */
};
int regex_find(const struct regex *r, struct str text, unsigned part, uint64_t *steps,
	       size_t *ret_end, struct err *e) MUST_USE;
