/* mcp/server/server.h: limits, streams, ends, and want of memory. Messages: see transcripts/. */
#include <stdlib.h>

#include "alloc_fail.h"
#include "json/document/write.h"
#include "mcp_fixture.h"
#include "test.h"

#define INITIALIZE                                                                                 \
	"{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"                     \
	"\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},"                                  \
	"\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}}}"

static void start(struct fixture *f, const struct mcp_server_options *o)
{
	assert_true(fixture_init(f, o));
	assert_null(mcp_session_version(f->session));
	fixture_say(f, INITIALIZE);
	assert_int_equal(f->sent_n, 1);
	assert_string_equal(mcp_session_version(f->session), "2025-11-25");
	assert_string_equal(mcp_session_client(f->session), "t/1");
	fixture_clear(f);
}

static void say_call(struct fixture *f, int id, const char *tool, const char *rest)
{
	char text[256];

	snprintf(text, sizeof(text),
		 "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"tools/call\","
		 "\"params\":{\"name\":\"%s\"%s}}",
		 id, tool, rest);
	fixture_say(f, text);
}

static void bounds_requests_in_flight(void **state)
{
	const struct mcp_server_options o = { .inflight_max = 3 };
	struct fixture f;

	start(&f, &o);
	for (int i = 0; i < 4; i++)
		say_call(&f, i, "hold", "");
	assert_int_equal(mcp_session_open(f.session), 3);
	assert_int_equal(f.sent_n, 1);
	assert_non_null(strstr(
		f.sent[0],
		"\"id\":3,\"error\":{\"code\":-32603,\"message\":\"3 requests are in flight; wait "
		"for an answer\",\"data\":{\"code\":\"limit_exceeded\","));
	fixture_end(&f, 1);
	say_call(&f, 3, "hold", "");
	assert_int_equal(mcp_session_open(f.session), 3);
	assert_int_equal(f.sent_n, 2);
	fixture_fini(&f);
}

/* A cancelled call that runs on still costs, so it counts. */
static void counts_cancelled_calls(void **state)
{
	const struct mcp_server_options o = { .inflight_max = 1 };
	struct fixture f;

	start(&f, &o);
	say_call(&f, 1, "hold", "");
	fixture_say(&f, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
			"\"params\":{\"requestId\":1}}");
	assert_int_equal(f.cancels, 1);
	say_call(&f, 2, "hold", "");
	assert_non_null(strstr(f.sent[0], "limit_exceeded"));
	fixture_end(&f, 0);
	assert_int_equal(f.sent_n, 1);
	assert_int_equal(f.idles, 0); /* it was not open any more */
	say_call(&f, 2, "hold", "");
	assert_int_equal(mcp_session_open(f.session), 1);
	fixture_fini(&f);
}

static void bounds_memory_of_requests(void **state)
{
	const struct mcp_server_options o = { .held_max = 2000 };
	static const char rest[] =
		",\"arguments\":{\"x\":[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]}";
	struct fixture f;

	start(&f, &o);
	for (int i = 0; i < 4 && f.sent_n == 0; i++)
		say_call(&f, i, "hold", rest);
	assert_int_equal(mcp_session_open(f.session), 2);
	assert_non_null(strstr(f.sent[0], "\"id\":2,"));
	assert_non_null(strstr(f.sent[0], "limit_exceeded"));
	fixture_end_all(&f);
	fixture_clear(&f);
	say_call(&f, 4, "hold", rest);
	assert_int_equal(f.sent_n, 0);
	fixture_fini(&f);
}

static void bounds_answers(void **state)
{
	const struct mcp_server_options o = { .reply_max = 600 };
	struct fixture f;

	start(&f, &o);
	fixture_say(&f, "{\"jsonrpc\":\"2.0\",\"id\":\"list\",\"method\":\"tools/list\"}");
	assert_int_equal(f.sent_n, 1);
	assert_non_null(strstr(
		f.sent[0],
		"\"id\":\"list\",\"error\":{\"code\":-32603,\"message\":\"the answer can't be "
		"sent: more than 600 bytes\",\"data\":{\"code\":\"too_large\","));
	say_call(&f, 1, "echo", ",\"arguments\":{\"text\":\"still here\"}");
	assert_non_null(strstr(f.sent[1], "still here"));
	fixture_fini(&f);
}

static unsigned count(const char *in, const char *what)
{
	unsigned n = 0;

	for (; (in = strstr(in, what)); in++)
		n++;
	return n;
}

/* Whatever fits, each request has its own answer, or an error that says it may have been done. */
static void bounds_batches(void **state)
{
	static const char *const ids[] = { "\"a\"", "\"b\"", "\"c\"", "\"d\"", "\"e\"", "\"f\"" };
	static const char request[] =
		"%s{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"tools/call\","
		"\"params\":{\"name\":\"%s\",\"arguments\":{\"text\":\"%.*s\"}}}";
	static const char *const tools[] = { "hold", "echo", "echo", "echo", "echo", "unknown" };
	autobuf struct buf batch = BUF_INIT(4096);
	char text[100];
	struct err e;
	unsigned lost = 0, whole = 0;

	memset(text, 'x', sizeof(text));
	for (int i = 0; i < (int)ARRAY_LEN(ids); i++)
		assert_int_equal(buf_addf(&batch, &e, request, i ? "," : "[", ids[i], tools[i],
					  20 * i, text),
				 0);
	assert_int_equal(buf_add(&batch, "]", 1, &e), 0);
	for (size_t max = 100; max < 1600; max += 3) {
		const struct mcp_server_options o = { .reply_max = max };
		struct fixture f;

		assert_true(fixture_init(&f, &o));
		fixture_say(&f,
			    "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"
			    "\"protocolVersion\":\"2025-03-26\"}}");
		fixture_clear(&f);
		fixture_say(&f, batch.p);
		fixture_end_all(&f);
		assert_int_equal(f.sent_n, 1);
		for (size_t i = 0; i < ARRAY_LEN(ids); i++)
			assert_int_equal(count(f.sent[0], ids[i]), 1);
		lost += count(f.sent[0], "outcome_unknown");
		whole += !strstr(f.sent[0], "outcome_unknown");
		fixture_fini(&f);
	}
	assert_true(lost > 0 && whole > 0);
}

/* A longer one is refused before anything of it is done. */
static void bounds_messages_of_a_batch(void **state)
{
	autobuf struct buf b = BUF_INIT(1 << 20);
	struct fixture f;
	struct err e;

	assert_true(fixture_init(&f, NULL));
	fixture_say(&f, "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"
			"\"protocolVersion\":\"2025-03-26\"}}");
	for (int n = 1024; n < 1026; n++) {
		fixture_clear(&f);
		b.n = 0;
		for (int i = 0; i < n; i++)
			assert_int_equal(buf_addf(&b, &e,
						  "%s{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":"
						  "\"ping\"}",
						  i ? "," : "[", i),
					 0);
		assert_int_equal(buf_add(&b, "]", 1, &e), 0);
		fixture_say(&f, b.p);
		assert_int_equal(f.sent_n, 1);
		assert_int_equal(count(f.sent[0], "\"result\""), n == 1024 ? 1024 : 0);
		assert_int_equal(count(f.sent[0], "1024 messages"), n == 1024 ? 0 : 2);
	}
	fixture_fini(&f);
}

static void bounds_messages(void **state)
{
	const struct mcp_server_options o = { .json = { .depth = 5, .values = 30, .bytes = 300 } };
	struct fixture f;
	struct err e;

	start(&f, &o);
	say_call(&f, 1, "hold", ",\"arguments\":{\"a\":[[1]]}");
	assert_int_equal(f.sent_n, 0);
	say_call(&f, 2, "hold", ",\"arguments\":{\"a\":[[[1]]]}");
	assert_non_null(strstr(f.sent[0],
			       "\"id\":2,\"error\":{\"code\":-32600,\"message\":\"nested "
			       "deeper than 5 levels\",\"data\":{\"code\":\"too_large\","));
	fixture_say(
		&f,
		"[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,"
		"30]");
	assert_non_null(strstr(f.sent[1], "more than 30 values"));
	err_set(&e, ERR_TOO_LARGE, "a message of more than 300 bytes");
	mcp_session_reject(f.session, &e, NULL, NULL);
	assert_non_null(strstr(f.sent[2], "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32600,"
					  "\"message\":\"a message of more than 300 bytes\","
					  "\"data\":{\"code\":\"too_large\","));
	fixture_fini(&f);
}

static void answers_on_the_stream_of_the_request(void **state)
{
	static const char call[] =
		"{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"tools/call\",\"params\":"
		"{\"name\":\"hold\",\"_meta\":{\"progressToken\":1}}}";
	struct fixture f;
	char text[256];
	int streams[2];

	start(&f, NULL);
	for (int i = 0; i < 2; i++) {
		snprintf(text, sizeof(text), call, i);
		mcp_session_take(f.session, mcp_inbound_new(f.server, str_of(text), NULL),
				 &streams[i]);
	}
	mcp_call_progress(f.held[1], 1, 0, NULL);
	fixture_end(&f, 1);
	fixture_end(&f, 0);
	assert_int_equal(f.sent_n, 3);
	assert_ptr_equal(f.streams[0], &streams[1]);
	assert_ptr_equal(f.streams[1], &streams[1]);
	assert_ptr_equal(f.streams[2], &streams[0]);
	fixture_fini(&f);
}

static void holds_progress_back_when_congested(void **state)
{
	struct fixture f;

	start(&f, NULL);
	say_call(&f, 1, "hold", ",\"_meta\":{\"progressToken\":1}");
	f.congested = true;
	for (int i = 1; i < 10; i++) {
		f.now_ms += 1000;
		mcp_call_progress(f.held[0], i, 10, "x");
	}
	assert_int_equal(f.sent_n, 0);
	fixture_end(&f, 0);
	assert_int_equal(f.sent_n, 2);
	assert_non_null(strstr(f.sent[0], "\"progress\":9,"));
	fixture_fini(&f);
}

static void takes_no_progress_that_is_no_number(void **state)
{
	struct fixture f;

	start(&f, NULL);
	say_call(&f, 1, "hold", ",\"_meta\":{\"progressToken\":1}");
	mcp_call_progress(f.held[0], __builtin_nan(""), 0, NULL);
	mcp_call_progress(f.held[0], 1, __builtin_inf(), NULL);
	assert_int_equal(f.sent_n, 0);
	fixture_fini(&f);
}

static void ends_calls_from_inside_on_cancel(void **state)
{
	struct fixture f;

	start(&f, NULL);
	f.end_on_cancel = true;
	for (int i = 0; i < 5; i++)
		say_call(&f, i, "hold", "");
	mcp_session_fail_all(f.session);
	assert_int_equal(f.cancels, 5);
	assert_int_equal(mcp_session_open(f.session), 0);
	assert_int_equal(f.sent_n, 5); /* each was answered once */
	for (unsigned i = 0; i < 5; i++)
		assert_non_null(strstr(f.sent[i], "the server ended"));
	assert_int_equal(f.idles, 0); /* whoever cancelled asks mcp_session_open() */
	fixture_fini(&f);
}

/* Calls may outlive their session. */
static void closes_with_open_calls(void **state)
{
	struct fixture f;
	unsigned sent;

	start(&f, NULL);
	for (int i = 0; i < 3; i++)
		say_call(&f, i, "hold", ",\"_meta\":{\"progressToken\":1}");
	fixture_end(&f, 1);
	sent = f.sent_n;
	mcp_session_close(take_ptr(f.session));
	assert_int_equal(f.cancels, 2);
	assert_true(mcp_call_cancelled(f.held[0]));
	assert_null(mcp_call_session(f.held[0]));
	assert_ptr_equal(mcp_call_principal(f.held[0]), &f);
	mcp_call_progress(f.held[0], 1, 1, NULL);
	fixture_end(&f, 2);
	fixture_end(&f, 0);
	assert_int_equal(f.sent_n, sent);
	assert_int_equal(f.idles, 0);
	fixture_fini(&f);
}

static void closes_with_an_open_batch(void **state)
{
	struct fixture f;

	assert_true(fixture_init(&f, NULL));
	fixture_say(&f, "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"
			"\"protocolVersion\":\"2024-11-05\"}}");
	fixture_clear(&f);
	fixture_say(&f,
		    "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":"
		    "\"hold\"}},{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}]");
	mcp_session_close(take_ptr(f.session));
	assert_int_equal(f.cancels, 1);
	assert_int_equal(f.sent_n, 0);
	fixture_fini(&f);
}

static const char *const conversation[] = {
	INITIALIZE,
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}",
	"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"add\","
	"\"arguments\":{\"a\":1}}}",
	"{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/call\",\"params\":{\"name\":\"fail\"}}",
	"{\"jsonrpc\":\"2.0\",\"id\":\"\\n4\",\"method\":\"tools/call\","
	"\"params\":{\"name\":\"hold\","
	"\"_meta\":{\"progressToken\":1}}}",
};

/* Whatever fails, each request is answered exactly once or is refused. */
static void survives_want_of_memory(void **state)
{
	for (unsigned n = 0; alloc_fail_next(&n);) {
		struct fixture f;

		if (!fixture_init(&f, NULL))
			continue;
		for (size_t i = 0; i < ARRAY_LEN(conversation); i++)
			fixture_say(&f, conversation[i]);
		if (f.held_n > 0) {
			mcp_call_progress(f.held[0], 1, 0, NULL);
			mcp_call_progress(f.held[0], 2, 0, "held");
		}
		fixture_end_all(&f);
		if (!alloc_failed())
			assert_int_equal(f.sent_n, 7);
		fixture_fini(&f);
	}
}

/* The same in a batch. */
static void survives_want_of_memory_in_a_batch(void **state)
{
	for (unsigned n = 0; alloc_fail_next(&n);) {
		struct fixture f;

		if (!fixture_init(&f, NULL))
			continue;
		fixture_say(&f,
			    "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"
			    "\"protocolVersion\":\"2025-03-26\"}}");
		fixture_say(
			&f,
			"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"},{\"jsonrpc\":\"2.0\","
			"\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"hold\"}}]");
		fixture_end_all(&f);
		if (!alloc_failed())
			assert_int_equal(f.sent_n, 2);
		fixture_fini(&f);
	}
}

static void checks_tools(void **state)
{
	struct mcp_tool good = { .name = "a.b_c-9",
				 .description = "x",
				 .input_schema = "{\"type\":\"object\"}" };
	struct mcp_tool t;
	struct err e;
	size_t n;
	const struct mcp_tool *const *all = fixture_tools(&n);

	for (size_t i = 0; i < n; i++)
		assert_int_equal(all[i]->prepared ? 0 : -1, 0);
	assert_int_equal(mcp_tool_prepare(&good, &e), 0);
	mcp_tool_release(&good);
#define BAD(member, value)                                                                         \
	do {                                                                                       \
		t = good;                                                                          \
		t.member = (value);                                                                \
		e = ERR_INIT;                                                                      \
		assert_int_equal(mcp_tool_prepare(&t, &e), -1);                                    \
		assert_int_equal(e.code, ERR_BUG);                                                 \
	} while (0)
	BAD(name, NULL);
	BAD(name, "");
	BAD(name, "a b");
	BAD(name, "a/b");
	BAD(name, "1234567890123456789012345678901234567890123456789012345678901234x");
	BAD(description, NULL);
	BAD(description, "");
	BAD(input_schema, NULL);
	BAD(input_schema, "{");
	BAD(input_schema, "[]");
	BAD(input_schema, "{}");
	BAD(input_schema, "{\"type\":\n\"object\"}");
	BAD(output_schema, "[]");
	BAD(meta, "1");
#undef BAD
}

static void needs_a_name_and_a_handler(void **state)
{
	struct mcp_server_options o = { .name = "x" };
	struct err e = ERR_INIT;

	assert_null(mcp_server_new(&o, &e));
	assert_int_equal(e.code, ERR_BUG);
}

static void writes_errors_of_the_table(void **state)
{
	struct err e;
	autofree char *text = NULL;

	err_set(&e, ERR_TIMEOUT, "it took \"too\" long");
	text = mcp_error_text(&e);
	assert_string_equal(text,
			    "{\"code\":\"timeout\",\"cause\":\"it took \\\"too\\\" long\","
			    "\"remediation\":\"Give a longer timeout, or do less in one call.\","
			    "\"failure\":\"timeout\",\"retryable\":true}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bounds_requests_in_flight),
		cmocka_unit_test(counts_cancelled_calls),
		cmocka_unit_test(bounds_memory_of_requests),
		cmocka_unit_test(bounds_answers),
		cmocka_unit_test(bounds_batches),
		cmocka_unit_test(bounds_messages_of_a_batch),
		cmocka_unit_test(bounds_messages),
		cmocka_unit_test(answers_on_the_stream_of_the_request),
		cmocka_unit_test(holds_progress_back_when_congested),
		cmocka_unit_test(takes_no_progress_that_is_no_number),
		cmocka_unit_test(ends_calls_from_inside_on_cancel),
		cmocka_unit_test(closes_with_open_calls),
		cmocka_unit_test(closes_with_an_open_batch),
		cmocka_unit_test(survives_want_of_memory),
		cmocka_unit_test(survives_want_of_memory_in_a_batch),
		cmocka_unit_test(checks_tools),
		cmocka_unit_test(needs_a_name_and_a_handler),
		cmocka_unit_test(writes_errors_of_the_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
