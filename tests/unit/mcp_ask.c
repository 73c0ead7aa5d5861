/* Asking the client: mcp_call_ask() in both eras. */
#include "alloc_fail.h"
#include "mcp_peer.h"
#include "test.h"

#define FORM(field)                                                                                \
	STR_LIT("{\"message\":\"?\",\"requestedSchema\":{\"type\":\"object\",\"properties\":{"     \
		"\"" field "\":{\"type\":\"string\",\"minLength\":2}},\"required\":[\"" field      \
		"\"]}}")
#define SAMPLE                                                                                     \
	STR_LIT("{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\","                \
		"\"text\":\"?\"}}],\"maxTokens\":10}")
#define ALL "{\"elicitation\":{\"form\":{},\"url\":{}},\"sampling\":{},\"roots\":{}}"
#define NAME(x) "{\"action\":\"accept\",\"content\":{\"name\":\"" x "\"}}"

static unsigned runs, cancels;
static struct mcp_call *later; /* one that asks when the test says so */

/* --- the handlers --- */

static void end_failed(struct mcp_call *c, const struct err *e)
{
	mcp_call_fail(c, e);
}

static void ask(struct mcp_call *c, const struct mcp_ask *asks, size_t n, struct str state)
{
	struct err e;

	if (mcp_call_ask(c, asks, n, state, &e) < 0)
		end_failed(c, &e);
}

static void say(struct mcp_call *c, const struct json_val *v)
{
	struct str s = json_str(v);

	mcp_call_text(c, s.p ? s : STR_LIT("nothing"));
}

static void run_name(struct mcp_call *c)
{
	const struct mcp_ask asks[] = { { "name", MCP_ASK_FORM, FORM("name") } };
	const struct json_val *answer = mcp_call_answer(c, "name");

	runs++;
	if (answer)
		say(c, at(answer, "content|name"));
	else
		ask(c, asks, 1, STR_NONE);
}

/* The same with what it knows in the state. */
static void run_steps(struct mcp_call *c)
{
	const struct mcp_ask first[] = { { "a", MCP_ASK_FORM, FORM("name") } };
	const struct mcp_ask second[] = { { "b", MCP_ASK_FORM, FORM("name") } };
	struct str state = mcp_call_state(c);

	runs++;
	if (!state.p) {
		assert_null(mcp_call_answer(c, "a"));
		ask(c, first, 1, STR_LIT("one\0"));
	} else if (str_eq(state, STR_LIT("one\0"))) {
		assert_non_null(mcp_call_answer(c, "a"));
		ask(c, second, 1, STR_LIT("two"));
	} else {
		assert_true(str_is(state, "two"));
		assert_string_equal(text_at(mcp_call_answer(c, "a"), "content|name"), "Al");
		say(c, at(mcp_call_answer(c, "b"), "content|name"));
	}
}

static void run_many(struct mcp_call *c)
{
	const struct mcp_ask asks[] = {
		{ "form", MCP_ASK_FORM, FORM("name") },
		{ "model", MCP_ASK_SAMPLING, SAMPLE },
		{ "roots", MCP_ASK_ROOTS, STR_NONE },
	};

	runs++;
	if (!mcp_call_answer(c, "form")) {
		ask(c, asks, ARRAY_LEN(asks), STR_NONE);
		return;
	}
	assert_non_null(mcp_call_answer(c, "model"));
	assert_non_null(mcp_call_answer(c, "roots"));
	say(c, at(mcp_call_answer(c, "model"), "content|text"));
}

static void run_url(struct mcp_call *c)
{
	const struct mcp_ask asks[] = {
		{ "url", MCP_ASK_URL, STR_LIT("{\"message\":\"?\",\"url\":\"https://x.y/\"}") }
	};

	if (!mcp_call_can_ask(c, MCP_ASK_URL))
		mcp_call_cant_ask(c, MCP_ASK_URL);
	else if (mcp_call_answer(c, "url"))
		say(c, at(mcp_call_answer(c, "url"), "action"));
	else
		ask(c, asks, 1, STR_NONE);
}

static void run_tools(struct mcp_call *c)
{
	const struct mcp_ask asks[] = { { "s", MCP_ASK_SAMPLING,
					  STR_LIT("{\"messages\":[],\"maxTokens\":1,"
						  "\"tools\":[]}") } };

	ask(c, asks, 1, STR_NONE);
}

/* Says why there is no answer. */
static void run_tolerant(struct mcp_call *c)
{
	const struct mcp_ask asks[] = { { "name", MCP_ASK_FORM, FORM("name") } };

	runs++;
	if (mcp_call_ask_error(c, "name").p)
		mcp_call_text(c, mcp_call_ask_error(c, "name"));
	else if (mcp_call_answer(c, "name"))
		say(c, at(mcp_call_answer(c, "name"), "content|name"));
	else
		ask(c, asks, 1, STR_NONE);
}

static void run_state_only(struct mcp_call *c)
{
	runs++;
	if (mcp_call_state(c).p)
		mcp_call_text(c, mcp_call_state(c));
	else
		ask(c, NULL, 0, STR_LIT("kept"));
}

static void note_cancel(struct mcp_call *c, void *data)
{
	cancels++;
	mcp_call_text(c, STR_LIT("cancelled"));
}

static void run_later(struct mcp_call *c)
{
	runs++;
	if (mcp_call_answer(c, "name")) {
		say(c, at(mcp_call_answer(c, "name"), "content|name"));
		return;
	}
	mcp_call_on_cancel(c, note_cancel, NULL);
	later = c;
}

/* What a handler may not ask. */
static void run_wrong(struct mcp_call *c)
{
	static const struct mcp_ask good = { "k", MCP_ASK_ROOTS, STR_NONE };
	const struct mcp_ask bad[] = {
		{ "", MCP_ASK_ROOTS, STR_NONE },
		{ "12345678901234567890123456789012345678901234567890123456789012345",
		  MCP_ASK_ROOTS, STR_NONE },
		{ "k", MCP_ASK_FORM, STR_NONE },
		{ "k", MCP_ASK_FORM, STR_LIT("{\"message\":1,\"requestedSchema\":{}}") },
		{ "k", MCP_ASK_FORM,
		  STR_LIT("{\"message\":\"\",\"requestedSchema\":{\"type\":\"x\"}}") },
		{ "k", MCP_ASK_URL, STR_LIT("{\"message\":\"\"}") },
		{ "k", MCP_ASK_SAMPLING, STR_LIT("[]") },
		{ "k", MCP_ASK_SAMPLING, STR_LIT("{") },
		{ "k", (enum mcp_ask_kind)9, STR_NONE },
	};
	const struct mcp_ask twice[] = { good, good };
	struct mcp_ask many[17];
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		assert_int_equal(mcp_call_ask(c, &bad[i], 1, STR_NONE, &e), -1);
		assert_int_equal(e.code, ERR_BUG);
	}
	assert_int_equal(mcp_call_ask(c, twice, 2, STR_NONE, &e), -1);
	assert_int_equal(e.code, ERR_BUG);
	assert_int_equal(mcp_call_ask(c, many, 17, STR_NONE, &e), -1);
	assert_int_equal(e.code, ERR_LIMIT);
	assert_null(mcp_call_answer(c, "k"));
	mcp_call_text(c, STR_LIT("fine"));
}

/* Asks for what it has. */
static void run_forgetful(struct mcp_call *c)
{
	const struct mcp_ask asks[] = { { "name", MCP_ASK_FORM, FORM("name") } };

	runs++;
	ask(c, asks, 1, STR_NONE);
}

#define TOOL(name_, run_)                                                                          \
	{                                                                                          \
		.name = name_, .description = "d", .input_schema = "{\"type\":\"object\"}",        \
		.run = run_                                                                        \
	}

static struct mcp_tool tools[] = {
	TOOL("name", run_name),	       TOOL("steps", run_steps),
	TOOL("many", run_many),	       TOOL("url", run_url),
	TOOL("tools", run_tools),      TOOL("tolerant", run_tolerant),
	TOOL("state", run_state_only), TOOL("later", run_later),
	TOOL("wrong", run_wrong),      TOOL("forgetful", run_forgetful),
};

static void run_prompt(struct mcp_call *c)
{
	const struct mcp_ask asks[] = { { "name", MCP_ASK_FORM, FORM("name") } };
	const struct json_val *answer = mcp_call_answer(c, "name");
	struct mcp_prompt_message m = { .content = { .type = MCP_TEXT } };

	if (!answer) {
		ask(c, asks, 1, STR_NONE);
		return;
	}
	m.content.text = json_str(at(answer, "content|name"));
	mcp_call_messages(c, NULL, &m, 1);
}

static void run_resource(struct mcp_call *c)
{
	const struct mcp_ask asks[] = { { "name", MCP_ASK_FORM, FORM("name") } };
	const struct json_val *answer = mcp_call_answer(c, "name");
	struct mcp_contents contents = { .mime = "text/plain" };

	if (!answer) {
		ask(c, asks, 1, STR_NONE);
		return;
	}
	contents.text = json_str(at(answer, "content|name"));
	mcp_call_contents(c, &contents, 1);
}

static const struct mcp_prompt prompts[] = {
	{ .name = "p", .description = "d", .run = run_prompt }
};
static const struct mcp_resource resources[] = {
	{ .uri = "test://r", .name = "r", .description = "d", .run = run_resource }
};

/* --- fixture --- */

static struct mcp_server_options options(void)
{
	runs = cancels = 0;
	later = NULL;
	return (struct mcp_server_options){
		.offer = { .tools = tools,
			   .tools_n = ARRAY_LEN(tools),
			   .prompts = prompts,
			   .prompts_n = 1,
			   .resources = resources,
			   .resources_n = 1 },
	};
}

static struct mcp_server *server(void)
{
	const struct mcp_server_options o = options();
	struct mcp_server *srv = peer_server(&o);

	assert_non_null(srv);
	return srv;
}

static void open_peer(struct peer *p, struct mcp_server *srv)
{
	assert_true(peer_init(p, srv, "alice"));
	p->caps = ALL;
}

/* --- modern --- */

static void test_asked_and_answered(void **state)
{
	AUTO(mcp_server_free) struct mcp_server *srv = server();
	const struct json_val *r;
	struct peer p;

	open_peer(&p, srv);
	r = peer_modern(&p, "tools/call", "\"name\":\"name\"");
	assert_string_equal(text_at(r, "result|resultType"), "input_required");
	assert_string_equal(text_at(r, "result|inputRequests|name|method"), "elicitation/create");
	assert_string_equal(text_at(r, "result|inputRequests|name|params|mode"), "form");
	assert_non_null(at(r, "result|_meta|io.modelcontextprotocol/serverInfo"));
	r = peer_modern(
		&p, "tools/call",
		"\"name\":\"name\",\"requestState\":\"%s\",\"inputResponses\":{\"name\":%s}",
		text_at(r, "result|requestState"), NAME("Alice"));
	assert_string_equal(text_at(r, "result|resultType"), "complete");
	assert_string_equal(content_of(r), "Alice");
	assert_int_equal(runs, 2);
	peer_fini(&p);
}

static void test_answers_without_a_state(void **state)
{
	AUTO(mcp_server_free) struct mcp_server *srv = server();
	const struct json_val *r;
	struct peer p;

	open_peer(&p, srv);
	r = peer_modern(
		&p, "tools/call",
		"\"name\":\"name\",\"inputResponses\":{\"x\":{\"y\":1},\"name\":%s,\"z\":3}",
		NAME("Alice"));
	assert_string_equal(content_of(r), "Alice");
	r = peer_modern(&p, "tools/call", "\"name\":\"name\",\"inputResponses\":{\"x\":{}}");
	assert_string_equal(text_at(r, "result|resultType"), "input_required");
	peer_fini(&p);
}

static void test_rounds(void **state)
{
	AUTO(mcp_server_free) struct mcp_server *srv = server();
	const struct json_val *r;
	struct peer p;
	const char *one;

	open_peer(&p, srv);
	r = peer_modern(&p, "tools/call", "\"name\":\"steps\"");
	one = text_at(r, "result|requestState");
	r = peer_modern(&p, "tools/call",
			"\"name\":\"steps\",\"requestState\":\"%s\",\"inputResponses\":{\"a\":%s}",
			one, NAME("Al"));
	assert_non_null(at(r, "result|inputRequests|b"));
	assert_null(at(r, "result|inputRequests|a"));
	assert_string_not_equal(text_at(r, "result|requestState"), one);
	r = peer_modern(&p, "tools/call",
			"\"name\":\"steps\",\"requestState\":\"%s\",\"inputResponses\":{\"b\":%s}",
			text_at(r, "result|requestState"), NAME("Bo"));
	assert_string_equal(content_of(r), "Bo");
	assert_int_equal(runs, 3);
	peer_fini(&p);
}

/* What is there already is kept in the state; the handler waits for all. */
static void test_missing_answers_are_asked_again(void **state)
{
	AUTO(mcp_server_free) struct mcp_server *srv = server();
	const struct json_val *r;
	struct peer p;

	open_peer(&p, srv);
	r = peer_modern(&p, "tools/call", "\"name\":\"many\"");
	assert_int_equal(json_len(at(r, "result|inputRequests")), 3);
	r = peer_modern(&p, "tools/call", "\"name\":\"many\",\"requestState\":\"%s\"",
			text_at(r, "result|requestState"));
	assert_int_equal(json_len(at(r, "result|inputRequests")), 3);
	r = peer_modern(&p, "tools/call",
			"\"name\":\"many\",\"requestState\":\"%s\",\"inputResponses\":{\"form\":%s,"
			"\"roots\":{\"roots\":[{\"uri\":\"file:///a\"}]}}",
			text_at(r, "result|requestState"), NAME("Alice"));
	assert_int_equal(json_len(at(r, "result|inputRequests")), 1);
	assert_string_equal(text_at(r, "result|inputRequests|model|method"),
			    "sampling/createMessage");
	assert_int_equal(runs, 1);
	r = peer_modern(&p, "tools/call",
			"\"name\":\"many\",\"requestState\":\"%s\",\"inputResponses\":{\"model\":"
			"{\"role\":\"assistant\",\"model\":\"m\",\"content\":{\"type\":\"text\","
			"\"text\":\"hi\"}}}",
			text_at(r, "result|requestState"));
	assert_string_equal(content_of(r), "hi");
	assert_int_equal(runs, 2);
	peer_fini(&p);
}

static void test_answers_are_checked(void **state)
{
	static const struct {
		const char *key, *answer;
	} wrong[] = {
		{ "form", "1" },
		{ "form", "[]" },
		{ "form", "{}" },
		{ "form", "{\"action\":\"yes\"}" },
		{ "form", "{\"action\":\"accept\"}" },
		{ "form", "{\"action\":\"accept\",\"content\":{}}" },
		{ "form", "{\"action\":\"accept\",\"content\":{\"name\":\"A\"}}" },
		{ "form", "{\"action\":\"accept\",\"content\":{\"name\":5}}" },
		{ "form", "{\"action\":\"accept\",\"content\":{\"name\":\"Al\",\"x\":{}}}" },
		{ "form", "{\"action\":\"accept\",\"content\":{\"name\":\"Al\",\"x\":[1]}}" },
		{ "form", "{\"action\":\"accept\",\"content\":{\"name\":\"Al\",\"x\":null}}" },
		{ "model", "{\"role\":\"assistant\",\"model\":\"m\"}" },
		{ "model", "{\"role\":\"x\",\"model\":\"m\",\"content\":[]}" },
		{ "model", "{\"role\":\"user\",\"content\":[]}" },
		{ "model", "{\"role\":\"user\",\"model\":\"m\",\"content\":[3]}" },
		{ "roots", "{}" },
		{ "roots", "{\"roots\":[1]}" },
		{ "roots", "{\"roots\":[{\"uri\":\"https://x\"}]}" },
	};
	AUTO(mcp_server_free) struct mcp_server *srv = server();
	const struct json_val *r;
	const char *first;
	struct peer p;

	open_peer(&p, srv);
	r = peer_modern(&p, "tools/call", "\"name\":\"many\"");
	first = strdup(text_at(r, "result|requestState"));
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		r = peer_modern(&p, "tools/call",
				"\"name\":\"many\",\"requestState\":\"%s\","
				"\"inputResponses\":{\"%s\":%s}",
				first, wrong[i].key, wrong[i].answer);
		ROW_CHECK(int_at(r, "error|code") == -32602, wrong[i].answer);
		r = peer_modern(&p, "tools/call",
				"\"name\":\"many\",\"inputResponses\":{\"%s\":%s}", wrong[i].key,
				wrong[i].answer);
		ROW_CHECK(int_at(r, "error|code") == -32602, wrong[i].answer);
	}
	r = peer_modern(&p, "tools/call", "\"name\":\"many\",\"inputResponses\":null");
	assert_int_equal(int_at(r, "error|code"), -32602);
	r = peer_modern(&p, "tools/call", "\"name\":\"many\",\"requestState\":7");
	assert_int_equal(int_at(r, "error|code"), -32602);
	free((void *)first);
	peer_fini(&p);
}

/* Declined is an answer too. */
static void test_declined(void **state)
{
	AUTO(mcp_server_free) struct mcp_server *srv = server();
	const struct json_val *r;
	struct peer p;

	open_peer(&p, srv);
	r = peer_modern(&p, "tools/call",
			"\"name\":\"name\",\"inputResponses\":{\"name\":{\"action\":\"decline\"}}");
	assert_string_equal(content_of(r), "nothing");
	peer_fini(&p);
}

static void refused(const struct json_val *r)
{
	assert_int_equal(int_at(r, "error|code"), -32602);
	assert_string_equal(text_at(r, "error|message"),
			    "requestState is not one for this request; begin anew, without it");
	assert_string_equal(text_at(r, "error|data|code"), "invalid_arguments");
}

static const struct json_val *retry(struct peer *p, const char *params, const char *state)
{
	return peer_modern(p, "tools/call",
			   "%s,\"requestState\":\"%s\",\"inputResponses\":{\"name\":%s}", params,
			   state, NAME("Alice"));
}

static void test_state_is_bound(void **state)
{
	AUTO(mcp_server_free) struct mcp_server *srv = server();
	autofree char *text = NULL, *longer = NULL;
	const struct json_val *r;
	struct peer p, bob;

	open_peer(&p, srv);
	open_peer(&bob, srv);
	bob.principal = "bob";
	r = peer_modern(&p, "tools/call", "\"name\":\"name\",\"arguments\":{\"a\":1}");
	text = strdup(text_at(r, "result|requestState"));
	assert_non_null(text);
	assert_int_not_equal(asprintf(&longer, "%s-TAMPERED", text), -1);
	refused(retry(&p, "\"name\":\"name\",\"arguments\":{\"a\":1}", longer));
	refused(retry(&p, "\"name\":\"name\",\"arguments\":{\"a\":1}", "x"));
	refused(retry(&p, "\"name\":\"name\",\"arguments\":{\"a\":2}", text));
	refused(retry(&p, "\"name\":\"name\"", text));
	refused(retry(&p, "\"name\":\"tolerant\",\"arguments\":{\"a\":1}", text));
	refused(retry(&bob, "\"name\":\"name\",\"arguments\":{\"a\":1}", text));
	refused(peer_modern(&p, "prompts/get", "\"name\":\"p\",\"requestState\":\"%s\"", text));
	assert_int_equal(runs, 1);
	r = retry(&p, "\"arguments\":{ \"a\" : 1 },\"name\":\"name\"", text);
	assert_string_equal(content_of(r), "Alice");
	peer_clock += 30 * 60 * 1000 + 1;
	r = retry(&p, "\"name\":\"name\",\"arguments\":{\"a\":1}", text);
	assert_int_equal(int_at(r, "error|code"), -32602);
	assert_non_null(strstr(text_at(r, "error|message"), "expired"));
	peer_fini(&p);
	peer_fini(&bob);
}

/* Nothing is kept: another process with the same keys goes on. */
static void test_keys(void **state)
{
	static const unsigned char keys[2][MCP_KEY_BYTES] = { { 1 }, { 2 } };
	struct mcp_server_options o = options();
	AUTO(mcp_server_free) struct mcp_server *a = NULL;
	AUTO(mcp_server_free) struct mcp_server *b = NULL;
	AUTO(mcp_server_free) struct mcp_server *c = NULL;
	const struct json_val *r;
	struct peer pa, pb, pc;

	o.keys = keys + 1;
	o.keys_n = 1;
	a = peer_server(&o);
	c = peer_server(&(struct mcp_server_options){ .offer = o.offer });
	o.keys = keys;
	o.keys_n = 2;
	b = peer_server(&o);
	open_peer(&pa, a);
	open_peer(&pb, b);
	open_peer(&pc, c);
	r = peer_modern(&pa, "tools/call", "\"name\":\"name\"");
	assert_string_equal(
		content_of(retry(&pb, "\"name\":\"name\"", text_at(r, "result|requestState"))),
		"Alice");
	refused(retry(&pc, "\"name\":\"name\"", text_at(r, "result|requestState")));
	/* b seals with the first key, which a has not */
	r = peer_modern(&pb, "tools/call", "\"name\":\"name\"");
	refused(retry(&pa, "\"name\":\"name\"", text_at(r, "result|requestState")));
	peer_fini(&pa);
	peer_fini(&pb);
	peer_fini(&pc);
}

static void test_only_what_was_declared(void **state)
{
	AUTO(mcp_server_free) struct mcp_server *srv = server();
	const struct json_val *r;
	struct peer p;

	open_peer(&p, srv);
	p.caps = "{\"elicitation\":{}}";
	r = peer_modern(&p, "tools/call", "\"name\":\"url\"");
	assert_int_equal(int_at(r, "error|code"), -32021);
	assert_int_equal(p.sent[p.sent_n - 1].status, 400);
	assert_non_null(at(r, "error|data|requiredCapabilities|elicitation|url"));
	r = peer_modern(&p, "tools/call", "\"name\":\"many\"");
	assert_non_null(strstr(content_of(r), "client_cant"));
	p.caps = "{\"sampling\":{}}";
	assert_non_null(strstr(content_of(peer_modern(&p, "tools/call", "\"name\":\"tools\"")),
			       "client_cant"));
	p.caps = "{\"sampling\":{\"tools\":{}}}";
	r = peer_modern(&p, "tools/call", "\"name\":\"tools\"");
	assert_string_equal(text_at(r, "result|resultType"), "input_required");
	/* asked when it could be, and can't be any more */
	p.caps = "{}";
	r = peer_modern(&p, "tools/call", "\"name\":\"tools\",\"requestState\":\"%s\"",
			text_at(r, "result|requestState"));
	assert_int_equal(int_at(r, "error|code"), -32021);
	assert_non_null(at(r, "error|data|requiredCapabilities|sampling|tools"));
	peer_fini(&p);
}

static void test_prompts_and_resources(void **state)
{
	AUTO(mcp_server_free) struct mcp_server *srv = server();
	const struct json_val *r;
	struct json_iter it;
	struct peer p;

	open_peer(&p, srv);
	r = peer_modern(&p, "prompts/get", "\"name\":\"p\"");
	r = peer_modern(&p, "prompts/get",
			"\"name\":\"p\",\"requestState\":\"%s\",\"inputResponses\":{\"name\":%s}",
			text_at(r, "result|requestState"), NAME("Alice"));
	it = json_iter(at(r, "result|messages"));
	assert_true(json_next(&it));
	assert_string_equal(text_at(it.val, "content|text"), "Alice");
	r = peer_modern(&p, "resources/read", "\"uri\":\"test://r\"");
	assert_string_equal(text_at(r, "result|resultType"), "input_required");
	r = peer_modern(&p, "resources/read",
			"\"uri\":\"test://r\",\"requestState\":\"%s\","
			"\"inputResponses\":{\"name\":%s}",
			text_at(r, "result|requestState"), NAME("Alice"));
	it = json_iter(at(r, "result|contents"));
	assert_true(json_next(&it));
	assert_string_equal(text_at(it.val, "text"), "Alice");
	peer_fini(&p);
}

static void test_state_alone(void **state)
{
	AUTO(mcp_server_free) struct mcp_server *srv = server();
	const struct json_val *r;
	struct peer p, old;

	open_peer(&p, srv);
	r = peer_modern(&p, "tools/call", "\"name\":\"state\"");
	assert_string_equal(text_at(r, "result|resultType"), "input_required");
	assert_null(at(r, "result|inputRequests"));
	r = peer_modern(&p, "tools/call", "\"name\":\"state\",\"requestState\":\"%s\"",
			text_at(r, "result|requestState"));
	assert_string_equal(content_of(r), "kept");
	open_peer(&old, srv);
	peer_initialize(&old, "2025-11-25", "{}");
	assert_string_equal(content_of(peer_legacy(&old, "tools/call", "\"name\":\"state\"")),
			    "kept");
	peer_fini(&p);
	peer_fini(&old);
}

static void test_what_handlers_may_not(void **state)
{
	AUTO(mcp_server_free) struct mcp_server *srv = server();
	const struct json_val *r;
	struct peer p;

	open_peer(&p, srv);
	assert_string_equal(content_of(peer_modern(&p, "tools/call", "\"name\":\"wrong\"")),
			    "fine");
	r = peer_modern(&p, "tools/call", "\"name\":\"forgetful\",\"inputResponses\":{\"name\":%s}",
			NAME("Alice"));
	assert_non_null(strstr(content_of(r), "internal_error"));
	assert_int_equal(runs, 2);
	peer_fini(&p);
}

static void test_asked_later(void **state)
{
	const struct mcp_ask asks[] = { { "name", MCP_ASK_FORM, FORM("name") } };
	AUTO(mcp_server_free) struct mcp_server *srv = server();
	const struct json_val *r;
	struct peer p;
	struct err e;

	open_peer(&p, srv);
	assert_null(peer_modern(&p, "tools/call", "\"name\":\"later\""));
	assert_int_equal(mcp_call_ask(later, asks, 1, STR_NONE, &e), 0);
	r = peer_response(&p, p.ids);
	assert_string_equal(text_at(r, "result|resultType"), "input_required");
	/* with the answer there already it goes on at once */
	assert_null(peer_modern(&p, "tools/call",
				"\"name\":\"later\",\"inputResponses\":{\"name\":%s}",
				NAME("Alice")));
	assert_int_equal(mcp_call_ask(later, asks, 1, STR_NONE, &e), 0);
	assert_string_equal(content_of(peer_response(&p, p.ids)), "Alice");
	peer_fini(&p);
}

/* --- legacy --- */

static int64_t asked(const struct peer *p, const char *method)
{
	return int_at(peer_sent(p, method, 0), "id");
}

static void answer(struct peer *p, int64_t id, const char *result)
{
	peer_say(p, "{\"jsonrpc\":\"2.0\",\"id\":%lld,\"result\":%s}", (long long)id, result);
}

static void test_requests_of_ours(void **state)
{
	AUTO(mcp_server_free) struct mcp_server *srv = server();
	const struct json_val *q;
	struct mcp_counts counts;
	struct peer p;

	open_peer(&p, srv);
	peer_initialize(&p, "2025-11-25", ALL);
	assert_null(peer_legacy(&p, "tools/call", "\"name\":\"many\""));
	q = peer_sent(&p, "elicitation/create", 0);
	assert_string_equal(text_at(q, "params|mode"), "form");
	assert_int_equal(p.sent[p.sent_n - 1].kind, MCP_OUT_REQUEST);
	answer(&p, asked(&p, "roots/list"), "{\"roots\":[]}");
	answer(&p, asked(&p, "elicitation/create"), NAME("Alice"));
	assert_int_equal(runs, 1);
	/* unknown, and twice: dropped */
	answer(&p, 999, "{}");
	answer(&p, asked(&p, "roots/list"), "{\"roots\":[]}");
	peer_say(&p, "{\"jsonrpc\":\"2.0\",\"id\":\"%lld\",\"result\":{}}",
		 (long long)asked(&p, "sampling/createMessage"));
	assert_int_equal(runs, 1);
	answer(&p, asked(&p, "sampling/createMessage"),
	       "{\"role\":\"assistant\",\"model\":\"m\",\"content\":{\"type\":\"text\","
	       "\"text\":\"hi\"}}");
	assert_string_equal(content_of(peer_response(&p, p.ids)), "hi");
	assert_int_equal(runs, 2);
	answer(&p, asked(&p, "sampling/createMessage"), "{}");
	assert_int_equal(mcp_session_open(p.session), 0);
	mcp_server_counts(srv, &counts);
	assert_int_equal(counts.strays, 4);
	assert_int_equal(counts.sessions, 1);
	peer_fini(&p);
}

static void test_rounds_of_a_session(void **state)
{
	AUTO(mcp_server_free) struct mcp_server *srv = server();
	struct peer p;

	open_peer(&p, srv);
	peer_initialize(&p, "2025-06-18", ALL);
	assert_null(peer_legacy(&p, "tools/call", "\"name\":\"steps\""));
	assert_null(at(peer_sent(&p, "elicitation/create", 0), "params|mode"));
	answer(&p, asked(&p, "elicitation/create"), NAME("Al"));
	assert_int_equal(peer_count(&p, "elicitation/create"), 2);
	answer(&p, asked(&p, "elicitation/create"), NAME("Bo"));
	assert_string_equal(content_of(peer_response(&p, p.ids)), "Bo");
	peer_fini(&p);
}

static void test_no_answer(void **state)
{
	AUTO(mcp_server_free) struct mcp_server *srv = server();
	const struct json_val *r;
	struct peer p;

	open_peer(&p, srv);
	peer_initialize(&p, "2025-11-25", ALL);
	peer_legacy(&p, "tools/call", "\"name\":\"tolerant\"");
	peer_say(&p, "{\"jsonrpc\":\"2.0\",\"id\":%lld,\"error\":{\"code\":-1,\"message\":\"no\"}}",
		 (long long)asked(&p, "elicitation/create"));
	assert_string_equal(content_of(peer_response(&p, p.ids)), "no");
	peer_legacy(&p, "tools/call", "\"name\":\"tolerant\"");
	answer(&p, asked(&p, "elicitation/create"), "{\"action\":\"accept\",\"content\":{}}");
	assert_non_null(strstr(content_of(peer_response(&p, p.ids)), "name: /content"));
	/* a handler that asks again is told why there is nothing to ask */
	peer_legacy(&p, "tools/call", "\"name\":\"name\"");
	answer(&p, asked(&p, "elicitation/create"), "7");
	r = peer_response(&p, p.ids);
	assert_true(json_bool(at(r, "result|isError")));
	assert_non_null(strstr(content_of(r), "client_failed"));
	peer_fini(&p);
}

static void test_too_late(void **state)
{
	AUTO(mcp_server_free) struct mcp_server *srv = server();
	int64_t id;
	struct peer p;

	open_peer(&p, srv);
	peer_initialize(&p, "2025-11-25", ALL);
	peer_legacy(&p, "tools/call", "\"name\":\"tolerant\"");
	id = asked(&p, "elicitation/create");
	mcp_server_tick(srv);
	assert_null(peer_response(&p, p.ids));
	peer_clock += 10 * 60 * 1000;
	mcp_server_tick(srv);
	assert_string_equal(content_of(peer_response(&p, p.ids)), "no answer within 600 s");
	assert_int_equal(int_at(peer_sent(&p, "notifications/cancelled", 0), "params|requestId"),
			 id);
	answer(&p, id, NAME("Alice"));
	assert_int_equal(runs, 2);
	peer_fini(&p);
}

static void test_cancelled_with_its_call(void **state)
{
	AUTO(mcp_server_free) struct mcp_server *srv = server();
	int64_t id;
	struct peer p;

	open_peer(&p, srv);
	peer_initialize(&p, "2025-11-25", ALL);
	peer_legacy(&p, "tools/call", "\"name\":\"name\"");
	id = asked(&p, "elicitation/create");
	peer_say(&p,
		 "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
		 "\"params\":{\"requestId\":%u}}",
		 p.ids);
	assert_int_equal(int_at(peer_sent(&p, "notifications/cancelled", 0), "params|requestId"),
			 id);
	assert_null(peer_response(&p, p.ids));
	answer(&p, id, NAME("Alice"));
	assert_int_equal(runs, 1);
	/* while a call asks, the end of the session is its end too */
	peer_legacy(&p, "tools/call", "\"name\":\"many\"");
	peer_fini(&p);
	assert_int_equal(runs, 2);
}

static void test_what_a_revision_lacks(void **state)
{
	static const struct {
		const char *version, *tool;
		bool can;
	} rows[] = {
		{ "2024-11-05", "name", false }, { "2025-03-26", "name", false },
		{ "2025-06-18", "name", true },	 { "2025-06-18", "url", false },
		{ "2025-11-25", "url", true },
	};
	AUTO(mcp_server_free) struct mcp_server *srv = server();

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct json_val *r;
		struct peer p;

		open_peer(&p, srv);
		peer_initialize(&p, rows[i].version, ALL);
		r = peer_legacy(&p, "tools/call", "\"name\":\"%s\"", rows[i].tool);
		ROW_CHECK(!r == rows[i].can, rows[i].version);
		if (r)
			ROW_CHECK(strstr(content_of(r), "client_cant"), rows[i].version);
		else
			ROW_CHECK(peer_count(&p, "elicitation/create") == 1, rows[i].version);
		peer_fini(&p);
	}
}

static void test_url_has_an_id_of_its_own(void **state)
{
	AUTO(mcp_server_free) struct mcp_server *srv = server();
	const struct json_val *r;
	struct peer p;

	open_peer(&p, srv);
	r = peer_modern(&p, "tools/call", "\"name\":\"url\"");
	assert_null(at(r, "result|inputRequests|url|params|elicitationId"));
	assert_string_equal(text_at(r, "result|inputRequests|url|params|mode"), "url");
	peer_initialize(&p, "2025-11-25", ALL);
	peer_legacy(&p, "tools/call", "\"name\":\"url\"");
	r = peer_sent(&p, "elicitation/create", 0);
	assert_string_equal(text_at(r, "params|mode"), "url");
	assert_int_not_equal(strlen(text_at(r, "params|elicitationId")), 0);
	answer(&p, asked(&p, "elicitation/create"), "{\"action\":\"accept\"}");
	assert_string_equal(content_of(peer_response(&p, p.ids)), "accept");
	peer_fini(&p);
}

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
		peer_modern(&p, "tools/call", "\"name\":\"name\",\"inputResponses\":{\"name\":%s}",
			    NAME("Alice"));
		peer_modern(&p, "tools/call", "\"name\":\"steps\"");
		peer_fini(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_asked_and_answered),
		cmocka_unit_test(test_answers_without_a_state),
		cmocka_unit_test(test_rounds),
		cmocka_unit_test(test_missing_answers_are_asked_again),
		cmocka_unit_test(test_answers_are_checked),
		cmocka_unit_test(test_declined),
		cmocka_unit_test(test_state_is_bound),
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_only_what_was_declared),
		cmocka_unit_test(test_prompts_and_resources),
		cmocka_unit_test(test_state_alone),
		cmocka_unit_test(test_what_handlers_may_not),
		cmocka_unit_test(test_asked_later),
		cmocka_unit_test(test_requests_of_ours),
		cmocka_unit_test(test_rounds_of_a_session),
		cmocka_unit_test(test_no_answer),
		cmocka_unit_test(test_too_late),
		cmocka_unit_test(test_cancelled_with_its_call),
		cmocka_unit_test(test_what_a_revision_lacks),
		cmocka_unit_test(test_url_has_an_id_of_its_own),
		cmocka_unit_test(test_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
