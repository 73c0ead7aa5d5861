/* api/frame.h: what a stranger wrote, cut into messages. */
#include "api/frame.h"
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
		cmocka_unit_test(test_frames),
		cmocka_unit_test(test_head),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
