#pragma once
/* Shared by the parsers of test reports: tests.c has the report, tests_*.c one format each. */
#include "base/arena.h"
#include "coding/lines.h"
#include "coding/tests.h"

/* The front of a text that grows. */
struct note {
	size_t n;
	char text[TEST_MESSAGE_MAX];
};
/* A line more; lines before the first that is not empty are left out. */
void note_line(struct note *n, struct str line);
static inline struct str note_str(const struct note *n)
{
	size_t len = n->n;

	while (len > 0 && (n->text[len - 1] == '\n' || n->text[len - 1] == ' '))
		len--;
	return (struct str){ n->text, len };
}

/* A name that is kept: cut, it is of no use, and so it becomes empty. */
struct name {
	size_t n;
	char text[TEST_ID_MAX];
};
void name_set(struct name *n, struct str s);
static inline struct str name_str(const struct name *n)
{
	return (struct str){ n->text, n->n };
}

enum { GO_OPEN_MAX = 256, TAP_DEPTH_MAX = 16 };

/* A test of Go that runs. */
struct go_open {
	struct name package, test;
	struct note note;
	bool children, child_failed;
};

struct tap_level {
	struct name name; /* of the subtest whose points are one level deeper */
	bool children;
};

struct test_parser {
	enum test_format format;
	struct lines lines;
	struct arena arena;
	struct name root;
	struct test_report report;
	struct note note;
	struct name scope, name;
	bool inside; /* of a block: an error log, a failure's section, YAML */
	union {
		struct {
			struct go_open *open[GO_OPEN_MAX];
			size_t n;
		} go;
		struct {
			struct tap_level levels[TAP_DEPTH_MAX];
			unsigned depth; /* of the point that is open */
			size_t indent; /* of its YAML */
			bool open, ok, skip, children, group;
			bool said; /* the key of the YAML is one of the message's */
			bool summary; /* of GoogleTest or cmocka: names come once more */
			struct name file;
			unsigned line;
		} tap;
		struct {
			uint64_t failed;
			bool summary;
		} counts;
	};
};

/* Adds a failure. It is counted unless it is known already; ret may be given later a message. NULL:
 * known, or no room. */
struct test_failure *test_parser_fail(struct test_parser *p, struct test_id id, struct str message);
struct test_failure *test_parser_find(struct test_parser *p, struct test_id id);
void test_failure_say(struct test_parser *p, struct test_failure *f, struct str message);
/* Where it happened, with the root left out. */
void test_failure_place(struct test_parser *p, struct test_failure *f, struct str file,
			unsigned line);
struct str test_parser_relative(const struct test_parser *p, struct str file);

void tests_go_line(struct test_parser *p, unsigned stream, struct str line);
void tests_go_end(struct test_parser *p);
void tests_go_free(struct test_parser *p);
void tests_cargo_line(struct test_parser *p, unsigned stream, struct str line);
void tests_pytest_line(struct test_parser *p, unsigned stream, struct str line);
void tests_jest_line(struct test_parser *p, unsigned stream, struct str line);
void tests_jest_end(struct test_parser *p);
void tests_meson_line(struct test_parser *p, unsigned stream, struct str line);
void tests_ctest_line(struct test_parser *p, unsigned stream, struct str line);
void tests_any_line(struct test_parser *p, unsigned stream, struct str line);
void tests_any_end(struct test_parser *p);
void tests_section_end(struct test_parser *p);

/* ---- words of a line ----------------------------------------------------------------------- */

static inline bool str_take(struct str *s, const char *prefix)
{
	size_t n = strlen(prefix);

	if (!str_starts(*s, prefix))
		return false;
	s->p += n;
	s->n -= n;
	return true;
}

static inline struct str str_from(struct str s, size_t at)
{
	return at <= s.n ? (struct str){ s.p + at, s.n - at } : STR_LIT("");
}

static inline struct str str_upto(struct str s, size_t n)
{
	return (struct str){ s.p, n < s.n ? n : s.n };
}

/* Where what begins in s; s.n: nowhere. */
static inline size_t str_find(struct str s, const char *what)
{
	const char *at = s.p && s.n ? memmem(s.p, s.n, what, strlen(what)) : NULL;

	return at ? (size_t)(at - s.p) : s.n;
}

/* A decimal number at the front, which is taken; at most 9 digits. */
bool str_take_number(struct str *s, unsigned *ret);

/* "FILE:LINE" or "FILE:LINE:COLUMN", at the end of s or before ": ". */
bool place_parse(struct str s, struct str *ret_file, unsigned *ret_line, unsigned *ret_column);
