/*
 * The current token. The store has it under issuer, resource and client. Under the server's URL,
 * the store has which of these the server used last, so that a new process can start without
 * discovery.
 */
#include "base/clock.h"
#include "base/log.h"
#include "mcp/oauth/internal.h"

#include <time.h>

enum { RENEW_SECONDS = 60 }; /* a token is renewed at most this long before it expires */

void oauth_token_fini(struct oauth_token *t)
{
	secret_free(t->access);
	secret_free(t->refresh);
	secret_free(t->kept);
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

static int put_server(struct mcp_oauth *o, const char *client_id, struct err *e)
{
	autobuf struct buf name = BUF_INIT(OAUTH_STORE_NAME_MAX),
			   text = BUF_INIT(OAUTH_STORE_TEXT_MAX);
	struct json_writer w = json_writer(&text);

	json_write_object(&w);
	oauth_record_put(&w, "issuer", str_of(o->issuer.issuer));
	oauth_record_put(&w, "resource", str_of(o->resource.resource));
	oauth_record_put(&w, "client", str_of(client_id));
	oauth_record_put(&w, "metadata", str_of(o->challenge.resource_metadata));
	json_write_object_end(&w);
	if (json_write_done(&w, e) < 0 || server_name(o, &name, e) < 0)
		return -1;
	return oauth_keep(
		o, &(struct oauth_store_change){ .name = buf_str(&name), .text = buf_str(&text) },
		NULL, NULL, e);
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
	oauth_record_put(&w, "access", secret_expose(t->access, "kept"));
	oauth_record_put(&w, "refresh", t->refresh ? secret_expose(t->refresh, "kept") : STR_NONE);
	oauth_record_put(&w, "key", key ? secret_expose(key, "kept") : STR_NONE);
	oauth_record_put(&w, "wanted", str_of(t->wanted));
	json_put_int(&w, "expires", t->expires);
	json_put_int(&w, "asked", t->asked);
	json_put_int(&w, "renew", t->renew);
	json_write_object_end(&w);
	return json_write_done(&w, e);
}

/* was: store it only if the store still has this; NULL: always. Another process may have stored a
 * newer token, or removed it; neither must be undone. */
static int put_token(struct mcp_oauth *o, const struct secret *was, struct err *e)
{
	struct oauth_token *t = &o->token;
	autobuf struct buf name = BUF_INIT(OAUTH_STORE_NAME_MAX);
	autowipe struct buf text = BUF_INIT(OAUTH_STORE_TEXT_MAX);
	AUTO(secret_free) struct secret *kept = NULL;
	struct oauth_store_change c = { .was = was ? secret_expose(was, "compared") : STR_NONE };

	if (!buf_reserve(&text, OAUTH_STORE_TEXT_MAX, e) || write_token(o, &text, e) < 0 ||
	    token_name(t->issuer, t->resource, t->client_id, &name, e) < 0)
		return -1;
	c.name = buf_str(&name);
	c.text = buf_str(&text);
	kept = secret_new(c.text, e);
	if (!kept || oauth_keep(o, &c, NULL, NULL, e) < 0)
		return -1;
	secret_free(t->kept);
	t->kept = take_ptr(kept);
	return 0;
}

void oauth_token_not_kept(struct mcp_oauth *o, struct str record)
{
	if (o->token.kept && secret_is(o->token.kept, record))
		secret_free(take_ptr(o->token.kept));
}

/* --- reading --- */

static int read_token(struct mcp_oauth *o, const struct json_val *v, struct oauth_token *t,
		      struct err *e)
{
	struct sign_key *key;

	t->origin = OAUTH_KEPT;
	t->since = clock_ms();
	json_int64(json_get(v, "expires"), &t->expires);
	json_int64(json_get(v, "asked"), &t->asked);
	json_int64(json_get(v, "renew"), &t->renew);
	if (oauth_record_text(v, "wanted", &t->wanted, e) < 0 ||
	    oauth_record_secret(v, "access", &t->access, e) < 0 ||
	    oauth_record_secret(v, "refresh", &t->refresh, e) < 0)
		return -1;
	if (!t->wanted || !t->access ||
	    !oauth_is_opaque(secret_expose(t->access, "looked at"), OAUTH_TOKEN_MAX))
		return err_set(e, ERR_INVALID, "a kept token is none");
	if (oauth_record_key(v, "key", &key, e) < 0)
		return -1;
	t->dpop = key != NULL;
	if (!key)
		return 0;
	sign_key_free(o->dpop_key);
	o->dpop_key = key;
	return 0;
}

static void set(struct mcp_oauth *o, struct oauth_token *t)
{
	oauth_token_fini(&o->token);
	o->token = *t;
	o->serial++;
	o->used = o->accepted = false;
	*t = (struct oauth_token){ .access = NULL };
}

/* Whether it is a kind of token that the owner accepts. */
static bool is_wanted(const struct mcp_oauth *o, const struct oauth_token *t)
{
	return !(o->opt.dpop == MCP_OAUTH_DPOP_ALWAYS && !t->dpop) &&
	       !(o->opt.dpop == MCP_OAUTH_DPOP_NEVER && t->dpop);
}

/* Takes the names, also on failure. 1 if there is a token. */
static int token_load(struct mcp_oauth *o, char *issuer, char *resource, char *client,
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
	rc = oauth_kept(o, buf_str(&name), &d, &t->kept, e);
	if (rc <= 0)
		return rc;
	return read_token(o, json_root(d), t, e) < 0 ? -1 : is_wanted(o, t);
}

int oauth_token_load(struct mcp_oauth *o, struct err *e)
{
	struct oauth_token t;
	int rc = token_load(o, strdup(o->issuer.issuer), strdup(o->resource.resource),
			    strdup(o->me->id), &t, e);

	if (rc > 0 && o->token.access &&
	    secret_is(o->token.access, secret_expose(t.access, "compared")))
		rc = 0;
	if (rc > 0)
		set(o, &t);
	oauth_token_fini(&t);
	return rc;
}

/* A configured client must not use the token of another client. */
static bool is_other(const struct mcp_oauth *o, const char *client)
{
	return o->given.id && (!client || strcmp(o->given.id, client) != 0);
}

int oauth_token_recall(struct mcp_oauth *o, struct err *e)
{
	autobuf struct buf name = BUF_INIT(OAUTH_STORE_NAME_MAX);
	AUTO(json_free) struct json_doc *d = NULL;
	autofree char *metadata = NULL, *issuer = NULL, *resource = NULL, *client = NULL;
	const struct json_val *v;
	struct oauth_token t;
	int rc;

	o->recalled = true;
	if (server_name(o, &name, e) < 0)
		return -1;
	rc = oauth_kept(o, buf_str(&name), &d, NULL, e);
	if (rc <= 0)
		return rc;
	v = json_root(d);
	if (oauth_record_text(v, "metadata", &metadata, e) < 0 ||
	    oauth_record_text(v, "issuer", &issuer, e) < 0 ||
	    oauth_record_text(v, "resource", &resource, e) < 0 ||
	    oauth_record_text(v, "client", &client, e) < 0)
		return -1;
	if (is_other(o, client))
		return 0;
	if (metadata && strlen(metadata) <= OAUTH_URL_MAX)
		memcpy(o->challenge.resource_metadata, metadata, strlen(metadata) + 1);
	rc = token_load(o, take_ptr(issuer), take_ptr(resource), take_ptr(client), &t, e);
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
	rc = oauth_kept(o, buf_str(&name), &d, NULL, e);
	issuer = json_str(json_get(json_root(d), "issuer"));
	if (rc <= 0 || !str_is(json_str(json_get(json_root(d), "client")), client_id) ||
	    str_is(issuer, o->issuer.issuer))
		return rc < 0 ? -1 : 0;
	return err_set(
		e, ERR_UNTRUSTED,
		"the client was used with %.*s, but the server's authorization server is now "
		"%.90s",
		issuer.n < 90 ? (int)issuer.n : 90, issuer.p, o->issuer.issuer);
}

void oauth_token_keep_issuer(struct mcp_oauth *o)
{
	struct err e;

	if (put_server(o, o->given.id, &e) < 0) /* this process has it in any case */
		log_warn("whom a client is for could not be kept: %s", e.msg);
}

/* --- changing --- */

int oauth_token_take(struct mcp_oauth *o, struct oauth_token_answer *a, enum oauth_origin origin,
		     struct err *e)
{
	bool again = origin == OAUTH_REFRESHED;
	int64_t lives = a->expires_in;
	AUTO(secret_free) struct secret *was = NULL;
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
	if (again)
		was = take_ptr(o->token.kept);
	t.since = clock_ms();
	t.expires = lives ? time(NULL) + lives : 0;
	if (t.expires)
		t.renew = t.expires - (lives / 4 < RENEW_SECONDS ? lives / 4 : RENEW_SECONDS);
	set(o, &t);
	if (put_token(o, was, e) < 0 ||
	    put_server(o, o->me->id, e) < 0) /* the token is valid in any case */
		log_warn("a token could not be kept: %s", e->msg);
	return 0;
}

int oauth_token_drop_refresh(struct mcp_oauth *o, struct err *e)
{
	secret_free(take_ptr(o->token.refresh));
	o->token.renew = 0;
	return put_token(o, o->token.kept, e);
}

static int token_forget(struct mcp_oauth *o, const struct buf *name,
			void (*done)(void *owner, const struct err *e), void *owner, struct err *e)
{
	return oauth_keep(o, &(struct oauth_store_change){ .name = buf_str(name) }, done, owner, e);
}

/* The token goes last, so the result of done is that of the record that matters. */
int oauth_token_forget(struct mcp_oauth *o, void (*done)(void *owner, const struct err *e),
		       void *owner, struct err *e)
{
	autobuf struct buf name = BUF_INIT(OAUTH_STORE_NAME_MAX),
			   server = BUF_INIT(OAUTH_STORE_NAME_MAX);
	const struct oauth_token *t = &o->token;
	struct oauth_token none = { .access = NULL };
	bool is_there;

	if (o->first_issuer)
		free(take_ptr(o->given.issuer));
	o->first_issuer = false;
	o->logins_n = 0;
	if (!o->recalled && oauth_token_recall(o, e) < 0)
		return -1;
	is_there = t->access != NULL;
	if (server_name(o, &server, e) < 0 ||
	    (is_there && token_name(t->issuer, t->resource, t->client_id, &name, e) < 0))
		return -1;
	set(o, &none);
	if (!is_there)
		return token_forget(o, &server, done, owner, e);
	return token_forget(o, &server, NULL, NULL, e) < 0 ? -1
							   : token_forget(o, &name, done, owner, e);
}

void oauth_token_forget_client(struct mcp_oauth *o, const char *client_id)
{
	autobuf struct buf name = BUF_INIT(OAUTH_STORE_NAME_MAX),
			   end = BUF_INIT(OAUTH_STORE_NAME_MAX);
	struct err e;

	if (buf_addf(&name, &e, "token\n%s\n", o->issuer.issuer) < 0 ||
	    buf_addf(&end, &e, "\n%s", client_id) < 0 ||
	    oauth_keep(o,
		       &(struct oauth_store_change){ .name = buf_str(&name), .end = buf_str(&end) },
		       NULL, NULL, &e) < 0)
		log_warn("tokens of no use could not be removed: %s", e.msg);
}
