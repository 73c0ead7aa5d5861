/* hub/core/output.h and hub/core/report.h: what is kept of an output, and how a result is
 * shaped. */
#include "hub/core/output.h"
#include "alloc_fail.h"
#include "hub/core/report.h"
#include "test.h"

enum { BUDGET = OUTPUT_MIN };
#define X8 "abcdefgh"
#define X32 X8 "ijklmnop" X8 "ijklmnop"
#define X64 X32 X32

static const struct {
	const char *name;
	const char *in, *out;
	uint64_t elided;
} cases[] = {
	{ "nothing", "", "", 0 },
	{ "little", "x", "x", 0 },
	{ "half", X32, X32, 0 },
	{ "all of it", X64, X64, 0 },
	{ "one over", X64 "1", X32 "\n[... 1 bytes elided ...]\nbcdefghijklmnop" X8 "ijklmnop1",
	  1 },
	{ "much over", X64 X64 X64 "12345678",
	  X32 "\n[... 136 bytes elided ...]\nijklmnop" X8 "ijklmnop"
	      "12345678",
	  136 },
	/* ä is two bytes: the 32nd byte of the head and the first of the tail are halves of one */
	{ "characters",
	  "1234567890123456789012345678901ä" X32 "1234567890123456789012345678901ä" X32,
	  "1234567890123456789012345678901\n[... 67 bytes elided ...]\n" X32, 67 },
};

/* However the bytes come in pieces, the same is kept. */
static void test_kept(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct str in = str_of(cases[i].in);

		for (size_t step = 1; step <= in.n + 1; step++) {
			struct output o;
			autobuf struct buf text = BUF_INIT(output_text_max(BUDGET));
			struct err e = ERR_INIT;
			uint64_t elided;

			output_init(&o, BUDGET);
			for (size_t at = 0; at < in.n; at += step)
				output_add(&o, in.p + at, in.n - at < step ? in.n - at : step);
			assert_int_equal(output_text(&o, &text, &elided, &e), 0);
			assert_string_equal(buf_str(&text).p, cases[i].out);
			assert_int_equal(elided, cases[i].elided);
			assert_int_equal(o.total, in.n);
			output_fini(&o);
		}
	}
}

static void add(struct output *o, const char *p, size_t n)
{
	output_init(o, BUDGET);
	output_add(o, p, n);
}

static const struct exec_result plain = { .wall_us = 1500, .cpu_us = 250, .peak_bytes = 4096 };

static void test_text(void **state)
{
	struct output out, err;
	autobuf struct buf text = BUF_INIT(1024);
	struct report r;
	struct err e = ERR_INIT;

	add(&out, "a\n\"\0\xff", 5);
	add(&err, "", 0);
	assert_int_equal(report_init(&r, &plain, &out, &err, &e), 0);
	assert_int_equal(report_text(&r, &text, &e), 0);
	assert_string_equal(text.p, "{\"exit_code\":0,\"stdout\":\"a\\n\\\"\\u0000\xef\xbf\xbd\","
				    "\"stderr\":\"\"}");
	report_fini(&r);
	output_fini(&out);
	output_fini(&err);
}

static const struct {
	struct exec_result result;
	const char *out, *err, *json;
} reports[] = {
	{ { .wall_us = 1500, .cpu_us = 250, .peak_bytes = 4096 },
	  "hi",
	  "",
	  "{\"exit_code\":0,\"stdout\":\"hi\",\"stderr\":\"\",\"timed_out\":false,"
	  "\"hit_memory\":false,"
	  "\"hit_pids\":false,\"hit_disk\":false,\"wall_ms\":1.5,\"cpu_ms\":0.25,"
	  "\"peak_memory_bytes\":4096}" },
	{ { .end = EXEC_TIMED_OUT, .exit_code = 124, .signal = 9 },
	  "",
	  "\xff",
	  "{\"exit_code\":124,\"stdout\":\"\",\"stderr\":\"\xef\xbf\xbd\",\"signal\":9,"
	  "\"timed_out\":true,\"hit_memory\":false,\"hit_pids\":false,\"hit_disk\":false,"
	  "\"stderr_base64\":\"/w==\","
	  "\"wall_ms\":0,\"cpu_ms\":0,\"peak_memory_bytes\":0}" },
	{ { .end = EXEC_SIGNALED,
	    .exit_code = 137,
	    .signal = 9,
	    .hit_memory = true,
	    .hit_pids = true,
	    .hit_disk = true },
	  X64 "1",
	  "",
	  "{\"exit_code\":137,\"stdout\":\"" X32
	  "\\n[... 1 bytes elided ...]\\nbcdefghijklmnopabcdefghijklmnop1\",\"stderr\":\"\","
	  "\"signal\":9,"
	  "\"timed_out\":false,\"hit_memory\":true,\"hit_pids\":true,\"hit_disk\":true,"
	  "\"stdout_elided_bytes\":1,"
	  "\"wall_ms\":0,\"cpu_ms\":0,\"peak_memory_bytes\":0}" },
};

static void test_report(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(reports); i++) {
		struct output out, err;
		autofree char *text = NULL;
		struct report r;
		struct err e = ERR_INIT;

		add(&out, reports[i].out, strlen(reports[i].out));
		add(&err, reports[i].err, strlen(reports[i].err));
		assert_int_equal(report_init(&r, &reports[i].result, &out, &err, &e), 0);
		text = field_encode_text(&report_table, &r, 4096, &e);
		assert_non_null(text);
		assert_string_equal(text, reports[i].json);
		report_fini(&r);
		output_fini(&out);
		output_fini(&err);
	}
}

static void test_table(void **state)
{
	struct err e = ERR_INIT;

	assert_int_equal(field_check(&report_table, &e), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kept),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_report),
		cmocka_unit_test(test_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
