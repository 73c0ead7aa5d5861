/*
 * Flows. Messages of the core become the answer of the POST, or events on its stream, or, while the
 * client is away, stored events.
 *
 * Events for a legacy client are stored before they are sent, and sent from the store as the
 * stream's queue has room, so a long replay overflows nothing. A modern client never returns: its
 * events go straight into the stream's queue, and if that is full, the stream and the request end.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "mcp/transport/internal.h"

enum {
	KEEP = 64 << 10, /* a larger buffer is freed after its event */
	EVENT_ID_MAX = 32,
	LISTENERS = 8, /* GET streams of a session */
};

static const char *const state_names[] = { "asked", "open", "away" };

static void set_state(struct mcp_flow *f, enum mcp_flow_state state)
{
	log_debug("mcp http: flow %u: %s -> %s", f->number, state_names[f->state],
		  state_names[state]);
	if (f->session && state == MCP_FLOW_ASKED)
		f->session->asked++;
	else if (f->session && f->state == MCP_FLOW_ASKED)
		f->session->asked--;
	f->state = state;
}

/* --- the life of a flow --- */

static struct mcp_flow **list_of(struct mcp_flow *f)
{
	return f->session ? &f->session->flows : &f->http->posts;
}

static void link_flow(struct mcp_flow *f)
{
	struct mcp_flow **list = list_of(f);

	f->next = *list;
	if (*list)
		(*list)->prev = f;
	*list = f;
	f->http->posts_n += !f->session;
}

static void unlink_flow(struct mcp_flow *f)
{
	*(f->prev ? &f->prev->next : list_of(f)) = f->next;
	if (f->next)
		f->next->prev = f->prev;
	f->http->posts_n -= !f->session;
}

/* Makes a flow without a request; its client is away. */
static struct mcp_flow *http_flow_make(struct mcp_http *h, struct mcp_http_session *s)
{
	struct mcp_flow *f = spare_take(&h->spare_flow, sizeof(*f));

	if (!f)
		return NULL;
	f->http = h;
	f->session = s;
	f->state = MCP_FLOW_AWAY;
	if (s)
		f->core = s->core;
	link_flow(f);
	return f;
}

void mcp_flow_free(struct mcp_flow *f)
{
	if (f->q)
		mcp_wire_refuse(take_ptr(f->q), 404, "the session has ended");
	mcp_wire_end(&f->wire);
	if (f->session) {
		mcp_store_drop(f, UINT64_MAX);
		f->session->listeners -= f->listens;
		f->session->asked -= f->state == MCP_FLOW_ASKED;
	}
	unlink_flow(f);
	if (!f->session)
		mcp_session_close(take_ptr(f->core));
	spare_give(&f->http->spare_flow, f);
}

void mcp_flow_settle(struct mcp_flow *f)
{
	if (f->done && f->state == MCP_FLOW_AWAY && !f->first && !f->held)
		mcp_flow_free(f);
}

/* --- connections --- */

static void on_gone(void *data)
{
	struct mcp_flow *f = data;
	const struct err gone = { ERR_CANCELLED, "the client has gone" };

	http_reply_error(take_ptr(f->q), &gone);
	set_state(f, MCP_FLOW_AWAY);
	if (f->session)
		mcp_flow_settle(f);
	else
		mcp_flow_free(f);
}

static void on_wire_closed(void *owner, const struct err *why)
{
	struct mcp_flow *f = owner;

	log_debug("mcp http: flow %u: %s", f->number, why->msg);
	set_state(f, MCP_FLOW_AWAY);
	f->unsent = NULL;
	if (f->session)
		mcp_flow_settle(f);
	else
		mcp_flow_free(f);
}

void mcp_flow_disconnect(struct mcp_flow *f)
{
	if (f->state != MCP_FLOW_OPEN)
		return;
	mcp_wire_end(&f->wire);
	f->unsent = NULL;
	set_state(f, MCP_FLOW_AWAY);
}

/* Ends the connection once everything was sent that ever will be. */
static void http_flow_finish(struct mcp_flow *f)
{
	if (f->done && !f->unsent)
		mcp_flow_disconnect(f);
}

static void http_flow_pump(struct mcp_flow *f)
{
	while (f->unsent && mcp_wire_waiting(&f->wire) <= f->http->o.queue / 2) {
		mcp_wire_write(&f->wire, (struct str){ f->unsent->text, f->unsent->n });
		f->unsent = f->unsent->next;
	}
}

static void on_wire_drained(void *owner)
{
	struct mcp_flow *f = owner;

	http_flow_pump(f);
	http_flow_finish(f);
	mcp_flow_settle(f);
}

static const struct mcp_wire_events wire_events = { on_wire_closed, on_wire_drained };

/* Headers of an answer: that to initialize, the session's first flow, names the session. */
static size_t name_session(const struct mcp_flow *f, struct http_header *ret)
{
	if (f->number != 1 || !mcp_session_version(f->core))
		return 0;
	*ret = (struct http_header){ "Mcp-Session-Id", str_of(f->session->entry.id) };
	return 1;
}

/* The first event tells the client its position before anything happens, and when to return. */
static void send_first(struct mcp_flow *f, uint64_t seen)
{
	autobuf struct buf b = BUF_INIT(256);
	char id[EVENT_ID_MAX];
	struct err e;

	if (!f->session || !mcp_http_session_polls(f->session))
		return;
	snprintf(id, sizeof(id), "%u-%" PRIu64, f->number, seen);
	if (mcp_event_write(&b, NULL, id, f->http->o.retry_ms, STR_LIT(""), &e) == 0)
		mcp_wire_write(&f->wire, buf_str(&b));
}

/* Answers f->q with a stream. -1 if there are too many: f->q must still be answered. */
static int open_wire(struct mcp_flow *f, uint64_t seen, struct err *e)
{
	struct http_header name = { NULL, STR_NONE };
	size_t n = name_session(f, &name);

	if (mcp_wire_open(&f->wire, &f->http->wires, f->q, &name, n, &wire_events, f, e) < 0)
		return -1;
	f->q = NULL;
	f->primed = f->session != NULL;
	set_state(f, MCP_FLOW_OPEN);
	send_first(f, seen);
	return 0;
}

/* --- what is sent --- */

static void http_flow_answer(struct mcp_flow *f, int status, struct str text)
{
	struct http_header name = { NULL, STR_NONE };
	size_t n = name_session(f, &name);

	set_state(f, MCP_FLOW_AWAY);
	http_reply(take_ptr(f->q), &(struct http_reply){ .status = status,
							 .type = text.n ? "application/json" : NULL,
							 .body = text,
							 .headers = &name,
							 .n_headers = n });
}

/* Sends the event in http->frame, to a client that may return. */
static void put_stored(struct mcp_flow *f)
{
	struct str text = buf_str(&f->http->frame);
	struct mcp_stored *x = mcp_store_add(f, text);

	if (f->state != MCP_FLOW_OPEN)
		return;
	if (!x && !f->unsent) {
		mcp_wire_give(&f->wire, &f->http->frame);
	} else if (!x) {
		mcp_flow_disconnect(f);
	} else {
		if (!f->unsent)
			f->unsent = x;
		http_flow_pump(f);
	}
}

static void put_event(struct mcp_flow *f, struct str text)
{
	struct buf *b = &f->http->frame;
	char id[EVENT_ID_MAX];
	struct err e;

	b->n = 0;
	snprintf(id, sizeof(id), "%u-%" PRIu64, f->number, ++f->events);
	if (mcp_event_write(b, "message", f->session ? id : NULL, 0, text, &e) < 0) {
		log_warn("mcp http: an event is lost: %s", e.msg);
		mcp_flow_disconnect(f);
	} else if (f->session) {
		put_stored(f);
	} else {
		mcp_wire_give(&f->wire, b);
	}
	if (b->cap > KEEP)
		buf_fini(b);
}

/* Something comes before the answer, so it needs a stream. */
static int want_wire(struct mcp_flow *f)
{
	struct err e;

	if (open_wire(f, f->events, &e) == 0)
		return 0;
	http_reply_error(take_ptr(f->q), &e);
	set_state(f, MCP_FLOW_AWAY);
	f->lost = true;
	return -1;
}

/* The GET stream for messages that belong to no request: the newest with a client, else the one to
 * which a client may return. Each message goes to one stream only. */
static struct mcp_flow *general(const struct mcp_http_session *s)
{
	struct mcp_flow *away = NULL;

	for (struct mcp_flow *f = s->flows; f; f = f->next) {
		if (f->listens && f->state == MCP_FLOW_OPEN)
			return f;
		if (f->listens && !f->done && !away)
			away = f;
	}
	return away;
}

static void on_send(void *transport, void *stream, const struct mcp_out *m)
{
	struct mcp_flow *f = stream;

	if (!f)
		f = general(transport);
	if (!f)
		return; /* nobody ever listened */
	if (f->state == MCP_FLOW_ASKED) {
		if (m->kind == MCP_OUT_RESPONSE) {
			http_flow_answer(f, m->status, m->text);
			return;
		}
		if (want_wire(f) < 0)
			return;
	}
	if (f->state == MCP_FLOW_OPEN || f->primed)
		put_event(f, m->text);
}

static void on_stream_done(void *transport, void *stream)
{
	struct mcp_flow *f = stream;

	if (!f)
		return;
	f->done = true;
	f->done_ms = clock_coarse_ms();
	if (f->state == MCP_FLOW_ASKED)
		http_flow_answer(f, 202, STR_NONE); /* cancelled by its client */
	http_flow_finish(f);
	mcp_flow_settle(f);
}

static void on_stream_drop(void *transport, void *stream)
{
	struct mcp_flow *f = stream;

	if (!f || !f->session || !mcp_http_session_polls(f->session))
		return;
	mcp_flow_prime(f);
	mcp_flow_disconnect(f);
}

/* Progress is not stored for a client that is away, since it would take the room of answers. */
static bool is_congested(void *transport, void *stream)
{
	const struct mcp_flow *f = stream;

	return f && (f->state == MCP_FLOW_AWAY || f->unsent ||
		     mcp_wire_waiting(&f->wire) > f->http->o.queue / 4);
}

const struct mcp_transport mcp_http_transport = {
	.send = on_send,
	.stream_done = on_stream_done,
	.stream_drop = on_stream_drop,
	.congested = is_congested,
};

/* --- what requests and the clock want --- */

struct mcp_flow *mcp_flow_new(struct mcp_http *h, struct mcp_http_session *s,
			      struct http_request *q)
{
	struct mcp_flow *f = http_flow_make(h, s);
	struct err e;

	if (f && !s)
		f->core = mcp_session_new(h->server, &mcp_http_transport, f, MCP_ROAD_POST,
					  (void *)http_request_principal(q));
	if (!f || !f->core) {
		if (f)
			mcp_flow_free(f);
		err_set(&e, ERR_LIMIT, "out of memory");
		http_reply_error(q, &e);
		return NULL;
	}
	if (!s && mcp_wire_narrow(f->core, q) < 0) {
		mcp_flow_free(f);
		return NULL;
	}
	if (s)
		f->number = ++s->flows_made;
	f->q = q;
	set_state(f, MCP_FLOW_ASKED);
	http_request_on_gone(q, on_gone, f);
	return f;
}

void mcp_flow_prime(struct mcp_flow *f)
{
	struct err e;

	/* without a stream it stays a waiting request */
	if (f->state == MCP_FLOW_ASKED && mcp_http_session_polls(f->session) &&
	    open_wire(f, f->events, &e) < 0)
		log_info("mcp http: %s", e.msg);
}

bool mcp_flow_tick(struct mcp_flow *f)
{
	struct err e;

	if (f->lost && !f->session) {
		mcp_flow_free(f);
		return true;
	}
	if (f->lost && !f->done) {
		mcp_session_cancel_stream(f->core, f);
		f->done = true;
		mcp_flow_settle(f);
		return true;
	}
	if (f->state == MCP_FLOW_ASKED && f->waited && open_wire(f, f->events, &e) < 0)
		log_info("mcp http: %s", e.msg);
	f->waited = f->state == MCP_FLOW_ASKED;
	return false;
}

void mcp_flow_connect(struct mcp_flow *f, struct http_request *q, uint64_t seen)
{
	struct err e;

	mcp_flow_disconnect(f);
	f->done &= !f->listens; /* a client has returned */
	f->held = true;
	mcp_store_drop(f, seen);
	f->q = q;
	if (open_wire(f, seen, &e) < 0) {
		http_reply_error(take_ptr(f->q), &e);
	} else {
		f->unsent = f->first;
		http_flow_pump(f);
		http_flow_finish(f);
	}
	f->held = false;
	mcp_flow_settle(f);
}

struct mcp_flow *mcp_flow_listen(struct mcp_http_session *s)
{
	struct mcp_flow *f, *oldest = NULL;

	for (f = s->flows; f; f = f->next) {
		/* one that its client has left gets nothing more once there is a new one */
		if (f->listens && !f->done && f->state == MCP_FLOW_AWAY) {
			f->done = true;
			f->done_ms = clock_coarse_ms();
		}
		if (f->listens && (f->done || !oldest || !oldest->done))
			oldest = f;
	}
	if (s->listeners >= LISTENERS)
		mcp_flow_free(oldest);
	f = http_flow_make(s->http, s);
	if (!f)
		return NULL;
	f->listens = true;
	f->number = s->listened ? ++s->flows_made : 0;
	s->listened = true;
	s->listeners++;
	return f;
}

/* Parses "3-17"; 19 digits fit any number. */
static bool read_number(struct str *text, uint64_t *ret)
{
	size_t i = 0;

	*ret = 0;
	for (; i < text->n && i < 19 && text->p[i] >= '0' && text->p[i] <= '9'; i++)
		*ret = *ret * 10 + (uint64_t)(text->p[i] - '0');
	text->p += i;
	text->n -= i;
	return i > 0;
}

struct mcp_flow *mcp_flow_by_event(struct mcp_http_session *s, struct str id, uint64_t *ret_seen)
{
	uint64_t number;

	if (!read_number(&id, &number) || !str_starts(id, "-"))
		return NULL;
	id.p++;
	id.n--;
	if (!read_number(&id, ret_seen) || id.n > 0)
		return NULL;
	for (struct mcp_flow *f = s->flows; f; f = f->next) {
		if (f->number == number)
			return f->primed && *ret_seen <= f->events ? f : NULL;
	}
	return NULL;
}
