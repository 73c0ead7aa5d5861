/*
 * Requests for tokens of a log-in. The program inside has placeholders of its tokens alone, so its
 * refresh token is put into the body here. What the server answers goes to the hub, which keeps the
 * new tokens and writes the answer anew, with placeholders:
 *
 *	client --> exchange_read(), placeholders to values --> server
 *	client <-- placeholders <-- hub <-- a good answer <-- server
 *
 * Only the log-in's own refresh token may be exchanged, so that no code inside can put tokens of
 * another account in its place; a log-in that begins is an exception. Requests of one log-in come
 * one after the other: servers take each refresh token once.
 */
#include "net/egress/flow_bound.h"

#include <stdio.h>

#include "net/egress/exchange.h"
#include "net/egress/head.h"
#include "net/egress/vault.h"

enum { BODY_OUT_MAX = 3 * NW_TOKENS_MAX };

struct tokens {
	struct nw_exchange of;
	struct buf body; /* of the request, as the client sent it */
	size_t taken; /* bytes of the client for that */
	struct exchange read; /* borrows from body */
	bool sent;
	uint32_t ask; /* what the hub is asked; 0: nothing yet */
};

void flow_tokens_end(struct bound *b)
{
	struct tokens *t = take_ptr(b->tokens);

	if (!t)
		return;
	buf_wipe(&t->body);
	free(t);
}

/* ---- the request ----------------------------------------------------------------------------- */

static enum flow_tokens tokens_deny(struct flow *f, enum nw_reason reason, const char *why)
{
	flow_tokens_end(f->bound);
	flow_deny(f, reason, why);
	return FLOW_TOKENS_GONE;
}

static struct str tokens_type(const struct request *r)
{
	struct str fields = r->fields, name, value;

	while (fields.n > 0 && !head_field(&fields, &name, &value)) {
		if (head_is(name, "content-type"))
			return value;
	}
	return STR_LIT("");
}

/* Why the request is not what the log-in may ask for; NULL: it is. */
static const char *tokens_check(const struct flow *f, const struct request *r,
				const struct tokens *t)
{
	struct swap swaps[NW_SECRETS_MAX];
	struct swaps all;
	struct str token;

	if (!str_is(r->method, "POST"))
		return "only POST gets tokens";
	if (r->target.n != r->path.n)
		return "the URL has a query";
	if (t->of.begins)
		return NULL;
	if (!exchange_refreshes(&t->read, &token))
		return "a sandbox may only refresh the tokens of its log-in";
	vault_fill_tokens(f->of->vault, t->of.name, swaps, &all);
	for (size_t i = 0; i < all.n; i++) {
		if (str_eq(all.of[i].from, vault_refresh_mark(f->of->vault, t->of.name)) &&
		    swaps_whole(&all, token) == &all.of[i])
			return NULL;
	}
	return "the refresh token is not the placeholder of this log-in";
}

/* The body, once all of it is there. */
static enum flow_tokens tokens_take(struct flow *f, const struct request *r, struct tokens *t)
{
	struct bound *b = f->bound;
	const struct str rest = { b->in.p + r->n, b->in.n - r->n };
	const char *why;
	struct err e;
	int rc;

	if (!buf_reserve(&t->body, rest.n + 1, &e))
		return tokens_deny(f, NW_REASON_LIMIT_HOST, NULL);
	rc = body_whole(r->body, false, rest, &t->body, &t->taken);
	if (rc < 0)
		return tokens_deny(f, NW_REASON_BAD_HTTP, "the body is malformed");
	if (rc == 0 && b->in.n == b->in.max)
		return tokens_deny(f, NW_REASON_TOKENS, "the request is too large");
	if (rc == 0) {
		flow_tokens_end(b);
		f->scanned = 0;
		if (b->client.ended) {
			flow_bound_broken(f);
			return FLOW_TOKENS_GONE;
		}
		return FLOW_TOKENS_TAKEN;
	}
	why = exchange_read(tokens_type(r), buf_str(&t->body), &t->read);
	why = why ? why : tokens_check(f, r, t);
	return why ? tokens_deny(f, NW_REASON_TOKENS, why) : FLOW_TOKENS_READ;
}

enum flow_tokens flow_tokens_read(struct flow *f, const struct request *r)
{
	struct bound *b = f->bound;
	struct vault *v = f->of->vault;
	const struct nw_exchange *x;

	flow_tokens_end(b);
	if (!f->has_secrets || !b->client.tls || !vault_gets_tokens(v, f->host, f->port))
		return FLOW_TOKENS_NONE;
	x = vault_exchange(v, f->host, f->port, r->path);
	if (!x && !vault_resembles_exchange(v, f->host, f->port, r->path))
		return FLOW_TOKENS_NONE;
	if (!x)
		return tokens_deny(f, NW_REASON_TOKENS,
				   "a server may take this path for the one of its tokens");
	b->tokens = mem_zalloc(sizeof(*b->tokens));
	if (!b->tokens)
		return tokens_deny(f, NW_REASON_LIMIT_HOST, NULL);
	b->tokens->of = *x;
	b->tokens->body = BUF_INIT(b->in.max);
	return tokens_take(f, r, b->tokens);
}

/* Another request of the same log-in is under way, of whichever sandbox. */
static bool tokens_are_busy(const struct flow *f, const struct tokens *t)
{
	for (const struct sandbox *s = f->of->of->sandboxes; s; s = s->next) {
		for (const struct flow *o = s->flows; o; o = flow_next(o)) {
			const struct tokens *other = o->bound ? o->bound->tokens : NULL;

			if (other && other != t && other->sent &&
			    strcmp(other->of.name, t->of.name) == 0)
				return true;
		}
	}
	return false;
}

static bool tokens_write(struct flow *f, const struct request *r, const struct tokens *t)
{
	autowipe struct buf out = BUF_INIT(BODY_OUT_MAX);
	struct swap swaps[NW_SECRETS_MAX];
	struct request other = *r;
	struct swaps all;
	struct err e;

	vault_fill_tokens(f->of->vault, t->of.name, swaps, &all);
	if (!buf_reserve(&out, BODY_OUT_MAX, &e) || exchange_write(&t->read, &all, &out, &e) < 0)
		return flow_deny(f, NW_REASON_TOKENS, "the request is too large");
	other.has_other_body = true;
	other.other_n = out.n;
	return flow_bound_send(f, &other) && flow_bound_up(f, buf_str(&out));
}

bool flow_tokens_send(struct flow *f, const struct request *r, bool *moved)
{
	struct bound *b = f->bound;
	struct tokens *t = b->tokens;
	struct bucket *rate = &f->of->tokens;

	if (tokens_are_busy(f, t)) {
		flow_tokens_end(b);
		f->scanned = 0;
		b->step = STEP_TURN;
		return true;
	}
	if (bucket_has(rate, uv_now(&f->of->of->loop)) < TOKENS_COST)
		return flow_deny(f, NW_REASON_LIMIT_RATE, "too many requests for tokens");
	bucket_take(rate, TOKENS_COST);
	t->sent = true;
	if (!tokens_write(f, r, t))
		return false;
	buf_drop(&b->in, r->n + t->taken);
	f->in_body = false;
	*moved = true;
	return true;
}

bool flow_tokens_wait(const struct flow *f)
{
	return f->bound && f->bound->step == STEP_TURN;
}

bool flow_tokens_go_on(struct flow *f)
{
	f->bound->step = STEP_REQUEST;
	return flow_bound_run(f);
}

/* ---- the answer ------------------------------------------------------------------------------ */

static bool tokens_ask_hub(struct flow *f, struct str body)
{
	autowipe struct buf out = BUF_INIT(sizeof(struct nw_tokens) + NW_TOKENS_MAX);
	struct egress *g = f->of->of;
	struct tokens *t = f->bound->tokens;
	struct nw_tokens m = { .h = { .type = NW_TOKENS },
			       .key = f->of->key,
			       .n = (uint32_t)body.n };
	struct err e;

	if (!++g->last_ask)
		g->last_ask = 1;
	m.h.seq = t->ask = g->last_ask;
	memcpy(m.name, t->of.name, sizeof(m.name));
	if (!buf_reserve(&out, out.max, &e) || buf_add(&out, &m, sizeof(m), &e) < 0 ||
	    buf_add(&out, body.p, body.n, &e) < 0)
		return flow_bound_bad_answer(f, "it is too large");
	link_send(g, out.p, out.n);
	f->bound->step = STEP_TOKENS;
	return true;
}

bool flow_tokens_answer(struct flow *f, const struct answer *a, bool *moved)
{
	struct bound *b = f->bound;
	autowipe struct buf body = BUF_INIT(NW_TOKENS_MAX);
	const struct str rest = { b->from.p + a->n, b->from.n - a->n };
	bool ended = b->server.ended && (!a->until_end || !b->server.cut);
	struct err e;
	size_t n;
	int rc;

	if (!buf_reserve(&body, body.max, &e))
		return flow_deny(f, NW_REASON_LIMIT_HOST, NULL);
	rc = body_whole(a->body, a->until_end, rest, &body, &n);
	if (rc < 0)
		return flow_bound_bad_answer(f, "its body is malformed, or too large");
	if ((rc == 0 || a->until_end) && !ended)
		return b->from.n < b->from.max || flow_bound_bad_answer(f, "it is too large");
	if (rc == 0)
		return flow_bound_bad_answer(f, "the server ended the connection");
	b->want = a->n + n;
	*moved = true;
	return tokens_ask_hub(f, buf_str(&body));
}

static bool tokens_pass(struct flow *f, struct str body)
{
	struct bound *b = f->bound;
	size_t scanned = 0;
	struct answer a;
	const char *why;

	if (answer_read(buf_str(&b->from), &scanned, false, &a, &why) != REQUEST_DONE)
		return flow_bound_bad_answer(f, why);
	b->step = STEP_HEAD; /* for what can't be passed */
	flow_tokens_end(b);
	if (!flow_bound_head(f, &a, ANSWER_LENGTH, body.n) || !flow_bound_down(f, body))
		return false;
	buf_drop(&b->from, b->want);
	return flow_bound_end_answer(f) && flow_bound_run(f);
}

void flow_kept(struct sandbox *s, const struct nw_kept *m, struct str body)
{
	struct flow *f = s->flows;

	while (f && !(f->bound && f->bound->tokens && f->bound->tokens->ask == m->ask))
		f = flow_next(f);
	if (!f)
		return;
	f->last_ms = uv_now(&s->of->loop);
	if (m->kept ? tokens_pass(f, body) : flow_bound_bad_answer(f, m->why))
		flow_watch(f);
}
