/*
 * Requests of transports, and those that wait for an answer. A flow (flow.c) has a number; a
 * request that comes while it runs waits for it. A token has a number too, which each request
 * carries: a refusal of a token older than ours is answered by sending again.
 */
#include "base/clock.h"
#include "mcp/oauth/internal.h"

#include <time.h>

enum {
	WAITERS_MAX = 4096,
	TRIES_MAX = 4, /* per request: no token, a nonce, too little scope, a nonce again */
	STEPS_MAX = 3, /* times that more scope is requested for it */
	AGAIN_MS = 60000, /* a new token that was refused is not replaced again within this time */
	SCOPE_AGAIN_S = 600, /* nor is a scope requested again that was not granted */
	METHOD_MAX = 16,
};

static struct mcp_oauth *of(struct mcp_auth *a)
{
	return (struct mcp_oauth *)a; /* the first member */
}

/* --- headers --- */

static void fail(struct mcp_auth_request *ask, const struct err *e)
{
	ask->done(ask->owner, NULL, 0, e);
}

/* A token is only for its own server, whatever server the transport was told to use. */
static int ask_write_headers(struct mcp_oauth *o, const char *method, const char *url,
			     struct buf *authorization, struct buf *proof, struct err *e)
{
	struct oauth_url u;
	struct str token;

	if (oauth_url_read(str_of(url), "the request's URL", &u, e) < 0)
		return -1;
	if (!oauth_url_same_origin(&u, &o->server))
		return err_set(e, ERR_UNTRUSTED, "the token is for %.*s only",
			       STR_ARG(o->server.base));
	token = secret_expose(o->token.access, "sent to its server");
	if (!buf_reserve(authorization, token.n + METHOD_MAX, e) ||
	    buf_addf(authorization, e, "%s ", o->token.dpop ? "DPoP" : "Bearer") < 0 ||
	    buf_add(authorization, token.p, token.n, e) < 0)
		return -1;
	return o->token.dpop ? oauth_dpop_proof(o, method, url, token, o->nonce_server, proof, e)
			     : 0;
}

static void give(struct mcp_oauth *o, struct mcp_auth_request *ask, const char *method,
		 const char *url)
{
	autowipe struct buf authorization = BUF_INIT(OAUTH_TOKEN_MAX + METHOD_MAX);
	autobuf struct buf proof = BUF_INIT(OAUTH_PROOF_MAX);
	struct http_header headers[2];
	struct err e;

	ask->data = NULL;
	if (!o->token.access) {
		ask->done(ask->owner, NULL, 0, NULL);
		return;
	}
	if (ask_write_headers(o, method, url, &authorization, &proof, &e) < 0) {
		fail(ask, &e);
		return;
	}
	headers[0] = (struct http_header){ "Authorization", buf_str(&authorization) };
	headers[1] = (struct http_header){ "DPoP", buf_str(&proof) };
	ask->data = (void *)o->serial;
	o->used = true;
	ask->done(ask->owner, headers, o->token.dpop ? 2 : 1, NULL);
}

/* --- waiting --- */

static void waiter_free(struct oauth_waiter *w)
{
	if (!w)
		return;
	free(w->method);
	free(w->url);
	free(w);
}
AUTO_DEFINE(waiter_free, struct oauth_waiter)

static int wait_for(struct mcp_oauth *o, struct mcp_auth_request *ask, const char *method,
		    const char *url, struct err *e)
{
	AUTO(waiter_free) struct oauth_waiter *w = calloc(1, sizeof(*w));
	struct oauth_waiter **end = &o->waiters;

	if (!w || o->waiters_n == WAITERS_MAX)
		return err_set(e, ERR_LIMIT, "too many requests wait for a login");
	w->ask = ask;
	w->round = o->round;
	w->method = method ? strdup(method) : NULL;
	w->url = url ? strdup(url) : NULL;
	if (method && (!w->method || !w->url))
		return oauth_no_memory(e);
	while (*end)
		end = &(*end)->next;
	*end = take_ptr(w);
	o->waiters_n++;
	return 0;
}

/* Takes the oldest of a round, one by one, since a woken one may add others or end them all. */
static struct oauth_waiter *take_waiter(struct mcp_oauth *o, unsigned round)
{
	for (struct oauth_waiter **at = &o->waiters; *at; at = &(*at)->next) {
		struct oauth_waiter *w = *at;

		if (w->round != round)
			continue;
		*at = w->next;
		o->waiters_n--;
		return w;
	}
	return NULL;
}

void oauth_forget_waiters(struct mcp_oauth *o)
{
	struct oauth_waiter *w;

	while ((w = o->waiters)) {
		o->waiters = w->next;
		waiter_free(w);
	}
	o->waiters_n = 0;
}

void oauth_wake(struct mcp_oauth *o, unsigned round, const struct err *e)
{
	struct oauth_waiter *w;

	while ((w = take_waiter(o, round))) {
		/* a token that could not be renewed early is valid until it expires */
		bool good = !o->by_refusal && o->token.access && o->token.expires > time(NULL);

		if (e && !(w->url && good))
			fail(w->ask, e);
		else if (w->url)
			give(o, w->ask, w->method, w->url);
		else
			w->ask->done(w->ask->owner, NULL, 0, NULL);
		waiter_free(w);
	}
}

static void cancel(struct mcp_auth *a, struct mcp_auth_request *ask)
{
	struct mcp_oauth *o = of(a);

	for (struct oauth_waiter **at = &o->waiters; *at; at = &(*at)->next) {
		struct oauth_waiter *w = *at;

		if (w->ask != ask)
			continue;
		*at = w->next;
		o->waiters_n--;
		waiter_free(w);
		return;
	}
}

/* --- the operations of an auth --- */

static void headers(struct mcp_auth *a, struct mcp_auth_request *ask, const char *method,
		    const char *url)
{
	struct mcp_oauth *o = of(a);
	bool busy = o->state != OAUTH_IDLE;
	struct err e;
	int rc;

	if (o->plain) {
		ask->done(ask->owner, NULL, 0, NULL);
		return;
	}
	if (!o->recalled && oauth_token_recall(o, &e) < 0) {
		fail(ask, &e);
		return;
	}
	if (busy ? o->more_scope && o->token.access /* what it has will do for others */
		 : !(o->token.refresh && oauth_token_is_old(&o->token))) {
		give(o, ask, method, url);
		return;
	}
	rc = busy ? 0 : oauth_flow_refresh(o, &e);
	if (rc > 0) {
		give(o, ask, method, url);
		return;
	}
	if (rc < 0) {
		oauth_flow_failed(o, &e);
		fail(ask, &e);
		return;
	}
	if (wait_for(o, ask, method, url, &e) < 0)
		fail(ask, &e);
}

/* 1: send again. The nonce may be the one that we have, since another request may have brought it
 * meanwhile. A nonce that is never accepted ends by TRIES_MAX. */
static int take_nonce(struct mcp_oauth *o, const struct oauth_challenge *c, struct str nonce,
		      struct err *e)
{
	if (strcmp(c->error, "use_dpop_nonce") != 0) {
		oauth_dpop_nonce(o->nonce_server, nonce);
		return 0;
	}
	if (!o->token.dpop)
		return 0;
	if (!oauth_dpop_nonce(o->nonce_server, nonce))
		return err_set(e, ERR_LOGIN,
			       "the server wants a nonce and gives none that it takes");
	return 1;
}

/* The whole scope was requested only recently, maybe by another process; the token may have been
 * renewed since. */
static bool was_asked(const struct mcp_oauth *o, const char *scope)
{
	int64_t since = time(NULL) - o->token.asked;

	return o->token.access && since >= 0 && since < SCOPE_AGAIN_S &&
	       oauth_scope_covers(str_of(o->token.wanted), str_of(scope));
}

/* Whether another token may help: 0, or -1 with the reason why not. */
static int check_worth(struct mcp_oauth *o, const struct oauth_challenge *c, bool more,
		       struct err *e)
{
	const char *said = c->scope[0] ? c->scope : o->resource.scope ? o->resource.scope : "";

	if (more && was_asked(o, said))
		return err_set(
			e, ERR_DENIED,
			"the server wants a scope that was asked for and not granted: %.150s",
			said[0] ? said : "it does not say which");
	/* a new token was refused, and it was requested only recently */
	if (!more && o->token.access && o->token.origin == OAUTH_GRANTED && o->used &&
	    !o->accepted && clock_ms() - o->token.since < AGAIN_MS)
		return err_set(e, ERR_LOGIN,
			       "the server refuses the token that was just issued for it");
	return 0;
}

/* The request was sent with an older token than ours. */
static bool is_stale(const struct mcp_oauth *o, uintptr_t serial)
{
	return o->token.access && serial != o->serial;
}

/* 0: wait, 1: send again. */
static int handle_refusal(struct mcp_oauth *o, struct mcp_auth_request *ask, int status,
			  struct str challenge, struct str nonce, struct err *e)
{
	struct oauth_challenge c;
	uintptr_t serial = (uintptr_t)ask->data;
	bool more;
	int rc;

	if (o->plain)
		return err_set(e, ERR_UNTRUSTED,
			       "it wants a log-in, but is not https: no token is sent there");
	oauth_challenge_read(challenge, o->token.dpop, &c);
	more = strcmp(c.error, "insufficient_scope") == 0;
	if (ask->tries > (more ? STEPS_MAX : TRIES_MAX))
		return err_set(e, ERR_LOGIN, "the server refused it %u times", ask->tries);
	rc = take_nonce(o, &c, nonce, e);
	if (rc != 0)
		return rc;
	if (status == 403 && !more && (o->state != OAUTH_IDLE || !is_stale(o, serial)))
		return err_set(e, ERR_DENIED, "the server forbids it");
	if (o->state != OAUTH_IDLE)
		return 0;
	if (is_stale(o, serial))
		return 1;
	if (check_worth(o, &c, more, e) < 0)
		return -1;
	o->challenge = c;
	o->by_refusal = true;
	o->more_scope = more;
	rc = oauth_flow_start(o, e);
	if (rc < 0)
		oauth_flow_failed(o, e);
	return rc;
}

static void refused(struct mcp_auth *a, struct mcp_auth_request *ask, int status,
		    struct str challenge, struct str nonce)
{
	struct mcp_oauth *o = of(a);
	struct err e = ERR_INIT;
	int rc = handle_refusal(o, ask, status, challenge, nonce, &e);

	if (rc == 0 && o->state != OAUTH_IDLE)
		rc = wait_for(o, ask, NULL, NULL, &e);
	if (rc != 0)
		ask->done(ask->owner, NULL, 0, rc < 0 ? &e : NULL);
}

static void ask_answered(struct mcp_auth *a, struct str nonce)
{
	struct mcp_oauth *o = of(a);

	oauth_dpop_nonce(o->nonce_server, nonce);
	o->accepted = o->used;
}

const struct mcp_auth_ops oauth_ops = {
	.headers = headers, .refused = refused, .answered = ask_answered, .cancel = cancel
};
