/* What a server may offer: tools and their headers, URI templates, lists; and want of memory. */
#include <stdlib.h>

#include "alloc_fail.h"
#include "mcp_fixture.h"
#include "mcp_full.h"
#include "test.h"

#define META                                                                                       \
	"\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","                   \
	"\"io.modelcontextprotocol/clientCapabilities\":{}}"
#define REQUEST(id, method, params)                                                                \
	"{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"" method "\",\"params\":{" params META "}}"

/* --- tools --- */

#define TYPED(type) "{\"type\":\"" type "\",\"x-mcp-header\":\"A\"}"
#define OBJECT(properties) "{\"type\":\"object\",\"properties\":{" properties "}}"
#define DEEP(inner) OBJECT("\"o\":" inner)

static const struct {
	const char *schema;
	const char *refused; /* part of the reason; NULL: it is fit */
} headers[] = {
	{ OBJECT("\"a\":" TYPED("string")), NULL },
	{ OBJECT("\"a\":" TYPED("integer") ",\"b\":{\"type\":\"boolean\",\"x-mcp-header\":\"B\"}"),
	  NULL },
	{ DEEP(DEEP(DEEP(OBJECT("\"a\":" TYPED("string"))))), NULL },
	{ OBJECT("\"x-mcp-header\":{\"type\":\"string\"}"), NULL },
	{ OBJECT("\"properties\":" TYPED("string")), NULL },
	{ OBJECT("\"a\":{\"type\":\"object\",\"default\":" TYPED("number") "}"), NULL },
	{ OBJECT("\"a\":" TYPED("number")), "string, integer or boolean" },
	{ OBJECT("\"a\":" TYPED("object")), "string, integer or boolean" },
	{ OBJECT("\"a\":{\"x-mcp-header\":\"A\"}"), "string, integer or boolean" },
	{ OBJECT("\"a\":{\"type\":[\"string\"],\"x-mcp-header\":\"A\"}"), "string, integer or" },
	{ OBJECT("\"a\":{\"type\":\"string\",\"x-mcp-header\":\"\"}"), "token" },
	{ OBJECT("\"a\":{\"type\":\"string\",\"x-mcp-header\":\"a b\"}"), "token" },
	{ OBJECT("\"a\":{\"type\":\"string\",\"x-mcp-header\":\"a\\r\\nb\"}"), "token" },
	{ OBJECT("\"a\":{\"type\":\"string\",\"x-mcp-header\":\"\\u0000\"}"), "token" },
	{ OBJECT("\"a\":{\"type\":\"string\",\"x-mcp-header\":7}"), "token" },
	{ OBJECT("\"a\":" TYPED("string") ",\"b\":{\"type\":\"string\",\"x-mcp-header\":\"a\"}"),
	  "twice" },
	{ "{\"type\":\"object\",\"x-mcp-header\":\"A\"}", "reached" },
	{ "{\"type\":\"object\",\"items\":" TYPED("string") "}", "reached" },
	{ "{\"type\":\"object\",\"anyOf\":[" OBJECT("\"a\":" TYPED("string")) "]}", "reached" },
	{ "{\"type\":\"object\",\"$defs\":{\"a\":" TYPED("string") "}}", "reached" },
	{ OBJECT("\"a\":{\"if\":" OBJECT("\"b\":" TYPED("string")) "}"), "reached" },
	{ DEEP(DEEP(DEEP(DEEP(DEEP(DEEP(DEEP(DEEP(OBJECT("\"a\":" TYPED("string")))))))))),
	  "objects deep" },
};

static void reads_headers_of_tools(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(headers); i++) {
		struct mcp_tool t = { .name = "t",
				      .description = "T.",
				      .input_schema = headers[i].schema };
		struct err e = ERR_INIT;
		int rc = mcp_tool_prepare(&t, &e);

		ROW_CHECK(rc == (headers[i].refused ? -1 : 0), headers[i].schema);
		ROW_CHECK(rc == 0 || e.code == ERR_BUG, headers[i].schema);
		ROW_CHECK(rc == 0 || strstr(e.msg, headers[i].refused), headers[i].schema);
		mcp_tool_release(&t);
		mcp_tool_release(&t);
	}
}

/* What a client that checks formats would refuse, with the whole list that it stands in. */
static void refuses_uris_that_are_none(void **state)
{
	const struct mcp_icon good = { .src = "data:image/svg+xml,%3Csvg/%3E" },
			      bad = { .src = "<svg/>" };
	const struct mcp_resource resource = { .uri = "no uri", .name = "r" };
	const struct mcp_prompt prompt = { .name = "p", .icons = { &bad, 1 } };
	const struct mcp_server_options options[] = {
		{ .name = "x", .version = "1", .icons = { &bad, 1 } },
		{ .name = "x", .version = "1", .website = "www.example.com/ä" },
		{ .name = "x",
		  .version = "1",
		  .offer = { .resources = &resource, .resources_n = 1 } },
		{ .name = "x", .version = "1", .offer = { .prompts = &prompt, .prompts_n = 1 } },
	};
	struct mcp_tool t = { .name = "t",
			      .description = "T.",
			      .input_schema = "{\"type\":\"object\"}",
			      .icons = { &bad, 1 } };
	struct err e = ERR_INIT;

	for (size_t i = 0; i < ARRAY_LEN(options); i++) {
		e = ERR_INIT;
		assert_null(mcp_server_new(&options[i], &e));
		assert_int_equal(e.code, ERR_BUG);
		assert_non_null(strstr(e.msg, "is no URI"));
	}
	assert_int_equal(mcp_tool_prepare(&t, &e), -1);
	t.icons.p = &good;
	assert_int_equal(mcp_tool_prepare(&t, &e), 0);
	mcp_tool_release(&t);
}

static void refuses_schemas_that_are_none(void **state)
{
	struct mcp_tool t = { .name = "t",
			      .description = "T.",
			      .input_schema = "{\"type\":\"object\"}",
			      .output_schema = "{\"type\":\"nothing\"}" };
	struct err e = ERR_INIT;

	assert_int_equal(mcp_tool_prepare(&t, &e), -1);
	assert_int_equal(e.code, ERR_BUG);
	assert_non_null(strstr(e.msg, "t: output_schema"));
}

static void refuses_offers_that_lack_something(void **state)
{
	struct mcp_server_options o = { .name = "x", .version = "1" };
	struct mcp_tool tool = { .name = "no description" };
	const struct mcp_resource resource = { .uri = "x:" };
	const struct mcp_template template = { .name = "x" };
	const struct mcp_prompt prompt = { .title = "x" };
	const struct mcp_offer offers[] = {
		{ .tools = &tool, .tools_n = 1 },
		{ .resources = &resource, .resources_n = 1 },
		{ .templates = &template, .templates_n = 1 },
		{ .prompts = &prompt, .prompts_n = 1 },
	};

	for (size_t i = 0; i < ARRAY_LEN(offers); i++) {
		struct err e = ERR_INIT;

		o.offer = offers[i];
		assert_null(mcp_server_new(&o, &e));
		assert_int_equal(e.code, ERR_BUG);
	}
}

/* A list may give what nobody prepared: it is not run, as its headers could not be checked. */
static struct mcp_tool raw = { .name = "raw",
			       .description = "Raw.",
			       .input_schema = "{\"type\":\"object\"}" };

static const struct mcp_tool *const *raw_tools(void *owner, struct mcp_session *s, size_t *ret_n)
{
	static const struct mcp_tool *const list[] = { &raw };

	*ret_n = 1;
	return list;
}

static void never(void *owner, struct mcp_call *c)
{
	fail();
}

static void keep(void *transport, void *stream, const struct mcp_out *m)
{
	char **sent = transport;

	free(*sent);
	*sent = strndup(m->text.p, m->text.n);
}

static const struct mcp_transport keeper = { .send = keep };

static void runs_no_tool_that_was_not_prepared(void **state)
{
	const struct mcp_handler handler = { .tools = raw_tools, .call = never };
	const struct mcp_server_options o = { .name = "x", .version = "1", .handler = &handler };
	struct err e;
	struct mcp_server *srv = mcp_server_new(&o, &e);
	autofree char *sent = NULL;
	struct mcp_session *s = mcp_session_new(srv, &keeper, &sent, MCP_ROAD_LINES, NULL);

	mcp_session_message(s, STR_LIT(REQUEST("1", "tools/call", "\"name\":\"raw\",")));
	assert_non_null(strstr(sent, "-32603"));
	mcp_session_close(s);
	mcp_server_free(srv);
}

/* What is not offered does not exist. */
static void has_no_methods_beyond_its_offer(void **state)
{
	static const char *const methods[] = {
		REQUEST("1", "tools/list", ""),	    REQUEST("1", "resources/list", ""),
		REQUEST("1", "prompts/list", ""),   REQUEST("1", "completion/complete", ""),
		REQUEST("1", "resources/read", ""), REQUEST("1", "prompts/get", ""),
		REQUEST("1", "tools/call", ""),	    REQUEST("1", "resources/templates/list", ""),
		REQUEST("1", "tasks/get", ""),
	};
	const struct mcp_server_options o = { .name = "x", .version = "1" };
	struct err e;
	struct mcp_server *srv = mcp_server_new(&o, &e);
	autofree char *sent = NULL;
	struct mcp_session *s = mcp_session_new(srv, &keeper, &sent, MCP_ROAD_LINES, NULL);

	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		mcp_session_message(s, str_of(methods[i]));
		ROW_CHECK(strstr(sent, "-32601"), methods[i]);
	}
	mcp_session_message(s, STR_LIT(REQUEST("1", "server/discover", "")));
	assert_non_null(strstr(sent, "\"capabilities\":{},"));
	mcp_session_close(s);
	mcp_server_free(srv);
}

/* --- URI templates --- */

static const struct {
	const char *template, *uri;
	const char *values[3];
	bool matches;
} uris[] = {
	{ "a:b", "a:b", { NULL }, true },
	{ "a:b", "a:bc", { NULL }, false },
	{ "a:bc", "a:b", { NULL }, false },
	{ "a:{x}", "a:1", { "1" }, true },
	{ "a:{x}", "a:", { NULL }, false },
	{ "a:{x}", "a:1/2", { NULL }, false },
	{ "a:{+x}", "a:1/2", { "1/2" }, true },
	{ "a:{x}/b", "a:1/b", { "1" }, true },
	{ "a:{x}/b", "a:1/bb", { NULL }, false },
	{ "a:{x}/b", "a:1/2/b", { NULL }, false },
	{ "a:{x}/{y}", "a:1/2", { "1", "2" }, true },
	{ "a:{x}/{y}/z", "a:1/2/z", { "1", "2" }, true },
	{ "a:{x}-{y}", "a:1-2-3", { "1", "2-3" }, true },
	{ "a:{+x}/z", "a:1/z/z", { "1/z" }, true },
	{ "a:{x}{y}", "a:12", { NULL }, false },
	{ "a:{x", "a:1", { NULL }, false },
	{ "{x}", "one", { "one" }, true },
	{ "", "", { NULL }, true },
};

static void matches_uris(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(uris); i++) {
		struct str values[3] = { STR_NONE, STR_NONE, STR_NONE };
		bool matches = mcp_uri_match(uris[i].template, str_of(uris[i].uri), values, 3);

		ROW_CHECK(matches == uris[i].matches, uris[i].template);
		for (size_t k = 0; matches && k < 3; k++)
			ROW_CHECK(str_eq(values[k], str_of(uris[i].values[k])), uris[i].template);
		ROW_CHECK(mcp_uri_match(uris[i].template, str_of(uris[i].uri), NULL, 0) == matches,
			  uris[i].template);
	}
}

/* What a tool gives may be larger and deeper than what a client may send. */
static void run_deep(struct mcp_call *c)
{
	enum { DEPTH = 400 };
	char text[2 * DEPTH];

	memset(text, '[', DEPTH);
	memset(text + DEPTH, ']', DEPTH);
	mcp_call_done(c, &(struct mcp_result){ .structured = { text, sizeof(text) } });
}

static void run_large(struct mcp_call *c)
{
	enum { N = 17 << 20 };
	autofree char *text = malloc(N);

	memset(text, ' ', N);
	text[0] = '[';
	text[N - 1] = ']';
	mcp_call_done(c, &(struct mcp_result){ .structured = { text, N } });
}

static void checks_large_results(void **state)
{
	static struct mcp_tool tools[] = {
		{ .name = "deep", .run = run_deep },
		{ .name = "large", .run = run_large },
	};
	struct mcp_server_options o = { .name = "x",
					.version = "1",
					.offer = { .tools = tools, .tools_n = ARRAY_LEN(tools) } };
	autofree char *sent = NULL;
	struct mcp_server *srv;
	struct mcp_session *s;
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(tools); i++) {
		tools[i].description = "T.";
		tools[i].input_schema = "{\"type\":\"object\"}";
		tools[i].output_schema = "{\"type\":\"array\"}";
	}
	srv = mcp_server_new(&o, &e);
	s = mcp_session_new(srv, &keeper, &sent, MCP_ROAD_LINES, NULL);
	mcp_session_message(s, STR_LIT(REQUEST("1", "tools/call", "\"name\":\"deep\",")));
	assert_non_null(strstr(sent, "structuredContent"));
	assert_null(strstr(sent, "isError"));
	mcp_session_message(s, STR_LIT(REQUEST("1", "tools/call", "\"name\":\"large\",")));
	assert_non_null(strstr(sent, "structuredContent"));
	assert_null(strstr(sent, "isError"));
	mcp_session_close(s);
	mcp_server_free(srv);
}

/* --- calls of both eras in one session --- */

static void cancels_modern_calls_by_their_id(void **state)
{
	struct fixture f;

	assert_true(fixture_init(&f, NULL));
	f.end_on_cancel = true;
	fixture_say(&f, REQUEST("5", "tools/call", "\"name\":\"hold\","));
	assert_int_equal(mcp_session_open(f.session), 1);
	fixture_say(&f, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{"
			"\"requestId\":5}}");
	assert_int_equal(f.cancels, 1);
	assert_int_equal(mcp_session_open(f.session), 0);
	assert_int_equal(f.sent_n, 0);
	fixture_fini(&f);
}

static void knows_who_calls(void **state)
{
	struct fixture f;

	assert_true(fixture_init(&f, NULL));
	fixture_say(&f,
		    "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"tools/call\",\"params\":{"
		    "\"name\":\"hold\",\"_meta\":{\"traceparent\":\"00-1\","
		    "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
		    "\"io.modelcontextprotocol/clientInfo\":{\"name\":\"me\",\"version\":\"2\"},"
		    "\"io.modelcontextprotocol/clientCapabilities\":{}}}}");
	assert_string_equal(mcp_call_version(f.held[0]), "2026-07-28");
	assert_string_equal(mcp_call_client(f.held[0]), "me/2");
	assert_null(mcp_session_version(f.session));
	assert_int_equal(mcp_call_kind(f.held[0]), MCP_CALL_TOOL);
	assert_null(mcp_call_prompt(f.held[0]));
	assert_null(mcp_call_uri(f.held[0]).p);
	assert_true(str_is(json_str(json_get(mcp_call_meta(f.held[0]), "traceparent")), "00-1"));
	assert_ptr_equal(mcp_call_owner(f.held[0]), &f);
	mcp_call_set_data(f.held[0], &f.cancels);
	assert_ptr_equal(mcp_call_data(f.held[0]), &f.cancels);
	assert_null(mcp_call_uri_value(f.held[0], 99).p);
	fixture_fini(&f);
}

#define INITIALIZE                                                                                 \
	"{\"jsonrpc\":\"2.0\",\"id\":11,\"method\":\"initialize\",\"params\":{"                    \
	"\"protocolVersion\":\"2025-11-25\"}}"

static const char *const conversation[] = {
	REQUEST("1", "server/discover", ""),
	REQUEST("2", "tools/list", ""),
	REQUEST("3", "tools/call", "\"name\":\"sum\","),
	REQUEST("4", "tools/call", "\"name\":\"say\","),
	REQUEST("5", "tools/call", "\"name\":\"show\","),
	REQUEST("6", "resources/list", ""),
	REQUEST("7", "resources/read", "\"uri\":\"mem:///user/1\","),
	REQUEST("8", "prompts/get", "\"name\":\"greet\",\"arguments\":{\"name\":\"Ada\"},"),
	REQUEST("9", "completion/complete",
		"\"ref\":{\"type\":\"ref/prompt\",\"name\":\"greet\"},\"argument\":{\"name\":"
		"\"tone\",\"value\":\"k\"},"),
	REQUEST("10", "subscriptions/listen",
		"\"notifications\":{\"toolsListChanged\":true,"
		"\"resourceSubscriptions\":[\"x:\"]},"),
	INITIALIZE,
	("{\"jsonrpc\":\"2.0\",\"id\":12,\"method\":\"resources/subscribe\","
	 "\"params\":{\"uri\":\"x:\"}}"),
};

static void survives_want_of_memory(void **state)
{
	for (unsigned n = 0; alloc_fail_next(&n);) {
		struct mcp_server_options o = { .page = 100 };
		struct fixture f;

		full_offer(&o);
		if (!fixture_init(&f, &o))
			continue;
		for (size_t i = 0; i < ARRAY_LEN(conversation); i++)
			fixture_say(&f, conversation[i]);
		mcp_server_changed(f.server, MCP_TOOLS | MCP_PROMPTS);
		mcp_server_updated(f.server, STR_LIT("x:"));
		mcp_session_drain(f.session);
		/* an answer each, an acknowledgement and an end; 2 changes of tools, 1 of prompts,
		 * 2 updates */
		if (!alloc_failed())
			assert_int_equal(f.sent_n, ARRAY_LEN(conversation) + 1 + 3 + 2);
		fixture_fini(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_headers_of_tools),
		cmocka_unit_test(refuses_uris_that_are_none),
		cmocka_unit_test(refuses_schemas_that_are_none),
		cmocka_unit_test(refuses_offers_that_lack_something),
		cmocka_unit_test(runs_no_tool_that_was_not_prepared),
		cmocka_unit_test(has_no_methods_beyond_its_offer),
		cmocka_unit_test(matches_uris),
		cmocka_unit_test(checks_large_results),
		cmocka_unit_test(cancels_modern_calls_by_their_id),
		cmocka_unit_test(knows_who_calls),
		cmocka_unit_test(survives_want_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
