/* hub/spool/match.h: what a pattern finds does not depend on where output is cut, and costs what
 * it may. */
#include <stdlib.h>

#include "hub/spool/match.h"
#include "test.h"

enum { NEVER = -1, REFUSED = -2 };
/* Where a pattern is found when the text comes in pieces of so many bytes, or at its end: behind
 * all of it. */
static long found_in(const char *pattern, struct str text, size_t piece)
{
	struct err e = ERR_INIT;
	AUTO(job_match_free) struct job_match *m = job_match_new(str_of(pattern), &e);
	size_t n;

	assert_non_null(m);
	for (size_t at = 0; at < text.n; at += piece) {
		struct str part = { text.p + at, text.n - at < piece ? text.n - at : piece };
		int found = job_match_feed(m, 0, part, &n, &e);

		if (found > 0) {
			assert_in_range(n, 0, part.n);
			return (long)(at + n);
		}
		if (found < 0) {
			assert_int_equal(e.code, ERR_INVALID);
			return REFUSED;
		}
	}
	return job_match_end(m, &e) > 0 ? (long)text.n : NEVER;
}

static const struct {
	const char *pattern;
	struct str text;
	long at;
} rows[] = {
	{ "b", STR_LIT("abc\n"), 2 },
	{ "^c", STR_LIT("abc\nc\n"), 5 },
	{ "^abc$", STR_LIT("abcd\nabc\n"), 8 },
	{ "^abc$", STR_LIT("abc\r\n"), 3 },
	{ "^abc$", STR_LIT("abc"), 3 },
	{ "abc", STR_LIT("ab\nc"), NEVER },
	{ "^$", STR_LIT("a\n\nb"), 2 },
	{ "^$", STR_LIT("a\nb"), NEVER },
	{ "\\u00e4.", STR_LIT("\xc3\xa4x\n"), 3 },
	{ "^a\\u001ab$",
	  STR_LIT("a\xff"
		  "b\n"),
	  3 },
	{ "[^\\n]+\\n", STR_LIT("a\n"), NEVER },
};

static void pieces_make_no_difference(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		for (size_t piece = 1; piece <= rows[i].text.n; piece++) {
			long at = found_in(rows[i].pattern, rows[i].text, piece);

			/* What only the end of the line has made a match is told where that
			 * came. */
			ROW_CHECK(at == rows[i].at || (at > 0 && at == rows[i].at + 1),
				  rows[i].pattern);
		}
	}
}

static void long_lines(void **state)
{
	enum { LONG = 5 * JOB_LINE_MAX + 77 };
	autofree char *text = malloc(LONG);

	assert_non_null(text);
	memset(text, 'a', LONG);
	memcpy(text + 3 * JOB_LINE_MAX - 5, "needle", 6);
	for (size_t piece = 1000; piece < LONG; piece += 4999) {
		assert_int_equal(found_in("aneedle", (struct str){ text, LONG }, piece),
				 3 * JOB_LINE_MAX + 1);
		assert_int_equal(found_in("^needle", (struct str){ text, LONG }, piece), NEVER);
		assert_int_equal(found_in("a{9}$", (struct str){ text, LONG }, piece), LONG);
	}
}

static void streams_are_apart_and_gaps_are_no_text(void **state)
{
	struct err e = ERR_INIT;
	AUTO(job_match_free) struct job_match *m = job_match_new(STR_LIT("^ab"), &e);
	size_t n;

	assert_int_equal(job_match_feed(m, 0, STR_LIT("a"), &n, &e), 0);
	assert_int_equal(job_match_feed(m, 1, STR_LIT("b"), &n, &e), 0);
	job_match_gap(m);
	assert_int_equal(job_match_feed(m, 0, STR_LIT("b"), &n, &e), 0);
	assert_int_equal(job_match_feed(m, 0, STR_LIT("ab\n"), &n, &e), 0);
	assert_int_equal(job_match_feed(m, 0, STR_LIT("ab"), &n, &e), 1);
}

static void what_takes_too_long_is_refused(void **state)
{
	static const char *const hostile[] = { "(a+)+$", "(a|aa)+$", "([ab]*)*[cd]",
					       "^(([a-z])+.)+[A-Z]([a-z])+$" };
	char text[JOB_LINE_MAX];

	memset(text, 'a', sizeof(text));
	text[sizeof(text) - 2] = '!';
	text[sizeof(text) - 1] = '\n';
	for (size_t i = 0; i < ARRAY_LEN(hostile); i++)
		ROW_CHECK(found_in(hostile[i], (struct str){ text, sizeof(text) }, sizeof(text)) ==
				  REFUSED,
			  hostile[i]);
	assert_int_equal(found_in("a!$", (struct str){ text, sizeof(text) }, sizeof(text)),
			 sizeof(text) - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces_make_no_difference),
		cmocka_unit_test(long_lines),
		cmocka_unit_test(streams_are_apart_and_gaps_are_no_text),
		cmocka_unit_test(what_takes_too_long_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
