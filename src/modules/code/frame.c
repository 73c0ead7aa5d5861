#include "modules/code/frame.h"

#include <assert.h>

#include "json/document/put.h"

enum { FRAME_DEPTH = 256, PLACE_MAX = 1 << 24 };
static_assert((int)CODE_ARGUMENTS_DEPTH == JSON_DEPTH_MAX, "who reads arguments again can");

const char *const code_level_names[CODE_LEVELS] = {
	[CODE_LOG] = "log",	[CODE_INFO] = "info",	[CODE_WARN] = "warn",
	[CODE_ERROR] = "error", [CODE_DEBUG] = "debug",
};

const char *const code_limit_names[CODE_LIMITS] = {
	[CODE_LIMIT_CPU] = "cpu",	[CODE_LIMIT_HEAP] = "heap",   [CODE_LIMIT_STACK] = "stack",
	[CODE_LIMIT_OUTPUT] = "output", [CODE_LIMIT_CALLS] = "calls", [CODE_LIMIT_WALL] = "wall",
};

static const char *const kinds[CODE_KINDS] = {
	[CODE_IMPORT] = "import", [CODE_CONSOLE] = "console", [CODE_CALL] = "call",
	[CODE_DONE] = "done",	  [CODE_FAILED] = "failed",
};

void code_reader_init(struct code_reader *r)
{
	*r = (struct code_reader){ .in = BUF_INIT(CODE_FRAME_MAX + CODE_HEAD + (128 << 10)) };
}

void code_reader_fini(struct code_reader *r)
{
	buf_fini(&r->in);
	r->at = 0;
}

int code_reader_add(struct code_reader *r, struct str bytes, struct err *e)
{
	buf_drop(&r->in, r->at);
	r->at = 0;
	return buf_add(&r->in, bytes.p, bytes.n, e);
}

/* ---- what holt-js says --------------------------------------------------------------------- */

static int frame_find(const char *const *names, size_t n, struct str name)
{
	for (size_t i = 0; i < n; i++) {
		if (str_is(name, names[i]))
			return (int)i;
	}
	return -1;
}

static int frame_bad(struct err *e, const char *what)
{
	return err_set(e, ERR_GUEST, "the JavaScript process broke its protocol: %s", what);
}

/* A text, in the arena. Absent: empty. */
static int read_text(const struct json_val *of, const char *name, struct arena *a, struct str *ret,
		     struct err *e)
{
	struct str s = json_str(json_get(of, name));
	char *copy = arena_dup(a, s.p ? s : STR_LIT(""), e);

	if (!copy)
		return -1;
	*ret = (struct str){ copy, s.n };
	return 0;
}

static int read_number(const struct json_val *of, const char *name, uint64_t max, uint32_t *ret,
		       struct err *e)
{
	const struct json_val *v = json_get(of, name);
	uint64_t u = 0;

	if (v && (!json_uint64(v, &u) || u > max))
		return frame_bad(e, "a number is out of range");
	*ret = (uint32_t)u;
	return 0;
}

static int read_json(const struct json_val *v, size_t max, struct arena *a, struct str *ret,
		     struct err *e)
{
	autobuf struct buf text = BUF_INIT(max);
	struct json_writer w = json_writer(&text);
	char *copy;

	json_write_val(&w, v);
	if (json_write_done(&w, e) < 0)
		return -1;
	copy = arena_dup(a, buf_str(&text), e);
	if (!copy)
		return -1;
	*ret = (struct str){ copy, text.n };
	return 0;
}

static bool is_deeper(const struct json_val *v, unsigned depth)
{
	struct json_iter it = json_iter(v);

	if (json_type(v) != JSON_ARRAY && json_type(v) != JSON_OBJECT)
		return false;
	if (depth == 0)
		return true;
	while (json_next(&it)) {
		if (is_deeper(it.val, depth - 1))
			return true;
	}
	return false;
}

static int read_call(const struct json_val *v, struct arena *a, struct code_frame *f, struct err *e)
{
	const struct json_val *arguments = json_get(v, "arguments");

	if (json_type(arguments) != JSON_OBJECT)
		return frame_bad(e, "a call has no arguments");
	/* Policy, redaction and audit read them again. */
	if (is_deeper(arguments, CODE_ARGUMENTS_DEPTH))
		return frame_bad(e, "arguments are nested too deeply");
	if (read_number(v, "id", UINT32_MAX, &f->id, e) < 0 ||
	    read_number(v, "module", UINT32_MAX, &f->module, e) < 0 ||
	    read_number(v, "function", UINT32_MAX, &f->function, e) < 0)
		return -1;
	return read_json(arguments, 2 * CODE_ARGUMENTS_MAX, a, &f->json, e);
}

static int read_failure(const struct json_val *v, struct arena *a, struct code_frame *f,
			struct err *e)
{
	struct str limit = json_str(json_get(v, "limit"));
	int which = frame_find(code_limit_names, CODE_LIMIT_WALL, limit);

	if (read_text(v, "name", a, &f->name, e) < 0 ||
	    read_text(v, "message", a, &f->message, e) < 0 ||
	    read_text(v, "stack", a, &f->stack, e) < 0 ||
	    read_number(v, "line", PLACE_MAX, &f->line, e) < 0 ||
	    read_number(v, "column", PLACE_MAX, &f->column, e) < 0)
		return -1;
	if (limit.p && which < 0)
		return frame_bad(e, "there is no such limit");
	f->has_limit = limit.p;
	f->limit = limit.p ? (enum code_limit)which : CODE_LIMIT_CPU;
	return 0;
}

static int read_frame(const struct json_val *v, struct arena *a, struct code_frame *f,
		      struct err *e)
{
	int kind = frame_find(kinds, CODE_KINDS, json_str(json_get(v, "kind"))), level;
	const struct json_val *value = json_get(v, "value");

	if (kind < 0)
		return frame_bad(e, "a frame of no kind");
	*f = (struct code_frame){ .kind = (enum code_kind)kind };
	f->again = json_bool(json_get(v, "again"));
	switch (f->kind) {
	case CODE_IMPORT:
		if (read_text(v, "name", a, &f->name, e) < 0)
			return -1;
		return f->name.n <= CODE_NAME_MAX ? 0 : frame_bad(e, "a module's name is too long");
	case CODE_CONSOLE:
		level = frame_find(code_level_names, CODE_LEVELS, json_str(json_get(v, "level")));
		f->level = level < 0 ? CODE_LOG : (enum code_level)level;
		return read_text(v, "text", a, &f->text, e);
	case CODE_CALL:
		return read_call(v, a, f, e);
	case CODE_DONE:
		return value ? read_json(value, 2 * CODE_FRAME_MAX, a, &f->json, e) : 0;
	case CODE_FAILED:
		return read_failure(v, a, f, e);
	case CODE_KINDS:
		break;
	}
	return frame_bad(e, "a frame of no kind");
}

static size_t frame_length(const unsigned char *p)
{
	return p[0] | (size_t)p[1] << 8 | (size_t)p[2] << 16 | (size_t)p[3] << 24;
}

int code_reader_next(struct code_reader *r, struct arena *a, struct code_frame *ret, struct err *e)
{
	const struct json_options o = { .bytes = CODE_FRAME_MAX, .depth = FRAME_DEPTH };
	AUTO(json_free) struct json_doc *doc = NULL;
	struct str left = { r->in.p + r->at, r->in.n - r->at };
	size_t n;

	if (left.n < CODE_HEAD)
		return 0;
	n = frame_length((const unsigned char *)left.p);
	if (n > CODE_FRAME_MAX)
		return frame_bad(e, "a frame is too long");
	if (left.n - CODE_HEAD < n)
		return 0;
	r->at += CODE_HEAD + n;
	doc = json_parse((struct str){ left.p + CODE_HEAD, n }, &o, e);
	if (!doc) {
		e->code = e->code == ERR_LIMIT ? ERR_LIMIT : ERR_GUEST;
		return err_wrap(e, "read what the JavaScript process said");
	}
	return read_frame(json_root(doc), a, ret, e) < 0 ? -1 : 1;
}

/* ---- what the hub says --------------------------------------------------------------------- */

struct saying {
	struct buf *to;
	size_t at; /* of the length */
	struct json_writer w;
	struct err err;
};

static void say_begin(struct saying *s, struct buf *to, const char *kind)
{
	*s = (struct saying){ .to = to, .at = to->n };
	if (buf_add(to, "\0\0\0", CODE_HEAD, &s->err) < 0)
		return;
	json_writer_init(&s->w, to);
	json_write_object(&s->w);
	json_put_text(&s->w, "kind", kind);
}

static int say_end(struct saying *s, struct err *e)
{
	size_t n;

	if (s->err.code == ERR_NONE) {
		json_write_object_end(&s->w);
		if (json_write_done(&s->w, &s->err) == 0) {
			n = s->to->n - s->at - CODE_HEAD;
			for (int i = 0; i < CODE_HEAD; i++)
				s->to->p[s->at + (size_t)i] = (char)(n >> 8 * i & 0xff);
			if (n <= CODE_FRAME_MAX)
				return 0;
			err_set(&s->err, ERR_TOO_LARGE, "more than %d bytes", CODE_FRAME_MAX);
		}
	}
	/* Half a frame is none. */
	s->to->n = s->at;
	*e = s->err;
	return -1;
}

static void say_uint(struct saying *s, const char *key, uint64_t u)
{
	if (s->err.code != ERR_NONE)
		return;
	json_put_uint(&s->w, key, u);
}

static void say_text(struct saying *s, const char *key, struct str text)
{
	if (s->err.code != ERR_NONE || !text.p)
		return;
	json_put_str(&s->w, key, text);
}

int code_say_run(struct buf *to, struct str code, const struct code_limits *l, struct err *e)
{
	struct saying s;

	say_begin(&s, to, "run");
	say_text(&s, "code", code);
	say_uint(&s, "cpu_ms", l->cpu_ms);
	say_uint(&s, "heap", l->heap);
	say_uint(&s, "stack", l->stack);
	say_uint(&s, "output", l->output);
	say_uint(&s, "calls", l->calls);
	say_uint(&s, "check", l->check);
	return say_end(&s, e);
}

int code_say_module(struct buf *to, const struct code_module *m, struct err *e)
{
	struct saying s;

	say_begin(&s, to, "module");
	say_uint(&s, "module", m->index);
	say_text(&s, "source", m->source);
	say_text(&s, "error", m->error);
	if (s.err.code == ERR_NONE && m->functions) {
		json_put_array(&s.w, "functions");
		for (size_t i = 0; i < m->n_functions; i++)
			json_write_str(&s.w, m->functions[i]);
		json_write_array_end(&s.w);
	}
	return say_end(&s, e);
}

int code_say_result(struct buf *to, uint32_t id, struct str result, struct str error, struct err *e)
{
	struct saying s;

	say_begin(&s, to, "result");
	say_uint(&s, "id", id);
	say_text(&s, "error", error);
	if (s.err.code == ERR_NONE && result.p)
		json_put_raw(&s.w, "result", result);
	return say_end(&s, e);
}
