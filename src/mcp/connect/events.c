#include "mcp/connect/events.h"

#include <stdlib.h>

#include "base/log.h"
#include "http/client/url.h"

enum {
	NOTES_MAX = 512, /* in flight; beyond that, messages that are no requests are dropped */
	NOTE_IDLE_MS = 30000, /* for the server to accept one */
	NOTE_LINGER_MS = 1000, /* for its answer to end */
};

/* One message in flight. */
struct note {
	struct mcp_events *v;
	struct note *next, **at;
	char *text;
	struct mcp_pending *pending; /* NULL: none, or no longer wanted */
	struct mcp_exchange *exchange;
	int status;
	bool request, taken;
	struct err why; /* why it can't be sent; reported later */
	struct http_header headers[2];
	uv_timer_t timer;
};

struct mcp_events {
	struct mcp_events_options o;
	uv_loop_t *loop;
	struct mcp_exchange *exchange;
	struct sse_reader sse;
	char *endpoint; /* NULL: not named yet */
	char *version; /* of the session; NULL before */
	int status;
	struct note *notes;
	unsigned n_notes; /* messages that are no requests; requests have the client's limit */
	bool closing;
	struct err why; /* why it can't be opened; reported later */
	uv_timer_t timer;
	void (*on_closed)(void *owner);
	void *closed_owner;
};

/* --- to the server --- */

static void on_note_closed(uv_handle_t *handle)
{
	struct note *n = handle->data;

	free(n->text);
	free(n);
}

static void note_free(struct note *n)
{
	if (n->exchange)
		mcp_exchange_cancel(take_ptr(n->exchange));
	*n->at = n->next;
	if (n->next)
		n->next->at = n->at;
	n->v->n_notes -= !n->request;
	uv_close((uv_handle_t *)&n->timer, on_note_closed);
}

/* Must be the last statement: the client may do anything in it. */
static void note_fail(struct note *n, const struct err *e)
{
	struct mcp_client *client = n->v->o.client;
	struct mcp_pending *pending = n->pending;
	struct err why = *e;

	note_free(n);
	if (pending)
		mcp_client_failed(client, pending, false, &why);
	else
		log_info("mcp events: %s", why.msg);
}

static void on_note_timer(uv_timer_t *timer)
{
	struct note *n = timer->data;

	if (n->taken)
		note_free(n);
	else
		note_fail(n, &n->why);
}

/* The message was accepted. The rest of the answer is only awaited so that the connection can be
 * reused. */
static void on_note_head(void *owner, struct mcp_exchange *t)
{
	struct note *n = owner;

	n->status = mcp_exchange_status(t);
	n->taken = mcp_exchange_took(n->status);
	if (n->taken)
		uv_timer_start(&n->timer, on_note_timer, NOTE_LINGER_MS, 0);
}

static void on_note_end(void *owner, struct mcp_exchange *t, struct str text, const struct err *e)
{
	struct note *n = owner;
	struct err why;

	n->exchange = NULL;
	if (n->taken) {
		note_free(n);
		return;
	}
	if (!e)
		mcp_exchange_err(n->status, text, &why);
	note_fail(n, e ? e : &why);
}

static const struct mcp_exchange_events note_events = { .on_head = on_note_head,
							.on_end = on_note_end };

static struct note *note_new(struct mcp_events *v, struct str text, bool request)
{
	struct note *n = calloc(1, sizeof(*n));
	char *copy = n ? malloc(text.n + 1) : NULL;

	if (!copy) {
		free(n);
		return NULL;
	}
	memcpy(copy, text.p, text.n);
	*n = (struct note){
		.v = v, .text = copy, .request = request, .next = v->notes, .at = &v->notes
	};
	if (n->next)
		n->next->at = &n->next;
	v->notes = n;
	v->n_notes += !request;
	uv_timer_init(v->loop, &n->timer);
	n->timer.data = n;
	return n;
}

/* Without memory for it, a request ends by its timeout. */
void mcp_events_send(struct mcp_events *v, const struct mcp_client_out *m)
{
	bool request = m->kind == MCP_OUT_REQUEST, fits = request || v->n_notes < NOTES_MAX;
	struct note *n = v->endpoint && !v->closing && fits ? note_new(v, m->text, request) : NULL;
	struct mcp_exchange_spec spec = {
		.method = "POST", .url = v->endpoint, .any_type = true, .idle_ms = NOTE_IDLE_MS
	};

	if (!n) {
		log_warn("mcp events: a message is dropped: too many, or no memory");
		return;
	}
	if (m->version && (!v->version || strcmp(v->version, m->version) != 0)) {
		free(v->version);
		v->version = strdup(m->version);
	}
	n->pending = m->pending;
	n->headers[0] = (struct http_header){ "Content-Type", STR_LIT("application/json") };
	n->headers[1] = (struct http_header){ "MCP-Protocol-Version", str_of(v->version) };
	spec.headers = n->headers;
	spec.headers_n = v->version ? 2 : 1;
	spec.body = (struct str){ n->text, m->text.n };
	n->exchange = mcp_exchange_start(v->o.base, &spec, &note_events, n, &n->why);
	if (!n->exchange)
		uv_timer_start(&n->timer, on_note_timer, 0, 0);
}

/* The request has ended: nobody waits for its acceptance. */
void mcp_events_let_go(struct mcp_events *v, struct mcp_pending *p)
{
	struct note *next;

	for (struct note *n = v->notes; n; n = next) {
		next = n->next;
		if (n->pending != p)
			continue;
		n->pending = NULL;
		if (!n->taken)
			note_free(n);
	}
}

/* --- from the server --- */

static void events_lose(struct mcp_events *v, const struct err *e)
{
	if (!v->closing)
		v->o.on_lost(v->o.owner, v->status, e);
}

static int take_endpoint(struct mcp_events *v, struct str ref, struct err *e)
{
	if (http_url_join(v->o.url, ref, &v->endpoint, e) < 0)
		return err_wrap(e, "the server's endpoint");
	if (http_url_same_origin(v->o.url, v->endpoint))
		return 0;
	free(take_ptr(v->endpoint));
	return err_set(e, ERR_UNTRUSTED, "the server names an endpoint of another origin");
}

static void on_event(void *owner, struct mcp_exchange *t, const struct sse_event *ev)
{
	struct mcp_events *v = owner;
	struct err e;

	if (!v->endpoint && str_is(ev->type, "endpoint")) {
		if (take_endpoint(v, ev->data, &e) == 0) {
			v->o.on_open(v->o.owner);
			return;
		}
		mcp_exchange_cancel(take_ptr(v->exchange));
		events_lose(v, &e);
	} else if (v->endpoint && str_is(ev->type, "message") && ev->data.n > 0) {
		mcp_client_message(v->o.client, NULL, ev->data);
	}
}

static void on_head(void *owner, struct mcp_exchange *t)
{
	struct mcp_events *v = owner;
	struct err e;

	v->status = mcp_exchange_status(t);
	if (mcp_exchange_is_events(t) || !mcp_exchange_took(v->status))
		return;
	err_set(&e, ERR_INVALID, "the server answered with something that is no events");
	mcp_exchange_cancel(take_ptr(v->exchange));
	events_lose(v, &e);
}

static void on_end(void *owner, struct mcp_exchange *t, struct str text, const struct err *e)
{
	struct mcp_events *v = owner;
	struct err why;

	v->exchange = NULL;
	v->status = mcp_exchange_status(t);
	if (!mcp_exchange_took(v->status))
		mcp_exchange_err(v->status, text, &why);
	else
		err_set(&why, ERR_TRANSPORT, "the server has ended its events");
	events_lose(v, e ? e : &why);
}

static const struct mcp_exchange_events stream_events = { on_head, on_event, on_end };

static void on_late_failure(uv_timer_t *timer)
{
	struct mcp_events *v = timer->data;

	events_lose(v, &v->why);
}

/* --- start and end --- */

struct mcp_events *mcp_events_new(uv_loop_t *loop, const struct mcp_events_options *o,
				  struct err *e)
{
	static const struct http_header accept = { "Accept", STR_LIT("text/event-stream") };
	struct mcp_events *v = calloc(1, sizeof(*v));
	struct mcp_exchange_spec spec = {
		.method = "GET", .url = o->url, .headers = &accept, .headers_n = 1
	};

	if (!v)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	*v = (struct mcp_events){ .o = *o, .loop = loop };
	/* no budget: the stream is the session, and can't be read on after a refused event */
	sse_init(&v->sse, o->base->text_max, NULL);
	uv_timer_init(loop, &v->timer);
	v->timer.data = v;
	spec.sse = &v->sse;
	v->exchange = mcp_exchange_start(o->base, &spec, &stream_events, v, &v->why);
	if (!v->exchange)
		uv_timer_start(&v->timer, on_late_failure, 0, 0);
	return v;
}

static void on_timer_closed(uv_handle_t *handle)
{
	struct mcp_events *v = handle->data;

	sse_fini(&v->sse);
	free(v->endpoint);
	free(v->version);
	if (v->on_closed)
		v->on_closed(v->closed_owner);
	free(v);
}

void mcp_events_close(struct mcp_events *v, void (*on_closed)(void *owner), void *owner)
{
	v->closing = true;
	v->on_closed = on_closed;
	v->closed_owner = owner;
	if (v->exchange)
		mcp_exchange_cancel(take_ptr(v->exchange));
	while (v->notes)
		note_free(v->notes);
	uv_close((uv_handle_t *)&v->timer, on_timer_closed);
}
