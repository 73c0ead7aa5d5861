/*
 *	headers of the auth -> HTTP exchange -> 401 or 403 -> the auth again -> headers …
 *	                                     -> head, events or text -> end
 *
 * Without an auth there is only the HTTP exchange. An auth is asked for headers from the loop: it
 * may call its owner, which may close the link, while the starter of an exchange may be anywhere in
 * its code.
 */
#include "mcp/connect/exchange.h"

#include <stdlib.h>
#include <strings.h>

#include "http/client/redirect.h"
#include "json/document/utf8.h"
#include "rpc/line.h"

enum {
	HEADERS_MAX = 128,
	REFUSALS_MAX = 5, /* of one exchange; the auth may give up earlier */
	FAILURE_TEXT_MAX = 64 << 10,
	CHALLENGE_MAX = 16 << 10,
	TYPE_SHOWN = 80,
};

struct mcp_exchange {
	struct mcp_exchange_base *b;
	const struct mcp_exchange_events *ev;
	void *owner;
	struct mcp_exchange_spec spec;
	struct mcp_exchange *next, **at; /* in the queue of those that wait; at NULL: not in it */
	struct mcp_auth_request ask;
	bool asking; /* the auth is asked */
	bool dealing; /* it is asked about a refusal */
	struct http_exchange *x;
	int status;
	bool refused; /* the auth will be asked about it */
	char *url; /* where it was redirected to; NULL: nowhere */
	unsigned redirects;
	bool moved; /* it will be sent again */
	bool events;
	bool sent; /* with a failure */
	struct buf text;
	bool starting; /* mcp_exchange_start() will report a failure */
	struct err err;
	bool busy, dead; /* dead: cancelled inside a callback */
};

/* --- the end --- */

static void exchange_free(struct mcp_exchange *t)
{
	if (!t)
		return;
	buf_fini(&t->text);
	free(t->url);
	free(t);
}
AUTO_DEFINE(exchange_free, struct mcp_exchange)

static void leave_queue(struct mcp_exchange *t)
{
	struct mcp_exchange_base *b = t->b;

	if (!t->at)
		return;
	*t->at = t->next;
	*(t->next ? &t->next->at : &b->end) = t->at;
	t->at = NULL;
	b->waiting--;
}

void mcp_exchange_cancel(struct mcp_exchange *t)
{
	leave_queue(t);
	if (t->asking) {
		t->b->asking--;
		t->asking = false;
		t->b->auth->ops->cancel(t->b->auth, &t->ask);
	}
	if (t->x)
		http_exchange_cancel(take_ptr(t->x));
	if (t->busy)
		t->dead = true;
	else
		exchange_free(t);
}

static void finish(struct mcp_exchange *t, const struct err *e)
{
	if (t->x)
		http_exchange_cancel(take_ptr(t->x));
	if (t->starting) {
		t->err = *e;
		return;
	}
	t->ev->on_end(t->owner, t, e ? STR_NONE : line_unmarked(buf_str(&t->text)), e);
	exchange_free(t);
}

/* --- what comes back --- */

int mcp_exchange_status(const struct mcp_exchange *t)
{
	return t->status;
}

bool mcp_exchange_sent(const struct mcp_exchange *t)
{
	return t->sent;
}

bool mcp_exchange_is_events(const struct mcp_exchange *t)
{
	return t->events;
}

struct str mcp_exchange_header(const struct mcp_exchange *t, const char *name)
{
	return t->x ? http_exchange_header(t->x, name) : STR_NONE;
}

static bool type_is(struct str type, const char *name)
{
	size_t n = strlen(name);

	return type.n >= n && strncasecmp(type.p, name, n) == 0 &&
	       (type.n == n || type.p[n] == ';' || type.p[n] == ' ');
}

bool mcp_exchange_took(int status)
{
	return status >= 200 && status <= 299;
}

static bool is_failure(const struct mcp_exchange *t)
{
	return !mcp_exchange_took(t->status);
}

/* An answer that is used must be JSON or events, as its type says. */
static int check_type(struct mcp_exchange *t, struct err *e)
{
	struct str encoding = mcp_exchange_header(t, "Content-Encoding");
	struct str type = mcp_exchange_header(t, "Content-Type");
	char room[TYPE_SHOWN];

	if (encoding.n > 0 && !type_is(encoding, "identity"))
		return err_set(e, ERR_INVALID, "the answer has an encoding that was not asked for");
	if (is_failure(t) || t->spec.any_type || t->status == 202 || t->status == 204)
		return 0;
	t->events = t->spec.sse && type_is(type, "text/event-stream");
	if (t->events || type.n == 0 || type_is(type, "application/json") ||
	    type_is(type, "application/json-rpc"))
		return 0;
	return err_set(e, ERR_INVALID,
		       "the answer is neither JSON nor events: its type is %.*s, not "
		       "application/json or text/event-stream",
		       STR_ARG(utf8_line(type, room, sizeof(room))));
}

/* Whether the server let the request in. An intermediary may answer anything with 200. */
static bool is_let_in(const struct mcp_exchange *t)
{
	if (t->spec.any_type)
		return t->status == 202;
	return t->status == 200 && mcp_exchange_header(t, "Content-Type").n > 0;
}

/* False if the owner has cancelled t meanwhile, and it is freed. */
static bool tell_auth(struct mcp_exchange *t)
{
	struct mcp_auth *auth = t->b->auth;

	if (!auth || !auth->ops->answered || !is_let_in(t))
		return true;
	t->busy = true;
	auth->ops->answered(auth, mcp_exchange_header(t, "DPoP-Nonce"));
	t->busy = false;
	if (!t->dead)
		return true;
	exchange_free(t);
	return false;
}

static int redirected(struct mcp_exchange *t, struct err *e)
{
	const char *from = t->url ?: t->spec.url;
	char *to;

	if (t->redirects++ == HTTP_REDIRECTS_MAX)
		return err_set(e, ERR_TRANSPORT,
			       "the server answered with HTTP status %d, the redirect number %u",
			       t->status, t->redirects);
	if (http_redirect(from, t->spec.method, t->status, mcp_exchange_header(t, "Location"), &to,
			  e) < 0)
		return -1;
	free(t->url);
	t->url = to;
	t->moved = true;
	return 0;
}

static void on_head(void *owner, struct http_exchange *x, int status)
{
	struct mcp_exchange *t = owner;
	struct mcp_auth *auth = t->b->auth;
	struct err e;

	t->status = status;
	t->refused = (status == 401 || status == 403) && auth && t->ask.tries < REFUSALS_MAX;
	if (t->refused)
		return;
	if (http_is_redirect(status)) {
		if (redirected(t, &e) < 0)
			finish(t, &e);
		return;
	}
	if (check_type(t, &e) < 0)
		finish(t, &e);
	else if (tell_auth(t) && t->ev->on_head)
		t->ev->on_head(t->owner, t);
}

static int take_events(struct mcp_exchange *t, struct str bytes, struct err *e)
{
	struct sse_event ev;
	int rc = 0;

	t->busy = true;
	while (!t->dead && (rc = sse_next(t->spec.sse, &bytes, &ev, e)) > 0)
		t->ev->on_event(t->owner, t, &ev);
	t->busy = false;
	return rc;
}

/* A failure's status is enough; only the beginning of its text is kept. */
static int take_text(struct mcp_exchange *t, struct str bytes, struct err *e)
{
	if (!is_failure(t))
		return t->spec.any_type ? 0 : buf_add(&t->text, bytes.p, bytes.n, e);
	if (t->text.n + bytes.n > FAILURE_TEXT_MAX || buf_add(&t->text, bytes.p, bytes.n, e) < 0)
		finish(t, NULL);
	return 0;
}

static void on_bytes(void *owner, struct http_exchange *x, struct str bytes)
{
	struct mcp_exchange *t = owner;
	struct err e;

	if (t->refused || t->moved)
		return;
	if (!t->events) {
		if (take_text(t, bytes, &e) < 0)
			finish(t, &e);
		return;
	}
	if (take_events(t, bytes, &e) < 0 && !t->dead)
		finish(t, &e);
	else if (t->dead)
		exchange_free(t);
}

static void again(struct mcp_exchange *t);

static void on_end(void *owner, struct http_exchange *x, const struct err *e)
{
	struct mcp_exchange *t = owner;
	struct str nonce = mcp_exchange_header(t, "DPoP-Nonce");
	autobuf struct buf challenge = BUF_INIT(CHALLENGE_MAX);
	struct err unused;

	if (t->refused && http_exchange_headers(x, "WWW-Authenticate", &challenge, &unused) < 0)
		buf_fini(&challenge); /* no valid challenge is so long */
	t->x = NULL;
	t->sent = e && http_exchange_sent(x);
	if (t->moved && !e) {
		again(t);
		return;
	}
	if (!t->refused || e) {
		finish(t, e);
		return;
	}
	t->asking = t->dealing = true;
	t->b->asking++;
	t->ask.tries++;
	t->b->auth->ops->refused(t->b->auth, &t->ask, t->status, buf_str(&challenge), nonce);
}

static const struct http_exchange_events exchange_events = { on_head, on_bytes, on_end };

/* --- the way there --- */

static size_t exchange_add(struct http_header *all, size_t n, const struct http_header *more,
			   size_t more_n)
{
	for (size_t i = 0; i < more_n && n < HEADERS_MAX; i++)
		all[n++] = more[i];
	return n;
}

static void go(struct mcp_exchange *t, const struct http_header *extra, size_t extra_n)
{
	struct http_header all[HEADERS_MAX];
	struct http_spec spec = { .method = t->spec.method,
				  .url = t->url ?: t->spec.url,
				  .headers = all,
				  .body = t->spec.body,
				  .idle_ms = t->spec.idle_ms };
	struct err e = ERR_INIT;

	spec.n_headers = exchange_add(all, 0, t->spec.headers, t->spec.headers_n);
	spec.n_headers = exchange_add(all, spec.n_headers, t->b->headers, t->b->headers_n);
	spec.n_headers = exchange_add(all, spec.n_headers, extra, extra_n);
	t->status = 0;
	t->moved = false;
	t->b->went_ms = uv_now(t->b->soon.loop);
	if (spec.n_headers == HEADERS_MAX)
		err_set(&e, ERR_INVALID, "more than %d headers", HEADERS_MAX - 1);
	else
		t->x = http_exchange_start(t->b->http, &spec, &exchange_events, t, &e);
	if (!t->x)
		finish(t, &e);
}

static void ask(struct mcp_exchange *t)
{
	struct mcp_auth *auth = t->b->auth;

	t->asking = true;
	t->dealing = false;
	t->b->asking++;
	auth->ops->headers(auth, &t->ask, t->spec.method, t->url ?: t->spec.url);
}

static void again(struct mcp_exchange *t)
{
	if (t->b->auth)
		ask(t);
	else
		go(t, NULL, 0);
}

static void on_asked(void *owner, const struct http_header *headers, size_t n, const struct err *e)
{
	struct mcp_exchange *t = owner;

	t->asking = false;
	t->b->asking--;
	if (e)
		finish(t, e);
	else if (t->dealing)
		ask(t);
	else
		go(t, headers, n);
}

/* --- the beginning --- */

/* Only those that wait now: one that is refused and returns at once has the next turn. */
static void on_soon(uv_timer_t *soon)
{
	struct mcp_exchange_base *b = soon->data;

	for (unsigned n = b->waiting; n > 0 && b->first; n--) {
		struct mcp_exchange *t = b->first;

		leave_queue(t);
		ask(t);
	}
}

void mcp_exchange_base_init(struct mcp_exchange_base *b, uv_loop_t *loop)
{
	b->end = &b->first;
	uv_timer_init(loop, &b->soon);
	b->soon.data = b;
}

struct mcp_exchange *mcp_exchange_start(struct mcp_exchange_base *b,
					const struct mcp_exchange_spec *spec,
					const struct mcp_exchange_events *ev, void *owner,
					struct err *e)
{
	AUTO(exchange_free) struct mcp_exchange *t = calloc(1, sizeof(*t));

	if (!t)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	*t = (struct mcp_exchange){ .b = b, .ev = ev, .owner = owner, .spec = *spec };
	t->text = (struct buf){ .max = b->text_max, .of = b->memory };
	t->ask = (struct mcp_auth_request){ .done = on_asked, .owner = t };
	if (spec->sse)
		sse_restart(spec->sse);
	if (b->auth) {
		t->at = b->end;
		*t->at = t;
		b->end = &t->next;
		b->waiting++;
		uv_timer_start(&b->soon, on_soon, 0, 0);
		return take_ptr(t);
	}
	t->starting = true;
	go(t, NULL, 0);
	t->starting = false;
	if (t->err.code != ERR_NONE) {
		*e = t->err;
		return NULL;
	}
	return take_ptr(t);
}
