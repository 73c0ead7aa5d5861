#pragma once
/*
 * What test runners report, read as a stream: all of the output is parsed, whatever of it is kept
 * elsewhere, and memory stays bounded. No I/O.
 *
 *	p = test_parser_new(format, root)
 *	test_parser_feed(p, …) …
 *	report = test_parser_end(p)
 *
 * A report that has nothing of its format is told apart from one without failures:
 * test_report_verdict().
 */
#include <stdint.h>

#include "coding/test_id.h"

enum test_format {
	TESTS_GO, /* go test -json */
	TESTS_CARGO, /* cargo test 2>&1 */
	TESTS_PYTEST, /* lines of the plugin in coding/command.c */
	TESTS_JEST, /* its text on standard error */
	TESTS_MESON, /* meson test --print-errorlogs */
	TESTS_CTEST, /* ctest --output-on-failure */
	/* TAP of any producer (node --test and vitest among them), Automake's test lines, those of
	 * GoogleTest and cmocka */
	TESTS_ANY,
	TEST_FORMATS
};

enum {
	TEST_FAILURES_MAX = 500, /* that are kept; all are counted */
	TEST_MESSAGE_MAX = 2048, /* bytes of a failure's message */
};

struct test_failure {
	struct test_id id;
	struct str file; /* relative to root, or as the runner says it; may be empty */
	unsigned line; /* 0: unknown */
	struct str message; /* lines; may be empty */
};

struct test_report {
	uint64_t passed, failed, skipped;
	struct test_failure *failures; /* in the order in which they came */
	size_t n;
	bool seen; /* something of the format was read */
	uint64_t lost; /* lines that were cut or malformed, and pieces that never came */
	struct str missing; /* a program that the command did not find; empty: none */
};

enum test_verdict {
	TESTS_PASSED,
	TESTS_FAILED,
	TESTS_NONE, /* the runner worked, and ran no test */
	/* The exit status has another reason than a failure in the report: it did not build, it
	 * ended early, or its output is of another format. */
	TESTS_UNPARSED,
};
enum test_verdict test_report_verdict(const struct test_report *r, int exit_code);

struct test_parser;

/* root: the project's folder as the program sees it, which is left out of file names; copied. */
struct test_parser *test_parser_new(enum test_format format, struct str root,
				    struct err *e) MUST_USE;
void test_parser_free(struct test_parser *p); /* NULL-safe */
AUTO_DEFINE(test_parser_free, struct test_parser)

/* stream: 0 is standard output, 1 standard error. */
void test_parser_feed(struct test_parser *p, unsigned stream, struct str bytes);
/* Some output never came: the report may lack failures. */
void test_parser_lost(struct test_parser *p);
/* Once. Borrowed until test_parser_free(). */
const struct test_report *test_parser_end(struct test_parser *p);
