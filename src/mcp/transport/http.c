#include "mcp/transport/http.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "mcp/transport/internal.h"
#include "rpc/line.h"

enum {
	BODY_MAX = 16 << 20,
	SESSIONS = 4096,
	SESSIONS_EACH = 2048,
	IDLE_MS = 30 * 60 * 1000,
	PULSE_MS = 15 * 1000,
	RETRY_MS = 1000,
	EVENTS = 512,
	STORE_MAX = 16 << 20,
	STORE_ALL = 256 << 20,
	KEEP_MS = 60 * 1000,
	DRAIN_MS = 9 * 1000,
	QUEUE = 1 << 20,
	FRAME_MAX = 128 << 20, /* more than any message of the core */
	NAME_MAX_BYTES = 256, /* of a header name */
};

/* --- refusals --- */

static void refuse_memory(struct http_request *q)
{
	const struct err e = { ERR_LIMIT, "out of memory" };

	http_reply_error(q, &e);
}

/* --- headers --- */

/* A repeated header counts as a value that matches nothing. */
static struct str param(void *data, struct str name)
{
	struct http_request *q = data;
	char full[NAME_MAX_BYTES];
	int n = snprintf(full, sizeof(full), "Mcp-Param-%.*s", STR_ARG(name));
	struct str field = { full, (size_t)n };

	if (n < 0 || (size_t)n >= sizeof(full))
		return STR_NONE;
	if (http_request_header_count(q, field) > 1)
		return STR_LIT("=?base64?!?=");
	return http_request_header(q, field);
}

/* --- sessions of requests --- */

/* The session that a request names; NULL if the request was answered instead. */
static struct mcp_http_session *find_session(struct mcp_http *h, const struct mcp_head *head)
{
	struct mcp_http_session *s;

	if (!head->session.p) {
		mcp_wire_refuse(
			head->q, 400,
			"Mcp-Session-Id is missing: send initialize, then name its session");
		return NULL;
	}
	s = mcp_http_session_find(h, head->session, http_request_principal(head->q));
	if (!s)
		mcp_wire_refuse(head->q, 404, "there is no such session: send initialize");
	else
		mcp_http_session_use(s);
	return s;
}

/* Checks the header with the revision, which may be absent, since the session knows it. */
static bool check_version(const struct mcp_head *head)
{
	if (!head->version.p || mcp_profile_find(head->version))
		return true;
	mcp_wire_refuse(head->q, 400, "MCP-Protocol-Version names no revision that is served here");
	return false;
}

static void accept_it(struct http_request *q)
{
	http_reply(q, &(struct http_reply){ .status = 202 });
}

/* --- POST --- */

static void post_modern(struct mcp_http *h, struct http_request *q, struct mcp_inbound *in)
{
	struct mcp_flow *f = mcp_flow_new(h, NULL, q);

	if (f)
		mcp_session_take(f->core, in, f);
	else
		mcp_inbound_free(in);
}

/* A stream costs three packets, an answer without one costs one. */
enum { PRIME_MS = 20 };

static void on_prime(uv_timer_t *timer)
{
	struct mcp_http *h = timer->data;

	for (struct mcp_http_session *s = h->oldest; s; s = s->newer) {
		for (struct mcp_flow *f = s->flows; f && s->asked; f = f->next)
			mcp_flow_prime(f);
	}
}

/* A request that is not answered soon gets a stream that can be resumed, if the revision has
 * that. */
static void post_legacy(struct mcp_http *h, struct mcp_http_session *s, struct http_request *q,
			struct mcp_inbound *in)
{
	struct mcp_flow *f = mcp_flow_new(h, s, q);

	if (!f) {
		mcp_inbound_free(in);
		return;
	}
	f->held = true;
	mcp_session_take(s->core, in, f);
	if (f->state == MCP_FLOW_ASKED && !uv_is_active((uv_handle_t *)&h->prime))
		uv_timer_start(&h->prime, on_prime, PRIME_MS, 0);
	f->held = false;
	mcp_flow_settle(f);
}

static void http_initialize(struct mcp_http *h, const struct mcp_head *head, struct mcp_inbound *in)
{
	struct mcp_http_session *s = head->session.p ? find_session(h, head)
						     : mcp_http_session_new(h, head->q);

	if (!s) {
		mcp_inbound_free(in);
		return;
	}
	post_legacy(h, s, head->q, in);
	if (!mcp_session_version(s->core))
		mcp_http_session_end(s); /* initialize failed */
}

static void in_session(struct mcp_http *h, const struct mcp_head *head, struct mcp_inbound *in)
{
	struct mcp_http_session *s = find_session(h, head);

	if (!s || !check_version(head)) {
		mcp_inbound_free(in);
	} else if (mcp_inbound_is_answered(in)) {
		post_legacy(h, s, head->q, in);
	} else {
		mcp_session_take(s->core, in, NULL);
		accept_it(head->q);
	}
}

/* Handles messages that need neither an answer nor a session. */
static void unanswered(struct http_request *q, struct mcp_inbound *in)
{
	if (mcp_inbound_era(in) == MCP_BROKEN)
		mcp_wire_refuse(q, 400, "this is no message");
	else
		accept_it(q);
	mcp_inbound_free(in);
}

static void post(struct mcp_http *h, const struct mcp_head *head)
{
	struct http_request *q = head->q;
	const struct mcp_http_head said = {
		.protocol_version = head->version,
		.method = head->method,
		.name = head->name,
		.param = param,
		.data = q,
	};
	struct mcp_inbound *in;

	if (mcp_head_takes(head) != (MCP_TAKES_JSON | MCP_TAKES_EVENTS)) {
		mcp_wire_refuse(q, 406, "Accept must list application/json and text/event-stream");
		return;
	}
	in = mcp_inbound_new(h->server, line_unmarked(http_request_body(q)), &said);
	if (!in)
		refuse_memory(q);
	else if (mcp_inbound_era(in) == MCP_LEGACY && mcp_inbound_is_initialize(in))
		http_initialize(h, head, in);
	else if (mcp_inbound_era(in) == MCP_LEGACY)
		in_session(h, head, in);
	else if (mcp_inbound_is_answered(in))
		post_modern(h, q, in);
	else
		unanswered(q, in);
}

/* --- GET and DELETE: for legacy clients only --- */

static void get(struct mcp_http *h, const struct mcp_head *head)
{
	struct http_request *q = head->q;
	struct mcp_http_session *s;
	struct mcp_flow *f;
	uint64_t seen = 0;

	if (!(mcp_head_takes(head) & MCP_TAKES_EVENTS)) {
		mcp_wire_refuse(q, 406, "Accept must list text/event-stream");
		return;
	}
	s = find_session(h, head);
	if (!s || !check_version(head))
		return;
	f = head->last.p ? mcp_flow_by_event(s, head->last, &seen) : mcp_flow_listen(s);
	if (!f && head->last.p)
		mcp_wire_refuse(q, 400, "Last-Event-ID names no stream that can be resumed");
	else if (!f)
		refuse_memory(q);
	else
		mcp_flow_connect(f, q, seen);
}

static void delete (struct mcp_http *h, const struct mcp_head *head)
{
	struct mcp_http_session *s = find_session(h, head);

	if (!s || !check_version(head))
		return;
	mcp_http_session_end(s);
	http_reply(head->q, &(struct http_reply){ .status = 204 });
}

static void refuse_method(struct http_request *q)
{
	static const struct http_header allow = { "Allow", STR_LIT("POST") };
	const char *text = "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32600,"
			   "\"message\":\"this revision has POST only\"}}";

	http_reply(q, &(struct http_reply){ .status = 405,
					    .type = "application/json",
					    .body = str_of(text),
					    .headers = &allow,
					    .n_headers = 1 });
}

static bool is_modern(const struct mcp_head *head)
{
	const struct mcp_profile *p = mcp_profile_find(head->version);

	return p && p->modern;
}

static void http_run(void *owner, struct http_request *q)
{
	struct mcp_http *h = owner;
	enum http_method method = http_request_method(q);
	struct mcp_head head;

	mcp_head_read(q, &head);
	if (head.repeated)
		mcp_wire_refuse(q, 400, "a header that may stand once stands twice");
	else if (method == HTTP_POST)
		post(h, &head);
	else if (is_modern(&head))
		refuse_method(q);
	else if (method == HTTP_GET)
		get(h, &head);
	else
		delete (h, &head);
}

/* --- the whole --- */

/* The time for requests in progress is over. */
static void fail_all(struct mcp_http *h)
{
	struct mcp_flow *f, *next;

	for (struct mcp_http_session *s = h->oldest; s; s = s->newer)
		mcp_session_fail_all(s->core);
	for (f = h->posts; f; f = next) {
		next = f->next;
		mcp_session_fail_all(f->core);
	}
}

static void on_tick(void *owner)
{
	struct mcp_http *h = owner;
	struct mcp_flow *f = h->posts;

	if (h->draining) {
		fail_all(h);
		return;
	}
	while (f)
		f = mcp_flow_tick(f) ? h->posts : f->next;
	mcp_http_sessions_tick(h);
	mcp_server_tick(h->server);
}

static void fill_options(struct mcp_http *h, const struct mcp_http_options *o)
{
	h->o = *o;
	h->o.body_max = o->body_max ?: BODY_MAX;
	h->o.sessions = o->sessions ?: SESSIONS;
	h->o.sessions_each = o->sessions_each ?: SESSIONS_EACH;
	h->o.idle_ms = o->idle_ms ?: IDLE_MS;
	h->o.pulse_ms = o->pulse_ms ?: PULSE_MS;
	h->o.retry_ms = o->retry_ms ?: RETRY_MS;
	h->o.events = o->events ?: EVENTS;
	h->o.store_max = o->store_max ?: STORE_MAX;
	h->o.store_all = o->store_all ?: STORE_ALL;
	h->o.keep_ms = o->keep_ms ?: KEEP_MS;
	h->o.drain_ms = o->drain_ms ?: DRAIN_MS;
	h->o.queue = o->queue ?: QUEUE;
}

struct mcp_http *mcp_http_new(uv_loop_t *loop, struct mcp_server *srv,
			      const struct mcp_http_options *o, struct err *e)
{
	struct mcp_http *h = calloc(1, sizeof(*h));

	if (!h)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	h->server = srv;
	fill_options(h, o);
	h->route = (struct http_route){
		.path = "/mcp",
		.methods = HTTP_GET | HTTP_POST | HTTP_DELETE,
		.body_max = h->o.body_max,
		.run = http_run,
		.doc = "MCP over Streamable HTTP, all revisions.",
	};
	h->frame = BUF_INIT(FRAME_MAX);
	if (mcp_ids_init(&h->ids, h->o.sessions, h->o.sessions_each, e) < 0) {
		free(h);
		return NULL;
	}
	mcp_wires_init(&h->wires, loop, h->o.pulse_ms, on_tick, h);
	uv_timer_init(loop, &h->prime);
	h->prime.data = h;
	return h;
}

struct http_routes mcp_http_routes(struct mcp_http *h)
{
	return (struct http_routes){ .p = &h->route, .n = 1, .owner = h };
}

void mcp_http_stats(const struct mcp_http *h, struct mcp_http_stats *ret)
{
	*ret = (struct mcp_http_stats){ .sessions = h->ids.n,
					.posts = h->posts_n,
					.streams = h->wires.n,
					.stored = h->stored_bytes };
}

void mcp_http_drain(struct mcp_http *h)
{
	struct mcp_flow *f, *next;

	h->draining = true;
	mcp_wires_hurry(&h->wires, h->o.drain_ms);
	for (struct mcp_http_session *s = h->oldest; s; s = s->newer) {
		for (f = s->flows; f; f = f->next) {
			if (f->listens)
				mcp_flow_disconnect(f);
		}
	}
	for (f = h->posts; f; f = next) {
		next = f->next;
		mcp_session_drain(f->core);
	}
}

static void on_wires_closed(void *owner)
{
	struct mcp_http *h = owner;
	void (*on_closed)(void *) = h->on_closed;
	void *arg = h->arg;

	mcp_ids_fini(&h->ids);
	buf_fini(&h->frame);
	spare_fini(&h->spare_flow);
	free(h);
	on_closed(arg);
}

static void on_prime_closed(uv_handle_t *handle)
{
	struct mcp_http *h = handle->data;

	mcp_wires_close(&h->wires, on_wires_closed);
}

void mcp_http_close(struct mcp_http *h, void (*on_closed)(void *arg), void *arg)
{
	h->on_closed = on_closed;
	h->arg = arg;
	while (h->oldest)
		mcp_http_session_end(h->oldest);
	while (h->posts)
		mcp_flow_free(h->posts);
	uv_close((uv_handle_t *)&h->prime, on_prime_closed);
}
