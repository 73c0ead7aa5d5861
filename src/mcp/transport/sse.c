#include "mcp/transport/sse.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "mcp/transport/ids.h"
#include "mcp/transport/wire.h"
#include "rpc/line.h"

enum {
	BODY_MAX = 16 << 20,
	SESSIONS = 1024,
	SESSIONS_EACH = 256,
	PULSE_MS = 15 * 1000,
	DRAIN_MS = 9 * 1000,
	QUEUE = 1 << 20,
	FRAME_MAX = 128 << 20, /* more than any message of the core */
	KEEP = 64 << 10, /* a larger buffer is freed after its event */
};

struct sse_session {
	struct mcp_id_entry entry; /* first: the two are cast */
	struct mcp_sse *sse;
	struct sse_session *prev, *next;
	struct mcp_session *core;
	struct mcp_wire wire;
};

struct mcp_sse {
	struct mcp_server *server;
	struct mcp_sse_options o; /* with defaults filled in */
	struct http_route routes[2];
	struct mcp_wires wires;
	struct mcp_ids ids;
	struct sse_session *sessions;
	struct buf frame; /* the event being written */
	bool draining;
	void (*on_closed)(void *arg);
	void *arg;
};

/* --- sessions --- */

/* Must not be called inside `send`. */
static void end_session(struct sse_session *s)
{
	mcp_ids_remove(&s->sse->ids, &s->entry);
	*(s->prev ? &s->prev->next : &s->sse->sessions) = s->next;
	if (s->next)
		s->next->prev = s->prev;
	mcp_wire_end(&s->wire);
	mcp_session_close(s->core);
	free(s);
}

static void on_wire_closed(void *owner, const struct err *why)
{
	struct sse_session *s = owner;

	log_info("mcp sse: the stream of %s: %s", mcp_session_client(s->core), why->msg);
	end_session(s);
}

static const struct mcp_wire_events wire_events = { .on_closed = on_wire_closed };

/* --- what is sent --- */

static void on_send(void *transport, void *stream, const struct mcp_out *m)
{
	struct sse_session *s = transport;
	struct buf *b = &s->sse->frame;
	struct err e;

	if (!s->wire.stream)
		return;
	b->n = 0;
	if (mcp_event_write(b, "message", NULL, 0, m->text, &e) < 0)
		log_warn("mcp sse: a message is lost: %s", e.msg);
	else
		mcp_wire_give(&s->wire, b);
	if (b->cap > KEEP)
		buf_fini(b);
}

static bool is_congested(void *transport, void *stream)
{
	const struct sse_session *s = transport;

	return mcp_wire_waiting(&s->wire) > s->sse->o.queue / 4;
}

static void on_idle(void *transport)
{
	struct sse_session *s = transport;

	if (s->sse->draining)
		end_session(s);
}

static const struct mcp_transport transport = { .send = on_send,
						.congested = is_congested,
						.idle = on_idle };

/* --- GET /sse --- */

static struct sse_session *sse_make(struct mcp_sse *t, const void *who, struct err *e)
{
	struct sse_session *s = calloc(1, sizeof(*s));

	if (s)
		s->core = mcp_session_new(t->server, &transport, s, MCP_ROAD_SSE, (void *)who);
	if (!s || !s->core) {
		free(s);
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	}
	if (mcp_ids_add(&t->ids, &s->entry, "sse", who, e) < 0) {
		mcp_session_close(s->core);
		free(s);
		return NULL;
	}
	s->sse = t;
	s->next = t->sessions;
	if (t->sessions)
		t->sessions->prev = s;
	t->sessions = s;
	return s;
}

static int send_endpoint(struct sse_session *s, struct err *e)
{
	autobuf struct buf b = BUF_INIT(256);
	char uri[64 + ID_MAX];
	int n = snprintf(uri, sizeof(uri), "/message?sessionId=%s", s->entry.id);

	if (mcp_event_write(&b, "endpoint", NULL, 0, (struct str){ uri, (size_t)n }, e) < 0)
		return -1;
	mcp_wire_write(&s->wire, buf_str(&b));
	return 0;
}

static void run_sse(void *owner, struct http_request *q)
{
	struct mcp_sse *t = owner;
	struct sse_session *s;
	struct err e;

	s = sse_make(t, http_request_principal(q), &e);
	if (!s) {
		http_reply_error(q, &e);
	} else if (mcp_wire_narrow(s->core, q) < 0) {
		end_session(s);
	} else if (mcp_wire_open(&s->wire, &t->wires, q, NULL, 0, &wire_events, s, &e) < 0) {
		http_reply_error(q, &e);
		end_session(s);
	} else if (send_endpoint(s, &e) < 0) {
		end_session(s);
	}
}

/* --- POST /message --- */

static void run_message(void *owner, struct http_request *q)
{
	struct mcp_sse *t = owner;
	struct str id = http_request_query(q, STR_LIT("sessionId"));
	struct sse_session *s;

	if (!id.p) {
		mcp_wire_refuse(q, 400, "sessionId is missing: /sse names it in its first event");
		return;
	}
	s = (struct sse_session *)mcp_ids_find(&t->ids, id, http_request_principal(q));
	if (!s) {
		mcp_wire_refuse(q, 404, "there is no such session: open /sse anew");
		return;
	}
	mcp_session_message(s->core, line_unmarked(http_request_body(q)));
	http_reply(q, &(struct http_reply){ .status = 202 });
}

/* --- the whole --- */

static void on_tick(void *owner)
{
	struct mcp_sse *t = owner;

	mcp_server_tick(t->server);
	/* the time for requests in progress is over */
	while (t->draining && t->sessions) {
		mcp_session_fail_all(t->sessions->core);
		end_session(t->sessions);
	}
}

struct mcp_sse *mcp_sse_new(uv_loop_t *loop, struct mcp_server *srv,
			    const struct mcp_sse_options *o, struct err *e)
{
	struct mcp_sse *t = calloc(1, sizeof(*t));

	if (!t)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	t->server = srv;
	t->o = *o;
	t->o.body_max = o->body_max ?: BODY_MAX;
	t->o.sessions = o->sessions ?: SESSIONS;
	t->o.sessions_each = o->sessions_each ?: SESSIONS_EACH;
	t->o.pulse_ms = o->pulse_ms ?: PULSE_MS;
	t->o.drain_ms = o->drain_ms ?: DRAIN_MS;
	t->o.queue = o->queue ?: QUEUE;
	t->routes[0] = (struct http_route){
		.path = "/sse",
		.methods = HTTP_GET,
		.run = run_sse,
		.doc = "MCP over HTTP with SSE (2024-11-05): the stream.",
	};
	t->routes[1] = (struct http_route){
		.path = "/message",
		.methods = HTTP_POST,
		.body_max = t->o.body_max,
		.run = run_message,
		.doc = "The same: messages to the stream's session.",
	};
	t->frame = BUF_INIT(FRAME_MAX);
	if (mcp_ids_init(&t->ids, t->o.sessions, t->o.sessions_each, e) < 0) {
		free(t);
		return NULL;
	}
	mcp_wires_init(&t->wires, loop, t->o.pulse_ms, on_tick, t);
	return t;
}

struct http_routes mcp_sse_routes(struct mcp_sse *t)
{
	return (struct http_routes){ .p = t->routes, .n = ARRAY_LEN(t->routes), .owner = t };
}

unsigned mcp_sse_sessions(const struct mcp_sse *t)
{
	return t->ids.n;
}

void mcp_sse_drain(struct mcp_sse *t)
{
	struct sse_session *next;

	t->draining = true;
	mcp_wires_hurry(&t->wires, t->o.drain_ms);
	for (struct sse_session *s = t->sessions; s; s = next) {
		next = s->next;
		mcp_session_drain(s->core);
		if (mcp_session_open(s->core) == 0)
			end_session(s);
	}
}

void mcp_sse_end_of(struct mcp_sse *t, const void *who)
{
	struct sse_session *next;

	for (struct sse_session *s = t->sessions; s; s = next) {
		next = s->next;
		if (s->entry.who == who)
			end_session(s);
	}
}

static void on_wires_closed(void *owner)
{
	struct mcp_sse *t = owner;
	void (*on_closed)(void *) = t->on_closed;
	void *arg = t->arg;

	mcp_ids_fini(&t->ids);
	buf_fini(&t->frame);
	free(t);
	on_closed(arg);
}

void mcp_sse_close(struct mcp_sse *t, void (*on_closed)(void *arg), void *arg)
{
	t->on_closed = on_closed;
	t->arg = arg;
	while (t->sessions)
		end_session(t->sessions);
	mcp_wires_close(&t->wires, on_wires_closed);
}
