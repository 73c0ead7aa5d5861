#pragma once
/*
 * Borrowed bytes. A `struct str` owns nothing and need not end in NUL; its maker defines how long
 * the bytes live. {NULL, 0} means absent, {"", 0} means empty.
 */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct str {
	const char *p;
	size_t n;
};

#define STR_NONE ((struct str){ NULL, 0 })
#define STR_LIT(s) ((struct str){ "" s, sizeof(s) - 1 })
/* for printf: ("%.*s", STR_ARG(s)) */
#define STR_ARG(s) (int)(s).n, (s).p ? (s).p : ""
/* the same, cut at max bytes */
#define STR_CUT(s, max) (int)((s).n < (max) ? (s).n : (max)), (s).p ? (s).p : ""

static inline struct str str_of(const char *z)
{
	return (struct str){ z, z ? strlen(z) : 0 };
}

/* Copies the text to *at, and moves that behind it. */
static inline struct str str_put(char **at, struct str text)
{
	struct str kept = { *at, text.n };

	if (text.n)
		memcpy(*at, text.p, text.n);
	*at += text.n;
	return kept;
}

static inline bool str_eq(struct str a, struct str b)
{
	return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

/* Compares bytes: negative, 0 or positive if a sorts before b, equals it, or sorts after it. */
static inline int str_cmp(struct str a, struct str b)
{
	size_t n = a.n < b.n ? a.n : b.n;
	int c = n > 0 ? memcmp(a.p, b.p, n) : 0;

	return c ? c : (a.n > b.n) - (a.n < b.n);
}

static inline bool str_is(struct str a, const char *z)
{
	return str_eq(a, str_of(z));
}

static inline bool str_starts(struct str s, const char *z)
{
	size_t n = strlen(z);

	return s.n >= n && memcmp(s.p, z, n) == 0;
}

static inline bool str_ends(struct str s, const char *z)
{
	size_t n = strlen(z);

	return s.n >= n && memcmp(s.p + s.n - n, z, n) == 0;
}

/* What stands before c; all of it, where it has no c. */
static inline struct str str_before(struct str s, char c)
{
	const char *at = s.n ? (const char *)memchr(s.p, c, s.n) : NULL;

	return at ? (struct str){ s.p, (size_t)(at - s.p) } : s;
}

/* Without the spaces and tabs at its ends. */
static inline struct str str_trim(struct str s)
{
	while (s.n > 0 && (*s.p == ' ' || *s.p == '\t')) {
		s.p++;
		s.n--;
	}
	while (s.n > 0 && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
		s.n--;
	return s;
}
