/* api/frame.h: what a stranger wrote, cut into messages. */
#include "door/http/frame.h"
#include "base/budget.h"
#include "test.h"

static void test_frames(void **state)
{
	static const struct {
		struct str bytes;
		int frames, end; /* good ones, and what follows them */
	} rows[] = {
		{ STR_LIT(""), 0, 0 },
		{ STR_LIT("\0\0\0\0\0"), 1, 0 },
		{ STR_LIT("\0\0\0\0\2{}"), 1, 0 },
		{ STR_LIT("\0\0\0\0\2{}\0\0\0\0\1x"), 2, 0 },
		{ STR_LIT("\0"), 0, -1 },
		{ STR_LIT("\0\0\0\0"), 0, -1 },
		{ STR_LIT("\0\0\0\0\3{}"), 0, -1 },
		{ STR_LIT("\0\xff\xff\xff\xff{}"), 0, -1 },
		{ STR_LIT("\1\0\0\0\2{}"), 0, -1 },
		{ STR_LIT("\2\0\0\0\2{}"), 0, -1 },
		{ STR_LIT("\4\0\0\0\2{}"), 0, -1 },
		{ STR_LIT("{\"open\":{}}"), 0, -1 },
		{ STR_LIT("\0\0\0\0\2{}x"), 1, -1 },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct frames f = { rows[i].bytes };
		struct err e = ERR_INIT;
		struct str text;
		char row[8];
		int n = 0, got;

		snprintf(row, sizeof(row), "%zu", i);
		while ((got = frame_next(&f, &text, &e)) > 0)
			n++;
		ROW_CHECK(n == rows[i].frames && got == rows[i].end, row);
		ROW_CHECK(got == 0 || e.code == ERR_INVALID, row);
	}
}

/* The same in two pieces, wherever they meet, and byte by byte. */
static void test_pieces(void **state)
{
	static const struct str all = STR_LIT("\0\0\0\0\2{}\0\0\0\0\0\0\0\0\0\3abc");
	static const char *const want[] = { "{}", "", "abc" };

	for (size_t at = 0; at <= all.n; at++) {
		struct frame_in f = FRAME_IN_INIT(3, NULL);
		struct str piece = { all.p, at }, text;
		struct err e = ERR_INIT;
		size_t n = 0;

		for (size_t i = 0; i < all.n + 1; i++) {
			while (frame_in_next(&f, &piece, &text, &e) > 0) {
				assert_true(n < 3 && str_is(text, want[n]));
				n++;
			}
			assert_int_equal(e.code, ERR_NONE);
			assert_int_equal(piece.n, 0);
			piece = (struct str){ all.p + at + i, at + i < all.n };
		}
		assert_int_equal(n, 3);
		assert_true(frame_in_whole(&f));
		frame_in_fini(&f);
	}
}

static void test_pieces_refused(void **state)
{
	static const struct {
		struct str bytes;
		enum err_code code; /* ERR_NONE: it is not whole */
	} rows[] = {
		{ STR_LIT("\0"), ERR_NONE },
		{ STR_LIT("\0\0\0\0\2{"), ERR_NONE },
		{ STR_LIT("\0\0\0\0\4"), ERR_TOO_LARGE },
		{ STR_LIT("\0\xff\xff\xff\xff{}"), ERR_TOO_LARGE },
		{ STR_LIT("\1\0\0\0\2{}"), ERR_INVALID },
		{ STR_LIT("\2\0\0\0\2{}"), ERR_INVALID },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct frame_in f = FRAME_IN_INIT(3, NULL);
		struct str piece = rows[i].bytes, text;
		struct err e = ERR_INIT;
		int got = frame_in_next(&f, &piece, &text, &e);
		char row[8];

		snprintf(row, sizeof(row), "%zu", i);
		ROW_CHECK(got == (rows[i].code ? -1 : 0) && e.code == rows[i].code, row);
		ROW_CHECK(rows[i].code || !frame_in_whole(&f), row);
		frame_in_fini(&f);
	}
}

/* Many who keep the half of a message share what there is for that. */
static void test_pieces_share(void **state)
{
	struct budget all = { .max = 100 << 10 };
	struct frame_in f[2] = { FRAME_IN_INIT(64 << 10, &all), FRAME_IN_INIT(64 << 10, &all) };
	static char bytes[FRAME_HEAD + (60 << 10)];
	struct str text;
	struct err e = ERR_INIT;

	frame_head(bytes, 0, 64 << 10);
	assert_int_equal(frame_in_next(&f[0], &(struct str){ bytes, sizeof(bytes) }, &text, &e), 0);
	assert_int_equal(frame_in_next(&f[1], &(struct str){ bytes, sizeof(bytes) }, &text, &e),
			 -1);
	assert_int_equal(e.code, ERR_LIMIT);
	frame_in_fini(&f[1]);
	frame_in_fini(&f[0]);
	assert_int_equal(all.used, 0);
}

static void test_head(void **state)
{
	char head[FRAME_HEAD];
	struct frames f = { { head, sizeof(head) } };
	struct str text;
	struct err e;

	frame_head(head, FRAME_END, 0x01020304);
	assert_memory_equal(head, "\2\1\2\3\4", FRAME_HEAD);
	frame_head(head, 0, 0);
	assert_int_equal(frame_next(&f, &text, &e), 1);
	assert_int_equal(text.n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frames),	       cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_pieces_refused), cmocka_unit_test(test_pieces_share),
		cmocka_unit_test(test_head),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
