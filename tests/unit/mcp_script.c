#include "mcp_script.h"

#include "test.h"

struct sent sent[SENT];
unsigned sent_n;

struct mcp_client *client;
uint64_t now;
unsigned let_gos, unfits, readies, overs, asks, withdrawals, urls, logs, changes, updates;
struct err over_err;
struct mcp_question *question;
int unfit_code;
enum err_code unfit_err;
const char *restart_with;

struct got got;

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

const struct mcp_client_transport lines = { .send = on_send,
					    .let_go = on_let_go,
					    .unfit = on_unfit };
const struct mcp_client_transport streams = {
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

const struct json_val *nth_sent(const char *method, unsigned n)
{
	for (unsigned i = sent_n; i-- > 0;) {
		const struct json_val *root = json_root(sent[i].doc);

		if (str_is(json_str(json_get(root, "method")), method) && n-- == 0)
			return root;
	}
	return NULL;
}

const struct json_val *last_sent(const char *method)
{
	return nth_sent(method, 0);
}

unsigned count_sent(const char *method)
{
	unsigned n = 0;

	while (nth_sent(method, n))
		n++;
	return n;
}

/* The id of the last request of that method. */
int id_of(const char *method)
{
	assert_non_null(last_sent(method));
	return (int)int_at(last_sent(method), "id");
}

struct mcp_pending *pending_of(const char *method)
{
	for (unsigned i = sent_n; i-- > 0;) {
		if (str_is(json_str(json_get(json_root(sent[i].doc), "method")), method))
			return sent[i].p;
	}
	return NULL;
}

/* The last answer of the client. */
const struct json_val *last_answer(void)
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

bool say(const char *fmt, ...)
{
	va_list ap;
	bool answered;

	va_start(ap, fmt);
	answered = vsay(NULL, fmt, ap);
	va_end(ap);
	return answered;
}

bool say_on(struct mcp_pending *p, const char *fmt, ...)
{
	va_list ap;
	bool answered;

	va_start(ap, fmt);
	answered = vsay(p, fmt, ap);
	va_end(ap);
	return answered;
}

bool say_result(const char *method, const char *result)
{
	return say("{\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":%s}", id_of(method), result);
}

bool say_error(const char *method, int code, const char *data)
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

const struct mcp_client_handler handler = {
	.ready = on_ready,
	.over = on_over,
	.asked = on_asked,
	.withdrawn = on_withdrawn,
	.url_done = on_url_done,
	.log = on_log,
	.changed = on_changed,
	.updated = on_updated,
};

void on_done(void *owner, const struct mcp_answer *a)
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

struct mcp_client_options options = {
	.name = "hostile",
	.version = "1",
	.can = MCP_CAN_ROOTS | MCP_CAN_SAMPLING | MCP_CAN_FORM | MCP_CAN_URL | MCP_CAN_TASKS,
	.handler = &handler,
	.now_ms = now_ms,
};

void forget_sent(void)
{
	while (sent_n > 0)
		json_free(sent[--sent_n].doc);
}

/* A client whose first message is out. */
void script_open(const char *version, const struct mcp_client_transport *t)
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

void script_begin(const char *version, const struct mcp_client_transport *t)
{
	bool modern = strcmp(version, MODERN) == 0;
	char text[1024];

	script_open(version, t);
	snprintf(text, sizeof(text),
		 modern ? "{\"supportedVersions\":[\"%s\"],\"capabilities\":%s}"
			: "{\"protocolVersion\":\"%s\",\"capabilities\":%s,"
			  "\"serverInfo\":{\"name\":\"h\",\"version\":\"1\"}}",
		 version, ABLE);
	assert_true(say_result(modern ? "server/discover" : "initialize", text));
	assert_int_equal(readies, 1);
	assert_string_equal(mcp_client_version(client), version);
}

struct mcp_client_counts counts(void)
{
	struct mcp_client_counts n;

	mcp_client_counts(client, &n);
	return n;
}

void script_end(void)
{
	mcp_client_free(client);
	client = NULL;
	forget_sent();
}

struct mcp_pending *call_for(unsigned ttl_ms)
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

struct mcp_pending *call(void)
{
	return call_for(0);
}

struct mcp_pending *ask(const char *method, const char *params)
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

struct mcp_pending *ask_list(const char *what)
{
	struct mcp_pending *p;
	struct err e;

	memset(&got, 0, sizeof(got));
	p = mcp_client_list(client, what, on_listed, NULL, &e);
	assert_non_null(p);
	return p;
}

void failed_with(enum err_code code)
{
	assert_int_equal(got.done, 1);
	assert_int_equal(got.e.code, code);
}

void pass(unsigned ms)
{
	now += ms;
	mcp_client_tick(client);
}
