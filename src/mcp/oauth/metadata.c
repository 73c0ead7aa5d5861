#include "mcp/oauth/metadata.h"

#include <strings.h>

#include "mcp/oauth/url.h"

enum {
	VALUES_MAX = 4096,
	DEPTH_MAX = 16,
	EXPIRES_MAX = 10 * 366 * 86400, /* longest credible lifetime of a token, in seconds */
	DEVICE_EXPIRES_MAX = 3600,
	DEVICE_EXPIRES = 600, /* used instead of an absurd value */
	DEVICE_INTERVAL = 5, /* the default of RFC 8628 */
	DEVICE_INTERVAL_MAX = 60,
	CODE_MAX = 64, /* characters that a user can type */
	ID_BYTES_MAX = 2048, /* bytes of a client id */
};

/* --- members --- */

static struct json_doc *metadata_parse(struct str text, const char *what, struct err *e)
{
	static const struct json_options bounds = { .bytes = OAUTH_DOCUMENT_MAX,
						    .values = VALUES_MAX,
						    .depth = DEPTH_MAX,
						    .secret = true };
	AUTO(json_free) struct json_doc *d = json_parse(text, &bounds, e);

	if (!d)
		return err_wrap(e, "%s", what), NULL;
	if (json_type(json_root(d)) != JSON_OBJECT)
		return err_set(e, ERR_INVALID, "%s: no JSON object", what), NULL;
	return take_ptr(d);
}

static int wrong(const char *name, const char *must, struct err *e)
{
	return err_set(e, ERR_INVALID, "\"%s\" is not %s", name, must);
}

/* NULL if it is absent or null; a string must have no control characters. */
static int get_text(const struct json_val *v, const char *name, struct arena *a, const char **ret,
		    struct err *e)
{
	const struct json_val *m = json_get(v, name);
	struct str s = json_str(m);

	*ret = NULL;
	if (!m || json_type(m) == JSON_NULL)
		return 0;
	if (json_type(m) != JSON_STR)
		return wrong(name, "a string", e);
	for (size_t i = 0; i < s.n; i++) {
		if ((unsigned char)s.p[i] < ' ' || s.p[i] == 0x7f)
			return wrong(name, "free of control characters", e);
	}
	*ret = arena_dup(a, s, e);
	return *ret ? 0 : -1;
}

static int get_bool(const struct json_val *v, const char *name, bool *ret, struct err *e)
{
	const struct json_val *m = json_get(v, name);

	*ret = json_bool(m);
	if (m && json_type(m) != JSON_BOOL && json_type(m) != JSON_NULL)
		return wrong(name, "true or false", e);
	return 0;
}

/* Checks an array of strings; it may be absent. */
static int get_list(const struct json_val *v, const char *name, const struct json_val **ret,
		    struct err *e)
{
	const struct json_val *m = json_get(v, name);
	struct json_iter it = json_iter(m);

	*ret = NULL;
	if (!m || json_type(m) == JSON_NULL)
		return 0;
	if (json_type(m) != JSON_ARRAY)
		return wrong(name, "an array of strings", e);
	while (json_next(&it)) {
		if (json_type(it.val) != JSON_STR)
			return wrong(name, "an array of strings", e);
	}
	*ret = m;
	return 0;
}

static int get_url(const struct json_val *v, const char *name, enum oauth_reach reach,
		   struct arena *a, const char **ret, struct err *e)
{
	struct oauth_url u;

	if (get_text(v, name, a, ret, e) < 0)
		return -1;
	if (!*ret)
		return 0;
	return oauth_url_read(str_of(*ret), name, &u, e) < 0 ? -1
							     : oauth_url_check(&u, name, reach, e);
}

/* The known algorithms of a list, as bits. */
static int get_algs(const struct json_val *v, const char *name, unsigned *ret, struct err *e)
{
	const struct json_val *list;
	struct json_iter it;

	*ret = 0;
	if (get_list(v, name, &list, e) < 0)
		return -1;
	for (it = json_iter(list); json_next(&it);) {
		enum sign_alg alg = sign_alg_of(json_str(it.val));

		*ret |= alg < SIGN_ALGS ? 1u << alg : 0;
	}
	return 0;
}

/* --- resources --- */

static int read_issuers(const struct json_val *v, enum oauth_reach reach, struct arena *a,
			struct oauth_resource *r, struct err *e)
{
	const struct json_val *list;
	struct json_iter it;
	struct oauth_url u;

	if (get_list(v, "authorization_servers", &list, e) < 0)
		return -1;
	for (it = json_iter(list); json_next(&it) && r->issuers_n < OAUTH_ISSUERS_MAX;) {
		const char *text = arena_dup(a, json_str(it.val), e);

		if (!text ||
		    oauth_url_read(json_str(it.val), "an authorization server", &u, e) < 0 ||
		    oauth_url_check(&u, "an authorization server", reach, e) < 0)
			return -1;
		if (u.query.n > 0)
			return err_set(e, ERR_INVALID, "an authorization server has a query");
		r->issuers[r->issuers_n++] = text;
	}
	return 0;
}

static int read_scopes(const struct json_val *v, struct arena *a, struct oauth_resource *r,
		       struct err *e)
{
	autobuf struct buf all = BUF_INIT(OAUTH_SCOPE_MAX);
	const struct json_val *list;
	struct json_iter it;

	if (get_list(v, "scopes_supported", &list, e) < 0)
		return -1;
	if (!list)
		return 0;
	for (it = json_iter(list); json_next(&it);) {
		struct str word = json_str(it.val);

		if (!oauth_scope_ok(word) || (word.n > 0 && memchr(word.p, ' ', word.n)))
			return wrong("scopes_supported", "an array of scopes", e);
		if (oauth_scope_add(&all, word, e) < 0)
			return -1;
	}
	r->scope = arena_dup(a, buf_str(&all), e);
	return r->scope ? 0 : -1;
}

/* RFC 9728 section 3.3: the identifier must be the URL from which the document's URL was derived,
 * that is, the server's URL or its origin. */
static int check_resource(const char *text, const struct oauth_protected *of, struct err *e)
{
	struct oauth_url u;

	if (!text)
		return wrong("resource", "there", e);
	if (oauth_url_read(str_of(text), "resource", &u, e) < 0)
		return -1;
	if (oauth_url_names(&u, of->server) ||
	    (of->by_origin && oauth_url_same_origin(&u, of->server) && oauth_url_is_root(&u) &&
	     u.query.n == 0))
		return 0;
	return err_set(e, ERR_UNTRUSTED,
		       "the server's metadata are those of another resource, %.150s", text);
}

int oauth_resource_read(struct str text, const struct oauth_protected *of, struct arena *a,
			struct oauth_resource *ret, struct err *e)
{
	static const char algs[] = "dpop_signing_alg_values_supported";
	AUTO(json_free) struct json_doc *d = metadata_parse(text, "metadata of the server", e);
	const struct json_val *v = json_root(d);

	*ret = (struct oauth_resource){ .issuers_n = 0 };
	if (!d || get_text(v, "resource", a, &ret->resource, e) < 0 ||
	    check_resource(ret->resource, of, e) < 0 || read_issuers(v, of->reach, a, ret, e) < 0 ||
	    read_scopes(v, a, ret, e) < 0 ||
	    get_bool(v, "dpop_bound_access_tokens_required", &ret->dpop_required, e) < 0 ||
	    get_algs(v, algs, &ret->dpop_algs, e) < 0)
		return -1;
	ret->dpop = ret->dpop_required || ret->dpop_algs;
	if (json_len(json_get(v, algs)) == 0)
		ret->dpop_algs = ~0u;
	return 0;
}

/* --- authorization servers --- */

static const struct {
	enum oauth_method method;
	const char *name;
} methods[] = {
	{ OAUTH_NONE, "none" },
	{ OAUTH_BASIC, "client_secret_basic" },
	{ OAUTH_POST, "client_secret_post" },
	{ OAUTH_PRIVATE_KEY_JWT, "private_key_jwt" },
};

unsigned oauth_method_of(struct str name)
{
	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		if (str_is(name, methods[i].name))
			return methods[i].method;
	}
	return 0;
}

const char *oauth_method_name(enum oauth_method m)
{
	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		if (methods[i].method == m)
			return methods[i].name;
	}
	return "none";
}

static bool metadata_has(const struct json_val *list, const char *word)
{
	struct json_iter it = json_iter(list);

	while (json_next(&it)) {
		if (str_is(json_str(it.val), word))
			return true;
	}
	return false;
}

static int read_lists(const struct json_val *v, struct oauth_issuer *s, struct err *e)
{
	const struct json_val *pkce, *scopes, *ways;
	struct json_iter it;

	if (get_list(v, "code_challenge_methods_supported", &pkce, e) < 0 ||
	    get_list(v, "scopes_supported", &scopes, e) < 0 ||
	    get_list(v, "token_endpoint_auth_methods_supported", &ways, e) < 0 ||
	    get_algs(v, "token_endpoint_auth_signing_alg_values_supported", &s->jwt_algs, e) < 0 ||
	    get_algs(v, "dpop_signing_alg_values_supported", &s->dpop_algs, e) < 0)
		return -1;
	s->s256 = metadata_has(pkce, "S256");
	s->offline = metadata_has(scopes, "offline_access");
	for (it = json_iter(ways); json_next(&it);)
		s->methods |= oauth_method_of(json_str(it.val));
	if (json_len(ways) > 0 && !s->methods)
		return err_set(e, ERR_DENIED,
			       "the authorization server knows clients by no way that we have");
	return 0;
}

static bool is_printable(const char *text)
{
	while (*text >= ' ' && *text < 0x7f)
		text++;
	return !*text;
}

static int check_issuer(const char *is, const char *must, bool or_slash, struct err *e)
{
	size_t n = strlen(must);
	struct oauth_url u;
	struct err unused;

	if (!is)
		return wrong("issuer", "there", e);
	if (strcmp(is, must) == 0 ||
	    (or_slash && strncmp(is, must, n) == 0 && strcmp(is + n, "/") == 0))
		return 0;
	if (oauth_url_read(str_of(is), "issuer", &u, &unused) < 0) /* any text that is not secret */
		return err_set(e, ERR_UNTRUSTED,
			       "the metadata of %.90s are those of another issuer", must);
	return err_set(e, ERR_UNTRUSTED, "the metadata of %.90s are those of another issuer, %.90s",
		       must, is);
}

int oauth_issuer_read(struct str text, const char *issuer, bool or_slash, enum oauth_reach reach,
		      struct arena *a, struct oauth_issuer *ret, struct err *e)
{
	AUTO(json_free)
	struct json_doc *d = metadata_parse(text, "metadata of the authorization server", e);
	const struct json_val *v = json_root(d);
	struct {
		const char *name, **to;
	} const urls[] = {
		{ "authorization_endpoint", &ret->authorization_endpoint },
		{ "token_endpoint", &ret->token_endpoint },
		{ "registration_endpoint", &ret->registration_endpoint },
		{ "device_authorization_endpoint", &ret->device_endpoint },
	};

	*ret = (struct oauth_issuer){ .issuer = NULL };
	if (!d || get_text(v, "issuer", a, &ret->issuer, e) < 0 ||
	    check_issuer(ret->issuer, issuer, or_slash, e) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
		if (get_url(v, urls[i].name, reach, a, urls[i].to, e) < 0)
			return -1;
	}
	if (!ret->token_endpoint)
		return wrong("token_endpoint", "there", e);
	if (get_bool(v, "authorization_response_iss_parameter_supported", &ret->sends_iss, e) < 0 ||
	    get_bool(v, "client_id_metadata_document_supported", &ret->reads_client_id_url, e) < 0)
		return -1;
	return read_lists(v, ret, e);
}

/* --- answers --- */

bool oauth_is_opaque(struct str s, size_t max)
{
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] <= ' ' || s.p[i] >= 0x7f)
			return false;
	}
	return s.n > 0 && s.n <= max;
}

/* A secret for a header or form; NULL if it is absent. */
static int get_secret(const struct json_val *v, const char *name, struct secret **ret,
		      struct err *e)
{
	const struct json_val *m = json_get(v, name);

	*ret = NULL;
	if (!m || json_type(m) == JSON_NULL)
		return 0;
	if (json_type(m) != JSON_STR || !oauth_is_opaque(json_str(m), OAUTH_TOKEN_MAX))
		return wrong(name, "printable text of a sane size", e);
	*ret = secret_new(json_str(m), e);
	return *ret ? 0 : -1;
}

/* A number of seconds, also as a string; 0 if it is absent or absurd. */
static int64_t get_seconds(const struct json_val *v, const char *name, int64_t max)
{
	const struct json_val *m = json_get(v, name);
	struct str s = json_str(m);
	int64_t n = 0;

	if (json_type(m) == JSON_STR) {
		for (size_t i = 0; i < s.n && n <= max; i++) {
			if (s.p[i] < '0' || s.p[i] > '9')
				return 0;
			n = n * 10 + (s.p[i] - '0');
		}
	} else if (!json_int64(m, &n)) {
		return 0;
	}
	return n > 0 && n <= max ? n : 0;
}

int oauth_registered_read(struct str text, struct arena *a, struct oauth_registered *ret,
			  struct err *e)
{
	AUTO(json_free)
	struct json_doc *d = metadata_parse(text, "the answer to a registration", e);
	const struct json_val *v = json_root(d);
	struct oauth_registered r = { .method = 0 };
	const char *method;

	if (!d || get_text(v, "client_id", a, &r.id, e) < 0 ||
	    get_text(v, "token_endpoint_auth_method", a, &method, e) < 0)
		return -1;
	if (!r.id || !*r.id || strlen(r.id) > ID_BYTES_MAX)
		return wrong("client_id", "there, or far too long", e);
	if (method) {
		r.method = oauth_method_of(str_of(method));
		if (!r.method)
			return err_set(e, ERR_DENIED,
				       "we are registered in a way that we can't prove");
	}
	if (get_secret(v, "client_secret", &r.secret, e) < 0)
		return -1;
	r.secret_expires = get_seconds(v, "client_secret_expires_at", INT64_MAX / 16);
	*ret = r;
	return 0;
}

void oauth_token_answer_fini(struct oauth_token_answer *t)
{
	secret_free(t->access);
	secret_free(t->refresh);
	*t = (struct oauth_token_answer){ .access = NULL };
}

static int read_token(const struct json_val *v, struct arena *a, struct oauth_token_answer *t,
		      struct err *e)
{
	const char *type;

	if (get_text(v, "token_type", a, &type, e) < 0)
		return -1;
	t->dpop = type && strcasecmp(type, "DPoP") == 0;
	t->not_access = type && strcasecmp(type, "N_A") == 0;
	if (!t->dpop && !t->not_access && !(type && strcasecmp(type, "Bearer") == 0))
		return wrong("token_type", "Bearer or DPoP", e);
	if (get_text(v, "issued_token_type", a, &t->issued_type, e) < 0 ||
	    get_secret(v, "access_token", &t->access, e) < 0 ||
	    get_secret(v, "refresh_token", &t->refresh, e) < 0)
		return -1;
	if (!t->access)
		return wrong("access_token", "there", e);
	t->expires_in = get_seconds(v, "expires_in", EXPIRES_MAX);
	return 0;
}

int oauth_token_read(struct str text, struct arena *a, struct oauth_token_answer *ret,
		     struct err *e)
{
	AUTO(json_free)
	struct json_doc *d = metadata_parse(text, "the answer of the token endpoint", e);
	struct oauth_token_answer t = { .access = NULL };

	if (!d)
		return -1;
	if (read_token(json_root(d), a, &t, e) < 0) {
		oauth_token_answer_fini(&t);
		return -1;
	}
	*ret = t;
	return 0;
}

void oauth_refusal_read(struct str text, char ret[OAUTH_WORD_MAX + 1])
{
	struct err e;
	AUTO(json_free) struct json_doc *d = metadata_parse(text, "a refusal", &e);
	struct str word = json_str(json_get(json_root(d), "error"));

	ret[0] = '\0';
	if (!d || !oauth_is_word(word))
		return;
	memcpy(ret, word.p, word.n);
	ret[word.n] = '\0';
}

int oauth_device_read(struct str text, enum oauth_reach reach, struct arena *a,
		      struct oauth_device *ret, struct err *e)
{
	AUTO(json_free)
	struct json_doc *d = metadata_parse(text, "the answer of the device endpoint", e);
	const struct json_val *v = json_root(d);
	struct oauth_device o = { .code = NULL };
	int64_t expires, interval;

	if (!d || get_text(v, "user_code", a, &o.user_code, e) < 0 ||
	    get_url(v, "verification_uri", reach, a, &o.url, e) < 0 ||
	    get_url(v, "verification_uri_complete", reach, a, &o.url_complete, e) < 0)
		return -1;
	if (!o.user_code || !*o.user_code || strlen(o.user_code) > CODE_MAX || !o.url)
		return wrong("user_code", "there with verification_uri", e);
	if (!is_printable(o.user_code)) /* it is shown, on a terminal too */
		return wrong("user_code", "printable ASCII", e);
	if (get_secret(v, "device_code", &o.code, e) < 0)
		return -1;
	if (!o.code)
		return wrong("device_code", "there", e);
	expires = get_seconds(v, "expires_in", DEVICE_EXPIRES_MAX);
	interval = get_seconds(v, "interval", DEVICE_INTERVAL_MAX);
	o.expires_s = expires ? (unsigned)expires : DEVICE_EXPIRES;
	o.interval_s = interval ? (unsigned)interval : DEVICE_INTERVAL;
	*ret = o;
	return 0;
}
