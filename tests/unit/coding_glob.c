/* Patterns for paths: coding/glob.h. */
#include "coding/glob.h"
#include "test.h"

static const struct {
	const char *pattern, *path;
	bool matches;
} rows[] = {
	{ "*.c", "a.c", true },
	{ "*.c", "src/deep/a.c", true },
	{ "*.c", "a.ch", false },
	{ "src/*.c", "src/a.c", true },
	{ "src/*.c", "src/b/a.c", false },
	{ "src/*.c", "x/src/a.c", false },
	{ "src/**/*.c", "src/a.c", true },
	{ "src/**/*.c", "src/b/c/a.c", true },
	{ "src/**/*.c", "srcs/a.c", false },
	{ "**/test/**", "a/test/b/c", true },
	{ "**/test/**", "test/b", true },
	{ "**/test/**", "a/test", false },
	{ "**", "a/b", true },
	{ "**/a/**/b", "a/a/x/y/b", true },
	{ "**/a/b/**/b", "a/c/a/b/b", true },
	{ "a?c", "abc", true },
	{ "a?c",
	  "a\xc3\xa4"
	  "c",
	  true },
	{ "a?c", "ac", false },
	{ "a?c",
	  "a\xff"
	  "c",
	  true },
	{ "[ab]c", "bc", true },
	{ "[!ab]c", "bc", false },
	{ "[a-c]", "b", true },
	{ "[]x]", "]", true },
	{ "[a\\]]", "]", true },
	{ "*.{c,h}", "a.h", true },
	{ "*.{c,h}", "a.o", false },
	{ "{src,test}/*.{c,h}", "test/a.c", true },
	{ "a{b,{c,d}e}f", "adef", true },
	{ "a{,b}", "a", true },
	{ "\\*", "*", true },
	{ "\\*", "a", false },
	{ "\\{a", "{a", true },
	{ "*", "", true },
	{ "*a*b*c*", "xaybzc", true },
	{ "*a*b*c*", "xaybz", false },
	{ "", "a", false },
};

static void test_rows(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct glob g;
		struct err e;

		ROW_CHECK(glob_init(&g, str_of(rows[i].pattern), &e) == 0, rows[i].pattern);
		ROW_CHECK(glob_finds(&g, str_of(rows[i].path)) == rows[i].matches, rows[i].pattern);
	}
}

static void test_refused(void **state)
{
	static const char *const wrong[] = { "a{b", "a[b", "{a,b}{a,b}{a,b}{a,b}{a,b}", "{a,[}" };
	char text[GLOB_PATTERN_MAX + 2];
	struct glob g;
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		ROW_CHECK(glob_init(&g, str_of(wrong[i]), &e) < 0 && e.code == ERR_INVALID,
			  wrong[i]);
	memset(text, '{', sizeof(text));
	assert_int_equal(glob_init(&g, (struct str){ text, sizeof(text) }, &e), -1);
	assert_int_equal(glob_init(&g, (struct str){ text, GLOB_PATTERN_MAX }, &e), -1);
}

/* What is expensive for engines that try every star again. */
static void test_bounded(void **state)
{
	char pattern[GLOB_PATTERN_MAX], path[4096];
	struct glob g;
	struct err e;

	for (size_t i = 0; i < sizeof(pattern); i++)
		pattern[i] = "a*"[i % 2];
	pattern[sizeof(pattern) - 1] = 'b';
	memset(path, 'a', sizeof(path));
	assert_int_equal(glob_init(&g, (struct str){ pattern, sizeof(pattern) }, &e), 0);
	assert_false(glob_finds(&g, (struct str){ path, sizeof(path) }));
	for (size_t i = 0; i + 4 <= sizeof(pattern); i += 4)
		memcpy(pattern + i, &"**/a/"[i % 2], 4);
	for (size_t i = 1; i < sizeof(path); i += 2)
		path[i] = '/';
	if (glob_init(&g, (struct str){ pattern, sizeof(pattern) }, &e) == 0)
		(void)glob_finds(&g, (struct str){ path, sizeof(path) });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
