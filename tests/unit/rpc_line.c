/* rpc/line.h: whole lines, however the bytes come. */
#include <stdlib.h>

#include "alloc_fail.h"
#include "rpc/line.h"
#include "test.h"

#define TEXT(s)                                                                                    \
	{                                                                                          \
		s, sizeof(s) - 1                                                                   \
	}

enum { MAX = 8 };

/* What is read is written down as "line|line|" with "!" for a line that is too long. */
static const struct {
	const char *name;
	struct str in;
	const char *out;
} streams[] = {
	{ "nothing", TEXT(""), "" },
	{ "lines", TEXT("a\nbc\n"), "a|bc|" },
	{ "CRLF", TEXT("a\r\nb\r\n"), "a|b|" },
	{ "CR inside", TEXT("a\rb\n\r\r\n"), "a\rb|\r|" },
	{ "empty lines", TEXT("\n\r\na\n\n"), "||a||" },
	{ "no end", TEXT("a\nbc"), "a|bc|" },
	{ "no end but a CR", TEXT("a\nbc\r"), "a|bc|" },
	{ "as long", TEXT("12345678\nx\n"), "12345678|x|" },
	{ "as long, CRLF", TEXT("12345678\r\nx\n"), "12345678|x|" },
	{ "one over", TEXT("123456789\nx\n"), "!x|" },
	{ "one over, CRLF", TEXT("123456789\r\nx\n"), "!x|" },
	{ "much over", TEXT("1234567890123456789012345678901234567890\nx\n"), "!x|" },
	{ "over twice", TEXT("1234567890\n1234567890\nx\n"), "!!x|" },
	{ "over without end", TEXT("x\n123456789012"), "x|!" },
	{ "one over without end", TEXT("123456789"), "!" },
};

static void note(struct buf *out, const char *p, size_t n)
{
	struct err e;

	assert_int_equal(buf_add(out, p, n, &e), 0);
}

static void note_event(struct buf *out, int event, struct str line)
{
	if (event == LINE_TOO_LONG) {
		note(out, "!", 1);
	} else if (event == LINE_TEXT) {
		note(out, line.p, line.n);
		note(out, "|", 1);
	}
}

static void feed(struct line_reader *l, struct str in, struct buf *out)
{
	struct err e;
	struct str line = STR_NONE;
	int event;

	while ((event = line_next(l, &in, &line, &e)) != LINE_MORE)
		note_event(out, event, line);
	assert_int_equal(in.n, 0);
}

/* Every stream in pieces of every size. */
static void reads_lines(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(streams); i++) {
		for (size_t step = 1; step <= streams[i].in.n + 1; step++) {
			autobuf struct buf out = BUF_INIT(256);
			struct str in = streams[i].in, line = STR_NONE;
			struct line_reader l;

			line_init(&l, MAX);
			for (size_t at = 0; at < in.n; at += step) {
				size_t n = in.n - at < step ? in.n - at : step;

				feed(&l, (struct str){ in.p + at, n }, &out);
			}
			note_event(&out, (int)line_last(&l, &line), line);
			ROW_CHECK(strcmp(buf_str(&out).p, streams[i].out) == 0, streams[i].name);
			line_fini(&l);
		}
	}
}

/* 32 MiB without a newline must not be kept. */
static void forgets_what_is_too_long(void **state)
{
	char chunk[65536];
	struct line_reader l;
	struct str line, in;
	struct err e;
	int events = 0;

	memset(chunk, 'x', sizeof(chunk));
	line_init(&l, 1 << 20);
	for (int i = 0; i < 512; i++) {
		in = (struct str){ chunk, sizeof(chunk) };
		events += line_next(&l, &in, &line, &e) == LINE_TOO_LONG;
		if (events > 0)
			assert_int_equal(l.part.cap, 0);
	}
	assert_int_equal(events, 1);
	in = STR_LIT("\nok\n");
	assert_int_equal(line_next(&l, &in, &line, &e), LINE_TEXT);
	assert_true(str_is(line, "ok"));
	line_fini(&l);
}

static void survives_want_of_memory(void **state)
{
	struct str in = STR_LIT("half"), line;
	struct line_reader l;
	struct err e = ERR_INIT;
	unsigned n = 0;

	line_init(&l, 100);
	assert_true(alloc_fail_next(&n));
	assert_int_equal(line_next(&l, &in, &line, &e), -1);
	assert_int_equal(e.code, ERR_LIMIT);
	while (alloc_fail_next(&n))
		continue;
	in = STR_LIT(" of it\nnext\n");
	assert_int_equal(line_next(&l, &in, &line, &e), LINE_TEXT);
	assert_true(str_is(line, "next"));
	line_fini(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_lines),
		cmocka_unit_test(forgets_what_is_too_long),
		cmocka_unit_test(survives_want_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
