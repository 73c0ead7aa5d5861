/*
 * What a server says, of both eras, to a client that asks all sorts of things. An input is lines.
 * The first is one character, the revision (see `revisions`). One that begins with ! is something
 * that the client's owner or its transport does (see `happen`); each other is a message, in which
 * $i is the id of the last request, $j of the one before, $t the token of the last progress that
 * was asked for, and $l the id of the last subscriptions/listen.
 *
 * Whatever comes, each request ends once, nothing is sent for it after the transport has let go of
 * it, every question is withdrawn or answered, and at the end nothing is left.
 *
 */
#include <string.h>

#include "base/buf.h"
#include "fuzz.h"
#include "json/document/json.h"
#include "mcp/client/client.h"
#include "rpc/sniff.h"

enum { ASKED = 64, REQUESTS = 64, LINES_MAX = 256, MESSAGE_MAX = 1 << 16 };

static const struct {
	const char *version;
	bool streams;
} revisions[] = {
	{ "2024-11-05", false }, { "2025-03-26", false }, { "2025-06-18", true },
	{ "2025-11-25", false }, { "2025-11-25", true },  { "2026-07-28", false },
	{ "2026-07-28", true },
};

static struct mcp_client *client;
static uint64_t clock_now, ids[2], token, listening;
static bool is_over, in_request;
static unsigned questions_n;
static struct mcp_question *questions[ASKED];

/* Of the owner's requests, those without an end. */
static struct request {
	struct mcp_pending *p;
	bool list;
} requests[REQUESTS];

/* Of all requests, those that the transport knows. */
static struct mcp_pending *known[2 * REQUESTS];

/* --- the transport --- */

static void know(struct mcp_pending *p)
{
	size_t room = ARRAY_LEN(known);

	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		if (known[i] == p)
			return;
		if (!known[i])
			room = i;
	}
	MUST(room < ARRAY_LEN(known));
	known[room] = p;
}

static void on_send(void *transport, const struct mcp_client_out *m)
{
	struct err e;
	AUTO(json_free) struct json_doc *d = json_parse(m->text, NULL, &e);
	const struct json_val *root = json_root(d), *id = json_get(root, "id");
	uint64_t u;

	MUST(d && !is_over);
	MUST(!memchr(m->text.p, '\n', m->text.n));
	MUST((m->kind == MCP_OUT_REQUEST) == (m->pending != NULL));
	MUST((m->kind == MCP_OUT_RESPONSE) == !json_get(root, "method"));
	if (!m->pending)
		return;
	know(m->pending);
	MUST(json_uint64(id, &u) && u > ids[0]);
	ids[1] = ids[0];
	ids[0] = u;
	json_uint64(json_get(json_get(json_get(root, "params"), "_meta"), "progressToken"), &token);
	if (str_is(m->method, "subscriptions/listen"))
		listening = u;
}

static void on_let_go(void *transport, struct mcp_pending *p)
{
	size_t i = 0;

	while (i < ARRAY_LEN(known) && known[i] != p)
		i++;
	/* what waits for a session was never sent */
	if (i < ARRAY_LEN(known))
		known[i] = NULL;
}

/* --- the owner --- */

static void on_over(void *owner, const struct err *e)
{
	MUST(!is_over && e->code != ERR_NONE);
	for (size_t i = 0; i < REQUESTS; i++)
		MUST(!requests[i].p);
	is_over = true;
}

static void on_asked(void *owner, struct mcp_question *q)
{
	MUST(!in_request && questions_n < ASKED);
	MUST(mcp_question_kind(q) == MCP_ASK_ROOTS ||
	     json_type(mcp_question_params(q)) == JSON_OBJECT);
	questions[questions_n++] = q;
}

static void on_withdrawn(void *owner, struct mcp_question *q)
{
	unsigned i = 0;

	while (i < questions_n && questions[i] != q)
		i++;
	MUST(i < questions_n);
	questions[i] = questions[--questions_n];
}

static void on_log(void *owner, const struct mcp_log_message *m)
{
	MUST(m->level <= MCP_EMERGENCY);
}

static void on_updated(void *owner, struct str uri)
{
	MUST(uri.p);
}

static const struct mcp_client_handler handler = {
	.over = on_over,
	.asked = on_asked,
	.withdrawn = on_withdrawn,
	.log = on_log,
	.updated = on_updated,
};

static void on_done(void *owner, const struct mcp_answer *a)
{
	struct request *r = owner;
	struct err e;

	MUST(!in_request && r->p && !r->list);
	r->p = NULL;
	MUST((a->result != NULL) + (a->fault != NULL) + (a->e != NULL) == 1);
	if (a->result) {
		AUTO(json_free) struct json_doc *d = json_parse(a->text, NULL, &e);

		MUST(json_type(a->result) == JSON_OBJECT && d);
		MUST(json_len(json_root(d)) == json_len(a->result));
	}
}

static void on_listed(void *owner, const struct mcp_listed *l)
{
	struct request *r = owner;

	MUST(!in_request && r->p && r->list);
	r->p = NULL;
	for (size_t i = 0; i < l->n; i++)
		MUST(json_type(l->items[i]) == JSON_OBJECT);
}

static void on_progress(void *owner, const struct mcp_progress *p)
{
	MUST(((struct request *)owner)->p);
}

static void on_task(void *owner, struct str id)
{
	MUST(id.n > 0 && ((struct request *)owner)->p);
}

static struct request *free_request(void)
{
	for (size_t i = 0; i < REQUESTS; i++) {
		if (!requests[i].p)
			return &requests[i];
	}
	return NULL;
}

static struct request *some_request(void)
{
	for (size_t i = 0; i < REQUESTS; i++) {
		if (requests[i].p)
			return &requests[i];
	}
	return NULL;
}

static void ask(const char *method, struct str params, unsigned ttl_ms)
{
	struct request *r = free_request();
	const struct mcp_request_spec s = { .method = method,
					    .params = params,
					    .task_ttl_ms = ttl_ms,
					    .on_progress = on_progress,
					    .on_task = on_task,
					    .on_done = on_done,
					    .owner = r };
	struct err e;

	if (!r)
		return;
	in_request = true;
	r->list = false;
	r->p = mcp_client_request(client, &s, &e);
	in_request = false;
}

static void ask_list(const char *what)
{
	struct request *r = free_request();
	struct err e;

	if (!r)
		return;
	in_request = true;
	r->list = true;
	r->p = mcp_client_list(client, what, on_listed, r, &e);
	in_request = false;
}

static void answer(bool well)
{
	static const struct str answers[] = {
		STR_LIT("{\"action\":\"accept\",\"content\":{\"a\":\"b\"}}"),
		STR_LIT("{\"action\":\"accept\",\"content\":{}}"),
		STR_LIT("{\"action\":\"cancel\"}"),
		STR_LIT("{\"role\":\"user\",\"model\":\"m\",\"content\":{\"type\":\"text\"}}"),
		STR_LIT("{\"roots\":[]}"),
	};
	struct mcp_question *q;
	struct err e;

	if (questions_n == 0)
		return;
	q = questions[--questions_n];
	for (size_t i = 0; well && i < ARRAY_LEN(answers); i++) {
		if (mcp_question_answer(q, answers[i], &e) == 0)
			return;
		MUST(e.code == ERR_INVALID);
	}
	mcp_question_refuse(q, "no");
}

static void cancel(void)
{
	struct request *r = some_request();
	struct mcp_pending *p = r ? r->p : NULL;

	if (!p)
		return;
	r->p = NULL;
	mcp_pending_cancel(p);
}

static struct mcp_pending *some_known(void)
{
	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		if (known[i])
			return known[i];
	}
	return NULL;
}

static void happen(char what)
{
	const struct str uris[] = { STR_LIT("a:"), STR_LIT("b:") };
	const struct err lost = { ERR_TRANSPORT, "lost" };
	struct rpc_sniff sniff = { 0 };
	struct err e;

	switch (what) {
	case 'c':
		ask("tools/call", STR_LIT("{\"name\":\"t\",\"arguments\":{\"a\":\"\\u00e4\"}}"), 0);
		break;
	case 'j':
		ask("tools/call", STR_LIT("{\"name\":\"t\"}"), 5000);
		break;
	case 'r':
		ask("resources/read", STR_LIT("{\"uri\":\"a:\"}"), 0);
		break;
	case 'p':
		ask("prompts/get", STR_LIT("{\"name\":\"p\"}"), 0);
		break;
	case 'm':
		ask("completion/complete", STR_NONE, 0);
		break;
	case 'l':
		ask_list("tools");
		break;
	case 'L':
		ask_list("resources");
		break;
	case 'w':
		(void)!mcp_client_watch(client, MCP_TOOLS, uris, 2, &e);
		break;
	case 'W':
		(void)!mcp_client_watch(client, MCP_PROMPTS, uris + 1, 1, &e);
		break;
	case 'v':
		(void)!mcp_client_set_level(client, MCP_ERROR, &e);
		break;
	case 'a':
		answer(true);
		break;
	case 'x':
		answer(false);
		break;
	case 'k':
		cancel();
		break;
	case 't':
		clock_now += 1000;
		mcp_client_tick(client);
		break;
	case 'T':
		clock_now += 60000;
		mcp_client_tick(client);
		break;
	case 's':
		mcp_client_session_lost(client, some_known());
		break;
	case 'S':
		mcp_client_session_lost(client, NULL);
		break;
	case 'f':
		if (some_known())
			mcp_client_failed(client, some_known(), false, &lost);
		break;
	case 'd':
		rpc_sniff_feed(&sniff, STR_LIT("{\"id\":2}"));
		mcp_client_dropped(client, NULL, &sniff, &lost);
		break;
	default:
		break;
	}
}

/* --- messages --- */

static void add_number(struct buf *to, uint64_t u)
{
	struct err e;

	MUST(buf_addf(to, &e, "%llu", (unsigned long long)u) == 0);
}

static void expand(struct str line, struct buf *to)
{
	struct err e;

	for (size_t i = 0; i < line.n; i++) {
		char next = i + 1 < line.n ? line.p[i + 1] : '\0';

		if (line.p[i] != '$' || !next || !strchr("ijtl", next)) {
			MUST(buf_add(to, line.p + i, 1, &e) == 0);
			continue;
		}
		i++;
		add_number(to, next == 'i'   ? ids[0]
			       : next == 'j' ? ids[1]
			       : next == 't' ? token
					     : listening);
	}
}

/* Over HTTP a message comes on the stream of one request: that of the oldest. */
static void say(struct str line, bool streams)
{
	autobuf struct buf text = BUF_INIT(MESSAGE_MAX * 32);

	expand(line, &text);
	mcp_client_message(client, streams ? some_known() : NULL, buf_str(&text));
}

static struct str next_line(struct str *rest)
{
	const char *end = memchr(rest->p, '\n', rest->n);
	size_t n = end ? (size_t)(end - rest->p) : rest->n;
	struct str line = { rest->p, n };

	n += end != NULL;
	rest->p += n;
	rest->n -= n;
	return line;
}

static uint64_t now_ms(void)
{
	return clock_now;
}

static void start(const char *version, bool streams)
{
	static struct mcp_client_transport t = { .send = on_send, .let_go = on_let_go };
	const struct mcp_client_options o = {
		.name = "f",
		.version = "1",
		.can = MCP_CAN_ROOTS | MCP_CAN_SAMPLING | MCP_CAN_FORM | MCP_CAN_URL |
		       MCP_CAN_TASKS,
		.handler = &handler,
		.pending_max = REQUESTS,
		.message_max = MESSAGE_MAX,
		.now_ms = now_ms,
	};
	bool modern = strcmp(version, "2026-07-28") == 0;
	struct err e;

	clock_now = 1000000;
	memset(ids, 0, sizeof(ids));
	memset(requests, 0, sizeof(requests));
	memset(known, 0, sizeof(known));
	questions_n = 0;
	token = listening = 0;
	is_over = false;
	t.streams = streams;
	client = mcp_client_new(&o, &e);
	MUST(client);
	MUST(mcp_client_start(client, &t, NULL, modern ? MCP_MODERN : MCP_LEGACY, version, &e) ==
	     0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct str rest = { (const char *)data, n };
	const struct err gone = { ERR_TRANSPORT, "gone" };
	struct mcp_client_counts counts;
	size_t which, lines = 0;

	if (n == 0)
		return 0;
	which = (size_t)data[0] % ARRAY_LEN(revisions);
	next_line(&rest);
	start(revisions[which].version, revisions[which].streams);
	while (rest.n > 0 && lines++ < LINES_MAX) {
		struct str line = next_line(&rest);

		if (line.n == 2 && line.p[0] == '!')
			happen(line.p[1]);
		else
			say(line, revisions[which].streams);
	}
	/* sometimes it is freed in the middle of everything */
	if (lines % 2 == 0) {
		mcp_client_lost(client, &gone);
		mcp_client_counts(client, &counts);
		MUST(is_over && questions_n == 0);
		MUST(counts.pending == 0 && counts.questions == 0);
		MUST(!some_known() && !some_request());
	}
	mcp_client_free(client);
	return 0;
}
