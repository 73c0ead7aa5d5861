/*
 * A post is one message to the server with everything that follows from it; or the stream for
 * messages that belong to no request; or the end of the session. It has at most one exchange at a
 * time.
 */
#include "mcp/connect/internal.h"

#include <stdlib.h>

#include "base/log.h"
#include "mcp/connect/forgotten.h"

enum {
	HEADERS_MAX = 80,
	HEADS_MAX = 256 << 10,
	SESSION_MAX = 1024, /* bytes of a session's id */
	RETRY_MS = 1000, /* if a stream names no other time */
	RETRY_MS_MIN = 10,
	RETRY_STREAM_MIN = 100, /* a stream is resumed as long as the link lasts */
	RETRY_MS_MAX = 30000,
	RETRY_NAMED_MAX = 10 * 60 * 1000,
	TRIES_MAX = 5, /* attempts to resume the events of a request, without anything new */
	IDLE_MS = 30000, /* for the answer to a message that is no request */
	LOSSES_MAX = 3, /* of sessions in which nothing was ever accepted */
	LINGER_MS = 1000, /* for an answer to end when the rest is not needed */
};

static void on_timer_closed(uv_handle_t *handle)
{
	struct post *p = handle->data;

	free(p);
}

static void settled(const struct post *p)
{
	if (p->kind == POST_MESSAGE && p->f->o.ev->settled)
		p->f->o.ev->settled(p->f->o.owner);
}

static void post_destroy(struct post *p)
{
	arena_free(p->arena);
	arena_free(p->heads);
	free(p->text);
	sse_fini(&p->sse);
	uv_close((uv_handle_t *)&p->timer, on_timer_closed);
}

void mcp_post_free(struct post *p)
{
	if (p->exchange)
		mcp_exchange_cancel(take_ptr(p->exchange));
	*p->at = p->next;
	if (p->next)
		p->next->at = p->at;
	p->f->n_posts -= !p->request;
	if (p->f->initialized == p)
		p->f->initialized = NULL;
	settled(p);
	p->pending = NULL;
	if (p->busy)
		p->dead = true;
	else
		post_destroy(p);
}

struct post *mcp_post_new(struct mcp_fetch *f, enum post_kind kind)
{
	struct post *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	*p = (struct post){ .f = f, .kind = kind };
	sse_init(&p->sse, f->o.base->text_max, f->o.base->memory);
	uv_timer_init(f->loop, &p->timer);
	p->timer.data = p;
	p->next = f->posts;
	p->at = &f->posts;
	if (p->next)
		p->next->at = &p->next;
	f->posts = p;
	f->n_posts++; /* until it turns out to be a request */
	return p;
}

/* --- callbacks of the client --- */

/* Before these, p->busy is set, so that p stays allocated until post_leave(), whatever the client
 * does. False if p was freed. */
static bool post_leave(struct post *p)
{
	p->busy = false;
	if (p->dead)
		post_destroy(p);
	return !p->dead;
}

static void post_fail(struct post *p, const struct err *e)
{
	void *pending = take_ptr(p->pending);

	if (pending)
		p->f->o.ev->failed(p->f->o.owner, pending, p->sent, e);
	else
		log_info("mcp fetch: %s", e->msg);
}

/* True if it was the answer. */
static bool take_message(struct post *p, struct str text)
{
	bool answer = p->f->o.ev->message(p->f->o.owner, p->pending, text);

	p->tries = 0;
	if (answer && p->request) {
		p->pending = NULL;
		p->state = DONE;
		settled(p);
	}
	return answer;
}

/* --- sessions --- */

static void take_session(struct post *p)
{
	struct mcp_fetch *f = p->f;
	struct str name = mcp_exchange_header(p->exchange, "Mcp-Session-Id");

	for (size_t i = 0; i < name.n; i++) {
		if (name.p[i] < 0x21 || name.p[i] > 0x7e)
			return;
	}
	if (name.n == 0 || name.n > SESSION_MAX)
		return;
	free(f->session);
	f->session = strndup(name.p, name.n);
	f->generation++;
}

static bool lost_its_session(const struct post *p, struct str text)
{
	return p->generation > 0 && mcp_is_forgotten(p->status, text);
}

static const struct err forgotten = {
	ERR_TRANSPORT,
	"the server has forgotten the session; the call may have been carried out",
};

/* Holds the message for the next session, once. */
static void post_hold(struct post *p)
{
	static const struct err again = { ERR_TRANSPORT, "the server forgets its sessions" };

	if (p->kind != POST_MESSAGE || p->opens_stream || p->state != SENT)
		return;
	if (p->resent) {
		post_fail(p, &again);
		return;
	}
	p->resent = true;
	p->state = HELD;
}

/* Several posts may notice the loss; only the first still has f->session. */
static void lose_session(struct post *p)
{
	struct mcp_fetch *f = p->f;
	struct err e;

	if (f->session && ++f->losses > LOSSES_MAX) {
		err_set(&e, ERR_TRANSPORT, "the server forgets every session at once");
		if (f->o.relays)
			post_fail(p, &e);
		else
			f->o.ev->lost(f->o.owner, &e);
		return;
	}
	log_info("mcp fetch: the server has forgotten the session");
	if (f->o.relays)
		post_hold(p);
	f->holding |= f->o.relays;
	f->o.ev->session_lost(f->o.owner, f->o.relays ? NULL : take_ptr(p->pending));
}

/* If its session no longer exists, the message is sent again in the next one. A GET for the rest of
 * a call must not run the call again. */
static void end_lost(struct post *p)
{
	struct mcp_fetch *f = p->f;

	if (p->state == RESUMING)
		post_fail(p, &forgotten);
	if (p->dead)
		return;
	if (p->generation == f->generation) {
		lose_session(p);
	} else if (p->pending || f->o.relays) {
		post_hold(p);
		if (p->state == HELD && !f->holding)
			mcp_post_start(p);
	}
}

/* --- the end of an exchange --- */

static void on_timer(uv_timer_t *timer)
{
	struct post *p = timer->data;
	struct mcp_fetch *f = p->f;
	bool opens = p == f->initialized;

	if (p->state == RESUMING && p->generation > 0 &&
	    (!p->f->session || p->generation != p->f->generation)) {
		p->why = forgotten;
		p->state = FAILED;
	}
	p->busy = true;
	if (p->state == FAILED)
		post_fail(p, &p->why);
	if (!post_leave(p))
		return;
	if (p->state == RESUMING) {
		mcp_post_start(p);
		return;
	}
	mcp_post_free(p);
	if (opens && !f->closing)
		mcp_fetch_initialized(f, true);
}

void mcp_post_fail(struct post *p, const struct err *e)
{
	p->why = *e;
	p->state = FAILED;
	uv_timer_start(&p->timer, on_timer, 0, 0);
}

static uint64_t retry_ms(const struct post *p)
{
	bool named = p->sse.retry_ms >= 0;
	uint64_t ms = named ? (uint64_t)p->sse.retry_ms : RETRY_MS;
	uint64_t max = named && ms > RETRY_MS_MAX ? ms : RETRY_MS_MAX;
	uint64_t min = p->kind == POST_STREAM ? RETRY_STREAM_MIN : RETRY_MS_MIN;

	ms = ms > min ? ms : min;
	max = max < RETRY_NAMED_MAX ? max : RETRY_NAMED_MAX;
	ms = ms < max ? ms << (p->tries < 12 ? p->tries : 12) : max;
	return ms < max ? ms : max;
}

/* True if the events will be resumed later. */
static bool resume(struct post *p)
{
	bool may = p->kind == POST_STREAM || (p->pending && p->sse.id[0] && p->tries < TRIES_MAX);

	if (!may || p->modern || p->f->closing)
		return false;
	uv_timer_start(&p->timer, on_timer, retry_ms(p), 0);
	p->tries++;
	p->state = RESUMING;
	return true;
}

/* Whether it was interrupted, rather than refused, so that more may come. */
static bool broke_off(const struct post *p, const struct err *e)
{
	if (e)
		return e->code == ERR_TRANSPORT || e->code == ERR_TIMEOUT ||
		       (e->code == ERR_LIMIT && p->kind == POST_STREAM);
	return p->events || (p->state == RESUMING && p->status >= 500);
}

static void end_stream(struct post *p, struct str text, const struct err *e)
{
	if (broke_off(p, e) && resume(p))
		return;
	if (!e && p->worked && lost_its_session(p, text) && p->generation == p->f->generation)
		lose_session(p);
	p->state = DONE;
}

/* With these statuses, the body is not the server's answer to the message. */
static bool is_of_the_door(int status)
{
	return status == 401 || status == 403 || status == 429 || (status >= 502 && status <= 504);
}

static void end_text(struct post *p, struct str text)
{
	bool failure = !mcp_exchange_took(p->status);
	bool taken = text.n > 0 && !is_of_the_door(p->status) &&
		     (text.p[0] == '{' || (p->request && !failure));
	struct err e;

	if (taken && take_message(p, text))
		return;
	if (failure)
		mcp_exchange_err(p->status, text, &e);
	else
		err_set(&e, ERR_INVALID, "the server took the request and gave no answer to it");
	if (p->pending || failure)
		post_fail(p, &e);
}

static void end_message(struct post *p, struct str text, const struct err *e)
{
	static const struct err unanswered = { ERR_TRANSPORT,
					       "the server's events ended without an answer" };
	static const struct err unknown = {
		ERR_TRANSPORT,
		"the server no longer knows of the call; it may have been carried out",
	};

	if (!e && lost_its_session(p, text))
		end_lost(p);
	else if (p->state == DONE || (broke_off(p, e) && resume(p)))
		return;
	else if (e)
		post_fail(p, e);
	else if (p->events && p->request)
		post_fail(p, &unanswered);
	else if (p->state == RESUMING)
		post_fail(p, &unknown);
	else if (!p->events)
		end_text(p, text);
}

static bool goes_on(const struct post *p)
{
	return p->exchange || p->state == HELD || p->state == FAILED ||
	       uv_is_active((const uv_handle_t *)&p->timer);
}

static void take_status(struct post *p, const struct mcp_exchange *t)
{
	p->status = mcp_exchange_status(t);
	if (p->request)
		p->f->status = p->status;
	if (p->generation == p->f->generation && mcp_exchange_took(p->status))
		p->f->losses = 0;
}

static void on_end(void *owner, struct mcp_exchange *t, struct str text, const struct err *e)
{
	struct post *p = owner;
	struct mcp_fetch *f = p->f;
	bool taken, opens;

	take_status(p, t);
	taken = !e && mcp_exchange_took(p->status);
	p->sent |= p->events || mcp_exchange_sent(t) || mcp_exchange_took(p->status);
	p->exchange = NULL;
	if (p->kind == POST_DELETE) {
		mcp_fetch_shut(f);
		return;
	}
	uv_timer_stop(&p->timer);
	p->busy = true;
	if (p->kind == POST_STREAM)
		end_stream(p, text, e);
	else
		end_message(p, text, e);
	opens = p == f->initialized;
	if (post_leave(p) && !goes_on(p))
		mcp_post_free(p);
	if (opens && !f->closing)
		mcp_fetch_initialized(f, taken);
}

/* A message that needs no answer is done. The rest is only awaited so that the connection can be
 * reused. What waits for notifications/initialized also waits for a possible rest: the stream must
 * be opened before the first request, and on a connection that is free. */
static void be_taken(struct post *p)
{
	p->state = DONE;
	settled(p);
	uv_timer_start(&p->timer, on_timer, LINGER_MS, 0);
	if (p == p->f->initialized && p->status == 200)
		mcp_fetch_initialized(p->f, true);
}

static void on_head(void *owner, struct mcp_exchange *t)
{
	struct post *p = owner;

	take_status(p, t);
	p->events = mcp_exchange_is_events(t);
	p->worked |= p->events;
	if (p->is_initialize && mcp_exchange_took(p->status))
		take_session(p);
	if (p->kind == POST_MESSAGE && !p->request && mcp_exchange_took(p->status))
		be_taken(p);
}

static void on_event(void *owner, struct mcp_exchange *t, const struct sse_event *ev)
{
	struct post *p = owner;

	p->tries = 0;
	if (ev->data.n == 0 || !str_is(ev->type, "message"))
		return;
	p->busy = true;
	take_message(p, ev->data);
	if (!post_leave(p))
		return;
	if (p->state == DONE && !uv_is_active((uv_handle_t *)&p->timer))
		uv_timer_start(&p->timer, on_timer, LINGER_MS, 0);
	else if (p->state == DONE)
		return;
	else if (p->request && !p->pending)
		mcp_post_free(p); /* released meanwhile */
}

static const struct mcp_exchange_events events = { on_head, on_event, on_end };

/* --- an exchange --- */

struct heads {
	struct http_header p[HEADERS_MAX];
	size_t n;
};

static void post_add(struct post *p, struct heads *h, const char *name, struct str value)
{
	struct err e;
	char *text = value.p ? arena_dup(p->heads, value, &e) : NULL;

	if (text && h->n < HEADERS_MAX)
		h->p[h->n++] = (struct http_header){ name, { text, value.n } };
}

static void add_legacy(struct post *p, struct heads *h, bool get)
{
	struct mcp_fetch *f = p->f;

	if (p->is_initialize && !get)
		return;
	post_add(p, h, "Mcp-Session-Id", str_of(f->session));
	post_add(p, h, "MCP-Protocol-Version", p->version.p ? p->version : str_of(f->version));
	if (p->state != RESUMING)
		p->generation = f->session ? f->generation : 0;
	if (get && p->sse.id[0])
		post_add(p, h, "Last-Event-ID", str_of(p->sse.id));
}

static int set_headers(struct post *p, struct mcp_exchange_spec *spec, bool get, struct err *e)
{
	struct heads h = { .n = 0 };
	struct http_header *all;

	arena_free(p->heads);
	p->heads = arena_new(HEADS_MAX);
	if (!p->heads)
		return err_set(e, ERR_LIMIT, "out of memory");
	post_add(p, &h, "Accept",
		 get ? STR_LIT("text/event-stream")
		     : STR_LIT("application/json, text/event-stream"));
	if (spec->body.p)
		post_add(p, &h, "Content-Type", STR_LIT("application/json"));
	if (p->modern) {
		post_add(p, &h, "MCP-Protocol-Version", p->version);
		post_add(p, &h, "Mcp-Method", p->method);
		post_add(p, &h, "Mcp-Name", p->name);
		for (size_t i = 0; i < p->params_n; i++)
			post_add(p, &h, p->params[i].name, p->params[i].value);
	} else {
		add_legacy(p, &h, get);
	}
	all = arena_array(p->heads, h.n, sizeof(*all), e);
	if (!all || h.n == HEADERS_MAX)
		return err_set(e, ERR_LIMIT, "more headers than a request may have");
	memcpy(all, h.p, h.n * sizeof(*all));
	spec->headers = all;
	spec->headers_n = h.n;
	return 0;
}

void mcp_post_start(struct post *p)
{
	struct mcp_fetch *f = p->f;
	bool get = p->state == RESUMING || p->kind == POST_STREAM;
	struct mcp_exchange_spec spec = {
		.method = get			 ? "GET"
			: p->kind == POST_DELETE ? "DELETE"
						 : "POST",
		.url = f->o.url,
		.body = get || p->kind == POST_DELETE ? STR_NONE : (struct str){ p->text, p->n },
		.sse = &p->sse,
		.any_type = p->kind == POST_MESSAGE && !p->request,
		.idle_ms = p->kind == POST_DELETE || (p->kind == POST_MESSAGE && !p->request)
				 ? IDLE_MS
				 : 0,
	};

	p->status = 0;
	p->events = false;
	if (set_headers(p, &spec, get, &p->why) == 0)
		p->exchange = mcp_exchange_start(f->o.base, &spec, &events, p, &p->why);
	if (p->state == HELD)
		p->state = SENT;
	if (!p->exchange)
		mcp_post_fail(p, &p->why);
}
