/* The client's role against a server that the test speaks for, word by word. */
#include "mcp/client.h"

#include <stdlib.h>

#include "mcp_peer.h"
#include "rpc/sniff.h"
#include "test.h"

enum { SENT = 2048, TEXT_MAX = 1 << 16 };

static struct {
	struct json_doc *doc;
	enum mcp_out_kind kind;
	struct mcp_pending *p;
	char name[128];
	unsigned params_n;
	bool is_initialize, opens_stream;
	char version[32];
} sent[SENT];
static unsigned sent_n;

static struct mcp_client *client;
static uint64_t now;
static unsigned let_gos, unfits, readies, overs, asks, withdrawals, urls, logs, changes, updates;
static struct err over_err;
static struct mcp_question *question;
static int unfit_code;
static enum err_code unfit_err;
static const char *restart_with; /* in that revision; NULL: it is over */

/* How the last request ended. */
static struct {
	unsigned done, progress;
	int code;
	struct err e;
	char text[256];
	size_t listed, dropped;
} got;

/* --- what is sent --- */

static void on_send(void *transport, const struct mcp_client_out *m)
{
	struct err e;

	assert_in_range(sent_n, 0, SENT - 1);
	sent[sent_n].doc = json_parse(m->text, NULL, &e);
	assert_non_null(sent[sent_n].doc);
	sent[sent_n].kind = m->kind;
	sent[sent_n].p = m->pending;
	sent[sent_n].params_n = (unsigned)m->params_n;
	sent[sent_n].is_initialize = m->is_initialize;
	sent[sent_n].opens_stream = m->opens_stream;
	snprintf(sent[sent_n].name, sizeof(sent[0].name), "%s", m->name ? m->name : "");
	snprintf(sent[sent_n].version, sizeof(sent[0].version), "%s", m->version ? m->version : "");
	sent_n++;
}

static void on_let_go(void *transport, struct mcp_pending *p)
{
	let_gos++;
}

static bool on_unfit(void *transport, const struct mcp_answer *a);

static const struct mcp_client_transport lines = { .send = on_send,
						   .let_go = on_let_go,
						   .unfit = on_unfit };
static const struct mcp_client_transport streams = {
	.streams = true, .send = on_send, .let_go = on_let_go, .unfit = on_unfit
};

static bool is_modern(const char *version)
{
	return strcmp(version, "2026-07-28") == 0;
}

static bool on_unfit(void *transport, const struct mcp_answer *a)
{
	const char *with = restart_with;
	struct err e;

	unfits++;
	unfit_code = a->code;
	unfit_err = a->e ? a->e->code : ERR_NONE;
	restart_with = NULL;
	if (!with)
		return false;
	assert_int_equal(mcp_client_start(client, &lines, NULL,
					  is_modern(with) ? MCP_MODERN : MCP_LEGACY, NULL, &e),
			 0);
	return true;
}

static const struct json_val *nth(const char *method, unsigned n)
{
	for (unsigned i = sent_n; i-- > 0;) {
		const struct json_val *root = json_root(sent[i].doc);

		if (str_is(json_str(json_get(root, "method")), method) && n-- == 0)
			return root;
	}
	return NULL;
}

static const struct json_val *last(const char *method)
{
	return nth(method, 0);
}

static unsigned count(const char *method)
{
	unsigned n = 0;

	while (nth(method, n))
		n++;
	return n;
}

/* The id of the last request of that method. */
static int id_of(const char *method)
{
	assert_non_null(last(method));
	return (int)int_at(last(method), "id");
}

static struct mcp_pending *pending_of(const char *method)
{
	for (unsigned i = sent_n; i-- > 0;) {
		if (str_is(json_str(json_get(json_root(sent[i].doc), "method")), method))
			return sent[i].p;
	}
	return NULL;
}

/* The last answer of the client. */
static const struct json_val *last_answer(void)
{
	for (unsigned i = sent_n; i-- > 0;) {
		if (sent[i].kind == MCP_OUT_RESPONSE)
			return json_root(sent[i].doc);
	}
	return NULL;
}

/* --- what is said --- */

static PRINTF_LIKE(2, 0) bool vsay(struct mcp_pending *p, const char *fmt, va_list ap)
{
	static char texts[4][TEXT_MAX];
	static unsigned next;
	char *text = texts[next++ % 4];

	assert_in_range(vsnprintf(text, TEXT_MAX, fmt, ap), 0, TEXT_MAX - 1);
	return mcp_client_message(client, p, str_of(text));
}

static PRINTF_LIKE(1, 2) bool say(const char *fmt, ...)
{
	va_list ap;
	bool answered;

	va_start(ap, fmt);
	answered = vsay(NULL, fmt, ap);
	va_end(ap);
	return answered;
}

static PRINTF_LIKE(2, 3) bool say_on(struct mcp_pending *p, const char *fmt, ...)
{
	va_list ap;
	bool answered;

	va_start(ap, fmt);
	answered = vsay(p, fmt, ap);
	va_end(ap);
	return answered;
}

static bool result(const char *method, const char *result)
{
	return say("{\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":%s}", id_of(method), result);
}

static bool error(const char *method, int code, const char *data)
{
	return say("{\"jsonrpc\":\"2.0\",\"id\":%d,\"error\":{\"code\":%d,\"message\":\"no\"%s%s}}",
		   id_of(method), code, data ? ",\"data\":" : "", data ? data : "");
}

/* --- the owner --- */

static void on_ready(void *owner)
{
	readies++;
}

static void on_over(void *owner, const struct err *e)
{
	overs++;
	over_err = *e;
}

static void on_asked(void *owner, struct mcp_question *q)
{
	asks++;
	question = q;
}

static void on_withdrawn(void *owner, struct mcp_question *q)
{
	withdrawals++;
	question = NULL;
}

static void on_url_done(void *owner, struct str id)
{
	urls++;
}

static void on_log(void *owner, const struct mcp_log_message *m)
{
	logs++;
}

static void on_changed(void *owner, unsigned lists)
{
	changes++;
}

static void on_updated(void *owner, struct str uri)
{
	updates++;
}

static const struct mcp_client_handler handler = {
	.ready = on_ready,
	.over = on_over,
	.asked = on_asked,
	.withdrawn = on_withdrawn,
	.url_done = on_url_done,
	.log = on_log,
	.changed = on_changed,
	.updated = on_updated,
};

static void on_done(void *owner, const struct mcp_answer *a)
{
	got.done++;
	got.code = a->code;
	got.e = a->e ? *a->e : ERR_INIT;
	snprintf(got.text, sizeof(got.text), "%.*s", STR_ARG(a->text));
}

static void on_progress(void *owner, const struct mcp_progress *p)
{
	got.progress++;
}

static void on_listed(void *owner, const struct mcp_listed *l)
{
	got.listed = l->n;
	got.dropped = l->dropped;
	got.done++;
	got.e = l->failed && l->failed->e ? *l->failed->e : ERR_INIT;
	got.code = l->failed ? l->failed->code : 0;
}

static uint64_t now_ms(void)
{
	return now;
}

static struct mcp_client_options options = {
	.name = "hostile",
	.version = "1",
	.can = MCP_CAN_ROOTS | MCP_CAN_SAMPLING | MCP_CAN_FORM | MCP_CAN_URL | MCP_CAN_TASKS,
	.handler = &handler,
	.now_ms = now_ms,
};

static void forget_sent(void)
{
	while (sent_n > 0)
		json_free(sent[--sent_n].doc);
}

/* A client whose first message is out. */
static void open_client(const char *version, const struct mcp_client_transport *t)
{
	struct err e;

	forget_sent();
	now = 1000000;
	let_gos = unfits = readies = overs = asks = withdrawals = urls = logs = changes = updates =
		0;
	question = NULL;
	restart_with = NULL;
	memset(&got, 0, sizeof(got));
	client = mcp_client_new(&options, &e);
	assert_non_null(client);
	assert_int_equal(mcp_client_start(client, t, NULL,
					  is_modern(version) ? MCP_MODERN : MCP_LEGACY, NULL, &e),
			 0);
}

#define ABLE                                                                                        \
	"{\"tools\":{},\"logging\":{},\"resources\":{\"subscribe\":true},\"tasks\":{\"cancel\":{}," \
	"\"requests\":{\"tools\":{\"call\":{}}}}}"

static void begin(const char *version, const struct mcp_client_transport *t)
{
	char text[1024];

	open_client(version, t);
	snprintf(text, sizeof(text),
		 is_modern(version) ? "{\"supportedVersions\":[\"%s\"],\"capabilities\":%s}"
				    : "{\"protocolVersion\":\"%s\",\"capabilities\":%s,"
				      "\"serverInfo\":{\"name\":\"h\",\"version\":\"1\"}}",
		 version, ABLE);
	assert_true(result(is_modern(version) ? "server/discover" : "initialize", text));
	assert_int_equal(readies, 1);
	assert_string_equal(mcp_client_version(client), version);
}

static struct mcp_client_counts counts(void)
{
	struct mcp_client_counts n;

	mcp_client_counts(client, &n);
	return n;
}

static void end(void)
{
	mcp_client_free(client);
	client = NULL;
	forget_sent();
}

static struct mcp_pending *call_for(unsigned ttl_ms)
{
	const struct mcp_request_spec s = { .on_done = on_done,
					    .on_progress = on_progress,
					    .task_ttl_ms = ttl_ms };
	struct mcp_pending *p;
	struct err e;

	memset(&got, 0, sizeof(got));
	p = mcp_client_call(client, "t", STR_LIT("{\"a\":\"v\"}"), &s, &e);
	assert_non_null(p);
	return p;
}

static struct mcp_pending *call(void)
{
	return call_for(0);
}

static struct mcp_pending *request(const char *method, const char *params)
{
	const struct mcp_request_spec s = { .on_done = on_done,
					    .method = method,
					    .params = str_of(params) };
	struct mcp_pending *p;
	struct err e;

	memset(&got, 0, sizeof(got));
	p = mcp_client_request(client, &s, &e);
	assert_non_null(p);
	return p;
}

static struct mcp_pending *list(const char *what)
{
	struct mcp_pending *p;
	struct err e;

	memset(&got, 0, sizeof(got));
	p = mcp_client_list(client, what, on_listed, NULL, &e);
	assert_non_null(p);
	return p;
}

static void failed_with(enum err_code code)
{
	assert_int_equal(got.done, 1);
	assert_int_equal(got.e.code, code);
}

#define MODERN "2026-07-28"
#define DONE "{\"content\":[]}"

/* --- the beginning --- */

static void test_refused(void **state)
{
	open_client("2025-11-25", &lines);
	assert_true(error("initialize", -32000, NULL));
	assert_int_equal(unfits, 1);
	assert_int_equal(unfit_code, -32000);
	assert_int_equal(overs, 1);
	assert_int_equal(over_err.code, ERR_TRANSPORT);
	assert_false(say("{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}"));
	end();
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

		open_client(MODERN, &lines);
		restart_with = "2025-11-25";
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(text, sizeof(text), answers[i], id_of("server/discover"));
#pragma GCC diagnostic pop
		ROW_CHECK(say("%s", text), answers[i]);
		ROW_CHECK(unfits == 1 && overs == 0, answers[i]);
		assert_true(result("initialize",
				   "{\"protocolVersion\":\"2025-03-26\",\"capabilities\":{}}"));
		assert_int_equal(readies, 1);
		assert_string_equal(mcp_client_version(client), "2025-03-26");
		assert_non_null(last("notifications/initialized"));
		end();
	}
}

static void test_no_common_revision(void **state)
{
	static const char *const answers[] = {
		"{\"protocolVersion\":\"1999-01-01\",\"capabilities\":{}}",
		"{\"protocolVersion\":\"2026-07-28\",\"capabilities\":{}}",
	};

	for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
		open_client("2025-11-25", &lines);
		assert_true(result("initialize", answers[i]));
		assert_int_equal(overs, 1);
		assert_int_equal(over_err.code, ERR_UNSUPPORTED);
		assert_int_equal(unfit_err, ERR_UNSUPPORTED);
		end();
	}
}

static void test_another_revision(void **state)
{
	open_client("2025-11-25", &lines);
	assert_string_equal(text_at(last("initialize"), "params|protocolVersion"), "2025-11-25");
	assert_true(
		error("initialize", -32602, "{\"supported\":[\"2024-11-05\",\"2025-03-26\",7]}"));
	assert_int_equal(count("initialize"), 2);
	assert_string_equal(text_at(last("initialize"), "params|protocolVersion"), "2025-03-26");
	assert_true(error("initialize", -32602, "{\"supported\":[\"2024-11-05\"]}"));
	assert_int_equal(count("initialize"), 2);
	assert_int_equal(overs, 1);
	end();

	open_client(MODERN, &lines);
	assert_true(error("server/discover", -32022, "{\"supported\":[\"" MODERN "\"]}"));
	assert_int_equal(count("server/discover"), 2);
	assert_true(error("server/discover", -32022, "{\"supported\":[\"" MODERN "\"]}"));
	assert_int_equal(unfits, 1);
	assert_int_equal(over_err.code, ERR_UNSUPPORTED);
	end();

	begin(MODERN, &streams);
	call();
	assert_true(error("tools/call", -32022, "{\"supported\":[\"" MODERN "\"]}"));
	assert_int_equal(count("tools/call"), 2);
	assert_true(error("tools/call", -32022, "{\"supported\":[\"" MODERN "\"]}"));
	assert_int_equal(got.code, -32022);
	end();
}

/* --- answers --- */

static void test_answers_to_nothing(void **state)
{
	static const char *const versions[] = { "2025-11-25", MODERN };

	for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
		int id;

		begin(versions[i], &lines);
		call();
		id = id_of("tools/call");
		assert_false(say("{\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":{}}", id + 1));
		assert_false(say("{\"jsonrpc\":\"2.0\",\"id\":\"%d\",\"result\":{}}", id));
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
		end();
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
		begin("2025-11-25", &lines);
		call();
		ROW_CHECK(!say("%s", texts[i]), texts[i]);
		ROW_CHECK(counts().garbage == 1, texts[i]);
		ROW_CHECK(got.done == 0 && overs == 0, texts[i]);
		end();
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
		"\"other\":1",
		"\"result\":{\"content\":7}",
		"\"result\":{\"content\":[7]}",
		"\"result\":{\"content\":[{}]}",
		"\"result\":{\"content\":[],\"isError\":\"no\"}",
	};

	for (unsigned i = 0; i < ARRAY_LEN(members); i++) {
		begin(MODERN, &lines);
		call();
		ROW_CHECK(
			say("{\"jsonrpc\":\"2.0\",\"id\":%d,%s}", id_of("tools/call"), members[i]),
			members[i]);
		ROW_CHECK(got.done == 1 && got.e.code == ERR_INVALID, members[i]);
		end();
	}
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

	begin(MODERN, &lines);
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		request(rows[i].method, "{\"name\":\"n\",\"uri\":\"u:\"}");
		result(rows[i].method, rows[i].result);
		ROW_CHECK(got.done == 1, rows[i].result);
		ROW_CHECK(got.e.code == (rows[i].fits ? ERR_NONE : ERR_INVALID), rows[i].result);
	}
	end();
}

static void test_no_tasks_wanted(void **state)
{
	unsigned can = options.can;

	options.can = 0;
	begin(MODERN, &lines);
	call();
	result("tools/call", "{\"resultType\":\"task\",\"taskId\":\"a\",\"status\":\"working\"}");
	failed_with(ERR_INVALID);
	end();
	options.can = can;
}

static void test_errors(void **state)
{
	begin(MODERN, &lines);
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
	end();
}

/* Over HTTP an error may name no request, or one that is none of ours: its stream says which. */
static void test_errors_of_a_stream(void **state)
{
	struct mcp_pending *a;

	begin(MODERN, &streams);
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
			    (int)int_at(nth("tools/call", 1), "id")));
	assert_int_equal(got.done, 0);
	assert_int_equal(counts().strays, 1);
	assert_int_equal(counts().pending, 2);
	end();
}

static void test_too_large(void **state)
{
	struct rpc_sniff sniff = { 0 };
	const struct err e = { ERR_TOO_LARGE, "too long" };
	size_t max = options.message_max;
	char text[128];

	options.message_max = 1000;
	begin(MODERN, &lines);
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
	end();
	options.message_max = max;
}

static void test_batches(void **state)
{
	int a, b;

	begin("2025-03-26", &lines);
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
	end();

	begin("2025-06-18", &lines);
	call();
	assert_false(
		say("[{\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":" DONE "}]", id_of("tools/call")));
	assert_int_equal(counts().garbage, 1);
	end();
}

/* --- progress --- */

static void test_progress(void **state)
{
	int token;

	begin(MODERN, &lines);
	call();
	token = (int)int_at(last("tools/call"), "params|_meta|progressToken");
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
	say(PROGRESS "\"progressToken\":\"%d\",\"progress\":9}}", token);
	say(PROGRESS "\"progressToken\":%d,\"progress\":9}}", token + 1000);
	say(PROGRESS "\"progress\":9}}");
	assert_int_equal(counts().strays, 4);
	result("tools/call", DONE);
	say(PROGRESS "\"progressToken\":%d,\"progress\":9}}", token);
	assert_int_equal(got.progress, 2);
	assert_int_equal(counts().strays, 5);
	end();
}

/* --- input_required --- */

#define ROUND "{\"resultType\":\"input_required\",\"requestState\":\"s\"}"

static void test_rounds_without_end(void **state)
{
	unsigned n = 0;

	begin(MODERN, &lines);
	call();
	while (got.done == 0 && n++ < 100)
		result("tools/call", ROUND);
	failed_with(ERR_LIMIT);
	assert_int_equal(n, 17);
	assert_string_equal(text_at(last("tools/call"), "params|requestState"), "s");
	assert_null(at(last("tools/call"), "params|inputResponses"));
	assert_string_equal(text_at(last("tools/call"), "params|arguments|a"), "v");
	end();
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

	begin(MODERN, &lines);
	for (unsigned i = 0; i < ARRAY_LEN(results); i++) {
		call();
		result("tools/call", results[i]);
		ROW_CHECK(got.done == 1 && got.e.code == ERR_INVALID, results[i]);
		ROW_CHECK(asks == 0, results[i]);
	}
	assert_int_equal(counts().questions, 0);
	/* and one that is fit */
	call();
	result("tools/call",
	       ELICIT("{\"message\":\"m\",\"mode\":\"url\",\"url\":\"HTTPS://a.b:8/?c@d\"}"));
	assert_int_equal(asks, 1);
	assert_int_equal(got.done, 0);
	end();
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
	begin(MODERN, &lines);
	call();
	result("tools/call", text);
	failed_with(ERR_LIMIT);
	assert_int_equal(asks, 0);
	assert_int_equal(counts().questions, 0);
	end();
}

/* Questions come in their order, and each of their answers once. */
static void test_answers_in_their_order(void **state)
{
	struct mcp_question *q;
	struct err e;

	begin(MODERN, &lines);
	call();
	result("tools/call",
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
	assert_int_equal(count("tools/call"), 1);
	end();
	assert_int_equal(withdrawals, 0);
}

/* --- questions of legacy servers --- */

#define ROOTS "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"roots/list\"}"

static void test_requests_of_servers(void **state)
{
	begin(MODERN, &lines);
	say("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}");
	say(ROOTS, 2);
	assert_int_equal(counts().garbage, 2);
	assert_null(last_answer());
	end();

	begin("2025-11-25", &lines);
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
	end();

	open_client("2025-11-25", &lines);
	say(ROOTS, 1);
	assert_int_equal(int_at(last_answer(), "error|code"), -32600);
	assert_int_equal(asks, 0);
	end();
}

static void test_nothing_offered(void **state)
{
	unsigned can = options.can;

	options.can = MCP_CAN_FORM;
	begin("2025-11-25", &lines);
	say(ROOTS, 1);
	assert_int_equal(int_at(last_answer(), "error|code"), -32601);
	say("{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"elicitation/create\",\"params\":{\"mode\":"
	    "\"url\",\"url\":\"https://x.y/\",\"message\":\"\",\"elicitationId\":\"e\"}}");
	assert_int_equal(int_at(last_answer(), "error|code"), -32602);
	end();
	/* what the revision has not is not offered either */
	begin("2025-03-26", &lines);
	assert_null(at(last("initialize"), "params|capabilities|roots"));
	say("{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"elicitation/create\",\"params\":{"
	    "\"message\":\"\"," SCHEMA "}}");
	assert_int_equal(int_at(last_answer(), "error|code"), -32601);
	end();
	options.can = can;
}

static void test_urls(void **state)
{
	static const char done[] = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/elicitation/"
				   "complete\",\"params\":{\"elicitationId\":\"%s\"}}";

	begin("2025-11-25", &lines);
	call();
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	error("tools/call", -32042, "{\"elicitations\":[7,{\"elicitationId\":\"e1\"}]}");
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
	end();
}

/* --- lists --- */

static void page(const char *items, const char *more)
{
	say("{\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":{\"tools\":%s%s}}", id_of("tools/list"),
	    items, more);
}

static void test_cursors(void **state)
{
	begin(MODERN, &lines);
	list("tools");
	page("[{\"name\":\"a\"}]", ",\"nextCursor\":\"1\"");
	assert_string_equal(text_at(last("tools/list"), "params|cursor"), "1");
	page("[{\"name\":\"b\"}]", ",\"nextCursor\":\"2\"");
	page("[{\"name\":\"c\"}]", ",\"nextCursor\":\"1\"");
	failed_with(ERR_INVALID);

	list("tools");
	for (int i = 0; i < 2000 && got.done == 0; i++) {
		char more[64];

		snprintf(more, sizeof(more), ",\"nextCursor\":\"%d\"", i);
		page("[]", more);
		if (sent_n > SENT - 10)
			forget_sent();
	}
	failed_with(ERR_LIMIT);

	list("tools");
	page("[]", ",\"nextCursor\":7");
	failed_with(ERR_INVALID);
	list("tools");
	page("[]", ",\"nextCursor\":null");
	failed_with(ERR_NONE);
	list("tools");
	page("[]", ",\"nextCursor\":\"\"");
	failed_with(ERR_NONE);
	list("tools");
	page("7", "");
	failed_with(ERR_INVALID);
	list("tools");
	page("[7,{},{\"name\":7},{\"name\":\"a\"}]", "");
	failed_with(ERR_NONE);
	assert_int_equal(got.listed, 1);
	assert_int_equal(got.dropped, 3);
	list("tools");
	page("[]", ",\"nextCursor\":\"1\"");
	error("tools/list", -32602, NULL);
	assert_int_equal(got.code, -32602);
	assert_int_equal(got.done, 1);
	end();
}

static void test_too_many_entries(void **state)
{
	options.list_max = 5;
	begin(MODERN, &lines);
	list("tools");
	page("[1,1,1,1]", ",\"nextCursor\":\"1\"");
	page("[1]", ",\"nextCursor\":\"2\"");
	page("[]", ",\"nextCursor\":\"3\"");
	assert_int_equal(got.done, 0);
	page("[{\"name\":\"a\"},{\"name\":\"a\"},{\"name\":\"a\"},{\"name\":\"a\"},{\"name\":\"a\"},"
	     "{\"name\":\"a\"}]",
	     "");
	failed_with(ERR_LIMIT);
	end();
	options.list_max = 0;
}

/* What is kept of messages is bounded in all. */
static void test_kept(void **state)
{
	options.message_max = 10000;
	begin(MODERN, &lines);
	list("tools");
	for (int i = 0; i < 100 && got.done == 0; i++)
		say("{\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":{\"tools\":[],\"nextCursor\":\"%d\","
		    "\"x\":\"%05000d\"}}",
		    id_of("tools/list"), i, 1);
	failed_with(ERR_LIMIT);
	/* and given back */
	list("tools");
	page("[]", "");
	failed_with(ERR_NONE);
	end();
	options.message_max = 0;
}

/* --- tools --- */

#define TOOL(name, schema)                                                                         \
	"{\"name\":\"" name "\",\"inputSchema\":{\"type\":\"object\",\"properties\":" schema "}}"

static void test_headers(void **state)
{
	static const char tools[] =
		"[" TOOL("good", "{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"A\"}}") "," TOOL("empty", "{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"\"}}") "," TOOL("space", "{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"A B\"}}") "," TOOL(
			"number",
			"{\"a\":{\"type\":\"number\",\"x-mcp-header\":\"A\"}}") "," TOOL("twice",
											 "{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"A\"},"
											 "\"b\":{\"type\":\"string\",\"x-mcp-header\":\"a\"}}") "," TOOL("array",
																			 "{\"a\":{\"type\":\"array\",\"items\":{\"type\":\"string\","
																			 "\"x-mcp-header\":\"A\"}}}") "]";

	begin(MODERN, &streams);
	list("tools");
	page(tools, "");
	failed_with(ERR_NONE);
	assert_int_equal(got.listed, 1);
	assert_int_equal(got.dropped, 5);
	end();
	begin(MODERN, &lines);
	list("tools");
	page(tools, "");
	assert_int_equal(got.listed, 6);
	end();
	begin("2025-11-25", &streams);
	list("tools");
	page(tools, "");
	assert_int_equal(got.listed, 6);
	end();
}

static void test_header_mismatch(void **state)
{
	begin(MODERN, &streams);
	call();
	call();
	assert_int_equal(sent[sent_n - 1].params_n, 0);
	error("tools/call", -32020, NULL);
	assert_int_equal(count("tools/list"), 1);
	say("{\"jsonrpc\":\"2.0\",\"id\":%d,\"error\":{\"code\":-32020,\"message\":\"\"}}",
	    (int)int_at(nth("tools/call", 1), "id"));
	assert_int_equal(count("tools/list"), 1);
	page("[" TOOL("t", "{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"A\"}}") "]", "");
	assert_int_equal(count("tools/call"), 4);
	assert_int_equal(sent[sent_n - 1].params_n, 1);
	assert_int_equal(got.done, 0);
	/* once, whatever the server says then */
	error("tools/call", -32020, NULL);
	assert_int_equal(got.code, -32020);
	assert_int_equal(count("tools/call"), 4);
	/* where the list is not to be had, the server's word stands */
	call();
	error("tools/call", -32020, NULL);
	error("tools/list", -32603, NULL);
	assert_int_equal(count("tools/call"), 6);
	error("tools/call", -32020, NULL);
	assert_int_equal(got.code, -32020);
	end();
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
		{ "{\"$ref\":\"https://x.y/z\"}", "{\"structuredContent\":{}}", ERR_INVALID },
		{ "{\"$schema\":\"https://x.y/z\"}", "{\"structuredContent\":{}}", ERR_INVALID },
		{ "7", "{\"structuredContent\":{}}", ERR_INVALID },
		{ "null", "{\"content\":[]}", ERR_NONE },
	};

	begin(MODERN, &lines);
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		char tool[256];

		snprintf(tool, sizeof(tool), "[{\"name\":\"t\",\"outputSchema\":%s}]",
			 rows[i].schema);
		list("tools");
		page(tool, "");
		assert_int_equal(got.listed, 1);
		for (unsigned again = 0; again < 2; again++) {
			call();
			result("tools/call", rows[i].result);
			ROW_CHECK(got.done == 1 && got.e.code == rows[i].code, rows[i].schema);
		}
	}
	end();
}

/* --- sessions --- */

#define HELLO "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":" ABLE "}"

static void test_session_lost(void **state)
{
	struct mcp_pending *a, *b;
	struct err e;

	begin("2025-11-25", &streams);
	assert_int_equal(mcp_client_set_level(client, MCP_ERROR, &e), 0);
	result("logging/setLevel", "{}");
	a = call();
	b = call();
	mcp_client_session_lost(client, a);
	mcp_client_session_lost(client, b);
	assert_int_equal(count("initialize"), 2);
	assert_true(sent[sent_n - 1].is_initialize);
	assert_string_equal(sent[sent_n - 1].version, "");
	assert_int_equal(count("tools/call"), 2);
	/* what is begun meanwhile waits */
	request("x/y", NULL);
	assert_null(last("x/y"));
	result("initialize", HELLO);
	assert_int_equal(count("notifications/initialized"), 2);
	assert_int_equal(count("tools/call"), 4);
	assert_int_equal(count("x/y"), 1);
	assert_int_equal(count("logging/setLevel"), 2);
	assert_int_equal(readies, 1);
	result("x/y", "{}");
	failed_with(ERR_NONE);
	/* not for ever */
	memset(&got, 0, sizeof(got));
	mcp_client_session_lost(client, a);
	failed_with(ERR_TRANSPORT);
	result("initialize", HELLO);
	assert_int_equal(count("initialize"), 3);
	/* of the session before: no reason to begin a third */
	mcp_client_session_lost(client, b);
	assert_int_equal(got.done, 2);
	assert_int_equal(count("initialize"), 3);
	end();
}

static void test_sessions_that_never_last(void **state)
{
	begin("2025-11-25", &streams);
	for (unsigned i = 0; i < 10; i++) {
		now += 60 * 1000;
		mcp_client_session_lost(client, NULL);
		result("initialize", HELLO);
	}
	assert_int_equal(overs, 0);
	for (unsigned i = 0; i < 2; i++) {
		mcp_client_session_lost(client, NULL);
		result("initialize", HELLO);
	}
	assert_int_equal(overs, 0);
	mcp_client_session_lost(client, NULL);
	assert_int_equal(overs, 1);
	assert_int_equal(over_err.code, ERR_TRANSPORT);
	end();

	begin("2025-11-25", &streams);
	mcp_client_session_lost(client, NULL);
	error("initialize", -1, NULL);
	assert_int_equal(overs, 1);
	end();

	begin("2025-11-25", &streams);
	mcp_client_session_lost(client, NULL);
	now += 60 * 1000;
	mcp_client_tick(client);
	assert_int_equal(overs, 1);
	assert_int_equal(over_err.code, ERR_TIMEOUT);
	end();
}

static void test_session_takes_its_questions(void **state)
{
	begin("2025-11-25", &streams);
	say(ROOTS, 1);
	assert_int_equal(asks, 1);
	mcp_client_session_lost(client, NULL);
	assert_int_equal(withdrawals, 1);
	assert_int_equal(counts().questions, 0);
	end();
}

/* --- tasks --- */

#define TASK                                                                                       \
	"{\"resultType\":\"task\",\"taskId\":\"a\",\"status\":\"working\",\"pollIntervalMs\":1000}"

static void pass(unsigned ms)
{
	now += ms;
	mcp_client_tick(client);
}

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

	begin(MODERN, &lines);
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		call();
		result("tools/call", TASK);
		pass(999);
		assert_int_equal(count("tasks/get"), i);
		pass(1);
		assert_int_equal(count("tasks/get"), i + 1);
		pass(1000);
		assert_int_equal(count("tasks/get"), i + 1);
		result("tasks/get", rows[i].state);
		ROW_CHECK(got.done == 1 && got.e.code == rows[i].code, rows[i].state);
		ROW_CHECK(got.code == rows[i].fault, rows[i].state);
	}
	call();
	result("tools/call", "{\"resultType\":\"task\",\"taskId\":\"\"}");
	failed_with(ERR_INVALID);
	call();
	result("tools/call", "{\"resultType\":\"task\"}");
	failed_with(ERR_INVALID);
	end();
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

	begin(MODERN, &lines);
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		struct mcp_pending *p = call();

		say("{\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":{\"resultType\":\"task\",\"taskId\":"
		    "\"a\",\"status\":\"working\",\"pollIntervalMs\":%s}}",
		    id_of("tools/call"), rows[i].interval);
		ROW_CHECK(mcp_client_tick(client) == rows[i].ms, rows[i].interval);
		mcp_pending_cancel(p);
		result("tasks/cancel", "{}");
	}
	end();
}

static void test_task_asks_without_end(void **state)
{
	unsigned n = 0;
	struct err e;

	begin(MODERN, &lines);
	call();
	result("tools/call", TASK);
	while (got.done == 0 && n++ < 100) {
		pass(1000);
		say("{\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":{\"status\":\"input_required\","
		    "\"inputRequests\":{\"k%u\":{\"method\":\"roots/list\"}}}}",
		    id_of("tasks/get"), n);
		if (got.done > 0)
			break;
		assert_non_null(question);
		assert_int_equal(mcp_question_answer(question, STR_LIT("{\"roots\":[]}"), &e), 0);
		assert_int_equal(count("tasks/update"), n);
		result("tasks/update", "{}");
	}
	failed_with(ERR_LIMIT);
	assert_non_null(last("tasks/cancel"));
	end();
}

/* A key that was answered is not asked again, and one that the server asks no more is taken back. */
static void test_task_keys(void **state)
{
	static const char asks_a[] = "{\"status\":\"input_required\",\"inputRequests\":{\"a\":{"
				     "\"method\":\"roots/list\"}}}";
	struct err e;

	begin(MODERN, &lines);
	call();
	result("tools/call", TASK);
	pass(1000);
	result("tasks/get", asks_a);
	assert_int_equal(asks, 1);
	pass(1000);
	result("tasks/get", asks_a);
	assert_int_equal(asks, 1);
	assert_int_equal(mcp_question_answer(question, STR_LIT("{\"roots\":[]}"), &e), 0);
	assert_non_null(at(last("tasks/update"), "params|inputResponses|a|roots"));
	result("tasks/update", "{}");
	for (unsigned i = 0; i < 5; i++) {
		pass(1000);
		result("tasks/get", asks_a);
	}
	assert_int_equal(asks, 1);
	assert_int_equal(count("tasks/update"), 1);
	pass(1000);
	result("tasks/get", "{\"status\":\"input_required\",\"inputRequests\":{\"b\":{\"method\":"
			    "\"roots/list\"}}}");
	assert_int_equal(asks, 2);
	pass(1000);
	result("tasks/get", "{\"status\":\"working\"}");
	assert_int_equal(withdrawals, 1);
	pass(1000);
	result("tasks/get", "{\"status\":\"completed\",\"result\":" DONE "}");
	failed_with(ERR_NONE);
	assert_string_equal(got.text, DONE);
	end();
}

/* A poll that is lost is no end of the task; five in a row are. */
static void test_task_polls_are_lost(void **state)
{
	const struct err e = { ERR_TRANSPORT, "lost" };

	begin(MODERN, &streams);
	call();
	result("tools/call", TASK);
	for (unsigned n = 1; got.done == 0 && n < 100; n++) {
		for (unsigned i = 0; i < 64 && count("tasks/get") < n; i++)
			pass(1000);
		mcp_client_failed(client, pending_of("tasks/get"), &e);
	}
	failed_with(ERR_TRANSPORT);
	assert_int_equal(count("tasks/get"), 6);
	end();
}

static void test_task_is_silent(void **state)
{
	begin(MODERN, &lines);
	call();
	result("tools/call", TASK);
	pass(1000);
	pass(60 * 1000);
	failed_with(ERR_TIMEOUT);
	assert_non_null(last("tasks/cancel"));
	end();
}

/* Its life is over, and its server says that it works. */
static void test_task_outlives_itself(void **state)
{
	begin(MODERN, &lines);
	call();
	result("tools/call", "{\"resultType\":\"task\",\"taskId\":\"a\",\"status\":\"working\","
			     "\"ttlMs\":100000,\"pollIntervalMs\":10000}");
	for (unsigned i = 0; i < 100 && got.done == 0; i++) {
		pass(10000);
		if (got.done == 0)
			result("tasks/get", "{\"status\":\"working\",\"ttlMs\":100000,"
					    "\"pollIntervalMs\":10000}");
	}
	failed_with(ERR_TIMEOUT);
	end();
}

static void test_old_tasks(void **state)
{
	begin("2025-11-25", &lines);
	call_for(5000);
	assert_int_equal(int_at(last("tools/call"), "params|task|ttl"), 5000);
	result("tools/call", "{\"task\":{\"taskId\":\"a\",\"status\":\"working\"}}");
	pass(1000);
	result("tasks/get",
	       "{\"taskId\":\"a\",\"status\":\"input_required\",\"pollInterval\":500}");
	assert_int_equal(count("tasks/result"), 1);
	/* it may be that nobody is there any more */
	pass(60 * 1000);
	assert_non_null(last("notifications/cancelled"));
	assert_int_equal(count("tasks/get"), 2);
	result("tasks/get", "{\"taskId\":\"a\",\"status\":\"working\",\"pollInterval\":500}");
	assert_int_equal(count("tasks/result"), 1);
	say("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tasks/status\",\"params\":{\"taskId\":"
	    "\"a\"}}");
	pass(100);
	assert_int_equal(count("tasks/get"), 3);
	result("tasks/get", "{\"taskId\":\"a\",\"status\":\"completed\"}");
	assert_int_equal(count("tasks/result"), 2);
	result("tasks/result", DONE);
	failed_with(ERR_NONE);
	/* a result that is none that was asked for */
	call();
	assert_null(at(last("tools/call"), "params|task"));
	result("tools/call", "{\"task\":{\"taskId\":\"a\",\"status\":\"working\"}}");
	failed_with(ERR_NONE);
	end();
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

	begin(MODERN, &lines);
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
	assert_int_equal(count("subscriptions/listen"), 2);
	say(ACK, id_of("subscriptions/listen"));
	assert_int_equal(changes, 2);
	result("subscriptions/listen", "{}");
	pass(1000);
	assert_int_equal(count("subscriptions/listen"), 2);
	pass(1000);
	assert_int_equal(count("subscriptions/listen"), 3);
	/* never acknowledged */
	pass(60 * 1000);
	pass(30 * 1000);
	assert_int_equal(count("subscriptions/listen"), 4);
	/* refused: for good */
	error("subscriptions/listen", -32601, NULL);
	assert_true(mcp_client_tick(client) == UINT64_MAX);
	end();
}

static void test_subscriptions(void **state)
{
	const struct str uris[] = { STR_LIT("a:"), STR_LIT("b:") };
	struct err e;

	begin("2025-11-25", &lines);
	assert_int_equal(mcp_client_watch(client, 0, uris, 2, &e), 0);
	assert_int_equal(count("resources/subscribe"), 1);
	error("resources/subscribe", -32002, NULL);
	result("resources/subscribe", "{}");
	assert_int_equal(count("resources/subscribe"), 2);
	assert_int_equal(mcp_client_watch(client, 0, NULL, 0, &e), 0);
	assert_int_equal(count("resources/unsubscribe"), 1);
	assert_string_equal(text_at(last("resources/unsubscribe"), "params|uri"), "b:");
	end();
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

	begin(MODERN, &lines);
	call_with(on_done, cancel_mine);
	say(PROGRESS "\"progressToken\":%d,\"progress\":1}}",
	    (int)int_at(last("tools/call"), "params|_meta|progressToken"));
	assert_int_equal(counts().pending, 0);
	assert_int_equal(got.done, 0);
	call_with(ask_on_done, NULL);
	result("tools/call", DONE);
	assert_int_equal(count("x/y"), 1);
	call_with(ask_on_done, NULL);
	mcp_client_lost(client, &(struct err){ ERR_TRANSPORT, "gone" });
	assert_int_equal(count("x/y"), 1);
	assert_int_equal(overs, 1);
	end();

	begin(MODERN, &lines);
	call();
	call_with(free_on_done, NULL);
	result("tools/call", DONE);
	assert_null(client);
	assert_int_equal(got.done, 1);
	end();

	options.handler = &frees;
	open_client(MODERN, &lines);
	result("server/discover", "{\"supportedVersions\":[\"" MODERN "\"],\"capabilities\":{}}");
	call();
	result("tools/call", two);
	assert_null(client);
	end();

	options.handler = &cancels;
	open_client(MODERN, &lines);
	result("server/discover", "{\"supportedVersions\":[\"" MODERN "\"],\"capabilities\":{}}");
	call_with(on_done, NULL);
	result("tools/call", two);
	assert_int_equal(asks, 1);
	assert_int_equal(counts().questions, 0);
	end();
	options.handler = &handler;
}

static void test_after_the_end(void **state)
{
	begin("2025-11-25", &lines);
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
	end();
}

static void test_too_many_requests(void **state)
{
	const struct mcp_request_spec s = { .method = "x/y", .on_done = on_done };
	struct err e;

	options.pending_max = 3;
	begin(MODERN, &lines);
	for (unsigned i = 0; i < 3; i++)
		assert_non_null(mcp_client_request(client, &s, &e));
	assert_null(mcp_client_request(client, &s, &e));
	assert_int_equal(e.code, ERR_LIMIT);
	result("x/y", "{}");
	assert_non_null(mcp_client_request(client, &s, &e));
	end();
	options.pending_max = 0;
}

/* Its _meta is the owner's but for what the protocol has in it. */
static void test_meta(void **state)
{
	begin(MODERN, &streams);
	request("resources/read",
		"{\"uri\":\"a:\\u00e4\",\"_meta\":{\"traceparent\":\"t\",\"progressToken\":7,"
		"\"io.modelcontextprotocol/protocolVersion\":\"x\",\"n\":1.0}}");
	assert_string_equal(text_at(last("resources/read"), "params|_meta|traceparent"), "t");
	assert_null(at(last("resources/read"), "params|_meta|progressToken"));
	assert_string_equal(text_at(last("resources/read"),
				    "params|_meta|io.modelcontextprotocol/protocolVersion"),
			    MODERN);
	assert_non_null(at(last("resources/read"),
			   "params|_meta|io.modelcontextprotocol/clientCapabilities|roots"));
	assert_string_equal(sent[sent_n - 1].name, "=?base64?YTrDpA==?=");
	assert_string_equal(sent[sent_n - 1].version, MODERN);
	end();
	begin("2025-11-25", &streams);
	request("resources/read", "{\"uri\":\"a:\",\"_meta\":{\"progressToken\":7}}");
	assert_int_equal(json_len(at(last("resources/read"), "params|_meta")), 0);
	assert_string_equal(sent[sent_n - 1].name, "");
	assert_string_equal(sent[sent_n - 1].version, "2025-11-25");
	end();
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
		cmocka_unit_test(test_shapes),
		cmocka_unit_test(test_no_tasks_wanted),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_errors_of_a_stream),
		cmocka_unit_test(test_too_large),
		cmocka_unit_test(test_batches),
		cmocka_unit_test(test_progress),
		cmocka_unit_test(test_rounds_without_end),
		cmocka_unit_test(test_bad_questions),
		cmocka_unit_test(test_too_many_questions),
		cmocka_unit_test(test_answers_in_their_order),
		cmocka_unit_test(test_requests_of_servers),
		cmocka_unit_test(test_nothing_offered),
		cmocka_unit_test(test_urls),
		cmocka_unit_test(test_cursors),
		cmocka_unit_test(test_too_many_entries),
		cmocka_unit_test(test_kept),
		cmocka_unit_test(test_headers),
		cmocka_unit_test(test_header_mismatch),
		cmocka_unit_test(test_output_schema),
		cmocka_unit_test(test_session_lost),
		cmocka_unit_test(test_sessions_that_never_last),
		cmocka_unit_test(test_session_takes_its_questions),
		cmocka_unit_test(test_task_states),
		cmocka_unit_test(test_task_polls),
		cmocka_unit_test(test_task_asks_without_end),
		cmocka_unit_test(test_task_keys),
		cmocka_unit_test(test_task_polls_are_lost),
		cmocka_unit_test(test_task_is_silent),
		cmocka_unit_test(test_task_outlives_itself),
		cmocka_unit_test(test_old_tasks),
		cmocka_unit_test(test_listen),
		cmocka_unit_test(test_subscriptions),
		cmocka_unit_test(test_owners),
		cmocka_unit_test(test_after_the_end),
		cmocka_unit_test(test_too_many_requests),
		cmocka_unit_test(test_meta),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
