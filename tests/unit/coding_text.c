/* Texts and paths of coding tools: coding/text.h, coding/path.h. */
#include "coding/path.h"
#include "coding/text.h"
#include "test.h"

/* ---- windows ------------------------------------------------------------------------------- */

static const struct {
	const char *text;
	uint64_t first, limit;
	size_t max;
	const char *shown, *after;
	uint64_t next;
} windows[] = {
	{ "a\nb\nc\n", 1, 9, 99, "1\ta\n2\tb\n3\tc\n", "", 0 },
	{ "a\nb\nc", 2, 9, 99, "2\tb\n3\tc\n", "", 0 },
	{ "a\nb\nc\n", 2, 1, 99, "2\tb\n", "c\n", 3 },
	{ "a\nb\nc\n", 3, 1, 99, "3\tc\n", "", 0 },
	{ "a\nb\nc\n", 4, 1, 99, "", "", 0 },
	{ "", 1, 1, 99, "", "", 0 },
	{ "\n\n", 1, 9, 99, "1\t\n2\t\n", "", 0 },
	/* The second line does not fit, so it is for the next window. */
	{ "abc\ndefgh\n", 1, 9, 6, "1\tabc\n", NULL, 2 },
	/* The only line does not fit. */
	{ "abcdef\nx\n", 1, 9, 3, "1\tabc [3 more bytes of this line]\n", "x\n", 2 },
	{ "a\xff"
	  "b\n",
	  1, 1, 99,
	  "1\ta\xef\xbf\xbd"
	  "b\n",
	  "", 0 },
};

/* Whatever the pieces in which the text comes. */
static void test_windows(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(windows); i++) {
		struct str text = str_of(windows[i].text);

		for (size_t piece = 1; piece <= text.n + 1; piece++) {
			struct text_window w = { .first = windows[i].first,
						 .limit = windows[i].limit,
						 .max = windows[i].max };
			autobuf struct buf to = BUF_INIT(1000);
			uint64_t bad = 0;
			struct err e;

			for (size_t at = 0; at < text.n; at += piece) {
				size_t n = text.n - at < piece ? text.n - at : piece;

				ROW_CHECK(text_window_feed(&w, (struct str){ text.p + at, n },
							   &e) >= 0,
					  text.p);
			}
			ROW_CHECK(text_number(buf_str(&w.text), w.first, w.cut, &to, &bad, &e) == 0,
				  text.p);
			ROW_CHECK(str_is(buf_str(&to), windows[i].shown), text.p);
			ROW_CHECK(!windows[i].after || str_is(buf_str(&w.after), windows[i].after),
				  text.p);
			ROW_CHECK(text_window_next(&w) == windows[i].next, text.p);
			text_window_fini(&w);
		}
	}
}

/* What stands before and behind is kept for redaction, and no more than that. */
static void test_around(void **state)
{
	static char text[4 * TEXT_AROUND];
	struct text_window w = { .first = 2, .limit = 1, .max = 99 };
	struct err e;

	memset(text, 'x', sizeof(text));
	text[2 * TEXT_AROUND] = '\n';
	text[2 * TEXT_AROUND + 2] = '\n';
	assert_int_equal(text_window_feed(&w, (struct str){ text, sizeof(text) }, &e), 1);
	assert_true(w.before.n >= TEXT_AROUND && w.before.n <= 2 * TEXT_AROUND);
	assert_int_equal(w.before.p[w.before.n - 1], '\n');
	assert_true(str_is(buf_str(&w.text), "x\n"));
	assert_int_equal(w.after.n, TEXT_AROUND);
	text_window_fini(&w);
}

static void test_long_line_shown(void **state)
{
	static char text[TEXT_LINE_SHOWN + 100];
	autobuf struct buf to = BUF_INIT(1 << 20);
	uint64_t bad = 0;
	struct err e;

	/* A character of two bytes stands where the line is cut. */
	memset(text, 'x', sizeof(text));
	memcpy(text + TEXT_LINE_SHOWN - 1, "\xc3\xa4", 2);
	assert_int_equal(text_number((struct str){ text, sizeof(text) }, 7, 0, &to, &bad, &e), 0);
	assert_int_equal(bad, 0);
	assert_true(str_ends(buf_str(&to), "x [101 more bytes of this line]\n"));
}

static void test_binary(void **state)
{
	assert_true(text_is_binary((struct str){ "a\0b", 3 }));
	assert_false(text_is_binary(STR_LIT("a\xff")));
	assert_false(text_is_binary(STR_NONE));
}

/* ---- editing ------------------------------------------------------------------------------- */

static const struct {
	const char *text, *old, *new;
	bool all;
	int64_t n;
	const char *becomes;
} edits[] = {
	{ "a b c", "b", "x", false, 1, "a x c" },
	{ "a b b", "b", "x", true, 2, "a x x" },
	{ "a b b", "b", "x", false, -1, NULL },
	{ "abc", "d", "x", false, -1, NULL },
	{ "abc", "abcd", "x", true, -1, NULL },
	{ "abc", "abc", "", false, 1, "" },
	/* It could be meant in two places. */
	{ "aaa", "aa", "b", false, -1, NULL },
	{ "aaa", "aa", "b", true, 1, "ba" },
	{ "x\r\ny\r\nz\r\n", "x\ny", "x\nq\ny", false, 1, "x\r\nq\r\ny\r\nz\r\n" },
	{ "x\r\ny\r\n", "y", "z", false, 1, "x\r\nz\r\n" },
	{ "x\r\ny\nx\ny\r\n", "x\ny", "q", false, 1, "x\r\ny\nq\r\n" },
};

static void test_edits(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(edits); i++) {
		const struct text_edit edit = { str_of(edits[i].old), str_of(edits[i].new),
						edits[i].all };
		autobuf struct buf to = BUF_INIT(100);
		struct err e;
		int64_t n = text_replace(str_of(edits[i].text), &edit, &to, &e);

		ROW_CHECK(n == edits[i].n, edits[i].text);
		ROW_CHECK(n < 0 || str_is(buf_str(&to), edits[i].becomes), edits[i].text);
		ROW_CHECK(n >= 0 || e.code == ERR_INVALID, edits[i].text);
	}
}

/* In time that grows with the text, not with its square. */
static void test_edit_of_repetitions(void **state)
{
	enum { N = 4 << 20 };
	autofree char *text = malloc(N);
	autobuf struct buf to = BUF_INIT(N);
	struct text_edit edit = { .new = STR_LIT("b") };
	struct err e;

	assert_non_null(text);
	memset(text, 'a', N);
	edit.old = (struct str){ text, N / 2 - 1 };
	assert_int_equal(text_replace((struct str){ text, N }, &edit, &to, &e), -1);
	assert_int_equal(text_place((struct str){ text, N }, edit.old), 1);
}

static void test_places(void **state)
{
	const struct str text = STR_LIT("one\ntwo\nthree and more\nfour\n");

	assert_int_equal(text_place(text, STR_LIT("two\nthree")), 2);
	assert_int_equal(text_place(text, STR_LIT("was gone\n  three and more\nx")), 3);
	assert_int_equal(text_place(text, STR_LIT("nowhere")), 1);
	assert_int_equal(text_place(text, STR_LIT("")), 1);
}

/* ---- paths --------------------------------------------------------------------------------- */

static const struct {
	const char *said, *path, *back; /* back NULL: as it was said */
} paths[] = {
	{ "a.c", "/workspace/a.c", NULL },
	{ "./b//c/./d", "/workspace/b/c/d", "b/c/d" },
	{ "/workspace/a", "/workspace/a", "a" },
	{ "/etc/passwd", "/etc/passwd", NULL },
	{ ".", "/workspace", "/workspace" },
	{ "../x", "/workspace/../x", "../x" },
	{ "..a", "/workspace/..a", NULL },
	{ "file:///workspace/a%20b", "/workspace/a b", "a b" },
	{ "file:///workspace/%FF%0A", "/workspace/\xff\n", "file:///workspace/%FF%0A" },
	{ "file://localhost/x", "/x", "/x" },
	{ "a%20b", "/workspace/a%20b", NULL },
	{ "", NULL, NULL },
	{ "file://host/x", NULL, NULL },
	{ "file:///a%0", NULL, NULL },
	{ "file:///a%00b", NULL, NULL },
	{ "0123456789012345678901234567890123456789", NULL, NULL },
};

static void test_paths(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		autobuf struct buf path = BUF_INIT(0), back = BUF_INIT(100);
		const char *row = paths[i].said, *want = paths[i].back ? paths[i].back : row;
		struct err e = ERR_INIT;
		int rc = path_read(STR_LIT("/workspace"), str_of(row), 40, &path, &e);

		ROW_CHECK((rc == 0) == (paths[i].path != NULL), row);
		ROW_CHECK(rc == 0 || e.code == ERR_INVALID, row);
		if (rc < 0)
			continue;
		ROW_CHECK(str_is(buf_str(&path), paths[i].path), row);
		ROW_CHECK(path_say(STR_LIT("/workspace"), buf_str(&path), &back, &e) == 0, row);
		ROW_CHECK(str_is(buf_str(&back), want), row);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_windows),		cmocka_unit_test(test_around),
		cmocka_unit_test(test_long_line_shown), cmocka_unit_test(test_binary),
		cmocka_unit_test(test_edits),		cmocka_unit_test(test_edit_of_repetitions),
		cmocka_unit_test(test_places),		cmocka_unit_test(test_paths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
