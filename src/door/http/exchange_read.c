/*
 * A request as its route's input: one object of path, query, header and body. Path, query and
 * header are texts. They become a JSON document, in which a text becomes a number where the table
 * wants one, so that the same strict decoder checks them.
 */
#include "door/http/internal.h"

#include <stdio.h>

#include "http/message/head.h"
#include "json/document/put.h"
#include "json/document/utf8.h"

enum {
	TEXTS_MAX = 64 << 10,
	MENDED_MAX = 8 << 20, /* a body, with every byte escaped */
	/* Each message costs something, however small it is, and all are read in one turn. */
	MESSAGES_MAX = 4096,
};

/* ---- texts --------------------------------------------------------------------------------- */

static bool is_number(struct str s)
{
	size_t i = s.n > 1 && s.p[0] == '-';

	if (s.n - i == 0 || s.n > 20 || (s.p[i] == '0' && s.n - i > 1))
		return false;
	for (; i < s.n; i++) {
		if (s.p[i] < '0' || s.p[i] > '9')
			return false;
	}
	return true;
}

static const struct field *row_of(const struct field_table *t, struct str name)
{
	for (size_t i = 0; i < t->n; i++) {
		if (str_is(name, t->rows[i].name))
			return &t->rows[i];
	}
	return NULL;
}

struct texts {
	struct json_writer *w;
	const struct field_table *t;
	struct op_members members;
	const char *instead; /* the parameter that Last-Event-ID stands for; NULL: none */
};

/* The member whose header a parameter of the query can stand in for; by the name of either. */
static const struct op_member *choice_of(struct op_members members, struct str name, bool by_query)
{
	for (size_t i = 0; i < members.n; i++) {
		const struct op_member *m = &members.p[i];

		if (m->or_query && str_is(name, by_query ? m->or_query : m->as))
			return m;
	}
	return NULL;
}

/* Where an EventSource goes on that comes again; empty: it begins as its address says. */
static struct str last_event(struct exchange *a)
{
	return a->route->sse ? http_request_header(a->q, STR_LIT("Last-Event-ID")) : STR_NONE;
}

static void put_parameter(void *data, struct str name, struct str value)
{
	struct texts *x = data;
	const struct field *f = row_of(x->t, name);
	bool integer = f && f->kind >= FIELD_IS_INT32 && f->kind <= FIELD_IS_UINT64;

	if (choice_of(x->members, name, true))
		return; /* put_header() has it */
	if (x->instead && str_is(name, x->instead))
		return; /* put_query() has it */
	if (f && f->kind == FIELD_IS_STRS)
		return; /* put_lists() has it */
	json_write_key_str(x->w, name);
	if ((integer && is_number(value)) ||
	    (f && f->kind == FIELD_IS_BOOL && (str_is(value, "true") || str_is(value, "false"))))
		json_write_raw(x->w, value);
	else
		json_write_str(x->w, value);
}

/* A parameter that may be repeated: its values are an array. */
struct list {
	struct json_writer *w;
	const char *name;
	bool begun;
};

static void put_item(void *data, struct str name, struct str value)
{
	struct list *l = data;

	if (!str_is(name, l->name))
		return;
	if (!l->begun)
		json_put_array(l->w, l->name);
	l->begun = true;
	json_write_str(l->w, value);
}

static bool put_lists(struct exchange *a, const struct field_table *t, struct json_writer *w)
{
	for (size_t i = 0; i < t->n; i++) {
		struct list l = { .w = w, .name = t->rows[i].name };

		if (t->rows[i].kind != FIELD_IS_STRS)
			continue;
		if (!http_request_each_query(a->q, put_item, &l))
			return false;
		if (l.begun)
			json_write_array_end(w);
	}
	return true;
}

static int put_query(struct exchange *a, const struct field_table *t, struct json_writer *w,
		     struct err *e)
{
	struct str last = last_event(a);
	struct texts x = { w, t, a->route->members, last.n ? a->route->sse : NULL };

	if (!http_request_each_query(a->q, put_parameter, &x) || !put_lists(a, t, w))
		return err_set(e, ERR_INVALID, "a parameter of the query is not UTF-8 text");
	if (last.n && !utf8_valid(last))
		return err_set(e, ERR_INVALID, "Last-Event-ID is not UTF-8 text");
	if (last.n)
		put_parameter(&(struct texts){ w, t }, str_of(a->route->sse), last);
	return 0;
}

struct parameter {
	const char *name;
	struct str value;
	unsigned n;
};

static void look_for_parameter(void *data, struct str name, struct str value)
{
	struct parameter *p = data;

	if (!str_is(name, p->name))
		return;
	p->value = value;
	p->n++;
}

/* It stands in the header or in the query. */
static int put_choice(struct exchange *a, const struct op_member *m, unsigned n, struct str value,
		      const struct field_table *t, struct json_writer *w, struct err *e)
{
	struct parameter p = { .name = m->or_query };

	if (!http_request_each_query(a->q, look_for_parameter, &p))
		return err_set(e, ERR_INVALID, "a parameter of the query is not UTF-8 text");
	if (n + p.n != 1)
		return err_set(e, ERR_INVALID, "%s, or %s in the query, is wanted once", m->as,
			       m->or_query);
	put_parameter(&(struct texts){ w, t }, str_of(m->as), n ? value : p.value);
	return 0;
}

static int put_header(struct exchange *a, const struct field_table *t, struct json_writer *w,
		      struct err *e)
{
	for (size_t i = 0; i < t->n; i++) {
		struct str name = str_of(t->rows[i].name);
		unsigned n = http_request_header_count(a->q, name);
		struct str value = http_request_header(a->q, name);
		const struct op_member *choice = choice_of(a->route->members, name, false);

		if (n > 1)
			return err_set(e, ERR_INVALID, "%s stands %u times", t->rows[i].name, n);
		if (n == 1 && !utf8_valid(value))
			return err_set(e, ERR_INVALID, "%s is not UTF-8 text", t->rows[i].name);
		if (choice && put_choice(a, choice, n, value, t, w, e) < 0)
			return -1;
		if (n == 1 && !choice)
			put_parameter(&(struct texts){ w, t }, name, value);
	}
	return 0;
}

static int put_path(struct exchange *a, const struct field_table *t, struct json_writer *w,
		    struct err *e)
{
	for (size_t i = 0; i < t->n; i++)
		put_parameter(&(struct texts){ w, t }, str_of(t->rows[i].name),
			      http_request_segment(a->q, t->rows[i].name));
	return 0;
}

typedef int (*put_fn)(struct exchange *a, const struct field_table *t, struct json_writer *w,
		      struct err *e);

/* The part's object; empty where the route has no such part. */
static int put_part(struct exchange *a, enum op_place place, put_fn put, struct json_writer *w,
		    struct err *e)
{
	json_put_object(w, op_place_names[place]);
	if (put(a, &a->parts->places[place], w, e) < 0)
		return -1;
	json_write_object_end(w);
	return 0;
}

static int parse_texts(struct exchange *a, struct err *e)
{
	autobuf struct buf b = BUF_INIT(TEXTS_MAX);
	struct json_writer w = json_writer(&b);

	json_write_object(&w);
	if (put_part(a, OP_PATH, put_path, &w, e) < 0 ||
	    put_part(a, OP_QUERY, put_query, &w, e) < 0 ||
	    put_part(a, OP_HEADER, put_header, &w, e) < 0)
		return -1;
	json_write_object_end(&w);
	if (json_write_done(&w, e) < 0)
		return -1;
	a->docs[0] = json_parse(buf_str(&b), NULL, e);
	return a->docs[0] ? 0 : -1;
}

/* ---- the body ------------------------------------------------------------------------------ */

static size_t body_max(const struct exchange *a)
{
	return a->route->body_max ? a->route->body_max : API_BODY_MAX;
}

/* Messages of a body that streams were bounded when it was cut into them. */
static struct json_doc *parse_json(struct exchange *a, struct str text, struct err *e)
{
	const struct json_options o = { .bytes = a->route->streams ? text.n : body_max(a) };
	struct json_doc *d = json_parse(text, &o, e);

	if (!d && e->code == ERR_INVALID)
		a->code = API_INVALID_JSON;
	return d;
}

/* One message of a request. Its bytes are base64 in JSON, so a binary one has less room. */
static struct json_doc *parse_message(struct exchange *a, struct str text, struct err *e)
{
	const size_t most = body_max(a) / 3 * 4 + 4096, room = PROTO_JSON_MAX(text.n);
	autobuf struct buf json = BUF_INIT(room < most ? room : most);
	const struct json_options o = { .bytes = most };

	if (!a->binary)
		return parse_json(a, text, e);
	if (text.n > body_max(a) / 4 * 3) {
		err_set(e, ERR_TOO_LARGE, "a message has more than %zu bytes", body_max(a) / 4 * 3);
		return NULL;
	}
	return proto_to_json(a->route->proto, text, &json, e) < 0
		     ? NULL
		     : json_parse(buf_str(&json), &o, e);
}

struct json_doc *exchange_parse(struct call *c, struct str text, struct err *e)
{
	return parse_json(exchange_of(c), text, e);
}

static int first_message(struct exchange *a, struct str *ret, struct err *e)
{
	a->frames.left = *ret;
	switch (frame_next(&a->frames, ret, e)) {
	case 0:
		return err_set(e, ERR_INVALID, "the request has no message");
	case 1:
		if (a->frames.left.n == 0 || a->route->messages)
			return 0;
		return err_set(e, ERR_INVALID, "this method takes one message");
	default:
		return -1;
	}
}

void exchange_write_others(struct json_writer *w, const struct json_val *body,
			   const char *const *names, size_t n)
{
	struct json_iter it = json_iter(body);

	while (json_next(&it)) {
		bool left_out = false;

		for (size_t i = 0; i < n; i++)
			left_out |= names[i] && str_is(it.key, names[i]);
		if (left_out)
			continue;
		json_write_key_str(w, it.key);
		json_write_val(w, it.val);
	}
}

/* Turns the body of a client of mitos into the route's own. */
static int mend(struct exchange *a, struct err *e)
{
	const struct json_val *body = json_root(a->docs[1]);
	autobuf struct buf b = BUF_INIT(MENDED_MAX);
	struct json_writer w = json_writer(&b);
	struct json_doc *mended;

	if (!a->api->mitos || !a->route->mend || json_type(body) != JSON_OBJECT)
		return 0;
	json_write_object(&w);
	if (a->route->mend(a->api->mitos, a->who, body, &w, e) < 0)
		return -1;
	json_write_object_end(&w);
	if (json_write_done(&w, e) < 0)
		return -1;
	mended = json_parse(buf_str(&b), &(struct json_options){ .bytes = b.n }, e);
	if (!mended)
		return -1;
	json_free(a->docs[1]);
	a->docs[1] = mended;
	return 0;
}

void exchange_parse_text(struct exchange *a)
{
	struct str body = http_request_body(a->q);

	a->parsed = true;
	if (a->route->shape == API_FRAMES && first_message(a, &body, &a->wrong) < 0)
		return;
	if (body.n > 0 || a->binary) /* a message of all defaults has no bytes */
		a->docs[1] = parse_message(a, body, &a->wrong);
}

int exchange_parse_body(struct exchange *a, struct err *e)
{
	if (a->route->socket || a->route->streams || a->mended)
		return 0;
	if (!a->parsed)
		exchange_parse_text(a);
	if (a->wrong.code != ERR_NONE) {
		*e = a->wrong;
		return -1;
	}
	if (a->docs[1] && mend(a, e) < 0)
		return -1;
	a->mended = true;
	return 0;
}

const struct json_val *exchange_next_message(struct call *c, struct err *e)
{
	struct exchange *a = exchange_of(c);
	struct str text;

	e->code = ERR_NONE;
	json_free(take_ptr(a->message));
	if (!a->q || frame_next(&a->frames, &text, e) <= 0)
		return NULL;
	if (++a->n_messages > MESSAGES_MAX) {
		err_set(e, ERR_TOO_LARGE,
			"more than %d messages stand behind the first; send larger ones",
			MESSAGES_MAX);
		return NULL;
	}
	a->message = parse_message(a, text, e);
	return a->message ? json_root(a->message) : NULL;
}

/* ---- what only Connect has ----------------------------------------------------------------- */

bool exchange_speaks_frames(struct exchange *a)
{
	struct str type = http_request_header(a->q, STR_LIT("Content-Type"));

	if (a->route->kind != API_CONNECT || a->route->shape != API_FRAMES || a->route->socket)
		return false;
	a->binary = a->route->proto && http_same(type, STR_LIT("application/connect+proto"));
	return a->binary || http_same(type, STR_LIT("application/connect+json"));
}

/* The value of a field that can only be this; absent is well. */
static int check_is(struct exchange *a, const char *name, const char *only, enum err_code code,
		    struct err *e)
{
	struct str value = http_request_header(a->q, str_of(name));

	if (!value.p || str_is(value, only))
		return 0;
	return err_set(e, code, "%s can only be %s", name, only);
}

static int check_connect(struct exchange *a, struct err *e)
{
	bool frames = a->route->shape == API_FRAMES;
	bool fits = frames ? exchange_speaks_frames(a)
			   : http_type_is_json(http_request_header(a->q, STR_LIT("Content-Type")));
	struct str timeout = http_request_header(a->q, STR_LIT("Connect-Timeout-Ms"));
	unsigned long long ms;

	if (!fits && !a->route->socket)
		return err_set(e, ERR_MEDIA_TYPE, "this method takes %s%s",
			       frames ? "application/connect+json" : "application/json",
			       a->route->proto ? " or application/connect+proto" : "");
	if (check_is(a, "Connect-Protocol-Version", "1", ERR_INVALID, e) < 0 ||
	    check_is(a, "Content-Encoding", "identity", ERR_UNSUPPORTED, e) < 0 ||
	    check_is(a, "Connect-Content-Encoding", "identity", ERR_UNSUPPORTED, e) < 0)
		return -1;
	if (!timeout.p)
		return 0;
	if (timeout.n > 10 || !http_length_parse(timeout, &ms) || ms == 0)
		return err_set(e, ERR_INVALID,
			       "Connect-Timeout-Ms takes a positive number of at most 10 digits");
	a->timeout_ms = ms;
	return 0;
}

/* ---- what only REST has ------------------------------------------------------------------- */

/* As the client called us; the reply goes the same way. */
static int read_endpoint(struct exchange *a, struct err *e)
{
	char *url = arena_printf(a->arena, e, "%s://%.*s",
				 http_request_is_tls(a->q) ? "https" : "http",
				 STR_ARG(http_request_header(a->q, STR_LIT("Host"))));

	if (!url)
		return -1;
	call_set_endpoint(a->call, str_of(url));
	return 0;
}

/* ---- all of it ----------------------------------------------------------------------------- */

static int exchange_read_decode(struct exchange *a, enum op_place place, const struct json_val *v,
				void *request, struct err *e)
{
	bool is_key = a->parts->places[place].rows == api_key_table.rows;
	void *to = is_key ? &a->key : (void *)((char *)request + a->parts->at[place]);

	if (field_decode_members(&a->parts->places[place], v, a->arena, to, e) == 0)
		return 0;
	op_members_meant(a->route->members, &a->parts->places[place], e);
	if (place != OP_BODY)
		err_point(e, "%s", ""); /* no document of the client's */
	return err_wrap(e, "%s", op_place_names[place]);
}

/* All but the body, each part into its place of the request. */
static int read_head(struct exchange *a, void *request, struct err *e)
{
	static const enum op_place order[] = { OP_PATH, OP_QUERY, OP_HEADER };

	if (!a->docs[0] &&
	    ((a->route->kind == API_CONNECT && check_connect(a, e) < 0) || parse_texts(a, e) < 0))
		return -1;
	if (a->route->projected)
		op_shape_defaults(&a->parts->shape, a->route->op, request);
	for (size_t i = 0; i < ARRAY_LEN(order); i++) {
		const struct json_val *v = json_get(json_root(a->docs[0]),
						    op_place_names[order[i]]);

		if (exchange_read_decode(a, order[i], v, request, e) < 0)
			return -1;
	}
	return 0;
}

int exchange_read_target(struct exchange *a, struct str *ret, struct err *e)
{
	const struct op *op = a->route->op;
	void *request = arena_alloc(a->arena, op->request->size, e);

	if (!request || read_head(a, request, e) < 0)
		return -1;
	*ret = op_target(op, request);
	return 0;
}

const struct json_val *exchange_body(struct call *c)
{
	struct exchange *a = exchange_of(c);

	return a->docs[1] ? json_root(a->docs[1]) : NULL;
}

void exchange_forget_body(struct call *c)
{
	json_free(take_ptr(exchange_of(c)->docs[1]));
}

struct str exchange_first(struct call *c, bool *ret_is_text)
{
	*ret_is_text = exchange_of(c)->first_is_text;
	return exchange_of(c)->first;
}

const struct json_val *exchange_parse_first(struct call *c, struct str text, struct err *e)
{
	struct exchange *a = exchange_of(c);

	a->docs[1] = json_parse(text, NULL, e);
	return exchange_body(c);
}

int exchange_decode_body(struct call *c, const struct json_val *v, void *request, struct err *e)
{
	struct exchange *a = exchange_of(c);

	if (field_decode_members(&a->parts->places[OP_BODY], v, a->arena, request, e) == 0)
		return 0;
	op_members_meant(a->route->members, &a->parts->places[OP_BODY], e);
	return -1;
}

/* A body that no row takes has no members. */
int exchange_read(struct exchange *a, void *request, struct err *e)
{
	const struct api_route *r = a->route;

	if (a->q && http_request_is_unread(a->q))
		return ops_may(a->api->ops, a->who, r->op, e) < 0
			     ? -1
			     : err_set(e, ERR_CONFLICT, "what the key may do has changed");
	if (read_head(a, request, e) < 0 || (!r->hear && exchange_parse_body(a, e) < 0))
		return -1;
	if (!r->hear && !r->body &&
	    exchange_read_decode(a, OP_BODY, exchange_body(a->call), request, e) < 0)
		return -1;
	if ((r->read && r->read(a->call, request, e) < 0) ||
	    (r->kind == API_REST && !r->socket && read_endpoint(a, e) < 0))
		return -1;
	call_set_timeout(a->call, a->timeout_ms);
	call_set_key(a->call, a->key);
	if (r->projected)
		exchange_wait(a->call);
	return 0;
}
