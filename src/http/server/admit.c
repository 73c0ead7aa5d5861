/*
 * The checks of server.h, in their order. What the daemon parsed is not trusted where another
 * reader of the same bytes could see something else: lengths and encodings are counted again, and
 * names and values are examined.
 *
 * libmicrohttpd before 1.0 also accepts line feeds without carriage returns, folded lines and bytes
 * after a NUL, and no option prevents that. But it parses in place: every name and value points
 * into the received bytes, and their terminators were replaced by NULs. So a head is well-formed
 * exactly if its parts follow each other with one space, or with two such bytes, between them.
 * Later versions are told to be strict themselves.
 */
#include "http/server/internal.h"

static int admit_refuse(struct http_request *q, int status, enum err_code code, const char *why)
{
	q->refusal = status;
	return err_set(&q->why, code, "%s", why);
}

/* ---- the fields ---------------------------------------------------------------------------- */

static void take_length(struct request_head *h, struct str value)
{
	h->n_lengths++;
	h->bad_length |= !http_length_parse(value, &h->length);
}

static void take_encoding(struct request_head *h, struct str value)
{
	h->n_encodings++;
	h->bad_encoding |= !http_same(value, STR_LIT("chunked"));
}

static void take_expect(struct request_head *h, struct str value)
{
	h->expects = true;
}

/* Keeps the first value; the count is checked later. */
#define TAKE(name)                                                                                 \
	static void take_##name(struct request_head *h, struct str value)                          \
	{                                                                                          \
		if (h->n_##name##s++ == 0)                                                         \
			h->name = value;                                                           \
	}
TAKE(host)
TAKE(origin)
TAKE(authorization)
TAKE(type)

static const struct {
	struct str name;
	void (*take)(struct request_head *h, struct str value);
} fields[] = {
	{ STR_LIT("Host"), take_host },
	{ STR_LIT("Origin"), take_origin },
	{ STR_LIT("Authorization"), take_authorization },
	{ STR_LIT("Content-Type"), take_type },
	{ STR_LIT("Content-Length"), take_length },
	{ STR_LIT("Transfer-Encoding"), take_encoding },
	{ STR_LIT("Expect"), take_expect },
};

static void check_place(struct request_head *h, struct str name, struct str value)
{
	const char *end = value.p + value.n;

	if (!h->at)
		return;
	if (name.p != h->at || end[0] || end[1])
		h->bad_field = true;
	h->at = end + 2;
}

/* True for one of the fields above, whose names need no check. */
static bool take_known(struct request_head *h, struct str name, struct str value)
{
	for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
		if (http_same(name, fields[i].name)) {
			fields[i].take(h, value);
			return true;
		}
	}
	return false;
}

static enum MHD_Result on_field(void *cls, enum MHD_ValueKind kind, const char *name, size_t name_n,
				const char *value, size_t value_n)
{
	struct http_request *q = cls;
	struct request_head *h = &q->head;
	struct str n = { name, name_n }, v = { value ? value : "", value_n };

	check_place(h, n, v);
	v = str_trim(v);
	if (h->n_fields < FIELDS_KEPT)
		q->conn->fields[h->n_fields] = (struct http_field){ n, v };
	h->n_fields++;
	h->bad_field |= !http_value_ok(v) || (!take_known(h, n, v) && !http_name_ok(n));
	return MHD_YES;
}

size_t request_head_size(const struct http_request *q)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(q->conn->mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);

	return info ? info->header_size : 0;
}

/* Reads all fields; false if the head is not well-formed. */
static bool read_fields(struct http_request *q, const char *method, const char *version)
{
	struct request_head *h = &q->head;
	const char *end = version + strlen(version);

	if (PARSES_IN_PLACE) {
		if (q->target.p != method + strlen(method) + 1 ||
		    q->target.p + q->target.n + 1 != version || end[0] || end[1])
			return false;
		h->at = end + 2;
	}
	MHD_get_connection_values_n(q->conn->mhd, MHD_HEADER_KIND, on_field, q);
	return !h->bad_field && (!PARSES_IN_PLACE || h->at + 2 == method + request_head_size(q));
}

static int check_framing(struct http_request *q, const char *method, const char *version)
{
	struct request_head *h = &q->head;
	const struct http_limits *l = &q->conn->srv->o.limits;

	if (strcmp(version, "HTTP/1.1") != 0 && strcmp(version, "HTTP/1.0") != 0)
		return admit_refuse(q, 505, ERR_MESSAGE, "this server speaks HTTP/1.1");
	if (q->bad_target)
		return admit_refuse(q, 400, ERR_MESSAGE, "the request's target is not well-formed");
	if (!read_fields(q, method, version))
		return admit_refuse(
			q, 400, ERR_MESSAGE,
			"a field of the request is not well-formed: no folded lines, line "
			"feeds without carriage return, or control characters");
	if (h->n_fields > l->headers || request_head_size(q) > l->header_bytes)
		return admit_refuse(q, 431, ERR_TOO_LARGE,
				    "the request has too many or too long fields");
	if (h->n_lengths > 1 || h->bad_length)
		return admit_refuse(q, 400, ERR_MESSAGE, "Content-Length is not one number");
	if (h->n_encodings > 1 || h->bad_encoding)
		return admit_refuse(q, 400, ERR_MESSAGE,
				    "of transfer encodings, only chunked is understood");
	if (h->n_encodings > 0 && (h->n_lengths > 0 || version[7] == '0'))
		return admit_refuse(q, 400, ERR_MESSAGE,
				    "Transfer-Encoding excludes Content-Length and HTTP/1.0");
	if (h->n_hosts == 0)
		return admit_refuse(q, 400, ERR_MESSAGE, "the request has no Host");
	return 0;
}

/* ---- whose page, and under which name ------------------------------------------------------ */

/* Removes scheme and authority of an absolute target from the path; false if it is malformed. */
static bool split_target(struct http_request *q, struct str target, struct str *ret_authority)
{
	static const struct str schemes[] = { STR_LIT("http://"), STR_LIT("https://") };

	*ret_authority = STR_NONE;
	for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
		size_t n = schemes[i].n;
		const char *slash;

		if (target.n < n || !http_same((struct str){ target.p, n }, schemes[i]))
			continue;
		target = (struct str){ target.p + n, target.n - n };
		slash = memchr(target.p, '/', target.n);
		n = slash ? (size_t)(slash - target.p) : target.n;
		*ret_authority = (struct str){ target.p, n };
		target = slash ? (struct str){ slash, target.n - n } : STR_LIT("/");
		break;
	}
	q->path = target;
	return http_path_ok(target);
}

/* Nearly all requests have the same Host as the one before. */
static bool is_served(struct http_server *srv, struct str host)
{
	if (host.n > 0 && str_eq(host, (struct str){ srv->host, srv->host_n }))
		return true;
	if (!http_authority_in(host, srv->hosts, srv->n_hosts))
		return false;
	if (host.n <= sizeof(srv->host)) {
		memcpy(srv->host, host.p, host.n);
		srv->host_n = host.n;
	}
	return true;
}

static int check_host(struct http_request *q, const char *url)
{
	struct http_server *srv = q->conn->srv;
	struct request_head *h = &q->head;
	struct str authority;

	if (!split_target(q, str_of(url), &authority))
		return admit_refuse(q, 400, ERR_MESSAGE, "the request's target is not well-formed");
	if (h->n_hosts > 1 || !is_served(srv, h->host) ||
	    (authority.p && !http_same(authority, h->host)))
		return admit_refuse(q, 403, ERR_HOST, "this host name is not served here");
	return 0;
}

static int check_origin(struct http_request *q)
{
	const struct http_server *srv = q->conn->srv;
	struct request_head *h = &q->head;

	if (h->n_origins == 0)
		return 0;
	for (size_t i = 0; i < srv->o.n_origins; i++)
		h->cross |= str_is(h->origin, srv->o.origins[i]);
	if (h->n_origins > 1 ||
	    (!h->cross &&
	     !http_origin_is(h->origin, http_request_is_tls(q) ? "https" : "http", h->host))) {
		h->cross = false;
		return admit_refuse(q, 403, ERR_ORIGIN, "pages of this origin may not ask here");
	}
	return 0;
}

/* ---- what is asked for --------------------------------------------------------------------- */

static const struct {
	const char *name;
	enum http_method method;
} methods[] = {
	{ "GET", HTTP_GET },	     { "HEAD", HTTP_HEAD },   { "POST", HTTP_POST },
	{ "PUT", HTTP_PUT },	     { "PATCH", HTTP_PATCH }, { "DELETE", HTTP_DELETE },
	{ "OPTIONS", HTTP_OPTIONS },
};

/* Appends the names of the methods of this path's routes. */
static void name_methods(const struct http_request *q, struct err *why)
{
	const struct http_options *o = &q->conn->srv->o;
	unsigned all = 0;
	struct str rest;
	size_t n;

	for (size_t t = 0; t < o->n_routes; t++) {
		for (size_t i = 0; i < o->routes[t].n; i++) {
			if (http_path_is(o->routes[t].p[i].path, q->path, &rest))
				all |= o->routes[t].p[i].methods;
		}
	}
	err_set(why, ERR_METHOD, "here only these methods are served:");
	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		n = strlen(why->msg);
		if (all & methods[i].method)
			snprintf(why->msg + n, sizeof(why->msg) - n, "%s%s",
				 why->msg[n - 1] == ':' ? " " : ", ", methods[i].name);
	}
}

/* A table that takes the request by its host name. */
static bool is_claimed(struct http_request *q)
{
	const struct http_options *o = &q->conn->srv->o;

	for (size_t t = 0; t < o->n_routes; t++) {
		if (!o->routes[t].claims || !o->routes[t].claims(o->routes[t].owner, q))
			continue;
		q->route = &o->routes[t].p[0];
		q->table = &o->routes[t];
		return true;
	}
	return false;
}

static int check_route(struct http_request *q)
{
	const struct http_options *o = &q->conn->srv->o;
	bool found = false;

	if (is_claimed(q))
		return 0;
	for (size_t t = 0; t < o->n_routes && !q->route; t++) {
		for (size_t i = 0; i < o->routes[t].n && !q->route; i++) {
			const struct http_route *r = &o->routes[t].p[i];

			if (!http_path_is(r->path, q->path, &q->rest))
				continue;
			found = true;
			if (r->methods & q->method) {
				q->route = r;
				q->table = &o->routes[t];
			}
		}
	}
	if (q->route)
		return 0;
	if (!found)
		return admit_refuse(q, 404, ERR_ROUTE, "nothing is served at this path");
	q->refusal = 405;
	name_methods(q, &q->why);
	return -1;
}

/* Identifies a client without a principal by its address, without the port. */
static uint64_t address_key(const struct conn *c)
{
	const char *end = strrchr(c->peer, ':');
	uint64_t key = 14695981039346656037u;

	for (const char *p = c->peer; *p && p != end; p++)
		key = (key ^ (unsigned char)*p) * 1099511628211u;
	return key | 1;
}

static int check_token(struct http_request *q)
{
	struct http_server *srv = q->conn->srv;
	struct request_head *h = &q->head;
	struct str token = h->n_authorizations == 1 ? http_bearer(h->authorization) : STR_NONE;

	if (q->route->open)
		return 0;
	if (q->table->identify)
		q->principal = q->table->identify(q->table->owner, q);
	else if (token.p && srv->o.identify)
		q->principal = srv->o.identify(srv->o.owner, token, q->conn->local);
	else if (h->n_authorizations == 0 && !h->cross && srv->o.identify_browser)
		q->principal = srv->o.identify_browser(srv->o.owner, q);
	if (q->principal) {
		q->payer = srv->o.payer ? srv->o.payer(q->principal) : q->principal;
		return 0;
	}
	if ((h->n_authorizations > 0 || q->table->identify) &&
	    !rate_take(srv->failures, address_key(q->conn), server_now_ms(srv), &q->retry_after))
		return admit_refuse(q, 429, ERR_LIMIT,
				    "too many wrong tokens came from this address");
	return admit_refuse(q, 401, ERR_UNAUTHORIZED,
			    h->n_authorizations == 0 ? "the request has no token"
						     : "the token is not known here");
}

static int check_rate(struct http_request *q)
{
	struct http_server *srv = q->conn->srv;

	if (!q->principal)
		return 0;
	if (srv->rates &&
	    !rate_take(srv->rates, (uintptr_t)q->payer, server_now_ms(srv), &q->retry_after))
		return admit_refuse(q, 429, ERR_LIMIT, "too many requests a second");
	if (!conn_has_share(q->conn))
		return admit_refuse(
			q, 429, ERR_LIMIT,
			"this client's requests have most of the connections; others have "
			"the rest");
	return 0;
}

static int check_body(struct http_request *q)
{
	const struct request_head *h = &q->head;
	bool has_body = h->n_encodings > 0 || h->length > 0;
	size_t max = q->route->body_max ? q->route->body_max
		   : q->route->streams	? SIZE_MAX
					: q->conn->srv->o.limits.body;

	if (!q->route->any_type &&
	    (has_body || (q->method & (HTTP_POST | HTTP_PUT | HTTP_PATCH))) &&
	    (h->n_types != 1 || !http_type_is_json(h->type)))
		return admit_refuse(q, 415, ERR_MEDIA_TYPE,
				    h->n_types == 0 ? "the request has no Content-Type"
						    : "the body is not application/json");
	if (h->length > max) {
		q->refusal = 413;
		return request_say_large(max, &q->why);
	}
	q->body = BUF_INIT(max);
	return 0;
}

/* 0 if no route has the method. */
static enum http_method find_method(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		if (*name == *methods[i].name && strcmp(name, methods[i].name) == 0)
			return methods[i].method;
	}
	return 0;
}

int gate_check(struct http_request *q, const char *url, const char *method, const char *version)
{
	q->method = find_method(method);
	q->must_close = check_framing(q, method, version) < 0;
	if (q->must_close || check_host(q, url) < 0 || check_origin(q) < 0)
		return -1;
	if (q->head.cross && q->method == HTTP_OPTIONS &&
	    http_request_header(q, STR_LIT("Access-Control-Request-Method")).p) {
		q->refusal = 204;
		return -1;
	}
	if (check_route(q) < 0 || check_token(q) < 0 || check_rate(q) < 0 || check_body(q) < 0)
		return -1;
	if (q->conn->srv->closing)
		return admit_refuse(q, 503, ERR_CANCELLED, "the server is ending");
	return 0;
}
