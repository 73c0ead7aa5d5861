/*
 * Tools that a server of ours does by the rows of door/rest. A tool and a route are two
 * projections of one operation, so an argument and a member of the route are the same where they
 * fill the same member of the operation's request. Only what the client says is sent, and the
 * tool's own defaults.
 */
#include "cli/remote/internal.h"

#include <stdio.h>

enum { BODY_MAX = 64 << 20 };

/* Where a member of the request stands in the route. */
struct spot {
	enum op_place place;
	const struct field *in; /* the object in which it is; NULL: it is none */
	const struct field *row;
};

static bool find_spot(const struct op_shape *s, const struct field *f, struct spot *ret)
{
	for (size_t p = 0; p < OP_PLACES; p++) {
		const struct field_table *t = &s->places[p];

		for (size_t i = 0; i < t->n; i++) {
			const struct field *row = &t->rows[i], *of = NULL;

			if (row->at == f->at && row->kind == f->kind) {
				*ret = (struct spot){ (enum op_place)p, NULL, row };
				return true;
			}
			for (size_t k = 0; row->kind == FIELD_IS_OBJECT && k < row->table->n; k++) {
				if (row->at + row->table->rows[k].at == f->at &&
				    row->table->rows[k].kind == f->kind)
					of = &row->table->rows[k];
			}
			if (of) {
				*ret = (struct spot){ (enum op_place)p, row, of };
				return true;
			}
		}
	}
	return false;
}

/* Writes the argument of a row, or its default where that is the tool's own. False: none. */
static bool put_value(const struct remote_call *c, const struct field *f, struct json_writer *w)
{
	const struct json_val *v = json_get(c->args, f->name);

	if (v)
		json_write_val(w, v);
	else if (f->def.is == FIELD_DEFAULT_INT && f->kind == FIELD_IS_BOOL)
		json_write_bool(w, f->def.i != 0);
	else if (f->def.is == FIELD_DEFAULT_INT && f->kind != FIELD_IS_ENUM)
		json_write_int(w, f->def.i);
	else
		return false;
	return true;
}

static bool is_said(const struct remote_call *c, const struct field *f)
{
	return json_get(c->args, f->name) ||
	       (f->def.is == FIELD_DEFAULT_INT && f->kind != FIELD_IS_ENUM);
}

/* ---- the body ------------------------------------------------------------------------------ */

/* The members of one object of the body, or with in NULL those that are in none. */
static int put_members(const struct remote_call *c, const struct field *in, struct json_writer *w,
		       struct err *e)
{
	const struct field_table *t = &c->tool->shape.places[OP_BODY];

	for (size_t i = 0; i < t->n; i++) {
		const struct field *f = &t->rows[i];
		struct spot s;

		if (!is_said(c, f))
			continue;
		if (!find_spot(&c->tool->asked, f, &s)) {
			if (json_get(c->args, f->name))
				return err_set(e, ERR_INVALID, "%s can't be asked of that server",
					       f->name);
			continue;
		}
		if (s.place != OP_BODY || s.in != in)
			continue;
		json_write_key(w, s.row->name);
		put_value(c, f, w);
	}
	return 0;
}

static bool has_members(const struct remote_call *c, const struct field *in)
{
	const struct field_table *t = &c->tool->shape.places[OP_BODY];
	struct spot s;

	for (size_t i = 0; i < t->n; i++) {
		if (is_said(c, &t->rows[i]) && find_spot(&c->tool->asked, &t->rows[i], &s) &&
		    s.in == in)
			return true;
	}
	return false;
}

int rest_body(struct remote_call *c, const char *name, struct str value, struct buf *to,
	      struct err *e)
{
	const struct field_table *t = &c->tool->asked.places[OP_BODY];
	struct json_writer w = json_writer(to);

	json_write_object(&w);
	if (name) {
		json_write_key(&w, name);
		json_write_str(&w, value);
	}
	if (put_members(c, NULL, &w, e) < 0)
		return -1;
	for (size_t i = 0; i < t->n; i++) {
		if (t->rows[i].kind != FIELD_IS_OBJECT || !has_members(c, &t->rows[i]))
			continue;
		json_write_key(&w, t->rows[i].name);
		json_write_object(&w);
		if (put_members(c, &t->rows[i], &w, e) < 0)
			return -1;
		json_write_object_end(&w);
	}
	json_write_object_end(&w);
	return json_write_done(&w, e);
}

/* ---- path and query ------------------------------------------------------------------------ */

/* A text as it is, and other values as JSON has them. */
static bool put_text(struct remote_call *c, const struct field *f, char path[REMOTE_PATH_MAX])
{
	const struct json_val *v = json_get(c->args, f->name);
	autobuf struct buf text = BUF_INIT(REMOTE_PATH_MAX);
	struct json_writer w = json_writer(&text);
	struct err e;

	if (json_type(v) == JSON_STR)
		return remote_escape(path, json_str(v));
	return put_value(c, f, &w) && json_write_done(&w, &e) == 0 &&
	       remote_escape(path, buf_str(&text));
}

/* The argument that stands for {name} of the route's path. */
static const struct field *segment_row(const struct remote_call *c, struct str name)
{
	const struct field_table *t = &c->tool->shape.places[OP_BODY];
	struct spot s;

	for (size_t i = 0; i < t->n; i++) {
		if (find_spot(&c->tool->asked, &t->rows[i], &s) && s.place == OP_PATH &&
		    str_is(name, s.row->name))
			return &t->rows[i];
	}
	return NULL;
}

static int too_long(struct err *e)
{
	return err_set(e, ERR_TOO_LARGE, "an argument is too long for a path");
}

static int put_path(struct remote_call *c, char path[REMOTE_PATH_MAX], struct err *e)
{
	const char *p = c->tool->route->path, *open;

	*path = '\0';
	while ((open = strchr(p, '{'))) {
		const char *close = strchr(open, '}');
		struct str name = { open + 1, (size_t)(close - open - 1) };
		const struct field *f = segment_row(c, name);
		size_t n = strlen(path);

		snprintf(path + n, REMOTE_PATH_MAX - n, "%.*s", (int)(open - p), p);
		if (!f)
			return err_set(e, ERR_BUG, "%s wants {%.*s}", c->tool->route->id,
				       STR_ARG(name));
		n = strlen(path);
		if (!put_text(c, f, path))
			return too_long(e);
		/* an empty segment, or one that means another path, is no name of anything */
		if (!path[n] || strspn(path + n, ".") == strlen(path + n))
			return err_set(e, ERR_INVALID, "%s: nothing can be called so", f->name);
		p = close + 1;
	}
	snprintf(path + strlen(path), REMOTE_PATH_MAX - strlen(path), "%s", p);
	return 0;
}

static int put_query(struct remote_call *c, char path[REMOTE_PATH_MAX], struct err *e)
{
	const struct field_table *t = &c->tool->shape.places[OP_BODY];
	struct spot s;

	for (size_t i = 0; i < t->n; i++) {
		size_t n = strlen(path);

		if (!is_said(c, &t->rows[i]) || !find_spot(&c->tool->asked, &t->rows[i], &s) ||
		    s.place != OP_QUERY)
			continue;
		snprintf(path + n, REMOTE_PATH_MAX - n, "%c%s=", strchr(path, '?') ? '&' : '?',
			 s.row->name);
		if (!put_text(c, &t->rows[i], path))
			return too_long(e);
	}
	return 0;
}

/* ---- the call ------------------------------------------------------------------------------ */

static int rest_done(struct remote_call *c, struct err *e)
{
	autobuf struct buf text = BUF_INIT(REMOTE_TEXT_MAX);
	struct json_writer w = json_writer(&text);
	const struct json_val *v = remote_answer(c, e);

	if (v)
		json_write_val(&w, v);
	return v && json_write_done(&w, e) == 0 ? remote_end(c, buf_str(&text), STR_NONE) : -1;
}

int rest_run(struct remote_call *c, struct err *e)
{
	autobuf struct buf body = BUF_INIT(BODY_MAX);
	char path[REMOTE_PATH_MAX];
	const unsigned method = c->tool->route->method;
	struct remote_question q = { .method = method == HTTP_GET    ? "GET"
					     : method == HTTP_DELETE ? "DELETE"
								     : "POST",
				     .path = path };

	if (put_path(c, path, e) < 0 || put_query(c, path, e) < 0 ||
	    rest_body(c, NULL, STR_NONE, &body, e) < 0)
		return -1;
	if (method == HTTP_POST)
		q.body = buf_str(&body);
	return remote_ask(c, &q, NULL, rest_done, e);
}
