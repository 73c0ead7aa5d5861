/*
 * Requests, as routes see them. The daemon calls request_handle() several times for one request:
 * with its head, with each piece of its body, at its end, and again after it was resumed. If the
 * head alone is answered, the daemon closes the connection. So every reply but a refusal waits for
 * the end of the request. A refusal waits too if the body is small; the body is then read and
 * dropped.
 */
#include "http/server/internal.h"

enum {
	WIPED_MAX = 256 << 10, /* bytes of a body that are overwritten at its end */
	SWALLOW_MAX = 64 << 10, /* bytes of a refused body that are read to save the connection */
	DROPPED_MAX = 64 << 20, /* likewise, of one in chunks that became too long */
	QUERY_MAX = 64 << 10,
};

void *request_begin(void *cls, const char *uri, struct MHD_Connection *mhd)
{
	struct conn *c = conn_of(mhd);
	uint64_t until_ms;

	if (!c)
		return NULL;
	c->q = (struct http_request){ .conn = c, .target = str_of(uri) };
	for (const char *p = uri; p && *p; p++)
		c->q.bad_target |= *p > 0 && (*p <= ' ' || *p == 0x7f);
	until_ms = server_now_ms(c->srv) + c->srv->o.limits.header_ms;
	if (c->deadline_ms == 0 || until_ms < c->deadline_ms)
		c->deadline_ms = until_ms;
	c->srv->stats.requests_total++;
	return &c->q;
}

/* Keeps the memory of a small body for the next one. It may have had a secret. */
static void forget_body(struct http_request *q)
{
	struct http_server *srv = q->conn->srv;

	srv->stats.body_bytes -= q->body.cap;
	if (q->body.p && q->body.cap <= WIPED_MAX)
		explicit_bzero(q->body.p, q->body.cap);
	if (SPARE_KEEPS && q->body.p && !srv->body.p && q->body.cap <= BODY_KEPT)
		srv->body = (struct buf){ .p = take_ptr(q->body.p), .cap = q->body.cap };
	buf_fini(&q->body);
}

void request_end(struct http_request *q)
{
	struct conn *c = q->conn;

	if (q->counted)
		c->srv->stats.requests--;
	q->counted = false;
	q->ended = true;
	q->on_gone = NULL;
	q->body_events = NULL;
	if (!q->replies)
		forget_body(q);
	conn_set_state(c, CONN_REPLYING);
}

/* Also called after a connection broke in the middle. */
void request_done(void *cls, struct MHD_Connection *mhd, void **context,
		  enum MHD_RequestTerminationCode code)
{
	struct http_request *q = *context;
	struct conn *c = q ? q->conn : NULL;
	struct err e;

	*context = NULL;
	if (!c)
		return;
	if (c->stream) {
		err_set(&e, ERR_TRANSPORT, "the client went away");
		stream_lost(c, &e);
	}
	if (c->ws && c->state != CONN_UPGRADED) {
		err_set(&e, ERR_TRANSPORT, "the client went away");
		ws_lost(c->ws, 1006, &e);
	}
	if (q->body_events) {
		const struct http_body_events *events = q->body_events;

		request_end(q);
		events->on_lost(q->body_owner);
	}
	if (q->late)
		MHD_destroy_response(q->late);
	forget_body(q);
	arena_free(q->arena);
	if (code == MHD_REQUEST_TERMINATED_COMPLETED_OK && c->state != CONN_UPGRADED)
		conn_untime(c);
	q->arena = NULL;
	q->conn = NULL; /* request_begin() clears the rest */
	if (c->state != CONN_UPGRADED)
		conn_set_state(c, CONN_IDLE);
	if (c->srv->closing && c->state == CONN_IDLE)
		conn_kill(c);
}

/* ---- the body ------------------------------------------------------------------------------ */

int request_say_large(size_t max, struct err *e)
{
	if (max >= 1 << 20 && max % (1 << 20) == 0)
		return err_set(e, ERR_TOO_LARGE, "the body is larger than %zu MiB", max >> 20);
	return err_set(e, ERR_TOO_LARGE, "the body is larger than %zu bytes", max);
}

static void refuse_body(struct http_request *q, int status, enum err_code code, const char *why)
{
	size_t max = q->body.max;

	forget_body(q);
	q->wants_body = false;
	q->refusal = status;
	if (status == 413)
		(void)request_say_large(max, &q->why);
	else
		(void)err_set(&q->why, code, "%s", why);
}

/* The daemon takes no answer in the middle of a body, so the rest of a refused body is read, up to
 * a limit. */
static enum MHD_Result take_piece(struct http_request *q, struct str piece)
{
	struct http_server *srv = q->conn->srv;
	struct buf *kept = &srv->body;
	size_t before;
	struct err e;

	q->received += piece.n;
	if (!q->wants_body)
		return q->received > (q->refusal == 413 ? DROPPED_MAX : SWALLOW_MAX) + q->body.max
			     ? MHD_NO
			     : MHD_YES;
	if (!q->body.p && kept->p && kept->cap <= q->body.max) {
		q->body.p = take_ptr(kept->p);
		q->body.cap = kept->cap;
		srv->stats.body_bytes += q->body.cap;
	}
	before = q->body.cap;
	if (buf_add(&q->body, piece.p, piece.n, &e) < 0) {
		refuse_body(q, e.code == ERR_TOO_LARGE ? 413 : 503, e.code, "out of memory");
		return MHD_YES;
	}
	srv->stats.body_bytes += q->body.cap - before;
	if (srv->stats.body_bytes > srv->o.limits.bodies)
		refuse_body(q, 503, ERR_LIMIT, "other requests keep too much");
	return MHD_YES;
}

/* ---- from the daemon ----------------------------------------------------------------------- */

static enum MHD_Result refuse_now(struct http_request *q)
{
	conn_set_state(q->conn, CONN_REPLYING);
	reply_refusal(q);
	return MHD_YES;
}

static void run_route(struct http_request *q)
{
	q->conn->srv->stats.requests++;
	q->counted = true;
	q->running = true;
	q->route->run(q->table->owner, q);
	q->running = false;
}

static enum MHD_Result route_now(struct http_request *q)
{
	struct conn *c = q->conn;

	conn_set_state(c, CONN_ROUTED);
	run_route(q);
	if (!q->ended)
		conn_suspend(c);
	return MHD_YES;
}

/* ---- a body in pieces ---------------------------------------------------------------------- */

void http_body_start(struct http_request *q, const struct http_body_events *events, void *owner)
{
	q->body_events = events;
	q->body_owner = owner;
}

void http_body_resume(struct http_request *q)
{
	if (q->conn->state == CONN_BODY)
		conn_resume(q->conn);
}

static enum MHD_Result stream_piece(struct http_request *q, struct str piece, size_t *left)
{
	struct conn *c = q->conn;
	size_t took;

	*left = 0;
	if (q->drops)
		return MHD_YES;
	took = q->body_events->on_bytes(q->body_owner, piece);
	if (q->drops)
		return MHD_YES;
	*left = piece.n - took;
	conn_set_state(c, CONN_BODY); /* restarts the deadline */
	if (*left > 0) {
		c->deadline_ms = 0; /* the route is slow now, not the client */
		conn_suspend(c);
	}
	return MHD_YES;
}

static enum MHD_Result end_stream(struct http_request *q)
{
	const struct http_body_events *events;

	if (q->late) {
		reply_late(q);
		return MHD_YES;
	}
	if (q->drops)
		return MHD_NO; /* the connection is lost, and part of the body was not consumed */
	events = take_ptr(q->body_events);
	conn_set_state(q->conn, CONN_ROUTED);
	events->on_end(q->body_owner);
	if (!q->ended)
		conn_suspend(q->conn);
	return MHD_YES;
}

/* Whether the rest of a refused request is read, so that the connection survives. */
static bool swallows(const struct http_request *q)
{
	bool has_body = q->head.n_encodings > 0 || q->head.length > 0;

	return !q->must_close && !(has_body && q->head.expects) && q->head.length <= SWALLOW_MAX;
}

static enum MHD_Result see_head(struct http_request *q, const char *url, const char *method,
				const char *version)
{
	int refused = gate_check(q, url, method, version);
	bool is_long = q->head.n_encodings > 0 || q->head.length > SWALLOW_MAX;
	struct conn *c = q->conn;

	q->seen = true;
	q->unread = refused == 0 && is_long && !q->route->streams && q->table->admits &&
		    !q->table->admits(q->table->owner, q);
	c->lingers = q->unread || (refused < 0 && !swallows(q));
	if (c->lingers)
		return q->unread ? route_now(q) : refuse_now(q);
	q->wants_body = refused == 0;
	conn_set_state(c, CONN_BODY);
	if (q->wants_body && q->route->streams)
		run_route(q);
	return MHD_YES;
}

enum MHD_Result request_handle(void *cls, struct MHD_Connection *mhd, const char *url,
			       const char *method, const char *version, const char *upload,
			       size_t *upload_n, void **context)
{
	struct http_request *q = *context;
	struct str piece = { upload, *upload_n };

	if (!q || !q->conn)
		return MHD_NO;
	conn_moved(q->conn);
	if (!q->seen)
		return see_head(q, url, method, version);
	if (q->wants_body && q->route->streams && (q->body_events || q->late))
		return piece.n > 0 ? stream_piece(q, piece, upload_n) : end_stream(q);
	if (piece.n > 0) {
		*upload_n = 0;
		return take_piece(q, piece);
	}
	if (q->ended || q->conn->suspended)
		return MHD_YES;
	return q->refusal ? refuse_now(q) : route_now(q);
}

/* ---- for the route ------------------------------------------------------------------------- */

enum http_method http_request_method(const struct http_request *q)
{
	return q->method;
}

const struct http_route *http_request_route(const struct http_request *q)
{
	return q->route;
}

struct str http_request_path(const struct http_request *q)
{
	return q->path;
}

struct str http_request_rest(const struct http_request *q)
{
	return q->rest;
}

struct str http_request_segment(const struct http_request *q, const char *name)
{
	return http_path_segment(q->route->path, q->path, name);
}

struct str http_request_body(const struct http_request *q)
{
	return buf_str(&q->body);
}

bool http_request_is_unread(const struct http_request *q)
{
	return q->unread;
}

const void *http_request_principal(const struct http_request *q)
{
	return q->principal;
}

int http_request_port(const struct http_request *q)
{
	return q->conn->listener->port;
}

struct str http_request_peer(struct http_request *q)
{
	return str_of(q->conn->peer);
}

bool http_request_is_tls(const struct http_request *q)
{
	const struct http_server *srv = q->conn->srv;

	return q->conn->listener->tls ||
	       (srv->public_tls.p && http_same(q->head.host, srv->public_tls));
}

bool http_request_is_encrypted(const struct http_request *q)
{
	return q->conn->listener->tls;
}

bool http_request_has_own_origin(const struct http_request *q)
{
	return q->head.n_origins == 1 && !q->head.cross;
}

struct walk {
	void (*each)(void *data, struct str name, struct str value);
	void *data;
};

static enum MHD_Result on_header(void *cls, enum MHD_ValueKind kind, const char *name,
				 size_t name_n, const char *value, size_t value_n)
{
	const struct walk *walk = cls;

	walk->each(walk->data, (struct str){ name, name_n },
		   str_trim((struct str){ value ? value : "", value_n }));
	return MHD_YES;
}

/* The daemon has all fields of a head with more fields than are kept. */
void http_request_each_header(struct http_request *q,
			      void (*each)(void *data, struct str name, struct str value),
			      void *data)
{
	const struct http_field *kept = q->conn->fields;
	struct walk walk = { each, data };

	if (q->head.n_fields > FIELDS_KEPT) {
		MHD_get_connection_values_n(q->conn->mhd, MHD_HEADER_KIND, on_header, &walk);
		return;
	}
	for (unsigned i = 0; i < q->head.n_fields; i++)
		each(data, kept[i].name, kept[i].value);
}

struct search {
	struct str name, first;
	unsigned n;
};

static void request_look(void *data, struct str name, struct str value)
{
	struct search *s = data;

	if (http_same(name, s->name) && s->n++ == 0)
		s->first = value;
}

struct str http_request_header(struct http_request *q, struct str name)
{
	struct search s = { .name = name };

	http_request_each_header(q, request_look, &s);
	return s.first;
}

unsigned http_request_header_count(struct http_request *q, struct str name)
{
	struct search s = { .name = name };

	http_request_each_header(q, request_look, &s);
	return s.n;
}

struct str http_request_query(struct http_request *q, struct str name)
{
	const char *value = NULL;
	size_t n = 0;

	if (MHD_lookup_connection_value_n(q->conn->mhd, MHD_GET_ARGUMENT_KIND, name.p, name.n,
					  &value, &n) != MHD_YES)
		return STR_NONE;
	if (!q->arena)
		q->arena = arena_new(QUERY_MAX);
	return q->arena ? http_query_decode((struct str){ value ? value : "", n }, q->arena)
			: STR_NONE;
}

struct query_walk {
	struct http_request *q;
	void (*each)(void *data, struct str name, struct str value);
	void *data;
	bool bad;
};

static enum MHD_Result on_parameter(void *cls, enum MHD_ValueKind kind, const char *name,
				    size_t name_n, const char *value, size_t value_n)
{
	struct query_walk *walk = cls;
	struct arena *a = walk->q->arena;
	struct str n = http_query_decode((struct str){ name, name_n }, a);
	struct str v = http_query_decode((struct str){ value ? value : "", value_n }, a);

	walk->bad = !n.p || !v.p;
	if (!walk->bad)
		walk->each(walk->data, n, v);
	return walk->bad ? MHD_NO : MHD_YES;
}

bool http_request_each_query(struct http_request *q,
			     void (*each)(void *data, struct str name, struct str value),
			     void *data)
{
	struct query_walk walk = { .q = q, .each = each, .data = data };

	if (!q->arena)
		q->arena = arena_new(QUERY_MAX);
	if (!q->arena)
		return false;
	MHD_get_connection_values_n(q->conn->mhd, MHD_GET_ARGUMENT_KIND, on_parameter, &walk);
	return !walk.bad;
}

struct raw_query {
	struct buf *to;
	struct err *e;
	bool some, failed;
};

/* The daemon has replaced each plus by a space; a target can't contain other spaces. */
static int put_raw(struct raw_query *r, const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char c = p[i] == ' ' ? '+' : p[i];
		int added = c > 0x20 && c < 0x7f && c != '#'
				  ? buf_add(r->to, &c, 1, r->e)
				  : buf_addf(r->to, r->e, "%%%02X", (unsigned char)c);

		if (added < 0)
			return -1;
	}
	return 0;
}

static enum MHD_Result on_raw(void *cls, enum MHD_ValueKind kind, const char *name, size_t name_n,
			      const char *value, size_t value_n)
{
	struct raw_query *r = cls;

	r->failed = (r->some && buf_add(r->to, "&", 1, r->e) < 0) || put_raw(r, name, name_n) < 0 ||
		    (value && (buf_add(r->to, "=", 1, r->e) < 0 || put_raw(r, value, value_n) < 0));
	r->some = true;
	return r->failed ? MHD_NO : MHD_YES;
}

int http_request_raw_query(struct http_request *q, struct buf *to, struct err *e)
{
	struct raw_query r = { .to = to, .e = e };

	MHD_get_connection_values_n(q->conn->mhd, MHD_GET_ARGUMENT_KIND, on_raw, &r);
	return r.failed ? -1 : 0;
}

/* The connection's memory holds the head, the cookies a second time, and a record of each part.
 * What is left is for the head of the reply. */
size_t http_request_room(struct http_request *q)
{
	enum { RECORD = 64, OWN_FIELDS = 1024 };
	size_t all = q->conn->srv->o.limits.header_bytes * 3 / 2;
	unsigned n = (unsigned)MHD_get_connection_values_n(
		q->conn->mhd, MHD_HEADER_KIND | MHD_GET_ARGUMENT_KIND | MHD_COOKIE_KIND, NULL,
		NULL);
	size_t taken = request_head_size(q) + http_request_header(q, STR_LIT("Cookie")).n +
		       n * RECORD + OWN_FIELDS;

	return taken < all ? all - taken : 0;
}

void http_request_mark(struct http_request *q, const char *name, const char *value)
{
	q->mark = name;
	snprintf(q->mark_value, sizeof(q->mark_value), "%s", value);
}

void http_request_on_gone(struct http_request *q, void (*on_gone)(void *data), void *data)
{
	q->on_gone = on_gone;
	q->on_gone_data = data;
}
