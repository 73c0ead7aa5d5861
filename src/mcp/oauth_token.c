/*
 * The token that we have. In the store it stands under issuer, resource and client; beside it, under the server's
 * URL, stands which of them the server had last, so that a new process need not ask to begin.
 */
#include "base/clock.h"
#include "base/log.h"
#include "mcp/oauth_impl.h"

#include <time.h>

enum { RENEW_SECONDS = 60 }; /* before its end a token is renewed, at most */

void oauth_token_fini(struct oauth_token *t)
{
	secret_free(t->access);
	secret_free(t->refresh);
	free(t->issuer);
	free(t->resource);
	free(t->client_id);
	free(t->wanted);
	*t = (struct oauth_token){ .access = NULL };
}

bool oauth_token_is_old(const struct oauth_token *t)
{
	return t->renew && time(NULL) >= t->renew;
}

/* --- records --- */

static int token_name(const char *issuer, const char *resource, const char *client, struct buf *to,
		      struct err *e)
{
	return buf_addf(to, e, "token\n%s\n%s\n%s", issuer, resource, client);
}

static int server_name(struct mcp_oauth *o, struct buf *to, struct err *e)
{
	return buf_addf(to, e, "server\n%s", o->opt.server);
}

/* The record of that name: 1 and the document, or 0. */
static int get(struct mcp_oauth *o, const struct buf *name, struct json_doc **ret, struct err *e)
{
	static const struct json_options bounds = { .secret = true };
	autowipe struct buf text = BUF_INIT(OAUTH_STORE_TEXT_MAX);
	int rc;

	if (!buf_reserve(&text, OAUTH_STORE_TEXT_MAX, e))
		return -1;
	rc = oauth_store_get(oauth_store_of(o), buf_str(name), &text, e);
	if (rc <= 0)
		return rc;
	*ret = json_parse(buf_str(&text), &bounds, e);
	return *ret ? 1 : -1;
}

static void write_text(struct json_writer *w, const char *key, struct str s)
{
	if (!s.p)
		return;
	json_write_key(w, key);
	json_write_str(w, s);
}

static int put_server(struct mcp_oauth *o, const char *client_id, struct err *e)
{
	autobuf struct buf name = BUF_INIT(OAUTH_STORE_NAME_MAX),
			   text = BUF_INIT(OAUTH_STORE_TEXT_MAX);
	struct json_writer w = json_writer(&text);

	json_write_object(&w);
	write_text(&w, "issuer", str_of(o->issuer.issuer));
	write_text(&w, "resource", str_of(o->resource.resource));
	write_text(&w, "client", str_of(client_id));
	write_text(&w, "metadata", str_of(o->challenge.resource_metadata));
	json_write_object_end(&w);
	if (json_write_done(&w, e) < 0 || server_name(o, &name, e) < 0)
		return -1;
	return oauth_store_put(oauth_store_of(o), buf_str(&name), buf_str(&text), e);
}

static int write_token(struct mcp_oauth *o, struct buf *to, struct err *e)
{
	AUTO(secret_free)
	struct secret *key = o->token.dpop ? sign_key_pem(o->dpop_key, e) : NULL;
	const struct oauth_token *t = &o->token;
	struct json_writer w = json_writer(to);

	if (t->dpop && !key)
		return -1;
	json_write_object(&w);
	write_text(&w, "access", secret_expose(t->access, "kept"));
	write_text(&w, "refresh", t->refresh ? secret_expose(t->refresh, "kept") : STR_NONE);
	write_text(&w, "key", key ? secret_expose(key, "kept") : STR_NONE);
	write_text(&w, "wanted", str_of(t->wanted));
	json_write_key(&w, "expires");
	json_write_int(&w, t->expires);
	json_write_key(&w, "asked");
	json_write_int(&w, t->asked);
	json_write_key(&w, "renew");
	json_write_int(&w, t->renew);
	json_write_object_end(&w);
	return json_write_done(&w, e);
}

static int put_token(struct mcp_oauth *o, struct err *e)
{
	const struct oauth_token *t = &o->token;
	autobuf struct buf name = BUF_INIT(OAUTH_STORE_NAME_MAX);
	autowipe struct buf text = BUF_INIT(OAUTH_STORE_TEXT_MAX);

	if (!buf_reserve(&text, OAUTH_STORE_TEXT_MAX, e) || write_token(o, &text, e) < 0 ||
	    token_name(t->issuer, t->resource, t->client_id, &name, e) < 0)
		return -1;
	return oauth_store_put(oauth_store_of(o), buf_str(&name), buf_str(&text), e);
}

/* --- reading --- */

static char *dup_text(const struct json_val *v, const char *key)
{
	struct str s = json_str(json_get(v, key));

	return s.p ? strndup(s.p, s.n) : NULL;
}

/* The secret of that name; absent is no failure. */
static int read_secret(const struct json_val *v, const char *key, struct secret **ret,
		       struct err *e)
{
	struct str s = json_str(json_get(v, key));

	*ret = s.p ? secret_new(s, e) : NULL;
	return s.p && !*ret ? -1 : 0;
}

static int read_key(struct mcp_oauth *o, const struct json_val *v, struct oauth_token *t,
		    struct err *e)
{
	struct str pem = json_str(json_get(v, "key"));
	struct sign_key *key;

	t->dpop = pem.p != NULL;
	if (!pem.p)
		return 0;
	key = sign_key_read(pem, e);
	if (!key)
		return -1;
	sign_key_free(o->dpop_key);
	o->dpop_key = key;
	return 0;
}

static int read_token(struct mcp_oauth *o, const struct json_val *v, struct oauth_token *t,
		      struct err *e)
{
	t->origin = OAUTH_KEPT;
	t->since = clock_ms();
	json_int64(json_get(v, "expires"), &t->expires);
	json_int64(json_get(v, "asked"), &t->asked);
	json_int64(json_get(v, "renew"), &t->renew);
	t->wanted = dup_text(v, "wanted");
	if (!t->wanted)
		return err_set(e, ERR_LIMIT, "a kept token can't be read");
	if (read_secret(v, "access", &t->access, e) < 0 ||
	    read_secret(v, "refresh", &t->refresh, e) < 0)
		return -1;
	if (!t->access || !oauth_is_opaque(secret_expose(t->access, "looked at"), OAUTH_TOKEN_MAX))
		return err_set(e, ERR_INVALID, "a kept token is none");
	return read_key(o, v, t, e);
}

static void set(struct mcp_oauth *o, struct oauth_token *t)
{
	oauth_token_fini(&o->token);
	o->token = *t;
	o->serial++;
	o->used = o->accepted = false;
	*t = (struct oauth_token){ .access = NULL };
}

/* Whether it is of the kind that the owner wants. */
static bool is_wanted(const struct mcp_oauth *o, const struct oauth_token *t)
{
	return !(o->opt.dpop == MCP_OAUTH_DPOP_ALWAYS && !t->dpop) &&
	       !(o->opt.dpop == MCP_OAUTH_DPOP_NEVER && t->dpop);
}

/* Names are taken over in any case. 1 where it is there. */
static int load(struct mcp_oauth *o, char *issuer, char *resource, char *client,
		struct oauth_token *t, struct err *e)
{
	autobuf struct buf name = BUF_INIT(OAUTH_STORE_NAME_MAX);
	AUTO(json_free) struct json_doc *d = NULL;
	int rc;

	*t = (struct oauth_token){ .issuer = issuer, .resource = resource, .client_id = client };
	if (!issuer || !resource || !client)
		return oauth_no_memory(e);
	if (token_name(issuer, resource, client, &name, e) < 0)
		return -1;
	rc = get(o, &name, &d, e);
	if (rc <= 0)
		return rc;
	return read_token(o, json_root(d), t, e) < 0 ? -1 : is_wanted(o, t);
}

int oauth_token_load(struct mcp_oauth *o, struct err *e)
{
	struct oauth_token t;
	int rc = load(o, strdup(o->issuer.issuer), strdup(o->resource.resource), strdup(o->me->id),
		      &t, e);

	if (rc > 0 && o->token.access &&
	    secret_is(o->token.access, secret_expose(t.access, "compared")))
		rc = 0;
	if (rc > 0)
		set(o, &t);
	oauth_token_fini(&t);
	return rc;
}

/* A client that we were told to be is not another one that we were. */
static bool is_other(const struct mcp_oauth *o, const char *client)
{
	return o->given.id && (!client || strcmp(o->given.id, client) != 0);
}

int oauth_token_recall(struct mcp_oauth *o, struct err *e)
{
	autobuf struct buf name = BUF_INIT(OAUTH_STORE_NAME_MAX);
	AUTO(json_free) struct json_doc *d = NULL;
	autofree char *metadata = NULL;
	struct oauth_token t;
	char *client;
	int rc;

	o->recalled = true;
	if (server_name(o, &name, e) < 0)
		return -1;
	rc = get(o, &name, &d, e);
	if (rc <= 0)
		return rc;
	metadata = dup_text(json_root(d), "metadata");
	client = dup_text(json_root(d), "client");
	if (is_other(o, client)) {
		free(client);
		return 0;
	}
	if (metadata && strlen(metadata) <= OAUTH_URL_MAX)
		memcpy(o->challenge.resource_metadata, metadata, strlen(metadata) + 1);
	rc = load(o, dup_text(json_root(d), "issuer"), dup_text(json_root(d), "resource"), client,
		  &t, e);
	if (rc > 0)
		set(o, &t);
	oauth_token_fini(&t);
	return rc < 0 ? -1 : 0;
}

int oauth_token_check_issuer(struct mcp_oauth *o, const char *client_id, struct err *e)
{
	autobuf struct buf name = BUF_INIT(OAUTH_STORE_NAME_MAX);
	AUTO(json_free) struct json_doc *d = NULL;
	struct str issuer;
	int rc;

	if (server_name(o, &name, e) < 0)
		return -1;
	rc = get(o, &name, &d, e);
	issuer = json_str(json_get(json_root(d), "issuer"));
	if (rc <= 0 || !str_is(json_str(json_get(json_root(d), "client")), client_id) ||
	    str_is(issuer, o->issuer.issuer))
		return rc < 0 ? -1 : 0;
	return err_set(
		e, ERR_DENIED,
		"the client was used with %.*s, but the server's authorization server is now "
		"%.90s",
		issuer.n < 90 ? (int)issuer.n : 90, issuer.p, o->issuer.issuer);
}

void oauth_token_keep_issuer(struct mcp_oauth *o)
{
	struct err e;

	if (put_server(o, o->given.id, &e) < 0) /* this process knows it all the same */
		log_warn("whom a client is for could not be kept: %s", e.msg);
}

/* --- changing --- */

static void set_times(struct oauth_token *t, int64_t expires_in)
{
	int64_t before = expires_in / 4 < RENEW_SECONDS ? expires_in / 4 : RENEW_SECONDS;

	t->since = clock_ms();
	t->expires = expires_in ? time(NULL) + expires_in : 0;
	t->renew = t->expires ? t->expires - before : 0;
}

int oauth_token_take(struct mcp_oauth *o, struct oauth_token_answer *a, enum oauth_origin origin,
		     struct err *e)
{
	bool again = origin == OAUTH_REFRESHED;
	struct oauth_token t = { .origin = origin,
				 .dpop = a->dpop,
				 .asked = again ? o->token.asked : time(NULL) };

	t.issuer = strdup(o->issuer.issuer);
	t.resource = strdup(o->resource.resource);
	t.client_id = strdup(o->me->id);
	t.wanted = strdup(again ? o->token.wanted : buf_str(&o->scope).p);
	if (!t.issuer || !t.resource || !t.client_id || !t.wanted) {
		oauth_token_fini(&t);
		return oauth_no_memory(e);
	}
	t.access = take_ptr(a->access);
	t.refresh = take_ptr(a->refresh);
	if (!t.refresh && again)
		t.refresh = take_ptr(o->token.refresh);
	set_times(&t, a->expires_in);
	set(o, &t);
	if (put_token(o, e) < 0 || put_server(o, o->me->id, e) < 0) /* it is good all the same */
		log_warn("a token could not be kept: %s", e->msg);
	return 0;
}

int oauth_token_drop_refresh(struct mcp_oauth *o, struct err *e)
{
	secret_free(take_ptr(o->token.refresh));
	o->token.renew = 0;
	return put_token(o, e);
}

int oauth_token_forget(struct mcp_oauth *o, struct err *e)
{
	autobuf struct buf name = BUF_INIT(OAUTH_STORE_NAME_MAX),
			   server = BUF_INIT(OAUTH_STORE_NAME_MAX);
	struct oauth_token none = { .access = NULL };
	int rc = 0;

	if (o->first_issuer)
		free(take_ptr(o->given.issuer));
	o->first_issuer = false;
	o->logins_n = 0;
	if (!o->recalled && oauth_token_recall(o, e) < 0)
		return -1;
	if (o->token.access &&
	    (token_name(o->token.issuer, o->token.resource, o->token.client_id, &name, e) < 0 ||
	     oauth_store_remove(oauth_store_of(o), buf_str(&name), e) < 0))
		rc = -1;
	set(o, &none);
	if (server_name(o, &server, e) < 0 ||
	    oauth_store_remove(oauth_store_of(o), buf_str(&server), e) < 0)
		rc = -1;
	return rc;
}
