/* The client's role against a server that does whatever it likes: its beginning, its answers,
 * its lists and tools. */
#include "base/budget.h"
#include "mcp_script.h"
#include "rpc/sniff.h"
#include "test.h"

/* --- the beginning --- */

static void test_refused(void **state)
{
	script_open("2025-11-25", &lines);
	assert_true(say_error("initialize", -32000, NULL));
	assert_int_equal(unfits, 1);
	assert_int_equal(unfit_code, -32000);
	assert_int_equal(overs, 1);
	assert_int_equal(over_err.code, ERR_TRANSPORT);
	assert_false(say("{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}"));
	script_end();
}

static void test_another_era(void **state)
{
	static const char *const answers[] = {
		"{\"jsonrpc\":\"2.0\",\"id\":%d,\"error\":{\"code\":-32601,\"message\":\"no\"}}",
		"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"no\"}}",
		"{\"jsonrpc\":\"2.0\",\"error\":{\"code\":1}}",
		"{\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":{}}",
		"{\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":[]}",
		"{\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":{\"supportedVersions\":[\"2025-11-25\"],"
		"\"capabilities\":{}}}",
		"{\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":{\"supportedVersions\":[\"" MODERN
		"\"],\"capabilities\":7}}",
	};

	for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
		char text[512];

		script_open(MODERN, &lines);
		restart_with = "2025-11-25";
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(text, sizeof(text), answers[i], id_of("server/discover"));
#pragma GCC diagnostic pop
		ROW_CHECK(say("%s", text), answers[i]);
		ROW_CHECK(unfits == 1 && overs == 0, answers[i]);
		assert_true(say_result("initialize",
				       "{\"protocolVersion\":\"2025-03-26\",\"capabilities\":{}}"));
		assert_int_equal(readies, 1);
		assert_string_equal(mcp_client_version(client), "2025-03-26");
		assert_non_null(last_sent("notifications/initialized"));
		script_end();
	}
}

static void test_no_common_revision(void **state)
{
	static const char *const answers[] = {
		"{\"protocolVersion\":\"1999-01-01\",\"capabilities\":{}}",
		"{\"protocolVersion\":\"2026-07-28\",\"capabilities\":{}}",
	};

	for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
		script_open("2025-11-25", &lines);
		assert_true(say_result("initialize", answers[i]));
		assert_int_equal(overs, 1);
		assert_int_equal(over_err.code, ERR_UNSUPPORTED);
		assert_int_equal(unfit_err, ERR_UNSUPPORTED);
		script_end();
	}
}

static void test_another_revision(void **state)
{
	script_open("2025-11-25", &lines);
	assert_string_equal(text_at(last_sent("initialize"), "params|protocolVersion"),
			    "2025-11-25");
	assert_true(say_error("initialize", -32602,
			      "{\"supported\":[\"2024-11-05\",\"2025-03-26\",7]}"));
	assert_int_equal(count_sent("initialize"), 2);
	assert_string_equal(text_at(last_sent("initialize"), "params|protocolVersion"),
			    "2025-03-26");
	assert_true(say_error("initialize", -32602, "{\"supported\":[\"2024-11-05\"]}"));
	assert_int_equal(count_sent("initialize"), 2);
	assert_int_equal(overs, 1);
	script_end();

	script_open(MODERN, &lines);
	assert_true(say_error("server/discover", -32022, "{\"supported\":[\"" MODERN "\"]}"));
	assert_int_equal(count_sent("server/discover"), 2);
	assert_true(say_error("server/discover", -32022, "{\"supported\":[\"" MODERN "\"]}"));
	assert_int_equal(unfits, 1);
	assert_int_equal(over_err.code, ERR_UNSUPPORTED);
	script_end();

	script_begin(MODERN, &streams);
	call();
	assert_true(say_error("tools/call", -32022, "{\"supported\":[\"" MODERN "\"]}"));
	assert_int_equal(count_sent("tools/call"), 2);
	assert_true(say_error("tools/call", -32022, "{\"supported\":[\"" MODERN "\"]}"));
	assert_int_equal(got.code, -32022);
	script_end();
}

/* --- answers --- */

static void test_answers_to_nothing(void **state)
{
	static const char *const versions[] = { "2025-11-25", MODERN };

	for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
		int id;

		script_begin(versions[i], &lines);
		call();
		id = id_of("tools/call");
		assert_false(say("{\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":{}}", id + 1));
		assert_false(say("{\"jsonrpc\":\"2.0\",\"id\":\"0%d\",\"result\":{}}", id));
		assert_false(say("{\"jsonrpc\":\"2.0\",\"id\":-%d,\"result\":{}}", id));
		assert_false(say("{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":1,"
				 "\"message\":\"\"}}"));
		assert_int_equal(counts().strays, 4);
		assert_int_equal(got.done, 0);
		assert_true(say("{\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":" DONE "}", id));
		assert_int_equal(got.done, 1);
		assert_string_equal(got.text, DONE);
		assert_false(say("{\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":" DONE "}", id));
		assert_false(say("{\"jsonrpc\":\"2.0\",\"id\":%d,\"error\":{\"code\":1,"
				 "\"message\":\"\"}}",
				 id));
		assert_int_equal(got.done, 1);
		assert_int_equal(counts().strays, 6);
		script_end();
	}
}

static void test_garbage(void **state)
{
	static const char *const texts[] = {
		"",
		"x",
		"{",
		"1",
		"null",
		"\"a\"",
		"[]",
		"{}",
		"[1]",
		"\xff",
		"{\"jsonrpc\":\"2.0\"}",
		"{\"jsonrpc\":\"1.0\",\"method\":\"x\"}",
		"{\"jsonrpc\":\"2.0\",\"method\":7}",
		"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":7}",
		"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}",
		"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\"}",
		"{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{}}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"result\":{}}",
	};

	for (unsigned i = 0; i < ARRAY_LEN(texts); i++) {
		script_begin("2025-11-25", &lines);
		call();
		ROW_CHECK(!say("%s", texts[i]), texts[i]);
		ROW_CHECK(counts().garbage == 1, texts[i]);
		ROW_CHECK(got.done == 0 && overs == 0, texts[i]);
		script_end();
	}
}

/* The request whose id is there will have no other answer. */
static void test_broken_answers(void **state)
{
	static const char *const members[] = {
		"\"result\":null",
		"\"result\":[]",
		"\"result\":\"x\"",
		"\"result\":{},\"error\":{\"code\":1,\"message\":\"\"}",
		"\"error\":7",
		"\"result\":{\"a\":1,\"a\":2}",
		"\"result\":{\"a\":\"\\ud80\"}",
		"\"result\":{\"a\":nonsense}",
		"\"other\":1",
		"\"result\":{\"content\":7}",
		"\"result\":{\"content\":[7]}",
		"\"result\":{\"content\":[{}]}",
		"\"result\":{\"content\":[],\"isError\":\"no\"}",
	};

	for (unsigned i = 0; i < ARRAY_LEN(members); i++) {
		script_begin(MODERN, &lines);
		call();
		ROW_CHECK(
			say("{\"jsonrpc\":\"2.0\",\"id\":%d,%s}", id_of("tools/call"), members[i]),
			members[i]);
		ROW_CHECK(got.done == 1 && got.e.code == ERR_INVALID, members[i]);
		script_end();
	}
}

/* Half a surrogate pair is a character that can't be read. */
static void test_halves(void **state)
{
	script_begin(MODERN, &lines);
	call();
	assert_true(say("{\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":{\"content\":[],\"a\":"
			"\"\\ud800 \\uDC00\\ud83d\\ude00\\\\ud800\"}}",
			id_of("tools/call")));
	assert_int_equal(got.done, 1);
	assert_non_null(strstr(got.text, "\"\\ufffd \\ufffd\\ud83d\\ude00\\\\ud800\""));
	script_end();
}

static void test_shapes(void **state)
{
	static const struct {
		const char *method, *result;
		bool fits;
	} rows[] = {
		{ "resources/read", "{}", false },
		{ "resources/read", "{\"contents\":[{\"uri\":\"x:\"}]}", false },
		{ "resources/read", "{\"contents\":[{\"text\":\"\"}]}", false },
		{ "resources/read", "{\"contents\":[{\"uri\":\"x:\",\"blob\":\"\"}]}", true },
		{ "prompts/get", "{\"messages\":[{\"role\":\"user\"}]}", false },
		{ "prompts/get",
		  "{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\"}}]}", true },
		{ "completion/complete", "{\"completion\":{}}", false },
		{ "completion/complete", "{\"completion\":{\"values\":[1]}}", false },
		{ "completion/complete", "{\"completion\":{\"values\":[\"a\"]}}", true },
		{ "tools/list", "{}", false },
		{ "tools/list", "{\"tools\":[]}", true },
		{ "x/y", "{}", true },
		{ "x/y", "{\"resultType\":\"complete\"}", true },
		{ "x/y", "{\"resultType\":\"other\"}", false },
		{ "x/y", "{\"resultType\":7}", false },
		{ "x/y", "{\"resultType\":\"input_required\",\"requestState\":\"s\"}", false },
		{ "tools/list", "{\"resultType\":\"input_required\",\"requestState\":\"s\"}",
		  false },
		{ "prompts/get", "{\"resultType\":\"task\",\"taskId\":\"a\"}", false },
	};

	script_begin(MODERN, &lines);
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		ask(rows[i].method, "{\"name\":\"n\",\"uri\":\"u:\"}");
		say_result(rows[i].method, rows[i].result);
		ROW_CHECK(got.done == 1, rows[i].result);
		ROW_CHECK(got.e.code == (rows[i].fits ? ERR_NONE : ERR_INVALID), rows[i].result);
	}
	script_end();
}

static void test_no_tasks_wanted(void **state)
{
	unsigned can = options.can;

	options.can = 0;
	script_begin(MODERN, &lines);
	call();
	say_result("tools/call",
		   "{\"resultType\":\"task\",\"taskId\":\"a\",\"status\":\"working\"}");
	failed_with(ERR_INVALID);
	script_end();
	options.can = can;
}

static void test_errors(void **state)
{
	script_begin(MODERN, &lines);
	call();
	say("{\"jsonrpc\":\"2.0\",\"id\":%d,\"error\":{}}", id_of("tools/call"));
	assert_int_equal(got.code, -32603);
	call();
	say("{\"jsonrpc\":\"2.0\",\"id\":%d,\"error\":{\"code\":99999999999,\"message\":[]}}",
	    id_of("tools/call"));
	assert_int_equal(got.code, -32603);
	call();
	say("{\"jsonrpc\":\"2.0\",\"id\":%d,\"error\":{\"code\":-5,\"message\":\"%030000d\"}}",
	    id_of("tools/call"), 7);
	assert_int_equal(got.code, -5);
	assert_int_equal(counts().garbage, 0);
	script_end();
}

/* Over HTTP an error may name no request, or one that is none of ours: its stream says which. */
static void test_errors_of_a_stream(void **state)
{
	struct mcp_pending *a;

	script_begin(MODERN, &streams);
	a = call();
	assert_true(say_on(a, "{\"jsonrpc\":\"2.0\",\"id\":\"server-error\",\"error\":{\"code\":-1,"
			      "\"message\":\"\"}}"));
	assert_int_equal(got.code, -1);
	a = call();
	assert_true(say_on(a, "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-2,\"message\":\"\"}}"));
	assert_int_equal(got.code, -2);
	/* what another request is answered with on it is not believed */
	call();
	a = call();
	assert_false(say_on(a, "{\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":" DONE "}",
			    (int)int_at(nth_sent("tools/call", 1), "id")));
	assert_int_equal(got.done, 0);
	assert_int_equal(counts().strays, 1);
	assert_int_equal(counts().pending, 2);
	script_end();
}

static void test_too_large(void **state)
{
	struct rpc_sniff sniff = { 0 };
	const struct err e = { ERR_TOO_LARGE, "too long" };
	size_t max = options.message_max;
	char text[128];

	options.message_max = 1000;
	script_begin(MODERN, &lines);
	call();
	assert_true(
		say("{\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":{\"content\":[],\"x\":\"%02000d\"}}",
		    id_of("tools/call"), 1));
	failed_with(ERR_TOO_LARGE);
	assert_false(say("{\"jsonrpc\":\"2.0\",\"id\":77,\"result\":{\"x\":\"%02000d\"}}", 1));
	assert_false(
		say("{\"jsonrpc\":\"2.0\",\"id\":77,\"method\":\"m\",\"params\":[%02000d]}", 1));
	assert_int_equal(counts().garbage, 3);
	/* the same where the transport noticed */
	call();
	snprintf(text, sizeof(text), "{\"id\":%d,\"result\":0}", id_of("tools/call"));
	rpc_sniff_feed(&sniff, str_of(text));
	mcp_client_dropped(client, NULL, &sniff, &e);
	failed_with(ERR_TOO_LARGE);
	mcp_client_dropped(client, NULL, &sniff, &e);
	mcp_client_dropped(client, NULL, NULL, &e);
	mcp_client_dropped(client, call(), NULL, &e);
	failed_with(ERR_TOO_LARGE);
	script_end();
	options.message_max = max;
}

static void test_batches(void **state)
{
	int a, b;

	script_begin("2025-03-26", &lines);
	call();
	a = id_of("tools/call");
	call();
	b = id_of("tools/call");
	assert_true(say("[{\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":" DONE "},7,"
			"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{"
			"\"level\":\"info\",\"data\":1}},{\"jsonrpc\":\"2.0\",\"id\":%d,"
			"\"result\": {\"content\":[ ]} }, {\"jsonrpc\":\"2.0\",\"id\":9,\"method\":"
			"\"ping\"}]",
			a, b));
	assert_int_equal(got.done, 2);
	assert_string_equal(got.text, "{\"content\":[ ]}");
	assert_int_equal(logs, 1);
	assert_int_equal(int_at(last_answer(), "id"), 9);
	assert_int_equal(counts().garbage, 1);
	script_end();

	script_begin("2025-06-18", &lines);
	call();
	assert_false(
		say("[{\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":" DONE "}]", id_of("tools/call")));
	assert_int_equal(counts().garbage, 1);
	script_end();
}

/* --- progress --- */

static void test_progress(void **state)
{
	int token;

	script_begin(MODERN, &lines);
	call();
	token = (int)int_at(last_sent("tools/call"), "params|_meta|progressToken");
#define PROGRESS "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{"
	say(PROGRESS "\"progressToken\":%d,\"progress\":1}}", token);
	say(PROGRESS "\"progressToken\":%d,\"progress\":1}}", token);
	say(PROGRESS "\"progressToken\":%d,\"progress\":0.5}}", token);
	assert_int_equal(got.progress, 1);
	say(PROGRESS "\"progressToken\":%d,\"progress\":1.5,\"total\":\"x\",\"message\":7}}",
	    token);
	assert_int_equal(got.progress, 2);
	assert_int_equal(counts().strays, 0);
	say(PROGRESS "\"progressToken\":%d}}", token);
	say(PROGRESS "\"progressToken\":\"0%d\",\"progress\":9}}", token);
	say(PROGRESS "\"progressToken\":%d,\"progress\":9}}", token + 1000);
	say(PROGRESS "\"progress\":9}}");
	assert_int_equal(counts().strays, 4);
	say(PROGRESS "\"progressToken\":\"%d\",\"progress\":9}}", token);
	assert_int_equal(got.progress, 3);
	say_result("tools/call", DONE);
	say(PROGRESS "\"progressToken\":%d,\"progress\":9}}", token);
	assert_int_equal(got.progress, 3);
	assert_int_equal(counts().strays, 5);
	script_end();
}

/* --- lists --- */

static void page(const char *items, const char *more)
{
	say("{\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":{\"tools\":%s%s}}", id_of("tools/list"),
	    items, more);
}

static void test_cursors(void **state)
{
	script_begin(MODERN, &lines);
	ask_list("tools");
	page("[{\"name\":\"a\"}]", ",\"nextCursor\":\"1\"");
	assert_string_equal(text_at(last_sent("tools/list"), "params|cursor"), "1");
	page("[{\"name\":\"b\"}]", ",\"nextCursor\":\"2\"");
	page("[{\"name\":\"c\"}]", ",\"nextCursor\":\"1\"");
	failed_with(ERR_INVALID);

	ask_list("tools");
	for (int i = 0; i < 2000 && got.done == 0; i++) {
		char more[64];

		snprintf(more, sizeof(more), ",\"nextCursor\":\"%d\"", i);
		page("[]", more);
		if (sent_n > SENT - 10)
			forget_sent();
	}
	failed_with(ERR_LIMIT);

	ask_list("tools");
	page("[]", ",\"nextCursor\":7");
	failed_with(ERR_INVALID);
	ask_list("tools");
	page("[]", ",\"nextCursor\":null");
	failed_with(ERR_NONE);
	ask_list("tools");
	page("[]", ",\"nextCursor\":\"\"");
	failed_with(ERR_NONE);
	ask_list("tools");
	page("7", "");
	failed_with(ERR_INVALID);
	ask_list("tools");
	page("[7,{},{\"name\":7},{\"name\":\"a\"}]", "");
	failed_with(ERR_NONE);
	assert_int_equal(got.listed, 1);
	assert_int_equal(got.dropped, 3);
	ask_list("tools");
	page("[]", ",\"nextCursor\":\"1\"");
	say_error("tools/list", -32602, NULL);
	assert_int_equal(got.code, -32602);
	assert_int_equal(got.done, 1);
	script_end();
}

static void test_too_many_entries(void **state)
{
	options.list_max = 5;
	script_begin(MODERN, &lines);
	ask_list("tools");
	page("[1,1,1,1]", ",\"nextCursor\":\"1\"");
	page("[1]", ",\"nextCursor\":\"2\"");
	page("[]", ",\"nextCursor\":\"3\"");
	assert_int_equal(got.done, 0);
	page("[{\"name\":\"a\"},{\"name\":\"a\"},{\"name\":\"a\"},{\"name\":\"a\"},"
	     "{\"name\":\"a\"},{\"name\":\"a\"}]",
	     "");
	failed_with(ERR_LIMIT);
	script_end();
	options.list_max = 0;
}

/* What is kept of messages is bounded in all. */
static void test_kept(void **state)
{
	options.message_max = 10000;
	script_begin(MODERN, &lines);
	ask_list("tools");
	for (int i = 0; i < 100 && got.done == 0; i++)
		say("{\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":{\"tools\":[],\"nextCursor\":\"%d\","
		    "\"x\":\"%05000d\"}}",
		    id_of("tools/list"), i, 1);
	failed_with(ERR_LIMIT);
	/* and given back */
	ask_list("tools");
	page("[]", "");
	failed_with(ERR_NONE);
	script_end();
	options.message_max = 0;
}

/* One measure for several, and for what is known of tools. */
static void test_kept_together(void **state)
{
	struct budget all = { .max = 20000 };
	struct err e;

	options.memory = &all;
	script_begin(MODERN, &lines);
	ask_list("tools");
	page("[{\"name\":\"a\"}]", "");
	failed_with(ERR_NONE);
	assert_int_equal(budget_take(&all, all.max - all.used, &e), 0);
	ask_list("tools");
	page("[{\"name\":\"a\"}]", "");
	failed_with(ERR_LIMIT);
	/* what need not be kept goes on */
	call();
	say_result("tools/call", DONE);
	failed_with(ERR_NONE);
	budget_give(&all, 10000);
	ask_list("tools");
	page("[{\"name\":\"a\"}]", "");
	failed_with(ERR_NONE);
	script_end();
	assert_true(all.used < 10000);
	budget_give(&all, all.used);
	options.memory = NULL;
}

/* --- tools --- */

#define TOOL(name, schema)                                                                         \
	"{\"name\":\"" name "\",\"inputSchema\":{\"type\":\"object\",\"properties\":" schema "}}"

static void test_headers(void **state)
{
	/* clang-format off */
	static const char tools[] =
		"[" TOOL("good", "{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"A\"}}")
		"," TOOL("empty", "{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"\"}}")
		"," TOOL("space", "{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"A B\"}}")
		"," TOOL("number", "{\"a\":{\"type\":\"number\",\"x-mcp-header\":\"A\"}}")
		"," TOOL("twice", "{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"A\"},"
				  "\"b\":{\"type\":\"string\",\"x-mcp-header\":\"a\"}}")
		"," TOOL("array", "{\"a\":{\"type\":\"array\",\"items\":{\"type\":\"string\","
				  "\"x-mcp-header\":\"A\"}}}") "]";
	/* clang-format on */

	script_begin(MODERN, &streams);
	ask_list("tools");
	page(tools, "");
	failed_with(ERR_NONE);
	assert_int_equal(got.listed, 1);
	assert_int_equal(got.dropped, 5);
	script_end();
	script_begin(MODERN, &lines);
	ask_list("tools");
	page(tools, "");
	assert_int_equal(got.listed, 6);
	script_end();
	script_begin("2025-11-25", &streams);
	ask_list("tools");
	page(tools, "");
	assert_int_equal(got.listed, 6);
	script_end();
}

/* An owner that lists by itself, page by page, has its calls made as the tools want it too. */
static void test_pages_of_an_owner(void **state)
{
	static const char headed[] = TOOL("t",
					  "{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"A\"}}"),
			  bad[] = TOOL("t", "{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"\"}}");
	static const struct {
		const char *params, *tool, *more;
		unsigned headers; /* of a call of t after it */
	} rows[] = {
		{ "{}", headed, ",\"nextCursor\":\"1\"", 1 },
		{ "{\"cursor\":\"1\"}", "{\"name\":\"u\"}", "", 1 },
		{ "{\"cursor\":\"1\"}", bad, ",\"nextCursor\":\"2\"", 0 },
		{ "{\"cursor\":\"2\"}", headed, "", 1 },
		{ "{\"cursor\":\"3\"}", "7", "", 1 },
		{ "{}", "{\"name\":\"u\"}", "", 0 },
	};

	script_begin(MODERN, &streams);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char text[1024];

		ask("tools/list", rows[i].params);
		snprintf(text, sizeof(text), "[%s]", rows[i].tool);
		page(text, rows[i].more);
		failed_with(ERR_NONE);
		call();
		ROW_CHECK(sent[sent_n - 1].params_n == rows[i].headers, rows[i].tool);
		say_result("tools/call", DONE);
	}
	script_end();
}

/* Legacy streams may carry anything; only its own answer ends one. */
static void test_answer_on_another_stream(void **state)
{
	struct mcp_pending *a, *b;

	script_begin("2025-11-25", &streams);
	a = call();
	b = call();
	assert_false(say_on(a, "{\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":" DONE "}",
			    (int)int_at(nth_sent("tools/call", 0), "id")));
	assert_int_equal(got.done, 1);
	assert_true(say_on(a, "{\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":" DONE "}",
			   (int)int_at(nth_sent("tools/call", 1), "id")));
	assert_int_equal(got.done, 2);
	assert_ptr_not_equal(a, b);
	script_end();
}

static void test_header_mismatch(void **state)
{
	script_begin(MODERN, &streams);
	call();
	call();
	assert_int_equal(sent[sent_n - 1].params_n, 0);
	say_error("tools/call", -32020, NULL);
	assert_int_equal(count_sent("tools/list"), 1);
	say("{\"jsonrpc\":\"2.0\",\"id\":%d,\"error\":{\"code\":-32020,\"message\":\"\"}}",
	    (int)int_at(nth_sent("tools/call", 1), "id"));
	assert_int_equal(count_sent("tools/list"), 1);
	page("[" TOOL("t", "{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"A\"}}") "]", "");
	assert_int_equal(count_sent("tools/call"), 4);
	assert_int_equal(sent[sent_n - 1].params_n, 1);
	assert_int_equal(got.done, 0);
	/* once, whatever the server says then */
	say_error("tools/call", -32020, NULL);
	assert_int_equal(got.code, -32020);
	assert_int_equal(count_sent("tools/call"), 4);
	/* where the list is not to be had, the server's word stands */
	call();
	say_error("tools/call", -32020, NULL);
	say_error("tools/list", -32603, NULL);
	assert_int_equal(count_sent("tools/call"), 6);
	say_error("tools/call", -32020, NULL);
	assert_int_equal(got.code, -32020);
	script_end();
}

static void test_output_schema(void **state)
{
	static const struct {
		const char *schema, *result;
		enum err_code code;
	} rows[] = {
		{ "{\"type\":\"object\",\"required\":[\"a\"]}", "{\"structuredContent\":{\"a\":1}}",
		  ERR_NONE },
		{ "{\"type\":\"object\",\"required\":[\"a\"]}", "{\"structuredContent\":{}}",
		  ERR_INVALID },
		{ "{\"type\":\"object\",\"required\":[\"a\"]}", "{\"content\":[]}", ERR_INVALID },
		{ "{\"type\":\"object\",\"required\":[\"a\"]}", "{\"content\":[],\"isError\":true}",
		  ERR_NONE },
		{ "{\"type\":\"array\"}", "{\"structuredContent\":[1]}", ERR_NONE },
		/* one that can't be read is as good as none */
		{ "{\"$ref\":\"https://x.y/z\"}", "{\"structuredContent\":{}}", ERR_NONE },
		{ "{\"$schema\":\"https://x.y/z\"}", "{\"structuredContent\":{}}", ERR_NONE },
		{ "{\"required\":\"n\"}", "{\"content\":[]}", ERR_NONE },
		{ "7", "{\"structuredContent\":{}}", ERR_NONE },
		{ "null", "{\"content\":[]}", ERR_NONE },
	};

	script_begin(MODERN, &lines);
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		char tool[256];

		snprintf(tool, sizeof(tool), "[{\"name\":\"t\",\"outputSchema\":%s}]",
			 rows[i].schema);
		ask_list("tools");
		page(tool, "");
		assert_int_equal(got.listed, 1);
		for (unsigned again = 0; again < 2; again++) {
			call();
			say_result("tools/call", rows[i].result);
			ROW_CHECK(got.done == 1 && got.e.code == rows[i].code, rows[i].schema);
		}
	}
	script_end();
}

/* A schema of before the tools changed is no measure. */
static void test_old_schema(void **state)
{
	static const char tool[] =
		"[{\"name\":\"t\",\"outputSchema\":{\"type\":\"object\",\"required\":[\"a\"]}}]";

	script_begin("2025-11-25", &lines);
	ask_list("tools");
	page(tool, "");
	call();
	say_result("tools/call", "{\"structuredContent\":{}}");
	failed_with(ERR_INVALID);
	say("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}");
	assert_int_equal(changes, 1);
	call();
	say_result("tools/call", "{\"structuredContent\":{}}");
	failed_with(ERR_NONE);
	script_end();
}

/* --- owners that do what they like --- */

static struct mcp_pending *mine;

static void cancel_mine(void *owner, const struct mcp_progress *p)
{
	mcp_pending_cancel(mine);
	mcp_pending_cancel(mine);
}

static void free_on_done(void *owner, const struct mcp_answer *a)
{
	got.done++;
	mcp_client_free(client);
	client = NULL;
}

static void ask_on_done(void *owner, const struct mcp_answer *a)
{
	struct mcp_request_spec s = { .on_done = on_done, .method = "x/y" };
	struct err e;

	got.e = a->e ? *a->e : ERR_INIT;
	(void)!mcp_client_request(client, &s, &e);
}

static struct mcp_pending *call_with(void (*done)(void *owner, const struct mcp_answer *a),
				     void (*progress)(void *owner, const struct mcp_progress *p))
{
	const struct mcp_request_spec s = { .on_done = done, .on_progress = progress };
	struct err e;

	memset(&got, 0, sizeof(got));
	mine = mcp_client_call(client, "t", STR_NONE, &s, &e);
	assert_non_null(mine);
	return mine;
}

static void free_on_asked(void *owner, struct mcp_question *q)
{
	mcp_client_free(client);
	client = NULL;
}

static void cancel_on_asked(void *owner, struct mcp_question *q)
{
	struct err e;

	asks++;
	mcp_pending_cancel(mine);
	assert_int_equal(mcp_question_answer(q, STR_LIT("{\"roots\":[]}"), &e), -1);
	mcp_question_refuse(q, "late");
}

static void test_owners(void **state)
{
	static const struct mcp_client_handler frees = { .asked = free_on_asked };
	static const struct mcp_client_handler cancels = { .asked = cancel_on_asked };
	static const char two[] = "{\"resultType\":\"input_required\",\"inputRequests\":{\"a\":{"
				  "\"method\":\"roots/list\"},\"b\":{\"method\":\"roots/list\"}}}";

	script_begin(MODERN, &lines);
	call_with(on_done, cancel_mine);
	say(PROGRESS "\"progressToken\":%d,\"progress\":1}}",
	    (int)int_at(last_sent("tools/call"), "params|_meta|progressToken"));
	assert_int_equal(counts().pending, 0);
	assert_int_equal(got.done, 0);
	call_with(ask_on_done, NULL);
	say_result("tools/call", DONE);
	assert_int_equal(count_sent("x/y"), 1);
	call_with(ask_on_done, NULL);
	mcp_client_lost(client, &(struct err){ ERR_TRANSPORT, "gone" });
	assert_int_equal(count_sent("x/y"), 1);
	assert_int_equal(overs, 1);
	script_end();

	script_begin(MODERN, &lines);
	call();
	call_with(free_on_done, NULL);
	say_result("tools/call", DONE);
	assert_null(client);
	assert_int_equal(got.done, 1);
	script_end();

	options.handler = &frees;
	script_open(MODERN, &lines);
	say_result("server/discover",
		   "{\"supportedVersions\":[\"" MODERN "\"],\"capabilities\":{}}");
	call();
	say_result("tools/call", two);
	assert_null(client);
	script_end();

	options.handler = &cancels;
	script_open(MODERN, &lines);
	say_result("server/discover",
		   "{\"supportedVersions\":[\"" MODERN "\"],\"capabilities\":{}}");
	call_with(on_done, NULL);
	say_result("tools/call", two);
	assert_int_equal(asks, 1);
	assert_int_equal(counts().questions, 0);
	script_end();
	options.handler = &handler;
}

static void test_after_the_end(void **state)
{
	script_begin("2025-11-25", &lines);
	call();
	mcp_client_lost(client, &(struct err){ ERR_TRANSPORT, "gone" });
	failed_with(ERR_TRANSPORT);
	assert_int_equal(let_gos, 2);
	say(ROOTS, 1);
	say("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}");
	mcp_client_lost(client, &(struct err){ ERR_TRANSPORT, "again" });
	mcp_client_session_lost(client, NULL);
	assert_int_equal(overs, 1);
	assert_int_equal(asks + changes, 0);
	assert_true(mcp_client_tick(client) == UINT64_MAX);
	script_end();
}

static void test_too_many_requests(void **state)
{
	const struct mcp_request_spec s = { .method = "x/y", .on_done = on_done };
	struct err e;

	options.pending_max = 3;
	script_begin(MODERN, &lines);
	for (unsigned i = 0; i < 3; i++)
		assert_non_null(mcp_client_request(client, &s, &e));
	assert_null(mcp_client_request(client, &s, &e));
	assert_int_equal(e.code, ERR_LIMIT);
	say_result("x/y", "{}");
	assert_non_null(mcp_client_request(client, &s, &e));
	script_end();
	options.pending_max = 0;
}

/* Its _meta is the owner's but for what the protocol has in it. */
static void test_meta(void **state)
{
	script_begin(MODERN, &streams);
	ask("resources/read",
	    "{\"uri\":\"a:\\u00e4\",\"_meta\":{\"traceparent\":\"t\",\"progressToken\":7,"
	    "\"io.modelcontextprotocol/protocolVersion\":\"x\",\"n\":1.0}}");
	assert_string_equal(text_at(last_sent("resources/read"), "params|_meta|traceparent"), "t");
	assert_null(at(last_sent("resources/read"), "params|_meta|progressToken"));
	assert_string_equal(text_at(last_sent("resources/read"),
				    "params|_meta|io.modelcontextprotocol/protocolVersion"),
			    MODERN);
	assert_non_null(at(last_sent("resources/read"),
			   "params|_meta|io.modelcontextprotocol/clientCapabilities|roots"));
	assert_string_equal(sent[sent_n - 1].name, "=?base64?YTrDpA==?=");
	assert_string_equal(sent[sent_n - 1].version, MODERN);
	script_end();
	script_begin("2025-11-25", &streams);
	ask("resources/read", "{\"uri\":\"a:\",\"_meta\":{\"progressToken\":7}}");
	assert_int_equal(json_len(at(last_sent("resources/read"), "params|_meta")), 0);
	assert_string_equal(sent[sent_n - 1].name, "");
	assert_string_equal(sent[sent_n - 1].version, "2025-11-25");
	script_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_another_era),
		cmocka_unit_test(test_no_common_revision),
		cmocka_unit_test(test_another_revision),
		cmocka_unit_test(test_answers_to_nothing),
		cmocka_unit_test(test_garbage),
		cmocka_unit_test(test_broken_answers),
		cmocka_unit_test(test_halves),
		cmocka_unit_test(test_shapes),
		cmocka_unit_test(test_no_tasks_wanted),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_errors_of_a_stream),
		cmocka_unit_test(test_too_large),
		cmocka_unit_test(test_batches),
		cmocka_unit_test(test_progress),
		cmocka_unit_test(test_cursors),
		cmocka_unit_test(test_too_many_entries),
		cmocka_unit_test(test_kept),
		cmocka_unit_test(test_kept_together),
		cmocka_unit_test(test_headers),
		cmocka_unit_test(test_pages_of_an_owner),
		cmocka_unit_test(test_answer_on_another_stream),
		cmocka_unit_test(test_header_mismatch),
		cmocka_unit_test(test_output_schema),
		cmocka_unit_test(test_old_schema),
		cmocka_unit_test(test_owners),
		cmocka_unit_test(test_after_the_end),
		cmocka_unit_test(test_too_many_requests),
		cmocka_unit_test(test_meta),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
