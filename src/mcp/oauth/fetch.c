/*
 * One request of OAuth. Only a GET is redirected, and only within its origin: nothing else may
 * learn a code or a token. The answer's size and the total time are limited. An early end is
 * reported from the timer, since a callback of libcurl is on the stack.
 */
#include "mcp/oauth/internal.h"

#include <stdlib.h>

#include "base/log.h"
#include "http/client/redirect.h"

enum { HEADERS = 6 };

static void fetch_settle(struct mcp_oauth *o, const struct err *e)
{
	struct oauth_fetch *f = &o->fetch;
	struct oauth_answer a = { f->status, buf_str(&f->body), str_of(f->nonce) };
	struct buf body = f->body;
	struct err why = e ? *e : ERR_INIT;

	uv_timer_stop(&f->timer);
	f->exchange = NULL;
	f->body = BUF_INIT(OAUTH_DOCUMENT_MAX); /* the next fetch allocates its own */
	f->done(o, e ? NULL : &a, e ? &why : NULL);
	buf_wipe(&body);
}

static void on_timer(uv_timer_t *timer)
{
	struct mcp_oauth *o = timer->data;
	struct oauth_fetch *f = &o->fetch;

	if (f->exchange)
		http_exchange_cancel(f->exchange);
	fetch_settle(o, &f->why);
}

static void on_head(void *owner, struct http_exchange *x, int status)
{
	struct mcp_oauth *o = owner;
	struct oauth_fetch *f = &o->fetch;
	struct err e;

	f->status = status;
	if (f->url && http_is_redirect(status) && f->redirects++ < HTTP_REDIRECTS_MAX &&
	    http_redirect(f->url, "GET", status, http_exchange_header(x, "Location"), &f->next,
			  &e) < 0)
		log_info("mcp oauth: %s", e.msg);
	oauth_dpop_nonce(f->nonce, http_exchange_header(x, "DPoP-Nonce"));
}

static void on_bytes(void *owner, struct http_exchange *x, struct str bytes)
{
	struct mcp_oauth *o = owner;
	struct oauth_fetch *f = &o->fetch;

	if (buf_add(&f->body, bytes.p, bytes.n, &f->why) == 0)
		return;
	http_exchange_cancel(take_ptr(f->exchange));
	uv_timer_start(&f->timer, on_timer, 0, 0);
}

static int fetch_send(struct mcp_oauth *o, const struct oauth_request *q, struct err *e);

static void on_end(void *owner, struct http_exchange *x, const struct err *e)
{
	struct mcp_oauth *o = owner;
	struct oauth_fetch *f = &o->fetch;
	char *next = take_ptr(f->next);
	struct oauth_request q = { .url = next, .revision = f->revision };
	struct err why;

	if (e || !next) {
		free(next);
		fetch_settle(o, e);
		return;
	}
	free(f->url);
	f->url = next;
	f->body.n = 0;
	if (fetch_send(o, &q, &why) < 0)
		fetch_settle(o, &why);
}

static const struct http_exchange_events events = { on_head, on_bytes, on_end };

static size_t list_headers(const struct oauth_request *q, struct http_header h[HEADERS])
{
	const struct {
		const char *name, *value;
	} all[] = {
		{ "Accept", "application/json" },
		{ "User-Agent", "libmcp/" HOLT_VERSION },
		{ "Content-Type", q->type },
		{ "Authorization", q->authorization },
		{ "DPoP", q->proof },
		{ "MCP-Protocol-Version", q->revision },
	};
	size_t n = 0;

	_Static_assert(ARRAY_LEN(all) == HEADERS, "a place for each");
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		if (all[i].value)
			h[n++] = (struct http_header){ all[i].name, str_of(all[i].value) };
	}
	return n;
}

static int fetch_send(struct mcp_oauth *o, const struct oauth_request *q, struct err *e)
{
	struct http_header headers[HEADERS];
	struct http_spec spec = { .method = q->type ? "POST" : "GET",
				  .url = q->url,
				  .headers = headers,
				  .n_headers = list_headers(q, headers),
				  .body = q->type ? q->body : STR_NONE };

	o->fetch.exchange = http_exchange_start(o->http, &spec, &events, o, e);
	return o->fetch.exchange ? 0 : -1;
}

static void fetch_forget(struct oauth_fetch *f)
{
	free(take_ptr(f->url));
	free(take_ptr(f->next));
}

/* Room for the whole body is allocated at the start, so that secrets in it are never moved. */
int oauth_fetch_start(struct mcp_oauth *o, const struct oauth_request *q, oauth_fetched *done,
		      struct err *e)
{
	struct oauth_fetch *f = &o->fetch;

	if (!buf_reserve(&f->body, OAUTH_DOCUMENT_MAX, e))
		return -1;
	f->status = 0;
	f->nonce[0] = '\0';
	f->done = done;
	f->redirects = 0;
	f->revision = q->revision;
	fetch_forget(f);
	f->url = q->type ? NULL : strdup(q->url);
	if (fetch_send(o, q, e) < 0)
		return -1;
	err_set(&f->why, ERR_TIMEOUT, "no answer within %u s", o->opt.step_ms / 1000);
	uv_timer_start(&f->timer, on_timer, o->opt.step_ms, 0);
	return 0;
}

void oauth_fetch_cancel(struct mcp_oauth *o)
{
	struct oauth_fetch *f = &o->fetch;

	uv_timer_stop(&f->timer);
	if (f->exchange)
		http_exchange_cancel(take_ptr(f->exchange));
	fetch_forget(f);
	buf_wipe(&f->body);
}
