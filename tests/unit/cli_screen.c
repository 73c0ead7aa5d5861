/* What a program sets of a terminal: put back, and set again, wherever its output is cut. */
#include "cli/exec/screen.h"
#include "test.h"

#define ESC "\x1b"

static const struct {
	const char *said, *undo, *redo;
	bool busy; /* in a sequence, or with a cursor that is saved */
} cases[] = {
	{ "plain \xe2\x82\xac text\r\n", "", "", false },
	{ "cut \xe2\x82", "", "", true },
	{ ESC "[1;31mred" ESC "[0m" ESC "[2J" ESC "[H", "", "", false },
	{ ESC "[?1049h" ESC "[?25l", ESC "[0m" ESC "[?25h" ESC "[?1049l", ESC "[?1049h" ESC "[?25l",
	  false },
	{ ESC "[?1049h" ESC "[?1049l" ESC "[?25l" ESC "[?25h", "", "", false },
	{ ESC "[?1000;1006;2004h", ESC "[0m" ESC "[?2004l" ESC "[?1006l" ESC "[?1000l",
	  ESC "[?1000h" ESC "[?1006h" ESC "[?2004h", false },
	{ ESC "[?2026h", "", "", false }, /* how it looks alone */
	{ ESC "[>1u" ESC "[>5u", ESC "[<2u", ESC "[>5u" ESC "[>5u", false },
	{ ESC "[>1u" ESC "[<u", "", "", false },
	{ ESC "[=3u", ESC "[=0u", ESC "[=3u", false },
	{ ESC "[>4;2m", ESC "[>4m", ESC "[>4;2m", false },
	{ ESC "[>4;2m" ESC "[>4m", "", "", false },
	{ ESC "=" ESC "[2 q", ESC ">" ESC "[0 q", ESC "=" ESC "[2 q", false },
	{ ESC "[1;10r", ESC "[r", "", false },
	{ ESC "[1;10r" ESC "[r", "", "", false },
	{ ESC "7", "", "", true },
	{ ESC "7" ESC "8" ESC "[s" ESC "[u", "", "", false },
	{ ESC "[?25l" ESC "c", "", "", false },
	{ ESC "]0;title " ESC "[?25l\a", ESC "[0m" ESC "[?25h", ESC "[?25l",
	  false }, /* ESC ends it */
	{ ESC "]52;c;Zm9v\a" ESC "]8;;http://x" ESC "\\", "", "", false },
	{ ESC "]52;c;[?25l", ESC "\\" ESC "[0m", "", true },
	{ ESC "P+q[?25l" ESC "\\", "", "", false },
	{ ESC "(B" ESC "#8", "", "", false },
	{ ESC "[?", ESC "\\" ESC "[0m", "", true },
	{ ESC "[?99999999999999999999h" ESC "[?;;;;h" ESC "[;r", ESC "[r", "", false },
};

static void screen_is(const struct screen *s, size_t i)
{
	char text[SCREEN_TEXT_MAX];
	size_t n = screen_undo(s, text);

	assert_int_equal(n, strlen(cases[i].undo));
	assert_memory_equal(text, cases[i].undo, n);
	n = screen_redo(s, text);
	assert_int_equal(n, strlen(cases[i].redo));
	assert_memory_equal(text, cases[i].redo, n);
	assert_int_equal(screen_is_idle(s), !cases[i].busy);
}

static void test_cases(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		size_t n = strlen(cases[i].said);

		for (size_t cut = 0; cut <= n; cut++) {
			struct screen s = { .state = SCREEN_GROUND };

			screen_feed(&s, cases[i].said, cut);
			screen_feed(&s, cases[i].said + cut, n - cut);
			screen_is(&s, i);
		}
	}
}

/* What is set again is what was set, and what is put back is a fresh terminal. */
static void test_round(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct screen s = { .state = SCREEN_GROUND }, other = s;
		char text[SCREEN_TEXT_MAX], again[SCREEN_TEXT_MAX];
		size_t n;

		screen_feed(&s, cases[i].said, strlen(cases[i].said));
		n = screen_redo(&s, text);
		screen_feed(&other, text, n);
		assert_int_equal(screen_redo(&other, again), n);
		assert_memory_equal(again, text, n);
		n = screen_undo(&s, text);
		screen_feed(&s, text, n);
		assert_int_equal(screen_undo(&s, text), 0);
	}
}

/* Any bytes: it ends, and its texts have room. */
static void test_noise(void **state)
{
	static const char bytes[] = "\x1b\x1b\x1b[[]?;>=<0149hlurqmscP\\\a 7\xff\xe2";
	struct screen s = { .state = SCREEN_GROUND };
	char text[SCREEN_TEXT_MAX];
	uint32_t seed = 1;

	for (int i = 0; i < 200000; i++) {
		seed = seed * 1664525 + 1013904223;
		screen_feed(&s, &bytes[(seed >> 16) % (sizeof(bytes) - 1)], 1);
		if (i % 64 == 0) {
			assert_true(screen_undo(&s, text) < SCREEN_TEXT_MAX);
			assert_true(screen_redo(&s, text) < SCREEN_TEXT_MAX);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cases),
		cmocka_unit_test(test_round),
		cmocka_unit_test(test_noise),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
