/* The client's role where a request is more than one message: rounds of questions, tasks,
 * sessions that are lost, subscriptions; with a server that is wrong in every way. */
#include "mcp_script.h"
#include "test.h"

/* --- input_required --- */

#define ROUND "{\"resultType\":\"input_required\",\"requestState\":\"s\"}"

static void test_rounds_without_end(void **state)
{
	unsigned n = 0;

	script_begin(MODERN, &lines);
	call();
	while (got.done == 0 && n++ < 100)
		say_result("tools/call", ROUND);
	failed_with(ERR_LIMIT);
	assert_int_equal(n, 17);
	assert_string_equal(text_at(last_sent("tools/call"), "params|requestState"), "s");
	assert_null(at(last_sent("tools/call"), "params|inputResponses"));
	assert_string_equal(text_at(last_sent("tools/call"), "params|arguments|a"), "v");
	script_end();
}

#define ASK(method, params)                                                                        \
	"{\"resultType\":\"input_required\",\"inputRequests\":{\"k\":{\"method\":\"" method        \
	"\",\"params\":" params "}}}"
#define ELICIT(params) ASK("elicitation/create", params)
#define SCHEMA "\"requestedSchema\":{\"type\":\"object\",\"properties\":{}}"

static void test_bad_questions(void **state)
{
	static const char *const results[] = {
		"{\"resultType\":\"input_required\"}",
		"{\"resultType\":\"input_required\",\"inputRequests\":{}}",
		"{\"resultType\":\"input_required\",\"inputRequests\":[{}]}",
		"{\"resultType\":\"input_required\",\"inputRequests\":7,\"requestState\":\"s\"}",
		"{\"resultType\":\"input_required\",\"requestState\":7}",
		"{\"resultType\":\"input_required\",\"inputRequests\":{\"k\":7}}",
		ASK("tools/call", "{}"),
		ASK("sampling/createMessage", "{}"),
		ASK("sampling/createMessage",
		    "{\"messages\":[],\"maxTokens\":1,\"tools\":[]}"), /* not offered */
		ELICIT("{}"),
		ELICIT("7"),
		ELICIT("{\"message\":\"m\"}"),
		ELICIT("{\"message\":\"m\",\"mode\":\"x\"," SCHEMA "}"),
		ELICIT("{\"message\":\"m\",\"requestedSchema\":{\"type\":\"array\"}}"),
		ELICIT("{\"message\":\"m\",\"requestedSchema\":{\"type\":\"object\","
		       "\"properties\":{\"a\":{\"type\":7}}}}"),
		ELICIT("{\"message\":\"m\",\"requestedSchema\":{\"type\":\"object\","
		       "\"properties\":{\"a\":{\"$ref\":\"http://169.254.169.254/\"}}}}"),
		ELICIT("{\"message\":\"m\",\"mode\":\"url\"}"),
		ELICIT("{\"message\":\"m\",\"mode\":\"url\",\"url\":\"javascript:alert(1)\"}"),
		ELICIT("{\"message\":\"m\",\"mode\":\"url\",\"url\":\"file:///etc/passwd\"}"),
		ELICIT("{\"message\":\"m\",\"mode\":\"url\",\"url\":\"https://\"}"),
		ELICIT("{\"message\":\"m\",\"mode\":\"url\",\"url\":\"https://:80/\"}"),
		ELICIT("{\"message\":\"m\",\"mode\":\"url\",\"url\":\"https://a.b@c.d/\"}"),
		ELICIT("{\"message\":\"m\",\"mode\":\"url\",\"url\":\"https://a.b\\\\@c.d/\"}"),
		ELICIT("{\"message\":\"m\",\"mode\":\"url\",\"url\":\"https://a.b/\\u0007\"}"),
		ELICIT("{\"message\":\"m\",\"mode\":\"url\",\"url\":\"https://a.b/ c\"}"),
		ELICIT("{\"message\":\"m\",\"mode\":\"url\",\"url\":\"https://\\u0430.b/\"}"),
	};

	script_begin(MODERN, &lines);
	for (unsigned i = 0; i < ARRAY_LEN(results); i++) {
		call();
		say_result("tools/call", results[i]);
		ROW_CHECK(got.done == 1 && got.e.code == ERR_INVALID, results[i]);
		ROW_CHECK(asks == 0, results[i]);
	}
	assert_int_equal(counts().questions, 0);
	/* and one that is fit */
	call();
	say_result("tools/call",
		   ELICIT("{\"message\":\"m\",\"mode\":\"url\",\"url\":\"HTTPS://a.b:8/?c@d\"}"));
	assert_int_equal(asks, 1);
	assert_int_equal(got.done, 0);
	script_end();
}

static void test_too_many_questions(void **state)
{
	char text[TEXT_MAX / 2];
	size_t n = 0;

	n += (size_t)snprintf(text, sizeof(text),
			      "{\"resultType\":\"input_required\",\"inputRequests\":{\"k\":{"
			      "\"method\":\"roots/list\"}");
	for (unsigned i = 0; i < 32; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n,
				      ",\"k%u\":{\"method\":\"roots/list\"}", i);
	snprintf(text + n, sizeof(text) - n, "}}");
	script_begin(MODERN, &lines);
	call();
	say_result("tools/call", text);
	failed_with(ERR_LIMIT);
	assert_int_equal(asks, 0);
	assert_int_equal(counts().questions, 0);
	script_end();
}

/* Questions come in their order, and each of their answers once. */
static void test_answers_in_their_order(void **state)
{
	struct mcp_question *q;
	struct err e;

	script_begin(MODERN, &lines);
	call();
	say_result("tools/call",
		   "{\"resultType\":\"input_required\",\"inputRequests\":{\"a\":{\"method\":"
		   "\"roots/list\"},\"b\":"
		   "{\"method\":\"roots/list\",\"params\":{}}},"
		   "\"requestState\":\"\\u0000x\"}");
	assert_int_equal(asks, 2);
	assert_int_equal(counts().questions, 2);
	q = question;
	assert_int_equal(mcp_question_answer(q, STR_LIT("{\"roots\":[{\"uri\":\"x:\"}]}"), &e), -1);
	assert_int_equal(mcp_question_answer(q, STR_LIT("{\n\"roots\":[]}"), &e), 0);
	assert_int_equal(counts().questions, 1);
	assert_int_equal(count_sent("tools/call"), 1);
	script_end();
	assert_int_equal(withdrawals, 0);
}

/* Keys are a server's own, with whatever in them: they come back as they were, and nothing else
 * does. */
static void test_keys_of_any_bytes(void **state)
{
	static const char key[] = "\0"
				  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
	struct err e;

	script_begin(MODERN, &lines);
	call();
	say("{\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":{\"resultType\":\"input_required\","
	    "\"inputRequests\":{\"\\u0000%s\":{\"method\":\"roots/list\"}}}}",
	    id_of("tools/call"), key + 1);
	assert_int_equal(mcp_question_answer(question, STR_LIT("{\"roots\":[]}"), &e), 0);
	assert_int_equal(count_sent("tools/call"), 2);
	assert_non_null(json_get_str(
		json_get(json_get(last_sent("tools/call"), "params"), "inputResponses"),
		(struct str){ key, sizeof(key) - 1 }));
	script_end();
}

/* --- questions of legacy servers --- */

static void test_requests_of_servers(void **state)
{
	script_begin(MODERN, &lines);
	say("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}");
	say(ROOTS, 2);
	assert_int_equal(counts().garbage, 2);
	assert_null(last_answer());
	script_end();

	script_begin("2025-11-25", &lines);
	say("{\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"ping\",\"params\":[]}");
	assert_string_equal(text_at(last_answer(), "id"), "p");
	assert_non_null(at(last_answer(), "result"));
	say("{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\"}");
	assert_int_equal(int_at(last_answer(), "error|code"), -32601);
	say("{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"elicitation/create\",\"params\":{}}");
	assert_int_equal(int_at(last_answer(), "error|code"), -32602);
	say("{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"sampling/createMessage\",\"params\":{"
	    "\"messages\":[],\"maxTokens\":1,\"tools\":[]}}");
	assert_int_equal(int_at(last_answer(), "error|code"), -32601);
	assert_int_equal(asks, 0);
	say(ROOTS, 5);
	assert_int_equal(asks, 1);
	say(ROOTS, 5);
	assert_int_equal(asks, 1);
	assert_int_equal(counts().garbage, 1);
	say("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":"
	    "\"5\"}}");
	assert_int_equal(withdrawals, 0);
	say("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":"
	    "5}}");
	assert_int_equal(withdrawals, 1);
	assert_int_equal(int_at(last_answer(), "id"), 4);
	for (int i = 10; i < 100; i++)
		say(ROOTS, i);
	assert_int_equal(counts().questions, 32);
	assert_int_equal(int_at(last_answer(), "error|code"), -32603);
	script_end();

	script_open("2025-11-25", &lines);
	say(ROOTS, 1);
	assert_int_equal(int_at(last_answer(), "error|code"), -32600);
	assert_int_equal(asks, 0);
	script_end();
}

static void test_nothing_offered(void **state)
{
	unsigned can = options.can;

	options.can = MCP_CAN_FORM;
	script_begin("2025-11-25", &lines);
	say(ROOTS, 1);
	assert_int_equal(int_at(last_answer(), "error|code"), -32601);
	say("{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"elicitation/create\",\"params\":{\"mode\":"
	    "\"url\",\"url\":\"https://x.y/\",\"message\":\"\",\"elicitationId\":\"e\"}}");
	assert_int_equal(int_at(last_answer(), "error|code"), -32602);
	script_end();
	/* what the revision has not is not offered either */
	script_begin("2025-03-26", &lines);
	assert_null(at(last_sent("initialize"), "params|capabilities|roots"));
	say("{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"elicitation/create\",\"params\":{"
	    "\"message\":\"\"," SCHEMA "}}");
	assert_int_equal(int_at(last_answer(), "error|code"), -32601);
	script_end();
	options.can = can;
}

static void test_urls(void **state)
{
	static const char done[] = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/elicitation/"
				   "complete\",\"params\":{\"elicitationId\":\"%s\"}}";

	script_begin("2025-11-25", &lines);
	call();
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	say_error("tools/call", -32042, "{\"elicitations\":[7,{\"elicitationId\":\"e1\"}]}");
	assert_int_equal(got.code, -32042);
	say("{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"elicitation/create\",\"params\":{\"mode\":"
	    "\"url\",\"url\":\"https://x.y/\",\"message\":\"\",\"elicitationId\":\"e2\"}}");
	say(done, "e1");
	say(done, "e1");
	say(done, "e2");
	say(done, "e3");
#pragma GCC diagnostic pop
	assert_int_equal(urls, 2);
	assert_int_equal(counts().strays, 2);
	script_end();
}

/* --- sessions --- */

#define HELLO "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":" ABLE "}"

static void test_session_lost(void **state)
{
	struct mcp_pending *a, *b;
	struct err e;

	script_begin("2025-11-25", &streams);
	assert_int_equal(mcp_client_set_level(client, MCP_ERROR, &e), 0);
	say_result("logging/setLevel", "{}");
	a = call();
	b = call();
	mcp_client_session_lost(client, a);
	mcp_client_session_lost(client, b);
	assert_int_equal(count_sent("initialize"), 2);
	assert_true(sent[sent_n - 1].is_initialize);
	assert_string_equal(sent[sent_n - 1].version, "");
	assert_int_equal(count_sent("tools/call"), 2);
	/* what is begun meanwhile waits */
	ask("x/y", NULL);
	assert_null(last_sent("x/y"));
	say_result("initialize", HELLO);
	assert_int_equal(count_sent("notifications/initialized"), 2);
	assert_int_equal(count_sent("tools/call"), 4);
	assert_int_equal(count_sent("x/y"), 1);
	assert_int_equal(count_sent("logging/setLevel"), 2);
	assert_int_equal(readies, 1);
	say_result("x/y", "{}");
	failed_with(ERR_NONE);
	/* not for ever */
	memset(&got, 0, sizeof(got));
	mcp_client_session_lost(client, a);
	failed_with(ERR_TRANSPORT);
	say_result("initialize", HELLO);
	assert_int_equal(count_sent("initialize"), 3);
	/* of the session before: no reason to begin a third */
	mcp_client_session_lost(client, b);
	assert_int_equal(got.done, 2);
	assert_int_equal(count_sent("initialize"), 3);
	script_end();
}

static void test_sessions_that_never_last(void **state)
{
	struct err e;

	script_begin("2025-11-25", &streams);
	for (unsigned i = 0; i < 10; i++) {
		now += 60 * 1000;
		mcp_client_session_lost(client, NULL);
		say_result("initialize", HELLO);
	}
	assert_int_equal(overs, 0);
	for (unsigned i = 0; i < 2; i++) {
		mcp_client_session_lost(client, NULL);
		say_result("initialize", HELLO);
	}
	assert_int_equal(overs, 0);
	mcp_client_session_lost(client, NULL);
	assert_int_equal(overs, 1);
	assert_int_equal(over_err.code, ERR_TRANSPORT);
	script_end();

	/* not even with an answer to what is asked at once in each */
	script_begin("2025-11-25", &streams);
	assert_int_equal(mcp_client_set_level(client, MCP_ERROR, &e), 0);
	say_result("logging/setLevel", "{}");
	for (unsigned i = 0; i < 5 && overs == 0; i++) {
		mcp_client_session_lost(client, NULL);
		say_result("initialize", HELLO);
		say_result("logging/setLevel", "{}");
	}
	assert_int_equal(overs, 1);
	script_end();

	/* an error that names no request is of the stream that it came on */
	script_begin("2025-11-25", &streams);
	mcp_client_session_lost(client, NULL);
	say("{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32603,\"message\":\"\"}}");
	assert_int_equal(overs, 0);
	script_end();

	script_begin("2025-11-25", &streams);
	mcp_client_session_lost(client, NULL);
	say_error("initialize", -1, NULL);
	assert_int_equal(overs, 1);
	script_end();

	script_begin("2025-11-25", &streams);
	mcp_client_session_lost(client, NULL);
	now += 60 * 1000;
	mcp_client_tick(client);
	assert_int_equal(overs, 1);
	assert_int_equal(over_err.code, ERR_TIMEOUT);
	script_end();
}

static void test_session_takes_its_questions(void **state)
{
	script_begin("2025-11-25", &streams);
	say(ROOTS, 1);
	assert_int_equal(asks, 1);
	mcp_client_session_lost(client, NULL);
	assert_int_equal(withdrawals, 1);
	assert_int_equal(counts().questions, 0);
	script_end();
}

/* --- whose time it is that questions take --- */

static void answer_roots(void)
{
	struct err e;

	assert_non_null(question);
	assert_int_equal(mcp_question_answer(question, STR_LIT("{\"roots\":[]}"), &e), 0);
}

static void test_clock_of_a_stream(void **state)
{
	struct mcp_pending *a;

	script_begin("2025-11-25", &streams);
	a = call();
	call();
	say_on(a, ROOTS, 1);
	pass(61 * 1000);
	failed_with(ERR_TIMEOUT);
	assert_int_equal(counts().pending, 1);
	pass(3600 * 1000);
	assert_int_equal(counts().pending, 1);
	answer_roots();
	pass(59 * 1000);
	assert_int_equal(counts().pending, 1);
	pass(1000);
	assert_int_equal(counts().pending, 0);
	/* a question that outlives the request */
	a = call();
	say_on(a, ROOTS, 2);
	mcp_pending_cancel(a);
	call();
	call();
	pass(60 * 1000);
	assert_int_equal(got.done, 2);
	answer_roots();
	script_end();
}

static void test_clock_of_the_only_request(void **state)
{
	script_begin("2025-11-25", &lines);
	call();
	say(ROOTS, 1);
	pass(3600 * 1000);
	assert_int_equal(got.done, 0);
	answer_roots();
	pass(60 * 1000);
	failed_with(ERR_TIMEOUT);
	script_end();
}

static void test_clock_of_a_task(void **state)
{
	script_begin("2025-11-25", &lines);
	call_for(5000);
	say_result("tools/call", "{\"task\":{\"taskId\":\"a\",\"status\":\"working\"}}");
	call();
	say("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"roots/list\",\"params\":{\"_meta\":{"
	    "\"io.modelcontextprotocol/related-task\":{\"taskId\":\"a\"}}}}");
	pass(60 * 1000);
	failed_with(ERR_TIMEOUT);
	pass(48 * 3600 * 1000);
	assert_int_equal(counts().pending, 1);
	script_end();
}

/* Whose question it is can't be told: all stand still, and none for ever. */
static void test_clocks_of_all(void **state)
{
	options.hold_max_ms = 100 * 1000;
	script_begin("2025-11-25", &lines);
	call();
	call();
	say(ROOTS, 1);
	pass(159 * 1000);
	assert_int_equal(got.done, 0);
	pass(1000);
	assert_int_equal(got.done, 2);
	answer_roots();
	/* nor by one question after the other */
	call();
	call();
	for (int i = 2; i < 10; i++) {
		say(ROOTS, i);
		pass(50 * 1000);
		answer_roots();
		assert_int_equal(got.done, i < 5 ? 0 : 2);
	}
	script_end();
	options.hold_max_ms = 0;
}

/* --- tasks --- */

#define TASK                                                                                       \
	"{\"resultType\":\"task\",\"taskId\":\"a\",\"status\":\"working\",\"pollIntervalMs\":1000}"

static void test_task_states(void **state)
{
	static const struct {
		const char *state;
		enum err_code code;
		int fault;
	} rows[] = {
		{ "{\"status\":\"completed\",\"result\":" DONE "}", ERR_NONE, 0 },
		{ "{\"status\":\"completed\",\"result\":{\"content\":7}}", ERR_INVALID, 0 },
		{ "{\"status\":\"completed\"}", ERR_INVALID, 0 },
		{ "{\"status\":\"failed\"}", ERR_INVALID, 0 },
		{ "{\"status\":\"failed\",\"error\":{\"code\":-7}}", ERR_NONE, -7 },
		{ "{\"status\":\"cancelled\"}", ERR_CANCELLED, 0 },
		{ "{\"status\":\"strange\"}", ERR_INVALID, 0 },
		{ "{}", ERR_INVALID, 0 },
		{ "{\"resultType\":\"odd\",\"status\":\"working\"}", ERR_INVALID, 0 },
		{ "{\"status\":\"input_required\",\"inputRequests\":{\"a\":{}}}", ERR_INVALID, 0 },
	};

	script_begin(MODERN, &lines);
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		call();
		say_result("tools/call", TASK);
		pass(999);
		assert_int_equal(count_sent("tasks/get"), i);
		pass(1);
		assert_int_equal(count_sent("tasks/get"), i + 1);
		pass(1000);
		assert_int_equal(count_sent("tasks/get"), i + 1);
		say_result("tasks/get", rows[i].state);
		ROW_CHECK(got.done == 1 && got.e.code == rows[i].code, rows[i].state);
		ROW_CHECK(got.code == rows[i].fault, rows[i].state);
	}
	call();
	say_result("tools/call", "{\"resultType\":\"task\",\"taskId\":\"\"}");
	failed_with(ERR_INVALID);
	call();
	say_result("tools/call", "{\"resultType\":\"task\"}");
	failed_with(ERR_INVALID);
	script_end();
}

/* Polling keeps between its bounds, whatever the server wants. */
static void test_task_polls(void **state)
{
	static const struct {
		const char *interval;
		unsigned ms;
	} rows[] = {
		{ "0", 100 },	   { "-1", 1000 },   { "99999999999", 30000 },
		{ "\"x\"", 1000 }, { "2500", 2500 }, { "1e300", 1000 },
	};

	script_begin(MODERN, &lines);
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		struct mcp_pending *p = call();

		say("{\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":{\"resultType\":\"task\",\"taskId\":"
		    "\"a\",\"status\":\"working\",\"pollIntervalMs\":%s}}",
		    id_of("tools/call"), rows[i].interval);
		ROW_CHECK(mcp_client_tick(client) == rows[i].ms, rows[i].interval);
		mcp_pending_cancel(p);
		say_result("tasks/cancel", "{}");
	}
	script_end();
}

static void test_task_asks_without_end(void **state)
{
	unsigned n = 0;
	struct err e;

	script_begin(MODERN, &lines);
	call();
	say_result("tools/call", TASK);
	while (got.done == 0 && n++ < 100) {
		pass(1000);
		say("{\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":{\"status\":\"input_required\","
		    "\"inputRequests\":{\"k%u\":{\"method\":\"roots/list\"}}}}",
		    id_of("tasks/get"), n);
		if (got.done > 0)
			break;
		assert_non_null(question);
		assert_int_equal(mcp_question_answer(question, STR_LIT("{\"roots\":[]}"), &e), 0);
		assert_int_equal(count_sent("tasks/update"), n);
		say_result("tasks/update", "{}");
	}
	failed_with(ERR_LIMIT);
	assert_non_null(last_sent("tasks/cancel"));
	script_end();
}

/* A key that was answered is not asked again, and one that the server asks no more is taken
 * back. */
static void test_task_keys(void **state)
{
	static const char asks_a[] = "{\"status\":\"input_required\",\"inputRequests\":{\"a\":{"
				     "\"method\":\"roots/list\"}}}";
	struct err e;

	script_begin(MODERN, &lines);
	call();
	say_result("tools/call", TASK);
	pass(1000);
	say_result("tasks/get", asks_a);
	assert_int_equal(asks, 1);
	pass(1000);
	say_result("tasks/get", asks_a);
	assert_int_equal(asks, 1);
	assert_int_equal(mcp_question_answer(question, STR_LIT("{\"roots\":[]}"), &e), 0);
	assert_non_null(at(last_sent("tasks/update"), "params|inputResponses|a|roots"));
	say_result("tasks/update", "{}");
	for (unsigned i = 0; i < 5; i++) {
		pass(1000);
		say_result("tasks/get", asks_a);
	}
	assert_int_equal(asks, 1);
	assert_int_equal(count_sent("tasks/update"), 1);
	pass(1000);
	say_result("tasks/get",
		   "{\"status\":\"input_required\",\"inputRequests\":{\"b\":{\"method\":"
		   "\"roots/list\"}}}");
	assert_int_equal(asks, 2);
	pass(1000);
	say_result("tasks/get", "{\"status\":\"working\"}");
	assert_int_equal(withdrawals, 1);
	pass(1000);
	say_result("tasks/get", "{\"status\":\"completed\",\"result\":" DONE "}");
	failed_with(ERR_NONE);
	assert_string_equal(got.text, DONE);
	script_end();
}

/* A poll that is lost is no end of the task; five in a row are. */
static void test_task_polls_are_lost(void **state)
{
	const struct err e = { ERR_TRANSPORT, "lost" };

	script_begin(MODERN, &streams);
	call();
	say_result("tools/call", TASK);
	for (unsigned n = 1; got.done == 0 && n < 100; n++) {
		for (unsigned i = 0; i < 64 && count_sent("tasks/get") < n; i++)
			pass(1000);
		mcp_client_failed(client, pending_of("tasks/get"), false, &e);
	}
	failed_with(ERR_TRANSPORT);
	assert_int_equal(count_sent("tasks/get"), 6);
	script_end();
}

static void test_task_is_silent(void **state)
{
	script_begin(MODERN, &lines);
	call();
	say_result("tools/call", TASK);
	pass(1000);
	pass(60 * 1000);
	failed_with(ERR_TIMEOUT);
	assert_non_null(last_sent("tasks/cancel"));
	script_end();
}

/* Its life is over, and its server says that it works. */
static void test_task_outlives_itself(void **state)
{
	script_begin(MODERN, &lines);
	call();
	say_result("tools/call", "{\"resultType\":\"task\",\"taskId\":\"a\",\"status\":\"working\","
				 "\"ttlMs\":100000,\"pollIntervalMs\":10000}");
	for (unsigned i = 0; i < 100 && got.done == 0; i++) {
		pass(10000);
		if (got.done == 0)
			say_result("tasks/get", "{\"status\":\"working\",\"ttlMs\":100000,"
						"\"pollIntervalMs\":10000}");
	}
	failed_with(ERR_TIMEOUT);
	script_end();
}

/* The time of its questions is not that of its life, whatever it says of that later. */
static void test_task_waits_for_answers(void **state)
{
#define WORKS "\"ttlMs\":100000,\"pollIntervalMs\":1000,\"status\":\"working\""
#define ASKS                                                                                       \
	"\"ttlMs\":100000,\"pollIntervalMs\":1000,\"status\":\"input_required\","                  \
	"\"inputRequests\":{\"k\":{\"method\":\"roots/list\"}}"
	script_begin(MODERN, &lines);
	call();
	say_result("tools/call", "{\"resultType\":\"task\",\"taskId\":\"a\"," WORKS "}");
	pass(1000);
	say_result("tasks/get", "{" ASKS "}");
	pass(200 * 1000);
	say_result("tasks/get", "{" ASKS "}");
	answer_roots();
	say_result("tasks/update", "{}");
	pass(1000);
	say_result("tasks/get", "{" WORKS "}");
	pass(100 * 1000);
	assert_int_equal(got.done, 0);
	pass(60 * 1000);
	failed_with(ERR_TIMEOUT);
	script_end();
}

static void test_old_tasks(void **state)
{
	script_begin("2025-11-25", &lines);
	call_for(5000);
	assert_int_equal(int_at(last_sent("tools/call"), "params|task|ttl"), 5000);
	say_result("tools/call", "{\"task\":{\"taskId\":\"a\",\"status\":\"working\"}}");
	pass(1000);
	say_result("tasks/get",
		   "{\"taskId\":\"a\",\"status\":\"input_required\",\"pollInterval\":500}");
	assert_int_equal(count_sent("tasks/result"), 1);
	/* it may be that nobody is there any more */
	pass(60 * 1000);
	assert_non_null(last_sent("notifications/cancelled"));
	assert_int_equal(count_sent("tasks/get"), 2);
	say_result("tasks/get", "{\"taskId\":\"a\",\"status\":\"working\",\"pollInterval\":500}");
	assert_int_equal(count_sent("tasks/result"), 1);
	say("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tasks/status\",\"params\":{\"taskId\":"
	    "\"a\"}}");
	pass(100);
	assert_int_equal(count_sent("tasks/get"), 3);
	say_result("tasks/get", "{\"taskId\":\"a\",\"status\":\"completed\"}");
	assert_int_equal(count_sent("tasks/result"), 2);
	say_result("tasks/result", DONE);
	failed_with(ERR_NONE);
	/* a result that is none that was asked for */
	call();
	assert_null(at(last_sent("tools/call"), "params|task"));
	say_result("tools/call", "{\"task\":{\"taskId\":\"a\",\"status\":\"working\"}}");
	failed_with(ERR_NONE);
	script_end();
}

/* --- listening --- */

static void test_listen(void **state)
{
#define ACK                                                                                        \
	"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\","            \
	"\"params\":{\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":%d},"                   \
	"\"notifications\":{}}}"
#define CHANGED                                                                                    \
	"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\",\"params\":{"        \
	"\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":%d}}}"
	int id;
	struct err e;

	script_begin(MODERN, &lines);
	say(CHANGED, 1);
	say("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}");
	assert_int_equal(changes, 0);
	assert_int_equal(mcp_client_watch(client, MCP_TOOLS, NULL, 0, &e), 0);
	id = id_of("subscriptions/listen");
	say(ACK, id + 1);
	say(ACK, id);
	say(ACK, id);
	say(CHANGED, id);
	say(CHANGED, id + 1);
	say("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/prompts/list_changed\",\"params\":{"
	    "\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":%d}}}",
	    id);
	assert_int_equal(changes, 1);
	assert_int_equal(counts().strays, 6);
	/* ended by the server, in either way that it may */
	say("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":"
	    "%d}}",
	    id);
	pass(1000);
	assert_int_equal(count_sent("subscriptions/listen"), 2);
	say(ACK, id_of("subscriptions/listen"));
	assert_int_equal(changes, 2);
	say_result("subscriptions/listen", "{}");
	pass(1000);
	assert_int_equal(count_sent("subscriptions/listen"), 2);
	pass(1000);
	assert_int_equal(count_sent("subscriptions/listen"), 3);
	/* never acknowledged */
	pass(60 * 1000);
	pass(30 * 1000);
	assert_int_equal(count_sent("subscriptions/listen"), 4);
	/* refused: it may be had later, unless there is no such thing */
	say_error("subscriptions/listen", -32603, NULL);
	pass(30 * 1000);
	assert_int_equal(count_sent("subscriptions/listen"), 5);
	say_error("subscriptions/listen", -32601, NULL);
	assert_true(mcp_client_tick(client) == UINT64_MAX);
	script_end();
}

static void test_subscriptions(void **state)
{
	const struct str uris[] = { STR_LIT("a:"), STR_LIT("b:") };
	struct err e;

	script_begin("2025-11-25", &lines);
	assert_int_equal(mcp_client_watch(client, 0, uris, 2, &e), 0);
	assert_int_equal(count_sent("resources/subscribe"), 1);
	say_error("resources/subscribe", -32002, NULL);
	say_result("resources/subscribe", "{}");
	assert_int_equal(count_sent("resources/subscribe"), 2);
	assert_int_equal(mcp_client_watch(client, 0, NULL, 0, &e), 0);
	assert_int_equal(count_sent("resources/unsubscribe"), 1);
	assert_string_equal(text_at(last_sent("resources/unsubscribe"), "params|uri"), "b:");
	script_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rounds_without_end),
		cmocka_unit_test(test_bad_questions),
		cmocka_unit_test(test_too_many_questions),
		cmocka_unit_test(test_answers_in_their_order),
		cmocka_unit_test(test_keys_of_any_bytes),
		cmocka_unit_test(test_requests_of_servers),
		cmocka_unit_test(test_nothing_offered),
		cmocka_unit_test(test_urls),
		cmocka_unit_test(test_session_lost),
		cmocka_unit_test(test_sessions_that_never_last),
		cmocka_unit_test(test_session_takes_its_questions),
		cmocka_unit_test(test_clock_of_a_stream),
		cmocka_unit_test(test_clock_of_the_only_request),
		cmocka_unit_test(test_clock_of_a_task),
		cmocka_unit_test(test_clocks_of_all),
		cmocka_unit_test(test_task_states),
		cmocka_unit_test(test_task_polls),
		cmocka_unit_test(test_task_asks_without_end),
		cmocka_unit_test(test_task_keys),
		cmocka_unit_test(test_task_polls_are_lost),
		cmocka_unit_test(test_task_is_silent),
		cmocka_unit_test(test_task_outlives_itself),
		cmocka_unit_test(test_task_waits_for_answers),
		cmocka_unit_test(test_old_tasks),
		cmocka_unit_test(test_listen),
		cmocka_unit_test(test_subscriptions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
