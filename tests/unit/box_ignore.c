/* box/archive/ignore.h: patterns, what they mean, and what is none. */
#include "box/archive/ignore.h"
#include "test.h"

static const struct {
	const char *text, *path;
	bool out;
} rows[] = {
	{ "", "a", false },
	{ "a", "a", true },
	{ "a", "b", false },
	{ "a", "ab", false },
	{ "a", "a/b/c", true },
	{ "a", "b/a", false },
	{ "/a", "a", true },
	{ "./a//b/", "a/b", true },
	{ "a/../b", "b", true },
	{ "a/../b", "a", false },
	{ "../a", "a", false },
	{ "/", "a", false },
	{ ".", "a", false },
	{ "a/b", "a", false },
	{ "*", "a", true },
	{ "*", ".a", true },
	{ "*/b", "a/b", true },
	{ "*/b", "b", false },
	{ "*.o", "x.o", true },
	{ "*.o", "d/x.o", false },
	{ "a*c", "ac", true },
	{ "a*c", "a/c", false },
	{ "a*b*c", "aXbYbc", true },
	{ "?", "a", true },
	{ "?", "\xc3\xa9", true }, /* é */
	{ "?", "ab", false },
	{ "??", "\xff\xfe", true }, /* two bytes that are no text */
	{ "a?c", "a/c", false },
	{ "**", "a/b/c", true },
	{ "**/c", "c", true },
	{ "**/c", "a/b/c", true },
	{ "**/c", "a/b/cc", false },
	{ "**/c", "a/c/d", true },
	{ "a/**", "a/b/c", true },
	{ "a/**", "a", false },
	{ "a/**/d", "a/d", true },
	{ "a/**/d", "a/b/c/d", true },
	{ "a**d", "ab/d", true },
	{ "a**d", "abd", false },
	{ "**/*.o", "a/b/x.o", true },
	{ "**/a/**/*.c", "x/a/y/z.c", true },
	{ "[a-c]x", "bx", true },
	{ "[a-c]x", "dx", false },
	{ "[^a-c]x", "dx", true },
	{ "[^a-c]x", "/x", false },
	{ "[\\]]", "]", true },
	{ "[ab\xc3\xa9]", "\xc3\xa9", true },
	{ "\\*", "*", true },
	{ "\\*", "a", false },
	{ "a\\b", "ab", true },
	{ "# a\na", "a", true },
	{ "#a", "#a", false },
	{ "\\#a", "#a", true },
	{ "  a  \r\n\n\t\n", "a", true },
	{ "\xef\xbb\xbf"
	  "a",
	  "a", true },
	{ "*\n!a", "a", false },
	{ "*\n!a", "a/b", false },
	{ "*\n!a\na/b", "a/b", true },
	{ "!a\n*", "a", true },
	{ "a\n! a/b", "a/b", false },
	{ "a\n!a/b", "a/c", true },
	{ "\\!a", "!a", true },
};

static void test_matches(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct err e = ERR_INIT;
		AUTO(ignore_free) struct ignore *g = ignore_new(str_of(rows[i].text), &e);

		ROW_CHECK(g, rows[i].text);
		ROW_CHECK(ignore_has(g, str_of(rows[i].path)) == rows[i].out, rows[i].text);
	}
}

static void test_exceptions_below(void **state)
{
	static const struct {
		const char *text, *path;
		bool some;
	} below[] = {
		{ "a", "a", false },
		{ "*\n!a/b/c", "a", true },
		{ "*\n!a/b/c", "a/b", true },
		{ "*\n!a/b/c", "a/b/c", true },
		{ "*\n!a/b/c", "a/b/c/d", true },
		{ "*\n!a/b/c", "a/c", false },
		{ "*\n!a/b/c", "ab", false },
		{ "*\n!a", "ab", false },
		{ "*\n!ab", "a", false },
		{ "*\n!a*", "ab", true },
		{ "*\n!?/[xy]/*.c", "q/x", true },
		{ "*\n!?/[xy]/*.c", "q/z", false },
		{ "*\n!**/a", "b/c/d", true },
		{ "*\n!b/**/a", "b/c/d", true },
		{ "*\n!b/**/a", "c", false },
		{ "*\n!b/**", "b", true },
	};

	for (size_t i = 0; i < ARRAY_LEN(below); i++) {
		struct err e = ERR_INIT;
		AUTO(ignore_free) struct ignore *g = ignore_new(str_of(below[i].text), &e);

		ROW_CHECK(g, below[i].text);
		ROW_CHECK(ignore_has_exceptions(g, str_of(below[i].path)) == below[i].some,
			  below[i].path);
	}
}

static void test_no_patterns(void **state)
{
	static const char *const bad[] = { "!",	   "a\n!  ", "[",    "[]",  "[^]", "[a",    "[a-",
					   "[a-]", "[-a]",   "[]a]", "a\\", "[\\", "[z-a]", "x/[" };

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct err e = ERR_INIT;
		AUTO(ignore_free) struct ignore *g = ignore_new(str_of(bad[i]), &e);

		ROW_CHECK(!g && e.code == ERR_INVALID, bad[i]);
		ROW_CHECK(strstr(e.msg, "line "), bad[i]);
	}
}

static void test_clean(void **state)
{
	static const char *const pairs[][2] = { { "a", "a" },
						{ "", "." },
						{ ".", "." },
						{ "./", "." },
						{ "a/", "a" },
						{ "a//b", "a/b" },
						{ "a/./b", "a/b" },
						{ "a/../b", "b" },
						{ "a/..", "." },
						{ "/", "/" },
						{ "//a", "/a" },
						{ "/..", "/" },
						{ "/../a", "/a" },
						{ "../a", "../a" },
						{ "../../a", "../../a" },
						{ "a/../..", ".." },
						{ "../a/..", ".." },
						{ "a/b/../../c", "c" },
						{ "..a/b", "..a/b" },
						{ "a/.../b", "a/.../b" } };
	char path[64];

	for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
		strcpy(path, pairs[i][0]);
		ROW_CHECK(ignore_clean(path) == strlen(pairs[i][1]), pairs[i][0]);
		ROW_CHECK(strcmp(path, pairs[i][1]) == 0, pairs[i][0]);
	}
}

/* As much as there may be, and the slowest of it. */
static void test_bounds(void **state)
{
	static char text[IGNORE_BYTES_MAX + 1], path[4001];
	struct err e = ERR_INIT;
	struct ignore *g;

	memset(text, '*', IGNORE_PATTERN_MAX);
	text[IGNORE_PATTERN_MAX - 1] = 'b';
	memset(path, 'a', 4000);
	g = ignore_new(str_of(text), &e);
	assert_non_null(g);
	assert_false(ignore_has(g, str_of(path)));
	ignore_free(g);
	text[IGNORE_PATTERN_MAX] = 'b';
	assert_null(ignore_new(str_of(text), &e));
	memset(text, '\n', IGNORE_BYTES_MAX);
	g = ignore_new(str_of(text), &e);
	assert_non_null(g);
	ignore_free(g);
	for (size_t i = 0; i <= IGNORE_PATTERNS_MAX; i++)
		text[2 * i] = 'a';
	assert_null(ignore_new(str_of(text), &e));
	assert_null(ignore_new((struct str){ text, IGNORE_BYTES_MAX + 1 }, &e));
	assert_null(ignore_new((struct str){ "a\0b", 3 }, &e));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_matches),	    cmocka_unit_test(test_exceptions_below),
		cmocka_unit_test(test_no_patterns), cmocka_unit_test(test_clean),
		cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
