/*
 * Dynamic client registration, RFC 7591. If the server has none, or refuses, the user is asked for
 * a client id. The result is stored by issuer and grant, with its redirect URI.
 */
#include "base/log.h"
#include "mcp/oauth/internal.h"

#define DEVICE_GRANT "urn:ietf:params:oauth:grant-type:device_code"

/* --- the store --- */

/* A record may be of another version: a method without its key or secret is ignored. */
static bool is_of_use(const struct oauth_client *c)
{
	switch (c->method) {
	case 0:
	case OAUTH_NONE:
		return true;
	case OAUTH_BASIC:
	case OAUTH_POST:
		return c->secret != NULL;
	case OAUTH_PRIVATE_KEY_JWT:
		return c->key != NULL;
	}
	return false;
}

static int name_of(struct mcp_oauth *o, struct buf *to, struct err *e)
{
	const char *what = o->opt.grant == MCP_OAUTH_DEVICE ? "\ndevice" : "";

	return buf_addf(to, e, "client\n%s%s", o->issuer.issuer, what);
}

static int take_record(struct mcp_oauth *o, const struct json_val *v, struct err *e)
{
	struct oauth_client c = { .alg = sign_alg_of(json_str(json_get(v, "alg"))) };
	uint64_t method = 0;
	int rc;

	json_int64(json_get(v, "secret_expires"), &c.secret_expires);
	json_uint64(json_get(v, "method"), &method);
	c.method = (unsigned)method;
	c.issuer = strdup(o->issuer.issuer);
	if (!c.issuer)
		rc = oauth_no_memory(e);
	else if (oauth_record_text(v, "id", &c.id, e) < 0 ||
		 oauth_record_text(v, "redirect", &c.redirect, e) < 0 ||
		 oauth_record_text(v, "key_id", &c.key_id, e) < 0 ||
		 oauth_record_secret(v, "secret", &c.secret, e) < 0 ||
		 oauth_record_key(v, "key", &c.key, e) < 0)
		rc = -1;
	else
		rc = c.id && is_of_use(&c);
	if (rc <= 0) {
		oauth_client_fini(&c);
		return rc;
	}
	oauth_client_fini(&o->client);
	o->client = c;
	return 1;
}

int oauth_register_load(struct mcp_oauth *o, struct err *e)
{
	autobuf struct buf name = BUF_INIT(OAUTH_STORE_NAME_MAX);
	AUTO(json_free) struct json_doc *d = NULL;
	int rc;

	if (name_of(o, &name, e) < 0)
		return -1;
	rc = oauth_kept(o, buf_str(&name), &d, NULL, e);
	return rc <= 0 ? rc : take_record(o, json_root(d), e);
}

static int register_put(struct mcp_oauth *o, struct err *e)
{
	const struct oauth_client *c = &o->client;
	AUTO(secret_free) struct secret *key = c->key ? sign_key_pem(c->key, e) : NULL;
	autobuf struct buf name = BUF_INIT(OAUTH_STORE_NAME_MAX);
	autowipe struct buf text = BUF_INIT(OAUTH_STORE_TEXT_MAX);
	struct json_writer w = json_writer(&text);

	if (c->key && !key)
		return -1;
	if (name_of(o, &name, e) < 0 || !buf_reserve(&text, OAUTH_STORE_TEXT_MAX, e))
		return -1;
	json_write_object(&w);
	oauth_record_put(&w, "id", str_of(c->id));
	oauth_record_put(&w, "secret", c->secret ? secret_expose(c->secret, "kept") : STR_NONE);
	oauth_record_put(&w, "key", key ? secret_expose(key, "kept") : STR_NONE);
	oauth_record_put(&w, "key_id", str_of(c->key_id));
	oauth_record_put(&w, "alg", c->alg < SIGN_ALGS ? str_of(sign_alg_name(c->alg)) : STR_NONE);
	oauth_record_put(&w, "redirect", str_of(c->redirect));
	json_put_uint(&w, "method", c->method);
	json_put_int(&w, "secret_expires", c->secret_expires);
	json_write_object_end(&w);
	if (json_write_done(&w, e) < 0)
		return -1;
	return oauth_keep(
		o, &(struct oauth_store_change){ .name = buf_str(&name), .text = buf_str(&text) },
		NULL, NULL, e);
}

/* c replaces a client whose secret has expired or that was refused; there may be tokens of that. */
void oauth_register_take(struct mcp_oauth *o, struct oauth_client *c)
{
	struct err e;

	if (o->client.id && o->client.issuer && strcmp(o->client.issuer, c->issuer) == 0 &&
	    strcmp(o->client.id, c->id) != 0)
		oauth_token_forget_client(o, o->client.id);
	oauth_client_fini(&o->client);
	o->client = *c;
	*c = (struct oauth_client){ .alg = SIGN_ALGS };
	o->me = &o->client;

	if (register_put(o, &e) < 0) /* the client is valid in any case */
		log_warn("a registration could not be kept: %s", e.msg);
}

int oauth_register_forget(struct mcp_oauth *o, struct err *e)
{
	autobuf struct buf name = BUF_INIT(OAUTH_STORE_NAME_MAX);

	if (o->client.id)
		oauth_token_forget_client(o, o->client.id);
	o->me = NULL;
	oauth_client_fini(&o->client);
	if (name_of(o, &name, e) < 0)
		return -1;
	return oauth_keep(o, &(struct oauth_store_change){ .name = buf_str(&name) }, NULL, NULL, e);
}

/* --- asking the user --- */

static int ask_person(struct mcp_oauth *o, struct err *e)
{
	if (!o->opt.handler || !o->opt.handler->want_client)
		return e->code ? -1
			       : err_set(e, ERR_LOGIN,
					 "the authorization server %.120s registers nobody by "
					 "itself: a client id of it is needed",
					 o->issuer.issuer);
	oauth_set_state(o, OAUTH_ASK_CLIENT);
	o->shown = true;
	o->opt.handler->want_client(o->opt.owner, o->issuer.issuer);
	return 0;
}

/* --- asking the server --- */

/* A program on a user's machine can't keep a secret, so it requests none if possible. */
static enum oauth_method wanted_method(unsigned methods)
{
	if (!methods || methods & OAUTH_NONE)
		return OAUTH_NONE;
	return methods & OAUTH_BASIC ? OAUTH_BASIC : methods & OAUTH_POST ? OAUTH_POST : OAUTH_NONE;
}

static void write_list(struct json_writer *w, const char *key, const char *a, const char *b)
{
	json_put_array(w, key);
	if (a)
		json_write_text(w, a);
	if (b)
		json_write_text(w, b);
	json_write_array_end(w);
}

static int write_request(struct mcp_oauth *o, struct buf *to, struct err *e)
{
	struct json_writer w = json_writer(to);
	bool device = o->opt.grant == MCP_OAUTH_DEVICE;

	json_write_object(&w);
	json_put_text(&w, "client_name", o->opt.client_name ? o->opt.client_name : "libmcp");
	json_put_text(&w, "application_type", o->opt.web ? "web" : "native");
	if (!device)
		write_list(&w, "redirect_uris", o->redirect, NULL);
	write_list(&w, "grant_types", device ? DEVICE_GRANT : "authorization_code",
		   o->opt.online ? NULL : "refresh_token");
	write_list(&w, "response_types", device ? NULL : "code", NULL);
	json_put_text(&w, "token_endpoint_auth_method",
		      oauth_method_name(wanted_method(o->issuer.methods)));
	json_write_object_end(&w);
	return json_write_done(&w, e);
}

static int register_take(struct mcp_oauth *o, struct str body, struct err *e)
{
	AUTO(arena_free) struct arena *a = arena_new(OAUTH_DOCUMENT_MAX * 2);
	struct oauth_registered r = { .id = NULL };
	struct oauth_client c = { .alg = SIGN_ALGS };

	if (!a)
		return oauth_no_memory(e);
	if (oauth_registered_read(body, a, &r, e) < 0)
		return -1;
	c.id = strdup(r.id);
	c.issuer = strdup(o->issuer.issuer);
	c.redirect = o->redirect ? strdup(o->redirect) : NULL;
	c.secret = r.secret;
	c.secret_expires = r.secret_expires;
	c.method = r.method & (OAUTH_BASIC | OAUTH_POST) && !r.secret ? OAUTH_NONE : r.method;
	if (!c.id || !c.issuer || (o->redirect && !c.redirect) ||
	    c.method == OAUTH_PRIVATE_KEY_JWT) {
		err_set(e, c.method == OAUTH_PRIVATE_KEY_JWT ? ERR_DENIED : ERR_LIMIT,
			"the registration is of no use");
		oauth_client_fini(&c);
		return -1;
	}
	oauth_register_take(o, &c);
	return 0;
}

static void on_answer(struct mcp_oauth *o, const struct oauth_answer *a, const struct err *why)
{
	struct err e = why ? *why : ERR_INIT;
	char word[OAUTH_WORD_MAX + 1];

	if (why) {
		err_wrap(&e, "registration");
		oauth_flow_failed(o, &e);
		return;
	}
	if (a->status == 201 || a->status == 200) {
		if (register_take(o, a->body, &e) < 0)
			oauth_flow_failed(o, &e);
		else
			oauth_flow_known(o);
		return;
	}
	oauth_refusal_read(a->body, word);
	if (o->legacy && a->status >= 400 && a->status < 500)
		err_set(&e, ERR_LOGIN,
			"the server wants a token, and tells of no log-in that gives one (HTTP %d)",
			a->status);
	else
		err_set(&e, ERR_LOGIN,
			"the authorization server does not register us: %s (HTTP %d)",
			word[0] ? word : "no reason given", a->status);
	if (ask_person(o, &e) < 0)
		oauth_flow_failed(o, &e);
}

int oauth_register_start(struct mcp_oauth *o, struct err *e)
{
	autobuf struct buf body = BUF_INIT(OAUTH_DOCUMENT_MAX);
	struct oauth_request q = { .url = o->issuer.registration_endpoint,
				   .type = "application/json" };

	*e = ERR_INIT;
	if (!q.url)
		return ask_person(o, e);
	if (write_request(o, &body, e) < 0)
		return -1;
	oauth_set_state(o, OAUTH_REGISTER);
	q.body = buf_str(&body);
	return oauth_fetch_start(o, &q, on_answer, e);
}
