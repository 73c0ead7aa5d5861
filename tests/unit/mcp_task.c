/* Tasks: the extension of modern clients, and those of 2025-11-25. */
#include "alloc_fail.h"
#include "mcp_peer.h"
#include "test.h"

#define TASKS "\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}"
#define ALL "{\"elicitation\":{},\"sampling\":{}," TASKS "}"
#define FORM                                                                                       \
	STR_LIT("{\"message\":\"?\",\"requestedSchema\":{\"type\":\"object\",\"properties\":{"     \
		"\"name\":{\"type\":\"string\"}},\"required\":[\"name\"]}}")
#define NAME(x) "{\"action\":\"accept\",\"content\":{\"name\":\"" x "\"}}"

enum { HELD = 128 };

static struct mcp_call *held[HELD];
static unsigned held_n, cancels, runs;
static bool end_on_cancel;
static struct mcp_task_options wish; /* of job */

/* --- the handlers --- */

static void note_cancel(struct mcp_call *c, void *data)
{
	cancels++;
	if (end_on_cancel)
		mcp_call_text(c, STR_LIT("too late"));
}

static void hold(struct mcp_call *c)
{
	assert_in_range(held_n, 0, HELD - 1);
	held[held_n++] = c;
	mcp_call_on_cancel(c, note_cancel, NULL);
}

/* A task where it can be one, else a call; ended by the test. */
static void run_job(struct mcp_call *c)
{
	struct err e;

	runs++;
	if (mcp_call_can_task(c) && mcp_call_to_task(c, &wish, &e) < 0) {
		mcp_call_fail(c, &e);
		return;
	}
	hold(c);
}

static void run_plain(struct mcp_call *c)
{
	struct err e;

	assert_int_equal(mcp_call_to_task(c, NULL, &e), -1);
	assert_int_equal(e.code, ERR_CLIENT_CANT);
	mcp_call_text(c, STR_LIT("plain"));
}

static void run_asking(struct mcp_call *c)
{
	const struct mcp_ask asks[] = { { "a", MCP_ASK_FORM, FORM }, { "b", MCP_ASK_FORM, FORM } };
	struct err e;
	char text[64];

	runs++;
	if (!mcp_call_is_task(c) && mcp_call_to_task(c, NULL, &e) < 0)
		mcp_call_fail(c, &e);
	else if (mcp_call_ask_error(c, "a").p)
		mcp_call_text(c, mcp_call_ask_error(c, "a"));
	else if (!mcp_call_answer(c, "a")) {
		if (mcp_call_ask(c, asks, 2, STR_NONE, &e) < 0)
			mcp_call_fail(c, &e);
	} else {
		snprintf(text, sizeof(text), "%s %s",
			 text_at(mcp_call_answer(c, "a"), "content|name"),
			 text_at(mcp_call_answer(c, "b"), "content|name"));
		mcp_call_text(c, str_of(text));
	}
}

/* Asks before it is a task, and knows the answer when it is one. */
static void run_first_asking(struct mcp_call *c)
{
	const struct mcp_ask asks[] = { { "a", MCP_ASK_FORM, FORM } };
	struct err e;
	int rc = 0;

	if (!mcp_call_answer(c, "a"))
		rc = mcp_call_ask(c, asks, 1, STR_NONE, &e);
	else if (mcp_call_to_task(c, NULL, &e) == 0)
		hold(c);
	else
		rc = -1;
	if (rc < 0)
		mcp_call_fail(c, &e);
}

#define TOOL(name_, run_, task_)                                                                   \
	{                                                                                          \
		.name = name_, .description = "d", .input_schema = "{\"type\":\"object\"}",        \
		.run = run_, .task = task_                                                         \
	}

static struct mcp_tool tools[] = {
	TOOL("job", run_job, MCP_TASK_OPTIONAL),
	TOOL("must", run_job, MCP_TASK_REQUIRED),
	TOOL("plain", run_plain, MCP_TASK_NEVER),
	TOOL("asking", run_asking, MCP_TASK_OPTIONAL),
	TOOL("first", run_first_asking, MCP_TASK_REQUIRED),
};

/* --- fixture --- */

static struct mcp_server_options options(void)
{
	held_n = cancels = runs = 0;
	end_on_cancel = true;
	wish = (struct mcp_task_options){ 0 };
	return (struct mcp_server_options){
		.offer = { .tools = tools, .tools_n = ARRAY_LEN(tools) },
		.tasks = true,
		.page = 2,
	};
}

static struct mcp_server *server(void)
{
	const struct mcp_server_options o = options();
	struct mcp_server *srv = peer_server(&o);

	assert_non_null(srv);
	return srv;
}

static void open_peer(struct peer *p, struct mcp_server *srv, const char *name)
{
	assert_true(peer_init(p, srv, name));
	p->caps = ALL;
}

static void open_old(struct peer *p, struct mcp_server *srv, const char *name)
{
	open_peer(p, srv, name);
	peer_initialize(p, "2025-11-25", "{\"elicitation\":{}}");
}

static void end_held(unsigned i, const char *text)
{
	mcp_call_text(held[i], str_of(text));
}

static const char *make(struct peer *p, const char *tool)
{
	const struct json_val *r = peer_modern(p, "tools/call", "\"name\":\"%s\"", tool);

	assert_string_equal(text_at(r, "result|resultType"), "task");
	return text_at(r, "result|taskId");
}

static const char *make_old(struct peer *p, const char *tool)
{
	const struct json_val *r = peer_legacy(p, "tools/call", "\"name\":\"%s\",\"task\":{}",
					       tool);

	assert_null(at(r, "result|resultType"));
	assert_string_equal(text_at(r, "result|task|status"), "working");
	return text_at(r, "result|task|taskId");
}

static const struct json_val *get(struct peer *p, const char *id)
{
	return peer_modern(p, "tasks/get", "\"taskId\":\"%s\"", id);
}

static const char *status(struct peer *p, const char *id)
{
	return text_at(get(p, id), "result|status");
}

static const char *status_old(struct peer *p, const char *id)
{
	return text_at(peer_legacy(p, "tasks/get", "\"taskId\":\"%s\"", id), "result|status");
}

static void not_there(const struct json_val *r)
{
	assert_int_equal(int_at(r, "error|code"), -32602);
	assert_string_equal(text_at(r, "error|message"),
			    "there is no task of this id; it may have expired");
}

/* --- modern --- */

static void test_life(void **state)
{
	static const char *const absent[] = { "result", "error", "inputRequests", "requestState",
					      "task",	"ttl",	 "pollInterval" };
	AUTO(mcp_server_free) struct mcp_server *srv = server();
	const struct json_val *r;
	const char *id;
	struct peer p;

	open_peer(&p, srv, "alice");
	r = peer_modern(&p, "tools/call", "\"name\":\"job\",\"task\":{\"ttl\":5}");
	assert_string_equal(text_at(r, "result|resultType"), "task");
	assert_string_equal(text_at(r, "result|status"), "working");
	assert_string_equal(text_at(r, "result|createdAt"), "1970-01-01T00:16:40.000Z");
	assert_int_equal(int_at(r, "result|ttlMs"), 60 * 60 * 1000);
	assert_int_equal(int_at(r, "result|pollIntervalMs"), 1000);
	for (size_t i = 0; i < ARRAY_LEN(absent); i++)
		ROW_CHECK(!json_get(at(r, "result"), absent[i]), absent[i]);
	id = text_at(r, "result|taskId");
	assert_int_equal(mcp_session_open(p.session), 0);
	peer_clock += 1500;
	mcp_call_progress(held[0], 1, 2, "half");
	r = get(&p, id);
	assert_string_equal(text_at(r, "result|resultType"), "complete");
	assert_string_equal(text_at(r, "result|status"), "working");
	assert_string_equal(text_at(r, "result|statusMessage"), "half");
	assert_string_equal(text_at(r, "result|lastUpdatedAt"), "1970-01-01T00:16:41.500Z");
	end_held(0, "done");
	r = get(&p, id);
	assert_string_equal(text_at(r, "result|status"), "completed");
	assert_null(at(r, "result|statusMessage"));
	assert_string_equal(content_of(at(r, "result")), "done");
	assert_null(at(r, "result|result|_meta|io.modelcontextprotocol/related-task"));
	peer_fini(&p);
	peer_clock -= 1500;
}

static void test_failures(void **state)
{
	AUTO(mcp_server_free) struct mcp_server *srv = server();
	const char *id, *other;
	struct err e;
	struct peer p;

	open_peer(&p, srv, "alice");
	id = make(&p, "must");
	other = make(&p, "must");
	err_set(&e, ERR_IO, "broken");
	mcp_call_fail(held[0], &e);
	assert_string_equal(status(&p, id), "completed");
	assert_true(json_bool(at(get(&p, id), "result|result|isError")));
	mcp_call_refuse(held[1], -32603, "no way", STR_LIT("{\"a\":1}"));
	assert_string_equal(status(&p, other), "failed");
	assert_int_equal(int_at(get(&p, other), "result|error|code"), -32603);
	assert_string_equal(text_at(get(&p, other), "result|error|message"), "no way");
	assert_string_equal(text_at(get(&p, other), "result|statusMessage"), "no way");
	assert_null(at(get(&p, other), "result|result"));
	peer_fini(&p);
}

static void empty_ack(const struct json_val *r)
{
	assert_string_equal(text_at(r, "result|resultType"), "complete");
	assert_null(at(r, "result|status"));
	assert_null(at(r, "result|taskId"));
}

static void test_cancelled(void **state)
{
	AUTO(mcp_server_free) struct mcp_server *srv = server();
	const char *id;
	struct peer p;

	open_peer(&p, srv, "alice");
	end_on_cancel = false;
	id = make(&p, "job");
	empty_ack(peer_modern(&p, "tasks/cancel", "\"taskId\":\"%s\"", id));
	assert_int_equal(cancels, 1);
	assert_string_equal(status(&p, id), "cancelled");
	empty_ack(peer_modern(&p, "tasks/cancel", "\"taskId\":\"%s\"", id));
	assert_int_equal(cancels, 1);
	/* what it comes to then is of no interest */
	assert_true(mcp_call_cancelled(held[0]));
	end_held(0, "done");
	assert_string_equal(status(&p, id), "cancelled");
	assert_null(at(get(&p, id), "result|result"));
	not_there(peer_modern(&p, "tasks/cancel", "\"taskId\":\"x\""));
	not_there(peer_modern(&p, "tasks/update", "\"taskId\":\"x\",\"inputResponses\":{}"));
	peer_fini(&p);
}

/* notifications/cancelled is for requests, and a task's request has its answer. */
static void test_outlives_its_session(void **state)
{
	AUTO(mcp_server_free) struct mcp_server *srv = server();
	char id[64];
	struct peer p;

	open_peer(&p, srv, "alice");
	snprintf(id, sizeof(id), "%s", make(&p, "job"));
	peer_say(&p,
		 "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{"
		 "\"requestId\":%u}}",
		 p.ids);
	peer_fini(&p);
	assert_int_equal(cancels, 0);
	assert_null(mcp_call_session(held[0]));
	open_peer(&p, srv, "alice");
	assert_string_equal(status(&p, id), "working");
	end_held(0, "done");
	assert_string_equal(status(&p, id), "completed");
	peer_fini(&p);
}

static void test_seen_by_its_owner_only(void **state)
{
	AUTO(mcp_server_free) struct mcp_server *srv = server();
	const char *id, *old_id;
	struct peer p, bob, old;

	open_peer(&p, srv, "alice");
	open_peer(&bob, srv, "bob");
	open_old(&old, srv, "alice");
	id = make(&p, "job");
	old_id = make_old(&old, "job");
	not_there(get(&bob, id));
	not_there(peer_modern(&bob, "tasks/cancel", "\"taskId\":\"%s\"", id));
	not_there(peer_legacy(&old, "tasks/get", "\"taskId\":\"%s\"", id));
	not_there(get(&p, old_id));
	not_there(get(&p, "task-00000000000000000000000000000000"));
	assert_int_equal(int_at(peer_modern(&p, "tasks/get", "\"taskId\":7"), "error|code"),
			 -32602);
	assert_int_equal(int_at(peer_modern(&p, "tasks/get", "%s", ""), "error|code"), -32602);
	assert_string_equal(status(&p, id), "working");
	end_held(0, "x");
	end_held(1, "x");
	peer_fini(&p);
	peer_fini(&bob);
	peer_fini(&old);
}

static void test_only_for_those_who_know(void **state)
{
	static const char *const methods[] = { "tasks/get", "tasks/update", "tasks/cancel" };
	AUTO(mcp_server_free) struct mcp_server *srv = server();
	const struct json_val *r;
	struct peer p;

	open_peer(&p, srv, "alice");
	p.caps = "{}";
	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		r = peer_modern(&p, methods[i], "\"taskId\":\"x\"");
		ROW_CHECK(int_at(r, "error|code") == -32021, methods[i]);
		ROW_CHECK(p.sent[p.sent_n - 1].status == 400, methods[i]);
	}
	r = peer_modern(&p, "tools/call", "\"name\":\"must\"");
	assert_int_equal(int_at(r, "error|code"), -32021);
	assert_non_null(at(r, "error|data|requiredCapabilities|extensions|"
			      "io.modelcontextprotocol/tasks"));
	assert_int_equal(runs, 0);
	/* what can be a call is one */
	assert_null(peer_modern(&p, "tools/call", "\"name\":\"job\""));
	end_held(0, "called");
	assert_string_equal(content_of(peer_response(&p, p.ids)), "called");
	p.caps = ALL;
	assert_string_equal(content_of(peer_modern(&p, "tools/call", "\"name\":\"plain\"")),
			    "plain");
	r = peer_modern(&p, "tasks/list", "%s", "");
	assert_int_equal(int_at(r, "error|code"), -32601);
	r = peer_modern(&p, "tasks/result", "\"taskId\":\"x\"");
	assert_int_equal(int_at(r, "error|code"), -32601);
	peer_fini(&p);
}

static void test_questions(void **state)
{
	AUTO(mcp_server_free) struct mcp_server *srv = server();
	const struct json_val *r;
	const char *id;
	struct peer p;

	open_peer(&p, srv, "alice");
	id = make(&p, "asking");
	r = get(&p, id);
	assert_string_equal(text_at(r, "result|status"), "input_required");
	assert_string_equal(text_at(r, "result|inputRequests|a|method"), "elicitation/create");
	assert_int_equal(json_len(at(r, "result|inputRequests")), 2);
	empty_ack(peer_modern(&p, "tasks/update",
			      "\"taskId\":\"%s\",\"inputResponses\":{\"x\":{\"y\":1}}", id));
	r = peer_modern(&p, "tasks/update",
			"\"taskId\":\"%s\",\"inputResponses\":{\"a\":{\"action\":\"accept\"}}", id);
	assert_int_equal(int_at(r, "error|code"), -32602);
	r = peer_modern(&p, "tasks/update", "\"taskId\":\"%s\"", id);
	assert_int_equal(int_at(r, "error|code"), -32602);
	empty_ack(peer_modern(&p, "tasks/update",
			      "\"taskId\":\"%s\",\"inputResponses\":{\"a\":" NAME("Al") "}", id));
	r = get(&p, id);
	assert_string_equal(text_at(r, "result|status"), "input_required");
	assert_null(at(r, "result|inputRequests|a"));
	assert_non_null(at(r, "result|inputRequests|b"));
	assert_int_equal(runs, 1);
	empty_ack(peer_modern(
		&p, "tasks/update",
		"\"taskId\":\"%s\",\"inputResponses\":{\"a\":" NAME("X") ",\"b\":" NAME("Bo") "}",
		id));
	r = get(&p, id);
	assert_string_equal(text_at(r, "result|status"), "completed");
	assert_string_equal(content_of(at(r, "result")), "Al Bo");
	/* nothing is asked any more */
	empty_ack(peer_modern(&p, "tasks/update", "\"taskId\":\"%s\",\"inputResponses\":{}", id));
	id = make(&p, "asking");
	peer_modern(&p, "tasks/cancel", "\"taskId\":\"%s\"", id);
	assert_string_equal(status(&p, id), "cancelled");
	p.caps = "{" TASKS "}";
	id = make(&p, "asking");
	assert_non_null(strstr(content_of(at(get(&p, id), "result")), "client_cant"));
	peer_fini(&p);
}

static void test_asked_before(void **state)
{
	AUTO(mcp_server_free) struct mcp_server *srv = server();
	const struct json_val *r;
	struct peer p;

	open_peer(&p, srv, "alice");
	r = peer_modern(&p, "tools/call", "\"name\":\"first\"");
	assert_string_equal(text_at(r, "result|resultType"), "input_required");
	assert_null(at(r, "result|taskId"));
	r = peer_modern(&p, "tools/call",
			"\"name\":\"first\",\"requestState\":\"%s\",\"inputResponses\":{\"a\":%s}",
			text_at(r, "result|requestState"), NAME("Alice"));
	assert_string_equal(text_at(r, "result|resultType"), "task");
	assert_null(at(r, "result|requestState"));
	assert_string_equal(text_at(mcp_call_answer(held[0], "a"), "content|name"), "Alice");
	end_held(0, "done");
	peer_fini(&p);
}

static void test_listening(void **state)
{
	AUTO(mcp_server_free) struct mcp_server *srv = server();
	const struct json_val *n;
	const char *id;
	struct peer p, bob;

	open_peer(&p, srv, "alice");
	open_peer(&bob, srv, "bob");
	id = make(&p, "asking");
	peer_modern(&p, "subscriptions/listen", "\"notifications\":{\"taskIds\":[\"%s\",\"x\"]}",
		    id);
	n = peer_sent(&p, "notifications/subscriptions/acknowledged", 0);
	assert_int_equal(json_len(at(n, "params|notifications|taskIds")), 1);
	peer_modern(&bob, "subscriptions/listen", "\"notifications\":{\"taskIds\":[\"%s\"]}", id);
	peer_modern(
		&p, "tasks/update",
		"\"taskId\":\"%s\",\"inputResponses\":{\"a\":" NAME("A") ",\"b\":" NAME("B") "}",
		id);
	assert_string_equal(text_at(peer_sent(&p, "notifications/tasks", 1), "params|status"),
			    "working");
	n = peer_sent(&p, "notifications/tasks", 0);
	assert_string_equal(text_at(n, "params|status"), "completed");
	assert_string_equal(text_at(n, "params|taskId"), id);
	assert_non_null(at(n, "params|result|content"));
	assert_non_null(at(n, "params|_meta|io.modelcontextprotocol/subscriptionId"));
	assert_int_equal(peer_count(&bob, "notifications/tasks"), 0);
	peer_fini(&p);
	peer_fini(&bob);
}

static void test_time_is_over(void **state)
{
	AUTO(mcp_server_free) struct mcp_server *srv = server();
	const char *id, *other;
	struct peer p;

	open_peer(&p, srv, "alice");
	wish = (struct mcp_task_options){ .ttl_ms = 5000, .poll_ms = 50, .message = "begun" };
	id = make(&p, "job");
	assert_string_equal(text_at(get(&p, id), "result|statusMessage"), "begun");
	assert_int_equal(int_at(get(&p, id), "result|pollIntervalMs"), 50);
	peer_clock += 4999;
	assert_string_equal(status(&p, id), "working");
	other = make(&p, "job");
	end_held(1, "done");
	peer_clock += 1;
	mcp_server_tick(srv);
	assert_int_equal(cancels, 1);
	not_there(get(&p, id));
	assert_string_equal(status(&p, other), "completed");
	/* one whose handler does not stop goes when that does */
	end_on_cancel = false;
	id = make(&p, "job");
	peer_modern(&p, "subscriptions/listen", "\"notifications\":{\"taskIds\":[\"%s\"]}", id);
	peer_clock += 5000;
	not_there(get(&p, id));
	not_there(get(&p, other));
	assert_string_equal(text_at(peer_sent(&p, "notifications/tasks", 0), "params|status"),
			    "cancelled");
	end_held(2, "done");
	peer_fini(&p);
}

static void test_bounded(void **state)
{
	struct mcp_server_options o = options();
	AUTO(mcp_server_free) struct mcp_server *srv = NULL;
	const struct json_val *r;
	struct mcp_counts counts;
	struct peer p, bob;

	o.tasks_max = 25;
	srv = peer_server(&o);
	open_peer(&p, srv, "alice");
	open_peer(&bob, srv, "bob");
	for (unsigned i = 0; i < 3; i++)
		make(&p, "job");
	r = peer_modern(&p, "tools/call", "\"name\":\"job\"");
	assert_non_null(strstr(content_of(r), "limit_exceeded"));
	make(&bob, "job");
	mcp_server_counts(srv, &counts);
	assert_int_equal(counts.tasks, 4);
	assert_true(counts.task_bytes > 0);
	/* those that run are cancelled with the server, or before it */
	peer_fini(&p);
	peer_fini(&bob);
	end_held(0, "done");
	mcp_server_end_tasks(srv);
	assert_int_equal(cancels, 3);
	mcp_server_end_tasks(srv);
	open_peer(&p, srv, "bob");
	make(&p, "job");
	peer_fini(&p);
	mcp_server_free(take_ptr(srv));
	assert_int_equal(cancels, 4);
}

/* --- 2025-11-25 --- */

static void test_old_life(void **state)
{
	AUTO(mcp_server_free) struct mcp_server *srv = server();
	const struct json_val *r;
	const char *id;
	struct peer p;

	open_old(&p, srv, "alice");
	assert_non_null(at(peer_response(&p, 0), "result|capabilities|tasks|requests|tools|call"));
	r = peer_legacy(&p, "tools/call", "\"name\":\"must\",\"task\":{\"ttl\":60000}");
	assert_int_equal(int_at(r, "result|task|ttl"), 60000);
	assert_int_equal(int_at(r, "result|task|pollInterval"), 1000);
	id = text_at(r, "result|task|taskId");
	assert_null(peer_legacy(&p, "tasks/result", "\"taskId\":\"%s\"", id));
	assert_null(peer_legacy(&p, "tasks/result", "\"taskId\":\"%s\"", id));
	assert_string_equal(status_old(&p, id), "working");
	end_held(0, "done");
	assert_string_equal(content_of(peer_response(&p, 2)), "done");
	r = peer_response(&p, 3);
	assert_string_equal(content_of(r), "done");
	assert_string_equal(text_at(r, "result|_meta|io.modelcontextprotocol/related-task|taskId"),
			    id);
	r = peer_sent(&p, "notifications/tasks/status", 0);
	assert_string_equal(text_at(r, "params|status"), "completed");
	r = peer_legacy(&p, "tasks/result", "\"taskId\":\"%s\"", id);
	assert_string_equal(content_of(r), "done");
	assert_int_equal(mcp_session_open(p.session), 0);
	peer_fini(&p);
}

static void test_old_failures(void **state)
{
	AUTO(mcp_server_free) struct mcp_server *srv = server();
	const struct json_val *r;
	const char *ids[3];
	struct err e;
	struct peer p;

	open_old(&p, srv, "alice");
	for (unsigned i = 0; i < 3; i++)
		ids[i] = make_old(&p, "job");
	err_set(&e, ERR_IO, "broken");
	mcp_call_fail(held[0], &e);
	assert_string_equal(status_old(&p, ids[0]), "failed");
	r = peer_legacy(&p, "tasks/result", "\"taskId\":\"%s\"", ids[0]);
	assert_true(json_bool(at(r, "result|isError")));
	mcp_call_refuse(held[1], -32099, "no", STR_LIT("[1]"));
	r = peer_legacy(&p, "tasks/result", "\"taskId\":\"%s\"", ids[1]);
	assert_int_equal(int_at(r, "error|code"), -32099);
	assert_int_equal(json_len(at(r, "error|data")), 1);
	peer_legacy(&p, "tasks/result", "\"taskId\":\"%s\"", ids[2]);
	r = peer_legacy(&p, "tasks/cancel", "\"taskId\":\"%s\"", ids[2]);
	assert_string_equal(text_at(r, "result|status"), "cancelled");
	assert_string_equal(text_at(peer_response(&p, p.ids - 1), "error|data|code"), "cancelled");
	for (unsigned i = 0; i < 3; i++) {
		r = peer_legacy(&p, "tasks/cancel", "\"taskId\":\"%s\"", ids[i]);
		assert_int_equal(int_at(r, "error|code"), -32602);
	}
	peer_fini(&p);
}

static void test_old_agreement(void **state)
{
	static const struct {
		const char *version, *params;
		int code; /* 0: a result */
	} rows[] = {
		{ "2025-11-25", "\"name\":\"plain\",\"task\":{}", -32601 },
		{ "2025-11-25", "\"name\":\"must\"", -32601 },
		{ "2025-11-25", "\"name\":\"job\",\"task\":1", -32602 },
		{ "2025-11-25", "\"name\":\"job\",\"task\":{\"ttl\":\"x\"}", -32602 },
		{ "2025-11-25", "\"name\":\"job\",\"task\":{\"ttl\":-1}", -32602 },
		{ "2025-11-25", "\"name\":\"plain\"", 0 },
		{ "2025-06-18", "\"name\":\"plain\",\"task\":{}", 0 },
	};
	AUTO(mcp_server_free) struct mcp_server *srv = server();
	const struct json_val *r;
	struct peer p;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_true(peer_init(&p, srv, "alice"));
		peer_initialize(&p, rows[i].version, "{}");
		r = peer_legacy(&p, "tools/call", "%s", rows[i].params);
		ROW_CHECK(rows[i].code ? int_at(r, "error|code") == rows[i].code
				       : !!at(r, "result"),
			  rows[i].params);
		peer_fini(&p);
	}
	assert_true(peer_init(&p, srv, "alice"));
	peer_initialize(&p, "2025-06-18", "{}");
	r = peer_legacy(&p, "tools/call", "\"name\":\"must\"");
	assert_non_null(strstr(content_of(r), "client_cant"));
	r = peer_legacy(&p, "tasks/list", "%s", "");
	assert_int_equal(int_at(r, "error|code"), -32601);
	peer_fini(&p);
}

static void test_old_list(void **state)
{
	AUTO(mcp_server_free) struct mcp_server *srv = server();
	const struct json_val *r;
	struct peer p, bob;
	char next[64];

	open_old(&p, srv, "alice");
	open_old(&bob, srv, "bob");
	for (unsigned i = 0; i < 3; i++)
		make_old(&p, "job");
	make_old(&bob, "job");
	r = peer_legacy(&p, "tasks/list", "%s", "");
	assert_int_equal(json_len(at(r, "result|tasks")), 2);
	snprintf(next, sizeof(next), "%s", text_at(r, "result|nextCursor"));
	r = peer_legacy(&p, "tasks/list", "\"cursor\":\"%s\"", next);
	assert_int_equal(json_len(at(r, "result|tasks")), 1);
	assert_null(at(r, "result|nextCursor"));
	assert_int_equal(json_len(at(peer_legacy(&bob, "tasks/list", "%s", ""), "result|tasks")),
			 1);
	assert_int_equal(int_at(peer_legacy(&p, "tasks/list", "\"cursor\":\"x\""), "error|code"),
			 -32602);
	assert_int_equal(int_at(peer_legacy(&p, "tasks/list", "\"cursor\":\"LTE=\""), "error|code"),
			 -32602);
	assert_int_equal(int_at(peer_legacy(&p, "tasks/list", "\"cursor\":3"), "error|code"),
			 -32602);
	for (unsigned i = 0; i < 4; i++)
		end_held(i, "x");
	peer_fini(&p);
	peer_fini(&bob);
}

/* Without names, a client over HTTP could see what others do. */
static void test_old_list_of_the_nameless(void **state)
{
	struct mcp_server_options o = options();
	AUTO(mcp_server_free) struct mcp_server *srv = NULL;
	struct peer p;
	struct err e;

	o.name = o.version = "x";
	srv = mcp_server_new(&o, &e);
	assert_true(peer_init(&p, srv, "?"));
	peer_initialize(&p, "2025-11-25", "{}");
	assert_non_null(at(peer_response(&p, 0), "result|capabilities|tasks|list"));
	assert_non_null(at(peer_legacy(&p, "tasks/list", "%s", ""), "result"));
	peer_fini(&p);
	assert_true(peer_init_http(&p, srv, "?"));
	peer_initialize(&p, "2025-11-25", "{}");
	assert_non_null(at(peer_response(&p, 0), "result|capabilities|tasks|cancel"));
	assert_null(at(peer_response(&p, 0), "result|capabilities|tasks|list"));
	assert_int_equal(int_at(peer_legacy(&p, "tasks/list", "%s", ""), "error|code"), -32601);
	peer_fini(&p);
}

static void answer(struct peer *p, unsigned i, const char *result)
{
	const struct json_val *q = peer_sent(p, "elicitation/create", i);

	peer_say(p, "{\"jsonrpc\":\"2.0\",\"id\":%lld,\"result\":%s}", (long long)int_at(q, "id"),
		 result);
}

/* Asked on the stream of tasks/result; who comes next is asked again. */
static void test_old_questions(void **state)
{
	AUTO(mcp_server_free) struct mcp_server *srv = server();
	const struct json_val *q;
	struct peer p, too, again;
	char id[64];

	open_old(&p, srv, "alice");
	snprintf(id, sizeof(id), "%s", make_old(&p, "asking"));
	assert_string_equal(status_old(&p, id), "input_required");
	assert_int_equal(peer_count(&p, "elicitation/create"), 0);
	peer_legacy(&p, "tasks/result", "\"taskId\":\"%s\"", id);
	assert_int_equal(peer_count(&p, "elicitation/create"), 2);
	q = peer_sent(&p, "elicitation/create", 0);
	assert_string_equal(text_at(q, "params|_meta|io.modelcontextprotocol/related-task|taskId"),
			    id);
	answer(&p, 1, NAME("Al"));
	open_old(&too, srv, "alice");
	peer_legacy(&too, "tasks/result", "\"taskId\":\"%s\"", id);
	assert_int_equal(peer_count(&too, "elicitation/create"), 0);
	peer_fini(&p);
	assert_int_equal(peer_count(&too, "elicitation/create"), 1);
	peer_fini(&too);
	open_old(&again, srv, "alice");
	peer_legacy(&again, "tasks/result", "\"taskId\":\"%s\"", id);
	assert_int_equal(peer_count(&again, "elicitation/create"), 1);
	answer(&again, 0, NAME("Bo"));
	assert_string_equal(content_of(peer_response(&again, again.ids)), "Al Bo");
	assert_string_equal(status_old(&again, id), "completed");
	/* a task that is cancelled takes its questions back */
	snprintf(id, sizeof(id), "%s", make_old(&again, "asking"));
	peer_legacy(&again, "tasks/result", "\"taskId\":\"%s\"", id);
	peer_legacy(&again, "tasks/cancel", "\"taskId\":\"%s\"", id);
	assert_int_equal(peer_count(&again, "notifications/cancelled"), 2);
	peer_fini(&again);
}

static void test_old_waiters(void **state)
{
	AUTO(mcp_server_free) struct mcp_server *srv = server();
	struct peer p;
	char id[64];

	open_old(&p, srv, "alice");
	snprintf(id, sizeof(id), "%s", make_old(&p, "job"));
	for (unsigned i = 0; i < 8; i++)
		assert_null(peer_legacy(&p, "tasks/result", "\"taskId\":\"%s\"", id));
	assert_int_equal(
		int_at(peer_legacy(&p, "tasks/result", "\"taskId\":\"%s\"", id), "error|code"),
		-32603);
	peer_say(&p, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{"
		     "\"requestId\":2}}");
	assert_int_equal(mcp_session_open(p.session), 7);
	assert_null(peer_legacy(&p, "tasks/result", "\"taskId\":\"%s\"", id));
	peer_fini(&p);
	open_old(&p, srv, "alice");
	assert_null(peer_legacy(&p, "tasks/result", "\"taskId\":\"%s\"", id));
	peer_clock += 60 * 60 * 1000;
	mcp_server_tick(srv);
	assert_string_equal(text_at(peer_response(&p, p.ids), "error|data|code"), "cancelled");
	not_there(peer_legacy(&p, "tasks/result", "\"taskId\":\"%s\"", id));
	assert_int_equal(cancels, 1);
	peer_fini(&p);
}

static void test_old_question_times_out(void **state)
{
	AUTO(mcp_server_free) struct mcp_server *srv = server();
	struct peer p;

	open_old(&p, srv, "alice");
	peer_legacy(&p, "tasks/result", "\"taskId\":\"%s\"", make_old(&p, "asking"));
	peer_clock += 10 * 60 * 1000;
	mcp_server_tick(srv);
	assert_string_equal(content_of(peer_response(&p, p.ids)), "no answer within 600 s");
	peer_fini(&p);
}

static void test_old_progress(void **state)
{
	AUTO(mcp_server_free) struct mcp_server *srv = server();
	const struct json_val *n;
	struct peer p;

	open_old(&p, srv, "alice");
	peer_legacy(&p, "tools/call",
		    "\"name\":\"job\",\"task\":{},\"_meta\":{\"progressToken\":\"t\"}");
	mcp_call_progress(held[0], 1, 2, "half");
	n = peer_sent(&p, "notifications/progress", 0);
	assert_string_equal(text_at(n, "params|progressToken"), "t");
	assert_non_null(at(n, "params|_meta|io.modelcontextprotocol/related-task|taskId"));
	peer_fini(&p);
	mcp_call_progress(held[0], 2, 2, "all");
	end_held(0, "x");
}

/* --- and without memory --- */

static void test_without_memory(void **state)
{
	for (unsigned n = 0; alloc_fail_next(&n);) {
		struct mcp_server_options o = options();
		AUTO(mcp_server_free) struct mcp_server *srv = NULL;
		struct peer p = { 0 };
		struct err e;

		o.name = o.version = "x";
		srv = mcp_server_new(&o, &e);
		if (!srv || !peer_init(&p, srv, "alice"))
			continue;
		p.caps = ALL;
		peer_modern(&p, "tools/call", "\"name\":\"job\"");
		peer_modern(&p, "tools/call", "\"name\":\"asking\"");
		if (held_n > 0)
			end_held(0, "done");
		peer_fini(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_life),
		cmocka_unit_test(test_failures),
		cmocka_unit_test(test_cancelled),
		cmocka_unit_test(test_outlives_its_session),
		cmocka_unit_test(test_seen_by_its_owner_only),
		cmocka_unit_test(test_only_for_those_who_know),
		cmocka_unit_test(test_questions),
		cmocka_unit_test(test_asked_before),
		cmocka_unit_test(test_listening),
		cmocka_unit_test(test_time_is_over),
		cmocka_unit_test(test_bounded),
		cmocka_unit_test(test_old_life),
		cmocka_unit_test(test_old_failures),
		cmocka_unit_test(test_old_agreement),
		cmocka_unit_test(test_old_list),
		cmocka_unit_test(test_old_list_of_the_nameless),
		cmocka_unit_test(test_old_questions),
		cmocka_unit_test(test_old_waiters),
		cmocka_unit_test(test_old_question_times_out),
		cmocka_unit_test(test_old_progress),
		cmocka_unit_test(test_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
