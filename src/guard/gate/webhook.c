/*
 * Tells a program of the operator's of each new request for approval, by a POST. It is a hint: the
 * call neither waits for it nor depends on it, and nothing of the answer counts but its status.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "guard/gate/internal.h"
#include "ask/approval.h"
#include "http/client/client.h"
#include "http/client/url.h"
#include "base/when.h"
#include "json/document/put.h"

enum {
	POSTS_MAX = 8, /* at once; what comes meanwhile is not told */
	TIME_MS = 10000,
	BODY_MAX = 256 << 10,
};

struct webhook_post {
	struct webhook_post *next;
	struct gate_webhook *of;
	struct http_exchange *exchange;
	uv_timer_t timer;
};

struct gate_webhook {
	struct http_client *http;
	struct webhook_post *posts;
	unsigned n;
};

int gate_webhook_check(const struct config_file *f, struct err *e)
{
	static const char *const near[] = { "http://127.0.0.1", "http://[::1]" };
	char url[CONFIG_TEXT_MAX + 1];
	autofree char *origin = NULL;

	if (!f->approvals.webhook.n)
		return 0;
	if (f->approvals.webhook.n >= sizeof(url))
		return err_set(e, ERR_INVALID, "/approvals/webhook: too long");
	snprintf(url, sizeof(url), "%.*s", STR_ARG(f->approvals.webhook));
	if (http_url_check(url, e) < 0)
		return err_wrap(e, "/approvals/webhook");
	origin = http_url_origin(url);
	if (origin && strncmp(origin, "https://", 8) == 0)
		return 0;
	for (size_t i = 0; origin && i < ARRAY_LEN(near); i++) {
		size_t n = strlen(near[i]);

		if (strncmp(origin, near[i], n) == 0 && (!origin[n] || origin[n] == ':'))
			return 0;
	}
	return err_set(e, ERR_INVALID,
		       "/approvals/webhook: https, or http at 127.0.0.1 or [::1] only");
}

static void webhook_closed(uv_handle_t *timer)
{
	free(timer->data);
}

static void webhook_post_end(struct webhook_post *p)
{
	struct webhook_post **at = &p->of->posts;

	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	p->of->n--;
	uv_close((uv_handle_t *)&p->timer, webhook_closed);
}

static void webhook_on_head(void *owner, struct http_exchange *x, int status)
{
	struct webhook_post *p = owner;

	if (status < 200 || status > 299)
		log_warn("the webhook of approvals answered with status %d", status);
	http_exchange_cancel(x);
	webhook_post_end(p);
}

static void webhook_on_end(void *owner, struct http_exchange *x, const struct err *e)
{
	if (e)
		log_warn("the webhook of approvals was not reached: %s", e->msg);
	webhook_post_end(owner);
}

static void webhook_on_timer(uv_timer_t *t)
{
	struct webhook_post *p = t->data;

	log_warn("the webhook of approvals did not answer in time");
	http_exchange_cancel(p->exchange);
	webhook_post_end(p);
}

static int webhook_body(const struct approval *a, struct buf *b, struct err *e)
{
	const struct store_approval *r = &a->row;
	struct json_writer w = json_writer(b);
	char expires[WHEN_MAX];

	when_text(expires, a->ask.deadline_ms);
	json_write_object(&w);
	json_put_str(&w, "id", a->ask.id);
	json_put_str(&w, "principal", approval_name(a->ask.principal));
	json_put_str(&w, "action", r->action);
	json_put_str(&w, "target", r->target);
	json_put_str(&w, "rule", r->rule);
	json_put_str(&w, "arguments", r->arguments);
	json_put_str(&w, "expires_at", str_of(expires));
	json_write_object_end(&w);
	return json_write_done(&w, e);
}

static int webhook_start(struct gate *g, struct webhook_post *p, const struct approval *a,
			 struct err *e)
{
	static const struct http_exchange_events events = { .on_head = webhook_on_head,
							    .on_end = webhook_on_end };
	const struct http_header type = { "Content-Type", STR_LIT("application/json") };
	autobuf struct buf b = BUF_INIT(BODY_MAX);
	char url[CONFIG_TEXT_MAX + 1];

	snprintf(url, sizeof(url), "%.*s", STR_ARG(config_file(g->config)->approvals.webhook));
	if (webhook_body(a, &b, e) < 0)
		return -1;
	p->exchange = http_exchange_start(p->of->http,
					  &(struct http_spec){ .method = "POST",
							       .url = url,
							       .headers = &type,
							       .n_headers = 1,
							       .body = buf_str(&b) },
					  &events, p, e);
	return p->exchange ? 0 : -1;
}

static struct gate_webhook *webhook_open(struct gate *g, struct err *e)
{
	const struct http_client_options o = { .connect_ms = TIME_MS };
	struct gate_webhook *h = g->webhook ? g->webhook : calloc(1, sizeof(*h));

	if (!h)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	g->webhook = h;
	if (!h->http)
		h->http = http_client_new(g->loop, &o, e);
	return h->http ? h : NULL;
}

static int webhook_post(struct gate *g, const struct approval *a, struct err *e)
{
	struct gate_webhook *h = webhook_open(g, e);
	struct webhook_post *p;

	if (!h)
		return -1;
	if (h->n >= POSTS_MAX)
		return err_set(e, ERR_LIMIT, "%u requests to it are under way", h->n);
	p = calloc(1, sizeof(*p));
	if (!p || uv_timer_init(g->loop, &p->timer) < 0) {
		free(p);
		return err_set(e, ERR_LIMIT, "out of memory");
	}
	p->timer.data = p;
	p->of = h;
	p->next = h->posts;
	h->posts = p;
	h->n++;
	if (webhook_start(g, p, a, e) < 0) {
		webhook_post_end(p);
		return -1;
	}
	uv_timer_start(&p->timer, webhook_on_timer, TIME_MS, 0);
	return 0;
}

void gate_webhook_tell(struct gate *g, const struct approval *a)
{
	struct err e;

	if (config_file(g->config)->approvals.webhook.n && webhook_post(g, a, &e) < 0)
		log_warn("the webhook of approvals is not told of %.*s: %s", STR_ARG(a->ask.id),
			 e.msg);
}

void gate_webhook_close(struct gate *g)
{
	struct gate_webhook *h = take_ptr(g->webhook);

	if (!h)
		return;
	while (h->posts) {
		http_exchange_cancel(h->posts->exchange);
		webhook_post_end(h->posts);
	}
	if (h->http)
		http_client_close(h->http, NULL, NULL);
	free(h);
}
