/* The client's role against our server's, in one process, in every revision. */
#include "mcp/message/profile.h"
#include "mcp_pair.h"
#include "test.h"

#define FORM                                                                                       \
	STR_LIT("{\"message\":\"?\",\"requestedSchema\":{\"type\":\"object\",\"properties\":{"     \
		"\"name\":{\"type\":\"string\",\"minLength\":2,\"default\":\"Al\"}},"              \
		"\"required\":[\"name\"]}}")
#define SAMPLE                                                                                     \
	STR_LIT("{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\","                \
		"\"text\":\"?\"}}],\"maxTokens\":10}")
#define NAME(x) "{\"action\":\"accept\",\"content\":{\"name\":\"" x "\"}}"
#define SAMPLED                                                                                    \
	"{\"role\":\"assistant\",\"model\":\"m\",\"content\":{\"type\":\"text\",\"text\":\"ok\"}}"
#define ROOTS "{\"roots\":[{\"uri\":\"file:///r\"}]}"

enum { MANY = 23, HELD = 8 };

static struct mcp_call *held[HELD];
static unsigned held_n, cancels;

/* --- the server --- */

static void on_cancel(struct mcp_call *c, void *data)
{
	cancels++;
	for (unsigned i = 0; i < held_n; i++) {
		if (held[i] == c)
			held[i] = NULL;
	}
	mcp_call_text(c, STR_LIT("cancelled"));
}

static void hold(struct mcp_call *c)
{
	assert_in_range(held_n, 0, HELD - 1);
	held[held_n++] = c;
	mcp_call_on_cancel(c, on_cancel, NULL);
}

static void end_held(const char *text)
{
	struct mcp_call *c = held[--held_n];

	assert_non_null(c);
	mcp_call_text(c, str_of(text));
}

static void run_sum(struct mcp_call *c)
{
	mcp_call_done(c, &(struct mcp_result){ .structured = STR_LIT("{\"sum\":3}") });
}

static void run_region(struct mcp_call *c)
{
	mcp_call_text(c, json_str(json_get(mcp_call_args(c), "region")));
}

static void run_say(struct mcp_call *c)
{
	mcp_call_log(c, MCP_DEBUG, NULL, STR_LIT("\"debug\""));
	mcp_call_log(c, MCP_INFO, "a", STR_LIT("\"info\""));
	mcp_call_log(c, MCP_ERROR, "a", STR_LIT("\"error\""));
	mcp_call_progress(c, 1, 2, "half");
	mcp_call_progress(c, 2, 2, "whole");
	mcp_call_text(c, STR_LIT("said"));
}

static void ask(struct mcp_call *c, const struct mcp_ask *asks, size_t n)
{
	struct err e;

	if (mcp_call_ask(c, asks, n, STR_LIT("state"), &e) < 0)
		mcp_call_fail(c, &e);
}

static void run_name(struct mcp_call *c)
{
	const struct mcp_ask asks[] = { { "name", MCP_ASK_FORM, FORM } };

	if (mcp_call_ask_error(c, "name").p)
		mcp_call_text(c, mcp_call_ask_error(c, "name"));
	else if (!mcp_call_answer(c, "name"))
		ask(c, asks, 1);
	else if (at(mcp_call_answer(c, "name"), "content"))
		mcp_call_text(c, json_str(at(mcp_call_answer(c, "name"), "content|name")));
	else
		mcp_call_text(c, json_str(at(mcp_call_answer(c, "name"), "action")));
}

static void run_all(struct mcp_call *c)
{
	const struct mcp_ask asks[] = { { "f", MCP_ASK_FORM, FORM },
					{ "s", MCP_ASK_SAMPLING, SAMPLE },
					{ "r", MCP_ASK_ROOTS, STR_NONE } };

	if (!mcp_call_answer(c, "f") && !mcp_call_ask_error(c, "f").p)
		ask(c, asks, ARRAY_LEN(asks));
	else if (mcp_call_ask_error(c, "s").p)
		mcp_call_text(c, mcp_call_ask_error(c, "s"));
	else
		mcp_call_text(c, json_str(at(mcp_call_answer(c, "s"), "content|text")));
}

/* Two rounds. */
static void run_twice(struct mcp_call *c)
{
	const struct mcp_ask first[] = { { "s", MCP_ASK_SAMPLING, SAMPLE } };
	const struct mcp_ask second[] = { { "r", MCP_ASK_ROOTS, STR_NONE } };

	if (!mcp_call_answer(c, "s"))
		ask(c, first, 1);
	else if (!mcp_call_answer(c, "r"))
		ask(c, second, 1);
	else
		mcp_call_text(c, STR_LIT("both"));
}

static void run_url(struct mcp_call *c)
{
	const struct mcp_ask asks[] = {
		{ "u", MCP_ASK_URL, STR_LIT("{\"message\":\"?\",\"url\":\"https://x.y/z\"}") }
	};

	if (!mcp_call_answer(c, "u"))
		ask(c, asks, 1);
	else
		mcp_call_text(c, json_str(at(mcp_call_answer(c, "u"), "action")));
}

static bool to_task(struct mcp_call *c)
{
	const struct mcp_task_options o = { .poll_ms = 500, .message = "at work" };
	struct err e;

	if (mcp_call_is_task(c) || !mcp_call_can_task(c))
		return true;
	if (mcp_call_to_task(c, &o, &e) == 0)
		return true;
	mcp_call_fail(c, &e);
	return false;
}

static void run_job(struct mcp_call *c)
{
	if (to_task(c))
		hold(c);
}

static void run_asking_job(struct mcp_call *c)
{
	if (to_task(c))
		run_name(c);
}

static void run_failing_job(struct mcp_call *c)
{
	if (to_task(c))
		mcp_call_refuse(c, -32603, "broken", STR_NONE);
}

static void run_fail(struct mcp_call *c)
{
	struct err e;

	err_set(&e, ERR_IO, "it failed");
	mcp_call_fail(c, &e);
}

static void read_a(struct mcp_call *c)
{
	mcp_call_contents(c, &(struct mcp_contents){ .text = STR_LIT("contents") }, 1);
}

static void get_greet(struct mcp_call *c)
{
	const struct mcp_prompt_message m = {
		.content = { .type = MCP_TEXT,
			     .text = json_str(json_get(mcp_call_args(c), "name")) }
	};

	mcp_call_messages(c, NULL, &m, 1);
}

static void complete(void *owner, struct mcp_call *c)
{
	const struct str values[] = { STR_LIT("kind"), STR_LIT("keen") };

	mcp_call_values(c, values, 2, 0, false);
}

#define ANY "{\"type\":\"object\"}"
#define TOOL(name_, run_, ...)                                                                     \
	{                                                                                          \
		.name = (name_), .description = "T.", .input_schema = ANY, .run = (run_),          \
		__VA_ARGS__                                                                        \
	}

static struct mcp_tool tools[] = {
	TOOL("sum", run_sum,
	     .output_schema =
		     "{\"type\":\"object\",\"properties\":{\"sum\":{\"type\":\"integer\"}},"
		     "\"required\":[\"sum\"]}"),
	{ .name = "region",
	  .description = "R.",
	  .input_schema =
		  "{\"type\":\"object\",\"properties\":{\"region\":{\"type\":\"string\","
		  "\"x-mcp-header\":\"Region\"},\"limit\":{\"type\":\"integer\",\"x-mcp-header\":"
		  "\"Limit\"},\"deep\":{\"type\":\"object\",\"properties\":{\"dry\":{\"type\":"
		  "\"boolean\",\"x-mcp-header\":\"Dry-Run\"}}}}}",
	  .run = run_region },
	TOOL("say", run_say),
	TOOL("name", run_name),
	TOOL("all", run_all),
	TOOL("twice", run_twice),
	TOOL("url", run_url),
	TOOL("hold", hold),
	TOOL("fail", run_fail),
	TOOL("job", run_job, .task = MCP_TASK_OPTIONAL),
	TOOL("asking_job", run_asking_job, .task = MCP_TASK_REQUIRED),
	TOOL("failing_job", run_failing_job, .task = MCP_TASK_REQUIRED),
};

static char names[MANY][32];
static struct mcp_resource resources[MANY + 1];

static const struct mcp_template templates[] = {
	{ .uri_template = "mem:///{id}", .name = "any", .description = "Any.", .run = read_a },
};

static const struct mcp_argument greet_args[] = { { .name = "name", .required = true } };

static const struct mcp_prompt prompts[] = {
	{ .name = "greet", .args = greet_args, .args_n = 1, .run = get_greet },
};

static const struct mcp_handler handler = { .complete = complete };

static const struct mcp_server_options *server(void)
{
	static struct mcp_server_options o;

	for (unsigned i = 0; i < MANY; i++) {
		snprintf(names[i], sizeof(names[i]), "file:///%02u", i);
		resources[i] =
			(struct mcp_resource){ .uri = names[i], .name = names[i], .run = read_a };
	}
	o = (struct mcp_server_options){
		.offer = { .tools = tools,
			   .tools_n = ARRAY_LEN(tools),
			   .resources = resources,
			   .resources_n = MANY,
			   .templates = templates,
			   .templates_n = ARRAY_LEN(templates),
			   .prompts = prompts,
			   .prompts_n = ARRAY_LEN(prompts) },
		.handler = &handler,
		.changes = MCP_TOOLS | MCP_RESOURCES | MCP_PROMPTS,
		.subscribe = true,
		.logging = true,
		.tasks = true,
		.page = 5,
	};
	return &o;
}

/* --- every way to it --- */

static const struct row {
	const char *version;
	bool streams;
} rows[] = {
	{ "2024-11-05", false }, { "2025-03-26", false }, { "2025-06-18", false },
	{ "2025-11-25", false }, { "2025-11-25", true },  { "2026-07-28", false },
	{ "2026-07-28", true },
};

enum {
	ALL = MCP_CAN_ROOTS | MCP_CAN_SAMPLING | MCP_CAN_FORM | MCP_CAN_URL | MCP_CAN_TASKS,
};

static const struct mcp_client_options can_all = { .can = ALL };

static void begin(struct pair *p, const struct row *r)
{
	held_n = cancels = 0;
	pair_init(p, server(), &can_all, r->streams);
	pair_start(p, r->version);
}

static void end(struct pair *p)
{
	struct mcp_client_counts n;

	mcp_client_counts(p->client, &n);
	assert_int_equal(n.pending, 0);
	assert_int_equal(n.questions, 0);
	assert_int_equal(n.garbage, 0);
	pair_fini(p);
}

static const struct mcp_profile *profile(const struct row *r)
{
	return mcp_profile_find(str_of(r->version));
}

#define FOR_ROWS(r) for (const struct row *r = rows; r < rows + ARRAY_LEN(rows); r++)

/* --- tests --- */

static void test_start(void **state)
{
	FOR_ROWS(r)
	{
		const struct mcp_request_spec s = { .method = "tools/list" };
		struct pair p;
		struct err e;

		pair_init(&p, server(), &can_all, r->streams);
		assert_null(mcp_client_version(p.client));
		assert_null(mcp_client_about(p.client));
		assert_null(mcp_client_request(p.client, &s, &e));
		assert_int_equal(e.code, ERR_TRANSPORT);
		pair_start(&p, r->version);
		assert_non_null(at(mcp_client_about(p.client), "capabilities|tools"));
		assert_int_equal(p.over, 0);
		mcp_client_lost(p.client, &(struct err){ ERR_TRANSPORT, "gone" });
		assert_int_equal(p.over, 1);
		assert_string_equal(p.over_err.msg, "gone");
		assert_null(mcp_client_request(p.client, &s, &e));
		end(&p);
	}
}

static void test_lists(void **state)
{
	FOR_ROWS(r)
	{
		struct want w = { .done = false };
		struct pair p;
		struct err e;

		begin(&p, r);
		pair_list(&p, "tools", &w);
		assert_int_equal(w.listed, ARRAY_LEN(tools));
		assert_int_equal(w.dropped, 0);
		pair_list(&p, "resources", &w);
		assert_int_equal(w.listed, MANY);
		assert_memory_equal(w.names, "file:///00 file:///01 ", 22);
		pair_list(&p, "resourceTemplates", &w);
		assert_string_equal(w.names, "any ");
		pair_list(&p, "prompts", &w);
		assert_string_equal(w.names, "greet ");
		assert_null(mcp_client_list(p.client, "things", want_listed, &w, &e));
		assert_int_equal(e.code, ERR_INVALID);
		if (!profile(r)->old_tasks) {
			assert_null(mcp_client_list(p.client, "tasks", want_listed, &w, &e));
			assert_int_equal(e.code, ERR_INVALID);
		} else {
			pair_list(&p, "tasks", &w);
			assert_int_equal(w.listed, 0);
		}
		want_fini(&w);
		end(&p);
	}
}

static void test_calls(void **state)
{
	FOR_ROWS(r)
	{
		bool modern = profile(r)->modern;
		struct want w = { .done = false };
		struct pair p;

		begin(&p, r);
		/* before any list, so that headers are not known */
		pair_call(&p, "region",
			  "{\"region\":\"K\\u00f6ln\",\n\"limit\":-7,\"deep\":{\"dry\":true}}", &w);
		assert_string_equal(want_text(&w), "K\xc3\xb6ln");
		pair_call(&p, "region", "{\"region\":\" =?base64?\",\"deep\":{\"dry\":null}}", &w);
		assert_string_equal(want_text(&w), " =?base64?");
		pair_call(&p, "sum", NULL, &w);
		if (profile(r)->structured)
			assert_int_equal(int_at(json_root(w.result), "structuredContent|sum"), 3);
		pair_call(&p, "fail", "{}", &w);
		assert_true(json_bool(at(json_root(w.result), "isError")));
		pair_call(&p, "none", NULL, &w);
		assert_int_equal(w.code, -32602);
		pair_request(&p, "resources/read", "{\"uri\":\"mem:///x\"}", &w);
		assert_string_equal(w.e.msg, "");
		assert_int_equal(json_len(at(json_root(w.result), "contents")), 1);
		pair_request(&p, "resources/read", "{\"uri\":\"nope:x\"}", &w);
		assert_int_equal(w.code, modern ? -32602 : -32002);
		pair_request(&p, "prompts/get",
			     "{\"name\":\"greet\",\"arguments\":{\"name\":\"Al\"}}", &w);
		assert_int_equal(json_len(at(json_root(w.result), "messages")), 1);
		pair_request(&p, "completion/complete",
			     "{\"ref\":{\"type\":\"ref/prompt\",\"name\":\"greet\"},"
			     "\"argument\":{\"name\":\"name\",\"value\":\"k\"}}",
			     &w);
		assert_int_equal(json_len(at(json_root(w.result), "completion|values")), 2);
		want_fini(&w);
		end(&p);
	}
}

static void test_refused_at_once(void **state)
{
	struct mcp_request_spec s = { .method = "ping" };
	struct pair p;
	struct err e;

	begin(&p, &rows[5]);
	assert_null(mcp_client_request(p.client, &s, &e));
	assert_int_equal(e.code, ERR_INVALID);
	s.method = "subscriptions/listen";
	assert_null(mcp_client_request(p.client, &s, &e));
	assert_int_equal(e.code, ERR_INVALID);
	s.method = "tools/list";
	s.params = STR_LIT("[1]");
	assert_null(mcp_client_request(p.client, &s, &e));
	assert_int_equal(e.code, ERR_INVALID);
	s.params = STR_LIT("{\"a\":1,\"a\":2}");
	assert_null(mcp_client_request(p.client, &s, &e));
	assert_int_equal(e.code, ERR_INVALID);
	/* arguments can't end and go on as something else */
	assert_null(mcp_client_call(p.client, "sum", STR_LIT("{},\"x\":{}"), &s, &e));
	assert_int_equal(e.code, ERR_INVALID);
	assert_null(mcp_client_call(p.client, "sum", STR_LIT("{"), &s, &e));
	assert_int_equal(e.code, ERR_INVALID);
	end(&p);
}

static void test_progress_and_log(void **state)
{
	FOR_ROWS(r)
	{
		bool modern = profile(r)->modern;
		struct want w = { .done = false };
		struct pair p;
		struct err e;

		begin(&p, r);
		pair_call(&p, "say", NULL, &w);
		assert_int_equal(w.progress, 2);
		assert_true(w.last_progress == 2);
		assert_int_equal(p.logs, modern ? 0 : 2);
		assert_int_equal(mcp_client_set_level(p.client, MCP_ERROR, &e), 0);
		pair_run(&p);
		pair_call(&p, "say", NULL, &w);
		assert_int_equal(p.logs, modern ? 1 : 3);
		assert_string_equal(p.last_log, "error");
		assert_int_equal(p.last_level, MCP_ERROR);
		want_fini(&w);
		end(&p);
	}
}

static void test_cancel(void **state)
{
	FOR_ROWS(r)
	{
		const struct mcp_request_spec s = { .on_done = want_done, .on_task = want_task };
		struct mcp_pending *call;
		struct want w = { .done = false };
		struct mcp_request_spec mine = s;
		struct pair p;
		struct err e;

		begin(&p, r);
		mine.owner = &w;
		call = mcp_client_call(p.client, "hold", STR_NONE, &mine, &e);
		assert_non_null(call);
		pair_run(&p);
		assert_int_equal(held_n, 1);
		mcp_pending_cancel(call);
		pair_run(&p);
		ROW_CHECK(cancels == 1, r->version);
		assert_false(w.done);
		end(&p);
	}
}

static void test_timeout(void **state)
{
	FOR_ROWS(r)
	{
		struct want w = { .done = false };
		const struct mcp_request_spec s = { .timeout_ms = 5000,
						    .on_done = want_done,
						    .on_progress = want_progress,
						    .owner = &w };
		struct pair p;
		struct err e;

		begin(&p, r);
		assert_non_null(mcp_client_call(p.client, "hold", STR_NONE, &s, &e));
		pair_run(&p);
		assert_int_equal(mcp_client_tick(p.client), 5000);
		peer_clock += 4900;
		mcp_call_progress(held[0], 1, 0, NULL);
		pair_run(&p);
		peer_clock += 4900;
		mcp_client_tick(p.client);
		pair_run(&p);
		assert_false(w.done);
		peer_clock += 200;
		mcp_client_tick(p.client);
		assert_true(w.done);
		assert_int_equal(w.e.code, ERR_TIMEOUT);
		pair_run(&p);
		assert_int_equal(cancels, 1);
		end(&p);
	}
}

/* Progress does not help for ever. */
static void test_timeout_max(void **state)
{
	const struct mcp_client_options o = { .timeout_ms = 1000, .timeout_max_ms = 3000 };
	struct want w = { .done = false };
	const struct mcp_request_spec s = { .on_done = want_done,
					    .on_progress = want_progress,
					    .owner = &w };
	struct pair p;
	struct err e;

	held_n = 0;
	pair_init(&p, server(), &o, false);
	pair_start(&p, "2025-06-18");
	assert_non_null(mcp_client_call(p.client, "hold", STR_NONE, &s, &e));
	for (unsigned i = 1; i < 8 && !w.done; i++) {
		pair_run(&p);
		peer_clock += 500;
		mcp_client_tick(p.client);
		if (held[0])
			mcp_call_progress(held[0], i, 0, NULL);
	}
	assert_int_equal(w.e.code, ERR_TIMEOUT);
	assert_int_equal(w.progress, 5);
	pair_run(&p);
	end(&p);
}

static bool asks(const struct row *r)
{
	return profile(r)->form;
}

static void test_questions(void **state)
{
	FOR_ROWS(r)
	{
		struct want w = { .done = false };
		struct pair p;

		begin(&p, r);
		p.answers[MCP_ASK_FORM] = NAME("Eve");
		p.answers[MCP_ASK_URL] = "{\"action\":\"accept\"}";
		p.answers[MCP_ASK_SAMPLING] = SAMPLED;
		p.answers[MCP_ASK_ROOTS] = ROOTS;
		pair_call(&p, "twice", NULL, &w);
		assert_string_equal(want_text(&w), "both");
		assert_int_equal(p.asked, 2);
		if (asks(r)) {
			pair_call(&p, "name", NULL, &w);
			assert_string_equal(want_text(&w), "Eve");
			pair_call(&p, "all", NULL, &w);
			assert_string_equal(want_text(&w), "ok");
		} else {
			pair_call(&p, "name", NULL, &w);
			assert_true(json_bool(at(json_root(w.result), "isError")));
			assert_int_equal(p.asked, 2);
		}
		if (profile(r)->url) {
			pair_call(&p, "url", NULL, &w);
			assert_string_equal(want_text(&w), "accept");
		}
		want_fini(&w);
		end(&p);
	}
}

static void test_refusals(void **state)
{
	FOR_ROWS(r)
	{
		bool modern = profile(r)->modern;
		struct want w = { .done = false };
		struct pair p;

		if (!asks(r))
			continue;
		begin(&p, r);
		p.answers[MCP_ASK_FORM] = "";
		p.answers[MCP_ASK_SAMPLING] = "";
		p.answers[MCP_ASK_ROOTS] = "";
		pair_call(&p, "name", NULL, &w);
		assert_string_equal(want_text(&w), "decline");
		pair_call(&p, "all", NULL, &w);
		if (modern)
			assert_int_equal(w.e.code, ERR_CLIENT_FAILED);
		else
			assert_string_equal(want_text(&w), "not today");
		assert_int_equal(p.withdrawn, 0);
		want_fini(&w);
		end(&p);
	}
}

/* What a person takes for an answer is not the server's time. */
static void test_slow_answers(void **state)
{
	FOR_ROWS(r)
	{
		struct want w = { .done = false };
		const struct mcp_request_spec s = { .on_done = want_done, .owner = &w };
		struct mcp_question *q;
		struct pair p;
		struct err e;

		if (!asks(r))
			continue;
		begin(&p, r);
		assert_non_null(mcp_client_call(p.client, "name", STR_NONE, &s, &e));
		pair_run(&p);
		q = p.question;
		assert_non_null(q);
		assert_int_equal(mcp_question_kind(q), MCP_ASK_FORM);
		assert_string_equal(text_at(mcp_question_params(q), "message"), "?");
		peer_clock += 9 * 60 * 1000;
		assert_true(mcp_client_tick(p.client) == UINT64_MAX);
		assert_false(w.done);
		assert_int_equal(mcp_question_answer(q, STR_LIT(NAME("E")), &e), -1);
		assert_int_equal(e.code, ERR_INVALID);
		assert_int_equal(mcp_question_answer(q, STR_LIT("{"), &e), -1);
		assert_int_equal(mcp_question_answer(q, STR_LIT(NAME("Ed")), &e), 0);
		pair_wait(&p, &w);
		assert_string_equal(want_text(&w), "Ed");
		want_fini(&w);
		end(&p);
	}
}

static void test_cancelled_while_asked(void **state)
{
	FOR_ROWS(r)
	{
		struct want w = { .done = false };
		const struct mcp_request_spec s = { .on_done = want_done, .owner = &w };
		struct mcp_pending *call;
		struct pair p;
		struct err e;

		if (!asks(r))
			continue;
		begin(&p, r);
		call = mcp_client_call(p.client, "name", STR_NONE, &s, &e);
		pair_run(&p);
		assert_non_null(p.question);
		mcp_pending_cancel(call);
		pair_run(&p);
		ROW_CHECK(p.withdrawn == 1, r->version);
		assert_null(p.question);
		end(&p);
	}
}

static void test_freed_while_asked(void **state)
{
	FOR_ROWS(r)
	{
		struct want w = { .done = false };
		const struct mcp_request_spec s = { .on_done = want_done, .owner = &w };
		struct pair p;
		struct err e;

		if (!asks(r))
			continue;
		begin(&p, r);
		assert_non_null(mcp_client_call(p.client, "all", STR_NONE, &s, &e));
		assert_non_null(mcp_client_call(p.client, "hold", STR_NONE, &s, &e));
		pair_run(&p);
		pair_fini(&p);
		assert_false(w.done);
	}
}

static bool has_tasks(const struct row *r)
{
	return profile(r)->modern || profile(r)->old_tasks;
}

static void start_job(struct pair *p, const char *tool, struct want *w, struct mcp_pending **ret)
{
	const struct mcp_request_spec s = { .task_ttl_ms = 60 * 60 * 1000,
					    .on_done = want_done,
					    .on_task = want_task,
					    .owner = w };
	struct mcp_pending *call;
	struct err e;

	want_fini(w);
	call = mcp_client_call(p->client, tool, STR_NONE, &s, &e);
	assert_non_null(call);
	if (ret)
		*ret = call;
	pair_run(p);
}

static void test_tasks(void **state)
{
	FOR_ROWS(r)
	{
		struct want w = { .done = false };
		struct mcp_pending *call;
		struct pair p;

		if (!has_tasks(r))
			continue;
		begin(&p, r);
		start_job(&p, "job", &w, NULL);
		assert_memory_equal(w.task, "task-", 5);
		/* longer than any request may take */
		for (unsigned i = 0; i < 1000; i++) {
			peer_clock += 1000;
			mcp_client_tick(p.client);
			pair_run(&p);
		}
		assert_false(w.done);
		end_held("done");
		pair_wait(&p, &w);
		assert_string_equal(want_text(&w), "done");

		p.answers[MCP_ASK_FORM] = NAME("Eve");
		start_job(&p, "asking_job", &w, NULL);
		pair_wait(&p, &w);
		assert_string_equal(want_text(&w), "Eve");

		start_job(&p, "failing_job", &w, NULL);
		pair_wait(&p, &w);
		assert_int_equal(w.code, -32603);

		start_job(&p, "job", &w, &call);
		mcp_pending_cancel(call);
		pair_run(&p);
		ROW_CHECK(cancels == 1, r->version);
		assert_false(w.done);
		want_fini(&w);
		end(&p);
	}
}

/* A tool that is only called as a task is, without being asked to. */
static void test_required_task(void **state)
{
	FOR_ROWS(r)
	{
		struct want w = { .done = false };
		struct pair p;

		if (!has_tasks(r))
			continue;
		begin(&p, r);
		p.answers[MCP_ASK_FORM] = NAME("Eve");
		pair_call(&p, "asking_job", NULL, &w);
		assert_string_equal(want_text(&w), "Eve");
		pair_list(&p, "tools", &w);
		pair_call(&p, "asking_job", NULL, &w);
		assert_string_equal(want_text(&w), "Eve");
		assert_memory_equal(w.task, "task-", 5);
		want_fini(&w);
		end(&p);
	}
}

/* A question of a task that nobody has answered when the task is over is taken back. */
static void test_task_takes_back(void **state)
{
	FOR_ROWS(r)
	{
		struct want w = { .done = false }, other = { .done = false };
		char params[PAIR_TEXT + 32];
		struct pair p;

		if (!has_tasks(r))
			continue;
		begin(&p, r);
		start_job(&p, "asking_job", &w, NULL);
		for (unsigned i = 0; i < 20 && !p.question; i++) {
			peer_clock += 1000;
			mcp_client_tick(p.client);
			pair_run(&p);
		}
		assert_non_null(p.question);
		snprintf(params, sizeof(params), "{\"taskId\":\"%s\"}", w.task);
		pair_request(&p, "tasks/cancel", params, &other);
		pair_wait(&p, &w);
		ROW_CHECK(p.withdrawn == 1, r->version);
		assert_null(p.question);
		assert_true(w.e.code == ERR_CANCELLED || w.code != 0);
		want_fini(&w);
		want_fini(&other);
		end(&p);
	}
}

static void test_watch(void **state)
{
	FOR_ROWS(r)
	{
		const struct str two[] = { STR_LIT("file:///01"), STR_LIT("file:///02") };
		bool modern = profile(r)->modern;
		struct pair p;
		struct err e;

		begin(&p, r);
		assert_int_equal(mcp_client_watch(p.client, MCP_TOOLS, two, 2, &e), 0);
		pair_run(&p);
		mcp_server_changed(p.server, MCP_TOOLS | MCP_PROMPTS);
		mcp_server_updated(p.server, two[1]);
		pair_run(&p);
		assert_int_equal(p.changed, modern ? MCP_TOOLS : MCP_TOOLS | MCP_PROMPTS);
		assert_string_equal(p.updated, "file:///02");

		assert_int_equal(mcp_client_watch(p.client, MCP_PROMPTS, two, 1, &e), 0);
		pair_run(&p);
		p.changed = 0;
		p.updated[0] = '\0';
		mcp_server_changed(p.server, MCP_TOOLS);
		mcp_server_updated(p.server, two[1]);
		pair_run(&p);
		if (modern)
			assert_int_equal(p.changed, 0);
		assert_string_equal(p.updated, "");
		mcp_server_updated(p.server, two[0]);
		pair_run(&p);
		assert_string_equal(p.updated, "file:///01");
		assert_int_equal(mcp_client_watch(p.client, 0, NULL, 0, &e), 0);
		pair_run(&p);
		end(&p);
	}
}

/* The server ends it; it is opened again, and what may have been missed is told. */
static void test_listens_again(void **state)
{
	struct pair p;
	struct err e;

	begin(&p, &rows[5]);
	assert_int_equal(mcp_client_watch(p.client, MCP_TOOLS, NULL, 0, &e), 0);
	pair_run(&p);
	mcp_session_drain(p.session);
	pair_run(&p);
	assert_int_equal(p.changed, 0);
	assert_in_range(mcp_client_tick(p.client), 1, 1000);
	peer_clock += 1000;
	mcp_client_tick(p.client);
	pair_run(&p);
	assert_int_equal(p.changed, MCP_TOOLS);
	p.changed = 0;
	mcp_server_changed(p.server, MCP_TOOLS);
	pair_run(&p);
	assert_int_equal(p.changed, MCP_TOOLS);
	end(&p);
}

/* What was wanted before there was a server is asked of it when there is one. */
static void test_wanted_before(void **state)
{
	FOR_ROWS(r)
	{
		const struct str one[] = { STR_LIT("file:///01") };
		struct want w = { .done = false };
		struct pair p;
		struct err e;

		pair_init(&p, server(), NULL, r->streams);
		assert_int_equal(mcp_client_watch(p.client, MCP_TOOLS, one, 1, &e), 0);
		assert_int_equal(mcp_client_set_level(p.client, MCP_ERROR, &e), 0);
		pair_start(&p, r->version);
		mcp_server_updated(p.server, one[0]);
		pair_run(&p);
		assert_string_equal(p.updated, "file:///01");
		pair_call(&p, "say", NULL, &w);
		assert_int_equal(p.logs, 1);
		want_fini(&w);
		end(&p);
	}
}

static void test_notify(void **state)
{
	struct pair p;
	struct err e;

	begin(&p, &rows[3]);
	assert_int_equal(
		mcp_client_notify(p.client, "notifications/roots/list_changed", STR_NONE, &e), 0);
	assert_int_equal(mcp_client_notify(p.client, "x", STR_LIT("[]"), &e), -1);
	assert_int_equal(mcp_client_notify(p.client, "x", STR_LIT("{\n}"), &e), 0);
	pair_run(&p);
	end(&p);
	begin(&p, &rows[5]);
	assert_int_equal(
		mcp_client_notify(p.client, "notifications/roots/list_changed", STR_NONE, &e), -1);
	end(&p);
}

static void test_form_defaults(void **state)
{
	static const char form[] =
		"{\"requestedSchema\":{\"type\":\"object\",\"properties\":{"
		"\"a\":{\"type\":\"string\",\"default\":\"x\"},"
		"\"b\":{\"type\":\"integer\",\"default\":30},"
		"\"c\":{\"type\":\"number\",\"default\":95.5},"
		"\"d\":{\"type\":\"string\",\"enum\":[\"on\",\"off\"],\"default\":\"on\"},"
		"\"e\":{\"type\":\"boolean\",\"default\":false},"
		"\"f\":{\"type\":\"array\",\"items\":{\"type\":\"string\",\"enum\":[\"p\",\"q\"]},"
		"\"default\":[\"q\"]},"
		"\"g\":{\"type\":\"string\"},"
		"\"h\":{\"type\":\"string\",\"enum\":[\"on\"],\"default\":\"off\"},"
		"\"i\":{\"type\":\"integer\",\"default\":\"3\"},"
		"\"j\":{\"$ref\":\"https://x.y/z\",\"default\":\"3\"}}}}";
	autobuf struct buf b = BUF_INIT(1024);
	AUTO(json_free) struct json_doc *d = NULL;
	struct err e;

	d = json_parse(str_of(form), NULL, &e);
	assert_non_null(d);
	assert_int_equal(mcp_form_defaults(json_root(d), &b, &e), 0);
	assert_string_equal(b.p, "{\"a\":\"x\",\"b\":30,\"c\":95.5,\"d\":\"on\",\"e\":false,"
				 "\"f\":[\"q\"]}");
	buf_fini(&b);
	assert_int_equal(mcp_form_defaults(NULL, &b, &e), 0);
	assert_string_equal(b.p, "{}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_start),
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_calls),
		cmocka_unit_test(test_refused_at_once),
		cmocka_unit_test(test_progress_and_log),
		cmocka_unit_test(test_cancel),
		cmocka_unit_test(test_timeout),
		cmocka_unit_test(test_timeout_max),
		cmocka_unit_test(test_questions),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_slow_answers),
		cmocka_unit_test(test_cancelled_while_asked),
		cmocka_unit_test(test_freed_while_asked),
		cmocka_unit_test(test_tasks),
		cmocka_unit_test(test_required_task),
		cmocka_unit_test(test_task_takes_back),
		cmocka_unit_test(test_watch),
		cmocka_unit_test(test_listens_again),
		cmocka_unit_test(test_wanted_before),
		cmocka_unit_test(test_notify),
		cmocka_unit_test(test_form_defaults),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
