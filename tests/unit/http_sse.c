/* http/client/sse.h: events, however the bytes come. */
#include "base/budget.h"
#include "http/client/sse.h"
#include "test.h"

/* What is read is written down as "type:id=data|", "!" for the end by an error. */
static const struct {
	const char *name;
	struct str in;
	const char *out;
} streams[] = {
	{ "nothing", STR_LIT(""), "" },
	{ "one", STR_LIT("data: a\n\n"), "message:=a|" },
	{ "unfinished", STR_LIT("data: a\n"), "" },
	{ "CR", STR_LIT("data: a\r\rdata: b\r\r"), "message:=a|message:=b|" },
	{ "CRLF", STR_LIT("data: a\r\n\r\ndata: b\r\n\r\n"), "message:=a|message:=b|" },
	{ "mixed ends", STR_LIT("data: a\r\ndata: b\rdata: c\n\r\n"), "message:=a\nb\nc|" },
	{ "BOM",
	  STR_LIT("\xef\xbb\xbf"
		  "data: a\n\n"),
	  "message:=a|" },
	{ "BOM later",
	  STR_LIT("\n\xef\xbb\xbf"
		  "data: a\n\n"),
	  "" },
	{ "type", STR_LIT("event: endpoint\ndata: /m\n\ndata: x\n\n"), "endpoint:=/m|message:=x|" },
	{ "type without data", STR_LIT("event: e\n\ndata: x\n\n"), "message:=x|" },
	{ "id stays", STR_LIT("id: 7\ndata: a\n\ndata: b\n\n"), "message:7=a|message:7=b|" },
	{ "id without data", STR_LIT("id: 7\n\ndata: b\n\n"), "message:7=b|" },
	{ "id emptied", STR_LIT("id: 7\n\nid\ndata: b\n\n"), "message:=b|" },
	{ "id with NUL", STR_LIT("id: 7\n\nid: 8\0\ndata: b\n\n"), "message:7=b|" },
	{ "priming", STR_LIT("id: 7\ndata:\n\n"), "message:7=|" },
	{ "no space", STR_LIT("data:a\n\n"), "message:=a|" },
	{ "two spaces", STR_LIT("data:  a\n\n"), "message:= a|" },
	{ "no colon", STR_LIT("data\n\n"), "message:=|" },
	{ "comments", STR_LIT(": ping\n\n:\n\ndata: a\n: x\n\n"), "message:=a|" },
	{ "unknown fields", STR_LIT("DATA: a\nx: b\ndata: c\n\n"), "message:=c|" },
	{ "colon in data", STR_LIT("data: a: b\n\n"), "message:=a: b|" },
	{ "as long", STR_LIT("data: 1234567890123456789012345\n\n"),
	  "message:=1234567890123456789012345|" },
	{ "long line", STR_LIT("data: 12345678901234567890123456789012345\n\n"), "!" },
	{ "long event", STR_LIT("data: 12345678901234567890\ndata: 12345678901234567890\n\n"),
	  "!" },
};

enum { MAX = 32 };

static bool feed(struct sse_reader *r, struct str in, struct buf *out)
{
	struct sse_event ev;
	struct err e;
	int rc;

	while ((rc = sse_next(r, &in, &ev, &e)) > 0)
		assert_int_equal(buf_addf(out, &e, "%.*s:%.*s=%.*s|", STR_ARG(ev.type),
					  STR_ARG(ev.id), STR_ARG(ev.data)),
				 0);
	if (rc == 0) {
		assert_int_equal(in.n, 0);
		return true;
	}
	assert_int_equal(e.code, ERR_TOO_LARGE);
	assert_int_equal(buf_add(out, "!", 1, &e), 0);
	return false;
}

static void test_streams(void **state)
{
	for (size_t i = 0; i < sizeof(streams) / sizeof(streams[0]); i++) {
		struct str in = streams[i].in;

		for (size_t step = 1; step <= in.n + 1; step++) {
			autobuf struct buf out = BUF_INIT(4096);
			struct sse_reader r;

			sse_init(&r, MAX, NULL);
			for (size_t at = 0; at < in.n; at += step) {
				size_t n = in.n - at < step ? in.n - at : step;

				if (!feed(&r, (struct str){ in.p + at, n }, &out))
					break;
			}
			if (strcmp(buf_str(&out).p, streams[i].out) != 0)
				fail_msg("%s, in pieces of %zu: %s", streams[i].name, step,
					 buf_str(&out).p);
			sse_fini(&r);
		}
	}
}

/* What is not "message" does not become it. */
static void test_types(void **state)
{
	static const struct str rows[] = {
		STR_LIT("event: message\0x\ndata: a\n\n"),
		STR_LIT("event: message---------------------------------"
			"----------------------------------\ndata: a\n\n"),
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct str in = rows[i];
		struct sse_reader r;
		struct sse_event ev;
		struct err e;

		sse_init(&r, 0, NULL);
		assert_int_equal(sse_next(&r, &in, &ev, &e), 1);
		assert_true(str_starts(ev.type, "message") && !str_is(ev.type, "message"));
		assert_in_range(ev.type.n, 8, SSE_TYPE_MAX);
		sse_fini(&r);
	}
}

/* One long line is kept once, what is kept counts, and it is given back. */
static void test_budget(void **state)
{
	enum { LONG = 1 << 20, PIECE = 1 << 16 };
	struct budget all = { .max = LONG + (1 << 15) };
	static char piece[PIECE];
	struct sse_reader r;
	struct sse_event ev;
	struct err e;
	struct str in;

	memset(piece, 'x', PIECE);
	sse_init(&r, LONG, &all);
	for (int again = 0; again < 2; again++) {
		in = STR_LIT("data: ");
		assert_int_equal(sse_next(&r, &in, &ev, &e), 0);
		for (size_t n = 0; n < LONG / 2; n += PIECE) {
			in = (struct str){ piece, PIECE };
			assert_int_equal(sse_next(&r, &in, &ev, &e), 0);
		}
		in = STR_LIT("\n\n");
		assert_int_equal(sse_next(&r, &in, &ev, &e), 1);
		assert_int_equal(ev.data.n, LONG / 2);
		assert_true(all.used >= LONG / 2);
		assert_int_equal(sse_next(&r, &in, &ev, &e), 0);
		assert_int_equal(all.used, 0);
	}
	assert_int_equal(budget_take(&all, LONG, &e), 0);
	in = (struct str){ piece, PIECE };
	assert_int_equal(sse_next(&r, &in, &ev, &e), -1);
	assert_int_equal(e.code, ERR_LIMIT);
	sse_fini(&r);
	assert_int_equal(all.used, LONG);
}

static void test_restart(void **state)
{
	autobuf struct buf out = BUF_INIT(4096);
	struct sse_reader r;

	sse_init(&r, 0, NULL);
	assert_true(
		feed(&r, STR_LIT("id: 7\ndata: a\n\nid: 8\nevent: lost\ndata: lost\nda"), &out));
	sse_restart(&r);
	assert_true(feed(&r,
			 STR_LIT("\xef\xbb\xbf"
				 "data: b\n\n"),
			 &out));
	assert_string_equal(buf_str(&out).p, "message:7=a|message:7=b|");
	sse_fini(&r);
}

static void test_retry(void **state)
{
	static const struct {
		struct str in;
		int64_t ms;
	} rows[] = {
		{ STR_LIT("retry: 500\n"), 500 },
		{ STR_LIT("retry:0\n"), 0 },
		{ STR_LIT("retry: 5x\n"), -1 },
		{ STR_LIT("retry: -5\n"), -1 },
		{ STR_LIT("retry:\n"), -1 },
		{ STR_LIT("retry: 99999999999999999999999\n"), -1 },
		{ STR_LIT("retry: 7\nretry: x\n"), 7 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct str in = rows[i].in;
		struct sse_reader r;
		struct sse_event ev;
		struct err e;

		sse_init(&r, 0, NULL);
		assert_int_equal(sse_next(&r, &in, &ev, &e), 0);
		assert_int_equal(r.retry_ms, rows[i].ms);
		sse_fini(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_streams), cmocka_unit_test(test_types),
		cmocka_unit_test(test_budget),	cmocka_unit_test(test_restart),
		cmocka_unit_test(test_retry),
	};

	return cmocka_run_group_tests_name("http_sse", tests, NULL, NULL);
}
