/* rpc/line.h: whole lines, however the bytes come. */
#include <stdlib.h>

#include "alloc_fail.h"
#include "rpc/line.h"
#include "test.h"

enum { MAX = 8 };

/* What is read is written down as "line|line|" with "!" for a line that is too long. */
static const struct {
	const char *name;
	struct str in;
	const char *out;
} streams[] = {
	{ "nothing", STR_LIT(""), "" },
	{ "lines", STR_LIT("a\nbc\n"), "a|bc|" },
	{ "CRLF", STR_LIT("a\r\nb\r\n"), "a|b|" },
	{ "a mark",
	  STR_LIT("\xef\xbb\xbf"
		  "a\nb\n"),
	  "a|b|" },
	{ "a mark later",
	  STR_LIT("a\n\xef\xbb\xbf"
		  "b\n"),
	  "a|\xef\xbb\xbf"
	  "b|" },
	{ "CR inside", STR_LIT("a\rb\n\r\r\n"), "a\rb|\r|" },
	{ "empty lines", STR_LIT("\n\r\na\n\n"), "||a||" },
	{ "no end", STR_LIT("a\nbc"), "a|bc|" },
	{ "no end but a CR", STR_LIT("a\nbc\r"), "a|bc|" },
	{ "as long", STR_LIT("12345678\nx\n"), "12345678|x|" },
	{ "as long, CRLF", STR_LIT("12345678\r\nx\n"), "12345678|x|" },
	{ "one over", STR_LIT("123456789\nx\n"), "!x|" },
	{ "one over, CRLF", STR_LIT("123456789\r\nx\n"), "!x|" },
	{ "much over", STR_LIT("1234567890123456789012345678901234567890\nx\n"), "!x|" },
	{ "over twice", STR_LIT("1234567890\n1234567890\nx\n"), "!!x|" },
	{ "over without end", STR_LIT("x\n123456789012"), "x|!" },
	{ "one over, then CRLF", STR_LIT("12345678x\r\ny\n"), "!y|" },
	{ "one over without end", STR_LIT("123456789"), "!" },
};

static void note(struct buf *out, const char *p, size_t n)
{
	struct err e;

	assert_int_equal(buf_add(out, p, n, &e), 0);
}

static void note_event(struct buf *out, enum line_event event, struct str line)
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
	struct str line = STR_NONE;
	enum line_event event;

	while ((event = line_next(l, &in, &line)) != LINE_MORE)
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
			note_event(&out, line_last(&l, &line), line);
			ROW_CHECK(strcmp(buf_str(&out).p, streams[i].out) == 0, streams[i].name);
			line_fini(&l);
		}
	}
}

/* 32 MiB of one line must not be kept, and its id is found behind them. */
static void forgets_what_is_too_long(void **state)
{
	char chunk[65536];
	struct line_reader l;
	struct rpc_id id;
	struct str line = STR_NONE, in = STR_LIT("{\"method\":\"m\",\"params\":{\"id\":1,\"x\":\"");

	memset(chunk, 'x', sizeof(chunk));
	line_init(&l, 1 << 20);
	assert_int_equal(line_next(&l, &in, &line), LINE_MORE);
	for (int i = 0; i < 512; i++) {
		in = (struct str){ chunk, sizeof(chunk) };
		assert_int_equal(line_next(&l, &in, &line), LINE_MORE);
		assert_true(l.part.cap <= (2 << 20));
	}
	assert_int_equal(l.part.cap, 0);
	in = STR_LIT("\"},\"jsonrpc\":\"2.0\",\"id\":42}\nok\n");
	assert_int_equal(line_next(&l, &in, &line), LINE_TOO_LONG);
	rpc_sniff_id(&l.sniff, &id);
	assert_true(str_is(rpc_id_str(&id), "42"));
	assert_int_equal(line_next(&l, &in, &line), LINE_TEXT);
	assert_true(str_is(line, "ok"));
	line_fini(&l);
}

static void survives_want_of_memory(void **state)
{
	struct str in = STR_LIT("{\"id\":3,"), line;
	struct line_reader l;
	struct rpc_id id;
	unsigned n = 0;

	line_init(&l, 100);
	assert_true(alloc_fail_next(&n));
	assert_int_equal(line_next(&l, &in, &line), LINE_MORE);
	while (alloc_fail_next(&n))
		continue;
	in = STR_LIT("\"method\":\"\"}\nnext\n");
	assert_int_equal(line_next(&l, &in, &line), LINE_LOST);
	rpc_sniff_id(&l.sniff, &id);
	assert_true(str_is(rpc_id_str(&id), "3"));
	assert_int_equal(line_next(&l, &in, &line), LINE_TEXT);
	assert_true(str_is(line, "next"));
	line_fini(&l);
}

static const struct {
	const char *text, *id; /* of a request */
	const char *answered; /* of an answer; NULL: none */
} sniffed[] = {
	{ "{\"id\":1,\"method\":\"m\"}", "1" },
	{ " { \"method\" : \"m\" , \"id\" : \"a b\" } ", "\"a b\"" },
	{ "{\"method\":\"m\",\"params\":{\"id\":9,\"a\":[{\"id\":8}]},\"id\":-7}", "-7" },
	{ "{\"method\":\"m\",\"id\":\"\\u0061\\\"\"}", "\"a\\\"\"" },
	{ "{\"method\":\"\\\",\\\"id\\\":1\",\"id\":2}", "2" },
	{ "{\"id\":1}", "", "1" },
	{ "{\"id\":1,\"result\":{\"method\":1}}", "", "1" },
	{ "{\"error\":{\"id\":2},\"id\":\"a\"}", "", "\"a\"" },
	{ "{\"id\":1,\"result\":{},\"id\":2}", "" },
	{ "{\"id\":1,\"result\":{", "" },
	{ "{\"id\":1,\"method\":\"m\",\"id\":2}", "" },
	{ "{\"id\":null,\"method\":\"m\"}", "" },
	{ "{\"id\":1.5,\"method\":\"m\"}", "" },
	{ "{\"id\":[1],\"method\":\"m\"}", "" },
	{ "{\"id\":{\"id\":1},\"method\":\"m\"}", "" },
	{ "[{\"id\":1,\"method\":\"m\"}]", "" },
	{ "{\"id\":1,\"method\":\"m\"", "" },
	{ "}{\"id\":1,\"method\":\"m\"}", "" },
	{ "{\"id\":1,\"method\":\"m\"} {}", "" },
	{ "{\"id\":1,\"method\":\"m\"} \"\"", "" },
	{ "{\"id\":1,\"method\":\"m\"}x", "" },
	{ "{\"id\":1,\"method\":\"m\",\"params\":{\"s\":\"\\ud800\"}}", "1" },
	{ "\"id\":1,\"method\":\"m\"", "" },
	{ "{\"method\":\"m\"}", "" },
	{ "", "" },
};

/* In pieces of every size. */
static void finds_ids(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(sniffed); i++) {
		struct str text = str_of(sniffed[i].text);

		for (size_t step = 1; step <= text.n + 1; step++) {
			struct rpc_sniff s = { 0 };
			struct rpc_id id;

			for (size_t at = 0; at < text.n; at += step) {
				size_t n = text.n - at < step ? text.n - at : step;

				rpc_sniff_feed(&s, (struct str){ text.p + at, n });
			}
			rpc_sniff_id(&s, &id);
			ROW_CHECK(str_is(rpc_id_str(&id), sniffed[i].id), sniffed[i].text);
			rpc_sniff_answer_id(&s, &id);
			ROW_CHECK(str_is(rpc_id_str(&id),
					 sniffed[i].answered ? sniffed[i].answered : ""),
				  sniffed[i].text);
		}
	}
}

static void finds_no_long_ids(void **state)
{
	for (size_t n = 1; n < 1000; n++) {
		struct rpc_sniff s = { 0 };
		struct rpc_id id;

		rpc_sniff_feed(&s, STR_LIT("{\"method\":\"m\",\"id\":\""));
		for (size_t i = 0; i < n; i++)
			rpc_sniff_feed(&s, STR_LIT("x"));
		rpc_sniff_feed(&s, STR_LIT("\"}"));
		rpc_sniff_id(&s, &id);
		assert_int_equal(id.n, n + 2 <= RPC_ID_MAX ? n + 2 : 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_lines),
		cmocka_unit_test(forgets_what_is_too_long),
		cmocka_unit_test(survives_want_of_memory),
		cmocka_unit_test(finds_ids),
		cmocka_unit_test(finds_no_long_ids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
