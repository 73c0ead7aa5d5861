/*
 * What a message says against what HTTP's head says of it: the rungs of the ladder, in their order,
 * with the status of each; and the life of the streams of single messages.
 */
#include <stdlib.h>
#include <strings.h>

#include "mcp_fixture.h"
#include "mcp_full.h"
#include "test.h"

#define META(version) "\"_meta\":{" META_VERSION(version) "," META_CAPABILITIES "}"
#define META_VERSION(version) "\"io.modelcontextprotocol/protocolVersion\":\"" version "\""
#define META_CAPABILITIES "\"io.modelcontextprotocol/clientCapabilities\":{}"
#define NOW "2026-07-28"
#define REQUEST(method, params)                                                                    \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"" method "\",\"params\":{" params "}}"
#define LIST REQUEST("tools/list", META(NOW))
#define QUERY(args) REQUEST("tools/call", "\"name\":\"query\",\"arguments\":{" args "}," META(NOW))

struct post {
	struct mcp_server *server;
	char *sent[8];
	int status[8];
	enum mcp_out_kind kind[8];
	unsigned sent_n, done_n;
	const char *const *params; /* name, value, …, NULL */
};

static void on_send(void *transport, void *stream, const struct mcp_out *m)
{
	struct post *p = transport;

	assert_ptr_equal(stream, &p->done_n);
	assert_int_equal(p->done_n, 0);
	assert_true(p->sent_n < ARRAY_LEN(p->sent));
	p->sent[p->sent_n] = strndup(m->text.p, m->text.n);
	p->status[p->sent_n] = m->status;
	p->kind[p->sent_n++] = m->kind;
}

static void on_done(void *transport, void *stream)
{
	struct post *p = transport;

	assert_ptr_equal(stream, &p->done_n);
	p->done_n++;
}

static const struct mcp_transport transport = { .send = on_send, .stream_done = on_done };

static struct str param(void *data, struct str name)
{
	const struct post *p = data;

	for (const char *const *at = p->params; at && *at; at += 2) {
		if (strlen(*at) == name.n && strncasecmp(*at, name.p, name.n) == 0)
			return str_of(at[1]);
	}
	return STR_NONE;
}

static void forget(struct post *p)
{
	for (unsigned i = 0; i < p->sent_n; i++)
		free(p->sent[i]);
	p->sent_n = p->done_n = 0;
}

static void start(struct post *p)
{
	struct mcp_server_options o = { .name = "ladder", .version = "1" };
	struct err e;

	*p = (struct post){ .sent_n = 0 };
	full_offer(&o);
	p->server = mcp_server_new(&o, &e);
	assert_non_null(p->server);
}

static void stop(struct post *p)
{
	forget(p);
	mcp_server_free(p->server);
}

static struct mcp_session *open_post(struct post *p)
{
	struct mcp_session *s = mcp_session_new(p->server, &transport, p, MCP_ROAD_POST, NULL);

	assert_non_null(s);
	return s;
}

struct row {
	const char *name;
	const char *version, *method, *name_header; /* the head; NULL: absent */
	const char *text;
	enum mcp_era era;
	int status; /* 0: nothing is answered */
	const char *has; /* of the answer */
	const char *const params[7];
};

#define HEAD .version = NOW
#define LEGACY .era = MCP_LEGACY
#define MODERN .era = MCP_MODERN, .status = 200
#define BAD(code) .era = MCP_BROKEN, .status = 400, .has = "\"code\":" #code
/* found when it is served */
#define LATE(code) .era = MCP_MODERN, .status = 400, .has = "\"code\":" #code

static const struct row rows[] = {
	/* it is JSON-RPC */
	{ "no JSON", .text = "{", BAD(-32700) },
	{ "no object", .text = "7", BAD(-32600) },
	{ "no method", .text = "{\"jsonrpc\":\"2.0\",\"id\":1}", BAD(-32600) },
	{ "an error has its id", .text = "{\"jsonrpc\":\"1\",\"id\":\"x\",\"method\":\"ping\"}",
	  .era = MCP_BROKEN, .status = 400, .has = "\"id\":\"x\"" },
	{ "an error without id has none", .text = "[", .era = MCP_BROKEN, .status = 400,
	  .has = "{\"jsonrpc\":\"2.0\",\"error\"" },
	{ "a key twice", .text = REQUEST("tools/list", META(NOW) "," META(NOW)), BAD(-32600) },
	{ "an empty batch", .text = "[]", BAD(-32600) },
	{ "a batch of a modern head", HEAD, .text = "[{}]", BAD(-32600) },
	{ "a modern message in a batch",
	  .text = "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}," LIST "]", BAD(-32600) },
	{ "a legacy batch", .text = "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]",
	  LEGACY },
	{ "a response", .text = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", LEGACY },
	{ "a response under a modern head", HEAD,
	  .text = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", BAD(-32600) },

	/* eras */
	{ "no claim", .text = REQUEST("tools/list", ""), LEGACY },
	{ "no claim, a legacy head", .version = "2025-06-18", .text = REQUEST("tools/list", ""),
	  LEGACY },
	{ "no claim, a modern head", HEAD, .method = "tools/list",
	  .text = REQUEST("tools/list", ""), BAD(-32602) },
	{ "no claim, no params, a modern head", HEAD,
	  .text = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}", BAD(-32602) },
	{ "no claim, a head that is no revision", .version = "1.0",
	  .text = REQUEST("tools/list", ""), BAD(-32600) },
	{ "no claim, a head that never was", .version = "2025-01-01",
	  .text = REQUEST("tools/list", ""), BAD(-32600) },
	{ "initialize has no revision yet", .version = "1.0",
	  .text = REQUEST("initialize", "\"protocolVersion\":\"2025-11-25\""), LEGACY },
	{ "a claim, no head", .text = LIST, BAD(-32020) },
	{ "a claim, another head", .version = "2025-11-25", .method = "tools/list", .text = LIST,
	  BAD(-32020) },
	{ "a claim, another modern head", .version = "2027-01-01", .method = "tools/list",
	  .text = LIST, BAD(-32020) },
	{ "initialize", .text = REQUEST("initialize", "\"protocolVersion\":\"2025-11-25\""),
	  LEGACY },
	{ "initialize under a modern head", HEAD, .method = "initialize",
	  .text = REQUEST("initialize", "\"protocolVersion\":\"" NOW "\""), BAD(-32020) },
	{ "initialize with a broken claim",
	  .text = REQUEST("initialize", "\"_meta\":{" META_VERSION(NOW) "}"), LEGACY },
	{ "initialize with a legacy claim", .text = REQUEST("initialize", META("2025-11-25")),
	  LEGACY },
	{ "initialize with a claim is modern, and gone", HEAD, .method = "initialize",
	  .text = REQUEST("initialize", META(NOW)), .era = MCP_MODERN, .status = 404,
	  .has = "-32601" },
	{ "a notification", .text = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}",
	  LEGACY },
	{ "a notification under a modern head", HEAD,
	  .text = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}", .era = MCP_MODERN },
	{ "the same with another method", HEAD, .method = "notifications/y",
	  .text = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}", BAD(-32020) },
	{ "a notification with a claim, no head",
	  .text = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\",\"params\":{" META(NOW) "}}",
	  .era = MCP_MODERN },
	{ "a notification of a version that is not served", .version = "2031-01-01",
	  .text = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}", BAD(-32022) },

	/* the envelope, and the version */
	{ "a claim that is no string", HEAD, .method = "tools/list",
	  .text = REQUEST(
		  "tools/list",
		  "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":7," META_CAPABILITIES
		  "}"),
	  BAD(-32602) },
	{ "no capabilities", HEAD, .method = "tools/list",
	  .text = REQUEST("tools/list", "\"_meta\":{" META_VERSION(NOW) "}"), BAD(-32602) },
	{ "a version that is not served", .version = "2027-01-01", .method = "tools/list",
	  .text = REQUEST("tools/list", META("2027-01-01")), BAD(-32022) },
	{ "and says which are", .version = "1900-01-01", .method = "tools/list",
	  .text = REQUEST("tools/list", META("1900-01-01")), .era = MCP_BROKEN, .status = 400,
	  .has = ",\"supported\":[\"2026-07-28\",\"2025-11-25\",\"2025-06-18\","
		 "\"2025-03-26\",\"2024-11-05\"],\"requested\":\"1900-01-01\"}" },
	{ "a legacy version in a claim", .version = "2025-11-25", .method = "tools/list",
	  .text = REQUEST("tools/list", META("2025-11-25")), BAD(-32022) },

	/* the standard headers */
	{ "no Mcp-Method", HEAD, .text = LIST, BAD(-32020) },
	{ "another Mcp-Method", HEAD, .method = "tools/call", .text = LIST, BAD(-32020) },
	{ "Mcp-Method in capitals", HEAD, .method = "TOOLS/LIST", .text = LIST, BAD(-32020) },
	{ "a list", HEAD, .method = "tools/list", .text = LIST, MODERN },
	{ "no Mcp-Name", HEAD, .method = "tools/call", .text = QUERY(""), BAD(-32020) },
	{ "another Mcp-Name", HEAD, .method = "tools/call", .name_header = "Query",
	  .text = QUERY(""), BAD(-32020) },
	{ "Mcp-Name", HEAD, .method = "tools/call", .name_header = "query", .text = QUERY(""),
	  MODERN },
	{ "Mcp-Name in base64", HEAD, .method = "tools/call",
	  .name_header = "=?base64?cXVlcnk=?=", .text = QUERY(""), MODERN },
	{ "Mcp-Name in broken base64", HEAD, .method = "tools/call",
	  .name_header = "=?base64?cXVlcnk?=", .text = QUERY(""), BAD(-32020) },
	{ "Mcp-Name of bytes that are no text", HEAD, .method = "tools/call",
	  .name_header = "=?base64?/w==?=", .text = QUERY(""), BAD(-32020) },
	{ "Mcp-Name that is not plain", HEAD, .method = "tools/call", .name_header = "qu\xc3\xa9ry",
	  .text = QUERY(""), BAD(-32020) },
	{ "Mcp-Name of half a mark is what it is", HEAD, .method = "tools/call",
	  .name_header = "=?base64?cXVlcnk=", .text = QUERY(""), BAD(-32020) },
	{ "Mcp-Name of a resource", HEAD, .method = "resources/read", .name_header = "mem:///note",
	  .text = REQUEST("resources/read", "\"uri\":\"mem:///note\"," META(NOW)), MODERN },
	{ "Mcp-Name of another resource", HEAD, .method = "resources/read",
	  .name_header = "mem:///pixel",
	  .text = REQUEST("resources/read", "\"uri\":\"mem:///note\"," META(NOW)), BAD(-32020) },
	{ "Mcp-Name of a prompt", HEAD, .method = "prompts/get", .name_header = "plain",
	  .text = REQUEST("prompts/get", "\"name\":\"plain\"," META(NOW)), MODERN },
	{ "no name is in-band", HEAD, .method = "tools/call",
	  .text = REQUEST("tools/call", META(NOW)), MODERN, .has = "-32602" },

	/* headers of arguments */
	{ "all arguments have theirs", HEAD, .method = "tools/call", .name_header = "query",
	  .text = QUERY("\"region\":\"north\",\"limit\":42,\"deep\":{\"dry\":true}"), MODERN,
	  .has = "north", .params = { "region", "north", "LIMIT", "42.0", "dry-run", "true" } },
	{ "one is missing", HEAD, .method = "tools/call", .name_header = "query",
	  .text = QUERY("\"region\":\"north\",\"limit\":42"), LATE(-32020),
	  .params = { "region", "north" } },
	{ "one is not in the body", HEAD, .method = "tools/call", .name_header = "query",
	  .text = QUERY("\"region\":\"north\""), LATE(-32020),
	  .params = { "region", "north", "limit", "1" } },
	{ "null is absent", HEAD, .method = "tools/call", .name_header = "query",
	  .text = QUERY("\"region\":\"north\",\"limit\":null"), MODERN,
	  .params = { "region", "north" } },
	{ "another string", HEAD, .method = "tools/call", .name_header = "query",
	  .text = QUERY("\"region\":\"north\""), LATE(-32020), .params = { "region", "North" } },
	{ "a string in base64", HEAD, .method = "tools/call", .name_header = "query",
	  .text = QUERY("\"region\":\" n\\u00f8rd \""), MODERN,
	  .params = { "region", "=?base64?IG7DuHJkIA==?=" } },
	{ "an empty string", HEAD, .method = "tools/call", .name_header = "query",
	  .text = QUERY("\"region\":\"\""), MODERN, .params = { "region", "" } },
	{ "another number", HEAD, .method = "tools/call", .name_header = "query",
	  .text = QUERY("\"limit\":42"), LATE(-32020), .params = { "limit", "43" } },
	{ "no number", HEAD, .method = "tools/call", .name_header = "query",
	  .text = QUERY("\"limit\":42"), LATE(-32020), .params = { "limit", "0x2a" } },
	{ "a number beyond what JavaScript counts", HEAD, .method = "tools/call",
	  .name_header = "query", .text = QUERY("\"limit\":9007199254740993"), LATE(-32020),
	  .params = { "limit", "9007199254740993" } },
	{ "another boolean", HEAD, .method = "tools/call", .name_header = "query",
	  .text = QUERY("\"deep\":{\"dry\":true}"), LATE(-32020), .params = { "dry-run", "True" } },
	{ "an object is none of them", HEAD, .method = "tools/call", .name_header = "query",
	  .text = QUERY("\"region\":{}"), LATE(-32020), .params = { "region", "{}" } },

	/* the method, and in-band errors */
	{ "an unknown method", HEAD, .method = "no/such", .text = REQUEST("no/such", META(NOW)),
	  .era = MCP_MODERN, .status = 404, .has = "-32601" },
	{ "a removed method", HEAD, .method = "ping", .text = REQUEST("ping", META(NOW)),
	  .era = MCP_MODERN, .status = 404, .has = "\"id\":1" },
	{ "an unknown tool", HEAD, .method = "tools/call", .name_header = "none",
	  .text = REQUEST("tools/call", "\"name\":\"none\"," META(NOW)), MODERN, .has = "-32602" },
	{ "an unknown resource", HEAD, .method = "resources/read", .name_header = "x:",
	  .text = REQUEST("resources/read", "\"uri\":\"x:\"," META(NOW)), MODERN, .has = "-32602" },
};

static void check_row(struct post *p, const struct row *r)
{
	const struct mcp_http_head head = {
		.protocol_version = str_of(r->version),
		.method = str_of(r->method),
		.name = str_of(r->name_header),
		.param = param,
		.data = p,
	};
	struct mcp_inbound *in = mcp_inbound_new(p->server, str_of(r->text), &head);
	struct mcp_session *s;

	p->params = r->params;
	ROW_CHECK(in && mcp_inbound_era(in) == r->era, r->name);
	if (r->era == MCP_LEGACY) {
		mcp_inbound_free(in);
		return;
	}
	ROW_CHECK(mcp_inbound_is_answered(in) == (r->status > 0), r->name);
	s = open_post(p);
	mcp_session_take(s, in, &p->done_n);
	ROW_CHECK(p->done_n == 1, r->name);
	ROW_CHECK(p->sent_n == (r->status > 0), r->name);
	if (r->status > 0) {
		ROW_CHECK(p->status[0] == r->status, r->name);
		ROW_CHECK(p->kind[0] == MCP_OUT_RESPONSE, r->name);
		ROW_CHECK(!r->has || strstr(p->sent[0], r->has), r->name);
	}
	mcp_session_close(s);
	forget(p);
}

static void climbs_the_ladder(void **state)
{
	struct post p;

	start(&p);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		check_row(&p, &rows[i]);
	stop(&p);
}

static void tells_what_transports_ask(void **state)
{
	struct post p;
	struct mcp_inbound *in;

	start(&p);
	in = mcp_inbound_new(p.server, str_of(REQUEST("initialize", "")), NULL);
	assert_true(mcp_inbound_is_initialize(in) && mcp_inbound_is_answered(in));
	assert_true(str_is(mcp_inbound_method(in), "initialize"));
	assert_false(mcp_inbound_is_listen(in));
	mcp_inbound_free(in);
	in = mcp_inbound_new(p.server, str_of(REQUEST("subscriptions/listen", META(NOW))), NULL);
	assert_true(mcp_inbound_is_listen(in));
	mcp_inbound_free(in);
	in = mcp_inbound_new(p.server,
			     STR_LIT("[{\"jsonrpc\":\"2.0\",\"method\":\"x\"},"
				     "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}]"),
			     NULL);
	assert_false(mcp_inbound_is_answered(in));
	assert_false(mcp_inbound_is_initialize(in));
	assert_null(mcp_inbound_method(in).p);
	mcp_inbound_free(in);
	in = mcp_inbound_new(p.server, STR_LIT("[7]"), NULL);
	assert_true(mcp_inbound_is_answered(in));
	mcp_inbound_free(in);
	mcp_inbound_free(NULL);
	stop(&p);
}

/* --- streams --- */

static struct mcp_session *listen_on(struct post *p)
{
	static const char text[] = REQUEST(
		"subscriptions/listen", "\"notifications\":{\"toolsListChanged\":true}," META(NOW));
	struct mcp_session *s = open_post(p);

	mcp_session_take(s, mcp_inbound_new(p->server, str_of(text), NULL), &p->done_n);
	assert_int_equal(p->sent_n, 1);
	assert_int_equal(p->kind[0], MCP_OUT_NOTIFICATION);
	assert_int_equal(mcp_session_open(s), 0);
	return s;
}

static void a_listen_ends_with_its_stream(void **state)
{
	struct post p;
	struct mcp_session *s;

	start(&p);
	s = listen_on(&p);
	mcp_server_changed(p.server, MCP_TOOLS | MCP_PROMPTS);
	assert_int_equal(p.sent_n, 2);
	mcp_session_cancel_stream(s, &p.done_n);
	mcp_server_changed(p.server, MCP_TOOLS);
	assert_int_equal(p.sent_n, 2);
	assert_int_equal(p.done_n, 0); /* who closed it knows */
	mcp_session_close(s);
	stop(&p);
}

static void a_listen_ends_with_a_result(void **state)
{
	struct post p;
	struct mcp_session *s;

	start(&p);
	s = listen_on(&p);
	mcp_session_drain(s);
	assert_int_equal(p.sent_n, 2);
	assert_int_equal(p.kind[1], MCP_OUT_RESPONSE);
	assert_int_equal(p.done_n, 1);
	mcp_session_close(s);
	stop(&p);
}

static void a_listen_ends_with_its_session(void **state)
{
	struct post p;

	start(&p);
	mcp_session_close(listen_on(&p));
	mcp_server_changed(p.server, MCP_TOOLS);
	assert_int_equal(p.sent_n, 1);
	stop(&p);
}

static void listens_are_bounded(void **state)
{
	struct mcp_server_options o = {
		.name = "x", .version = "1", .listens_max = 1, .subscriptions_max = 2
	};
	static const char many[] = REQUEST(
		"subscriptions/listen",
		"\"notifications\":{\"resourceSubscriptions\":[\"a\",\"b\",\"c\"]}," META(NOW));
	static const char another[] = "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"subscriptions/"
				      "listen\",\"params\":{\"notifications\":{}," META(NOW) "}}";
	struct mcp_session *s;
	struct post p = { .sent_n = 0 };
	struct err e;

	full_offer(&o);
	p.server = mcp_server_new(&o, &e);
	s = open_post(&p);
	mcp_session_take(s, mcp_inbound_new(p.server, str_of(many), NULL), &p.done_n);
	assert_non_null(strstr(p.sent[0], "resourceSubscriptions takes at most 2"));
	mcp_session_close(s);
	forget(&p);
	s = listen_on(&p);
	mcp_session_take(s, mcp_inbound_new(p.server, str_of(another), NULL), &p.done_n);
	assert_non_null(strstr(p.sent[1], "limit_exceeded"));
	mcp_session_close(s);
	stop(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(climbs_the_ladder),
		cmocka_unit_test(tells_what_transports_ask),
		cmocka_unit_test(a_listen_ends_with_its_stream),
		cmocka_unit_test(a_listen_ends_with_a_result),
		cmocka_unit_test(a_listen_ends_with_its_session),
		cmocka_unit_test(listens_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
