/*
 * The order of the steps. A flow begins with a refusal or an expiring token, and ends with a token
 * or an error for all that wait:
 *
 *	IDLE -> DISCOVER -> (a stored token: done) -> REFRESH
 *	                 -> REGISTER | ASK_CLIENT -> CONSENT -> TOKEN
 *	                                          -> DEVICE
 *	                                          -> EXCHANGE -> TOKEN
 *
 * A token that was refused at its first use is not replaced at once: a server that refuses
 * everything would make the user log in for ever. The number of logins within some time is limited
 * too, for a server that accepts every token only for a moment.
 */
#include "base/clock.h"
#include "base/log.h"
#include "mcp/oauth/internal.h"

#include <time.h>

enum { SLOWER_MS = 5000, DEVICE_MS_MAX = 60000 };

static const char *const names[OAUTH_STATES] = {
	[OAUTH_IDLE] = "idle",	       [OAUTH_DISCOVER] = "discover",
	[OAUTH_REGISTER] = "register", [OAUTH_ASK_CLIENT] = "ask_client",
	[OAUTH_CONSENT] = "consent",   [OAUTH_DEVICE] = "device",
	[OAUTH_EXCHANGE] = "exchange", [OAUTH_TOKEN] = "token",
	[OAUTH_REFRESH] = "refresh",
};

static void on_person_time(uv_timer_t *timer)
{
	struct err e;

	err_set(&e, ERR_TIMEOUT, "nobody logged in in time");
	oauth_flow_failed(timer->data, &e);
}

void oauth_set_state(struct mcp_oauth *o, enum oauth_state to)
{
	log_debug("oauth: %s -> %s", names[o->state], names[to]);
	o->state = to;
	uv_timer_stop(&o->timer);
	if (to == OAUTH_CONSENT || to == OAUTH_ASK_CLIENT)
		uv_timer_start(&o->timer, on_person_time, o->opt.person_ms, 0);
}

/* --- the end --- */

static void flow_finish(struct mcp_oauth *o, const struct err *e)
{
	const struct mcp_oauth_handler *h = o->opt.handler;
	unsigned round = o->round;
	struct err why = e ? *e : ERR_INIT;
	bool shown = o->shown;

	oauth_fetch_cancel(o);
	oauth_listen_stop(o);
	oauth_authorize_end(o);
	oauth_set_state(o, OAUTH_IDLE);
	o->shown = false;
	if (shown && h && h->settled)
		h->settled(o->opt.owner, e ? &why : NULL);
	oauth_wake(o, round, e ? &why : NULL);
}

void oauth_flow_failed(struct mcp_oauth *o, const struct err *e)
{
	log_debug("oauth: failed: %s", e->msg);
	flow_finish(o, e);
}

static void fail_if(struct mcp_oauth *o, int rc, const struct err *e)
{
	if (rc < 0)
		oauth_flow_failed(o, e);
}

/* --- scope --- */

static bool is_by_person(const struct mcp_oauth *o)
{
	return o->opt.grant == MCP_OAUTH_CODE || o->opt.grant == MCP_OAUTH_DEVICE;
}

/* The scope to request: what was requested before, and what the server asks for now; at first only
 * the latter. */
static int choose_scope(struct mcp_oauth *o, struct err *e)
{
	const char *said = o->challenge.scope[0] ? o->challenge.scope : o->resource.scope;

	buf_drop(&o->scope, o->scope.n);
	if (o->opt.scope && oauth_scope_add(&o->scope, str_of(o->opt.scope), e) < 0)
		return -1;
	if (o->token.wanted && oauth_scope_add(&o->scope, str_of(o->token.wanted), e) < 0)
		return -1;
	if (said && (!o->opt.scope || o->more_scope) &&
	    oauth_scope_add(&o->scope, str_of(said), e) < 0)
		return -1;
	if (is_by_person(o) && o->issuer.offline && !o->opt.online && o->scope.n > 0)
		return oauth_scope_add(&o->scope, STR_LIT("offline_access"), e);
	return 0;
}

/* --- acquiring --- */

static int prepare_code(struct mcp_oauth *o, struct err *e)
{
	const char *was = o->me == &o->client ? o->client.redirect : NULL;

	if (!o->issuer.authorization_endpoint)
		return err_set(e, ERR_INVALID, "the authorization server has no place to log in");
	if (!o->issuer.s256)
		return err_set(e, ERR_UNTRUSTED,
			       "the authorization server does not say that it has PKCE with S256, "
			       "without which a login can be stolen");
	if (o->opt.redirect) {
		free(o->redirect);
		o->redirect = strdup(o->opt.redirect);
		if (!o->redirect)
			return oauth_no_memory(e);
	} else if (oauth_listen_start(o, was, e) < 0) { /* the port of an earlier registration */
		return -1;
	}
	if (was && strcmp(was, o->redirect) != 0)
		return oauth_register_forget(o, e);
	return 0;
}

/* Whether another login may start. Without a user, a login is not counted if the last token has
 * expired as announced: some platforms issue tokens for seconds. */
static int check_logins(struct mcp_oauth *o, struct err *e)
{
	uint64_t first = o->logins[o->logins_n % OAUTH_LOGINS_MAX];

	o->counts = is_by_person(o) || !o->token.expires || o->token.expires > time(NULL);
	if (!o->counts || o->logins_n < OAUTH_LOGINS_MAX || clock_ms() - first >= OAUTH_LOGINS_MS)
		return 0;
	return err_set(e, ERR_LOGIN,
		       "the server has had %d logins within %d minutes and wants another one",
		       OAUTH_LOGINS_MAX, OAUTH_LOGINS_MS / 60000);
}

static int acquire(struct mcp_oauth *o, struct err *e)
{
	enum mcp_oauth_grant grant = o->opt.grant;

	o->nonce_tries = 0;
	if (check_logins(o, e) < 0 || choose_scope(o, e) < 0 || oauth_dpop_decide(o, e) < 0)
		return -1;
	if (grant == MCP_OAUTH_CODE && prepare_code(o, e) < 0)
		return -1;
	if (grant == MCP_OAUTH_DEVICE && !o->issuer.device_endpoint)
		return err_set(e, ERR_INVALID, "the authorization server has no device codes");
	if (!o->me)
		return oauth_register_start(o, e);
	oauth_flow_known(o);
	return 0;
}

/* Gets the assertion that the grant needs. 1 if the handler that was asked has ended the flow. */
static int get_assertion(struct mcp_oauth *o, struct err *e)
{
	enum oauth_state state = o->state;
	unsigned round = o->round;
	const char *text = o->opt.handler->assertion(o->opt.owner, o->issuer.issuer);

	if (o->state != state || o->round != round)
		return 1;
	oauth_authorize_end(o);
	if (!text || !oauth_is_opaque(str_of(text), OAUTH_TOKEN_MAX))
		return err_set(e, ERR_LOGIN, "there is no identity to show to %.120s",
			       o->issuer.issuer);
	o->code = secret_new(str_of(text), e);
	return o->code ? 0 : -1;
}

static int go_on(struct mcp_oauth *o, struct err *e)
{
	int rc;

	switch (o->opt.grant) {
	case MCP_OAUTH_CODE:
		return oauth_authorize_start(o, e);
	case MCP_OAUTH_DEVICE:
		oauth_set_state(o, OAUTH_DEVICE);
		return oauth_device_start(o, e);
	case MCP_OAUTH_ENTERPRISE:
	case MCP_OAUTH_WORKLOAD:
		rc = get_assertion(o, e);
		if (rc != 0)
			return rc;
		break;
	case MCP_OAUTH_CLIENT_CREDENTIALS:
		break;
	}
	oauth_set_state(o, o->opt.grant == MCP_OAUTH_ENTERPRISE ? OAUTH_EXCHANGE : OAUTH_TOKEN);
	return oauth_grant_start(o, e);
}

void oauth_flow_known(struct mcp_oauth *o)
{
	struct err e;

	fail_if(o, go_on(o, &e), &e);
}

void oauth_flow_came_back(struct mcp_oauth *o)
{
	struct err e;

	oauth_listen_stop(o);
	oauth_set_state(o, OAUTH_TOKEN);
	fail_if(o, oauth_grant_start(o, &e), &e);
}

/* --- device authorization --- */

static void on_device_time(uv_timer_t *timer)
{
	struct mcp_oauth *o = timer->data;
	struct err e;

	if (clock_ms() >= o->device_end) {
		on_person_time(timer);
		return;
	}
	o->nonce_tries = 0; /* per poll */
	fail_if(o, oauth_grant_start(o, &e), &e);
}

void oauth_flow_device_shown(struct mcp_oauth *o)
{
	uv_timer_start(&o->timer, on_device_time, o->device_ms, 0);
}

/* True if the device must poll again. */
static bool device_waits(struct mcp_oauth *o, const char *word)
{
	bool slower = strcmp(word, "slow_down") == 0;

	if (!slower && strcmp(word, "authorization_pending") != 0)
		return false;
	if (slower && o->device_ms < DEVICE_MS_MAX)
		o->device_ms += SLOWER_MS;
	uv_timer_start(&o->timer, on_device_time, o->device_ms, 0);
	return true;
}

/* --- known tokens --- */

static bool may_refresh(const struct mcp_oauth *o)
{
	return o->token.refresh && !o->more_scope && o->me &&
	       !(o->token.origin == OAUTH_REFRESHED && o->used && !o->accepted && o->by_refusal);
}

static int refresh(struct mcp_oauth *o, struct err *e)
{
	o->nonce_tries = 0;
	oauth_set_state(o, OAUTH_REFRESH);
	return oauth_grant_start(o, e);
}

/* 1 if the store has a token that was not tried yet. */
static int try_kept(struct mcp_oauth *o, struct err *e)
{
	int rc = o->me ? oauth_token_load(o, e) : 0;

	return rc > 0 && (o->more_scope || oauth_token_is_old(&o->token)) ? 0 : rc;
}

static int found(struct mcp_oauth *o, struct err *e)
{
	const struct oauth_token *t = &o->token;
	int rc;

	if (oauth_client_find(o, e) < 0)
		return -1;
	/* a token of another issuer, resource or client must not be shown here */
	if (t->access && (strcmp(t->issuer, o->issuer.issuer) != 0 ||
			  strcmp(t->resource, o->resource.resource) != 0 ||
			  (o->me && strcmp(t->client_id, o->me->id) != 0)))
		oauth_token_fini(&o->token);
	rc = try_kept(o, e);
	if (rc != 0)
		return rc;
	if (may_refresh(o))
		return refresh(o, e);
	if (!o->by_refusal)
		return 1; /* the server will say what it requires */
	return acquire(o, e);
}

void oauth_flow_found(struct mcp_oauth *o)
{
	struct err e;
	int rc = found(o, &e);

	if (rc > 0)
		flow_finish(o, NULL);
	else
		fail_if(o, rc, &e);
}

/* --- answers of the token endpoint --- */

void oauth_flow_granted(struct mcp_oauth *o, struct oauth_token_answer *a)
{
	struct err e;
	int rc;

	if (o->state == OAUTH_EXCHANGE) {
		oauth_set_state(o, OAUTH_TOKEN);
		fail_if(o, oauth_grant_start(o, &e), &e);
		return;
	}
	if (o->state != OAUTH_REFRESH && o->counts)
		o->logins[o->logins_n++ % OAUTH_LOGINS_MAX] = clock_ms();
	rc = oauth_token_take(o, a, o->state == OAUTH_REFRESH ? OAUTH_REFRESHED : OAUTH_GRANTED,
			      &e);
	if (rc < 0)
		oauth_flow_failed(o, &e);
	else
		flow_finish(o, NULL);
}

static bool is_one_of(const char *word, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(word, words[i]) == 0)
			return true;
	}
	return false;
}

/* is_final(): error codes after which a refresh token will never work again; is_passing(): after
 * which it will work later. */
static bool is_final(const char *word)
{
	static const char *const words[] = { "invalid_grant", "invalid_client",
					     "unauthorized_client" };

	return is_one_of(word, words, ARRAY_LEN(words));
}

static bool is_passing(const char *word)
{
	static const char *const words[] = { "temporarily_unavailable", "server_error", "slow_down",
					     "use_dpop_nonce" };

	return is_one_of(word, words, ARRAY_LEN(words));
}

/* Whether another process has a token instead of the one that could not be refreshed: 0, or 1 and
 * the flow continues with that. If two processes refresh at once, one is refused, and must not undo
 * what the other has stored. */
static int take_another(struct mcp_oauth *o, struct err *e)
{
	int rc = oauth_token_load(o, e);

	if (rc <= 0)
		return rc;
	if (!oauth_token_is_old(&o->token)) {
		flow_finish(o, NULL);
		return 1;
	}
	return may_refresh(o) ? refresh(o, e) < 0 ? -1 : 1 : 0;
}

/* The refresh token does not work now: log in again if the flow began with a refusal. It is kept
 * unless the error is final, since the server may object to something else, and a login is easily
 * lost. */
static int without_refresh(struct mcp_oauth *o, const char *word, struct err *e)
{
	struct oauth_token none = { .access = NULL };
	int rc;

	if (is_passing(word))
		return err_set(e, ERR_TRANSPORT, "the token endpoint does not refresh now: %s",
			       word);
	rc = take_another(o, e);
	if (rc != 0)
		return rc < 0 ? -1 : 0;
	if (is_final(word) && o->token.refresh && oauth_token_drop_refresh(o, e) < 0)
		return -1;
	if (strcmp(word, "invalid_client") == 0 && o->me == &o->client &&
	    oauth_register_forget(o, e) < 0)
		return -1;
	if (o->by_refusal)
		return acquire(o, e);
	oauth_token_fini(&o->token);
	o->token = none;
	flow_finish(o, NULL);
	return 0;
}

static int refused(struct mcp_oauth *o, const char *word, struct err *e)
{
	bool unknown = strcmp(word, "invalid_client") == 0;

	if (o->state == OAUTH_REFRESH)
		return without_refresh(o, word, e);
	if (o->state == OAUTH_DEVICE && device_waits(o, word))
		return 0;
	if (unknown && o->me == &o->client && !o->registered_anew &&
	    o->opt.grant == MCP_OAUTH_CODE) {
		o->registered_anew = true;
		return oauth_register_forget(o, e) < 0 ? -1 : acquire(o, e);
	}
	return err_set(e, ERR_LOGIN, "the authorization server refused: %s", word);
}

void oauth_flow_refused(struct mcp_oauth *o, const char *word)
{
	struct err e;

	fail_if(o, refused(o, word, &e), &e);
}

/* --- the start --- */

int oauth_flow_start(struct mcp_oauth *o, struct err *e)
{
	o->round++;
	o->registered_anew = false;
	oauth_set_state(o, OAUTH_DISCOVER);
	return oauth_discover_start(o, e);
}

int oauth_flow_refresh(struct mcp_oauth *o, struct err *e)
{
	int rc;

	o->by_refusal = o->more_scope = false;
	if (!o->issuer.issuer || !o->me)
		return oauth_flow_start(o, e);
	rc = try_kept(o, e);
	if (rc != 0)
		return rc;
	if (!may_refresh(o)) /* the stored token is old too, and can't be refreshed */
		return 1;
	o->round++;
	return refresh(o, e);
}
