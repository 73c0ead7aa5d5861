/* Start and end, options, and calls of the owner. */
#include "mcp/oauth/oauth.h"

#include "mcp/oauth/internal.h"

enum { STEP_MS = 30000, PERSON_MS = 300000, TOLD_MAX = 256 << 10 };

struct mcp_oauth_store *oauth_store_of(struct mcp_oauth *o)
{
	return o->opt.store ? o->opt.store : o->own_store;
}

struct mcp_auth *mcp_oauth_auth(struct mcp_oauth *o)
{
	return &o->auth;
}

static void o_free(struct mcp_oauth *o)
{
	if (!o)
		return;
	oauth_authorize_end(o);
	oauth_token_fini(&o->token);
	oauth_client_fini(&o->given);
	oauth_client_fini(&o->by_url);
	oauth_client_fini(&o->idp);
	oauth_client_fini(&o->client);
	sign_key_free(o->dpop_key);
	mcp_oauth_store_free(o->own_store);
	buf_fini(&o->scope);
	buf_wipe(&o->fetch.body);
	free(o->redirect);
	arena_free(o->found);
	arena_free(o->told);
	free(o);
}
AUTO_DEFINE(o_free, struct mcp_oauth)

void oauth_handle_gone(struct mcp_oauth *o)
{
	void (*on_closed)(void *owner) = o->on_closed;
	void *owner = o->closed_owner;

	if (--o->handles > 0 || !o->closing)
		return;
	o_free(o);
	if (on_closed)
		on_closed(owner);
}

static void on_handle_closed(uv_handle_t *handle)
{
	oauth_handle_gone(handle->data);
}

static void on_client_closed(void *owner)
{
	oauth_handle_gone(owner);
}

void mcp_oauth_close(struct mcp_oauth *o, void (*on_closed)(void *owner), void *owner)
{
	o->on_closed = on_closed;
	o->closed_owner = owner;
	o->closing = true;
	oauth_forget_waiters(o);
	oauth_fetch_cancel(o);
	oauth_listen_stop(o);
	o->state = OAUTH_IDLE;
	http_client_close(o->http, on_client_closed, o);
	uv_close((uv_handle_t *)&o->timer, on_handle_closed);
	uv_close((uv_handle_t *)&o->fetch.timer, on_handle_closed);
}

/* --- options --- */

static int copy_options(struct mcp_oauth *o, const struct mcp_oauth_options *from, struct err *e)
{
	static const struct mcp_oauth_client nobody;
	const char **texts[] = { &o->opt.server,
				 &o->opt.client_id_url,
				 &o->opt.client_name,
				 &o->opt.redirect,
				 &o->opt.scope,
				 &o->opt.issuer,
				 &o->opt.enterprise.token_endpoint };

	o->opt = *from;
	o->opt.client = o->opt.enterprise.client = nobody;
	o->opt.step_ms = from->step_ms ? from->step_ms : STEP_MS;
	o->opt.person_ms = from->person_ms ? from->person_ms : PERSON_MS;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		if (*texts[i] && !(*texts[i] = arena_dup(o->told, str_of(*texts[i]), e)))
			return -1;
	}
	return 0;
}

static int copy_clients(struct mcp_oauth *o, const struct mcp_oauth_options *from, struct err *e)
{
	struct mcp_oauth_client by_url = from->client;

	if (oauth_client_copy(&o->given, &from->client, e) < 0 ||
	    oauth_client_copy(&o->idp, &from->enterprise.client, e) < 0)
		return -1;
	if (!from->client_id_url || from->client.id)
		return 0;
	by_url.id = from->client_id_url;
	by_url.issuer = by_url.secret =
		NULL; /* such a client has no secret: every reader of the URL would see it */
	return oauth_client_copy(&o->by_url, &by_url, e);
}

static int need(bool there, const char *what, struct err *e)
{
	return there ? 0 : err_set(e, ERR_BUG, "this grant needs %s", what);
}

/* Options that each grant requires. */
static int check_grant(const struct mcp_oauth_options *o, struct err *e)
{
	const struct mcp_oauth_handler *h = o->handler;

	switch (o->grant) {
	case MCP_OAUTH_CODE:
		return need(h && h->browse, "browse()", e);
	case MCP_OAUTH_DEVICE:
		return need(h && h->device, "device()", e);
	case MCP_OAUTH_CLIENT_CREDENTIALS:
		return need(o->client.id && (o->client.secret || o->client.private_key),
			    "a client id, and a secret or private key", e);
	case MCP_OAUTH_ENTERPRISE:
		return need(o->client.id && o->enterprise.client.id &&
				    o->enterprise.token_endpoint && h && h->assertion,
			    "a client id, the identity provider, and assertion()", e);
	case MCP_OAUTH_WORKLOAD:
		return need(o->client.id && h && h->assertion, "a client id, and assertion()", e);
	}
	return err_set(e, ERR_BUG, "there is no such grant");
}

/* Checks a URL that the owner gives, since it could send a private key or a login astray. */
static int check_url(struct mcp_oauth *o, const char *text, const char *what, struct err *e)
{
	struct oauth_url u;

	if (!text)
		return 0;
	return oauth_url_read(str_of(text), what, &u, e) < 0
		     ? -1
		     : oauth_url_check(&u, what, OAUTH_ANYWHERE, e);
}

static int check_urls(struct mcp_oauth *o, struct err *e)
{
	if (!o->opt.server)
		return err_set(e, ERR_BUG, "a server's URL is needed");
	if (oauth_url_read(str_of(o->opt.server), "the server", &o->server, e) < 0)
		return -1;
	o->plain = !o->server.tls && !oauth_url_is_loopback(&o->server);
	o->reach = o->opt.private_ok		     ? OAUTH_ANYWHERE
		 : oauth_url_is_loopback(&o->server) ? OAUTH_LOOPBACK
						     : OAUTH_PUBLIC;
	if (o->opt.scope && !oauth_scope_ok(str_of(o->opt.scope)))
		return err_set(e, ERR_INVALID, "the scope is none");
	if (check_url(o, o->opt.redirect, "the redirect URI", e) < 0 ||
	    check_url(o, o->opt.issuer, "the issuer", e) < 0 ||
	    check_url(o, o->opt.client_id_url, "the client id", e) < 0)
		return -1;
	return check_url(o, o->opt.enterprise.token_endpoint, "the identity provider", e);
}

struct mcp_oauth *mcp_oauth_new(uv_loop_t *loop, const struct mcp_oauth_options *options,
				struct err *e)
{
	AUTO(o_free) struct mcp_oauth *o = calloc(1, sizeof(*o));
	struct http_client_options http;

	if (!o || !(o->told = arena_new(TOLD_MAX)))
		return oauth_no_memory(e), NULL;
	o->auth.ops = &oauth_ops;
	o->loop = loop;
	o->scope = BUF_INIT(OAUTH_SCOPE_MAX);
	o->fetch.body = BUF_INIT(OAUTH_DOCUMENT_MAX);
	o->client.alg = o->by_url.alg = SIGN_ALGS;
	if (check_grant(options, e) < 0 || copy_options(o, options, e) < 0 ||
	    check_urls(o, e) < 0 || copy_clients(o, options, e) < 0)
		return NULL;
	o->own_store = options->store ? NULL : mcp_oauth_store_new(e);
	if (!options->store && !o->own_store)
		return NULL;
	http = (struct http_client_options){ .public_only = !o->opt.private_ok,
					     .loopback_too = o->reach != OAUTH_PUBLIC };
	o->http = http_client_new(o->loop, &http, e);
	if (!o->http)
		return NULL;
	uv_timer_init(o->loop, &o->timer);
	uv_timer_init(o->loop, &o->fetch.timer);
	o->timer.data = o->fetch.timer.data = o;
	o->handles = 3; /* with the HTTP client */
	return take_ptr(o);
}

/* --- calls of the owner --- */

int mcp_oauth_redirected(struct mcp_oauth *o, const char *url, struct err *e)
{
	struct oauth_redirect r;
	bool is_ours = false;
	int rc = oauth_redirect_read(str_of(url), &r, e);

	if (rc == 0)
		rc = oauth_authorize_read(o, &r, &is_ours, e);
	explicit_bzero(&r, sizeof(r));
	if (!is_ours)
		return -1;
	if (rc < 0)
		oauth_flow_failed(o, e);
	else
		oauth_flow_came_back(o);
	return 0;
}

int mcp_oauth_client_given(struct mcp_oauth *o, const struct mcp_oauth_client *c, struct err *e)
{
	struct oauth_client copy = { .alg = SIGN_ALGS };

	if (o->state != OAUTH_ASK_CLIENT || !c->id || !*c->id)
		return err_set(e, ERR_INVALID, "no client id was asked for, or none is given");
	if (oauth_client_copy(&copy, c, e) < 0)
		return -1;
	free(copy.issuer);
	copy.issuer = strdup(o->issuer.issuer);
	if (!copy.issuer) {
		oauth_client_fini(&copy);
		return oauth_no_memory(e);
	}
	oauth_register_take(o, &copy);
	oauth_flow_known(o);
	return 0;
}

void mcp_oauth_give_up(struct mcp_oauth *o)
{
	struct err e;

	err_set(&e, ERR_CANCELLED, "the login was given up");
	if (o->state != OAUTH_IDLE)
		oauth_flow_failed(o, &e);
}

int mcp_oauth_forget(struct mcp_oauth *o, void (*done)(void *owner, const struct err *e),
		     void *owner, struct err *e)
{
	int rc = oauth_token_forget(o, done, owner, e);

	mcp_oauth_give_up(o); /* those that are told may ask for headers at once */
	return rc;
}
