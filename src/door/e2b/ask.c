/*
 * The beginning and the end of a request. Its memory goes when it was answered and none of its
 * steps runs any more; a client that goes away cancels them, and each still ends.
 */
#include "door/e2b/internal.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "door/http/error.h"
#include "door/http/frame.h"
#include "http/message/head.h"

enum {
	ARENA_MAX = 256 << 20,
	ARGS_MAX = 2 << 20, /* bytes of an operation's request as JSON */
	MESSAGE_MAX = 64 << 20, /* bytes of an answer */
	PROBLEM_MAX = 4 << 10,
	FULL = 512 << 10, /* half of the door's queue */
	CODE_FULL = 32 << 20, /* some results: what is heard at once may hold several */
};

struct ask_step {
	struct ask_step *next;
	struct ask *ask;
	struct call *call;
	const struct op *op;
	struct json_doc *doc; /* the request, or */
	const void *request;
	ask_then then;
	ask_event event;
};

/* ---- the end ------------------------------------------------------------------------------- */

static void ask_free(struct ask *a)
{
	struct e2b *x = a->x;

	if (a->on_free)
		a->on_free(a);
	*(a->prev ? &a->prev->next : &a->x->asks) = a->next;
	if (a->next)
		a->next->prev = a->prev;
	json_free(a->doc);
	arena_free(a->arena);
	free(a);
	e2b_settle(x);
}

static void ask_on_closed(uv_handle_t *h)
{
	ask_free(h->data);
}

void ask_enter(struct ask *a)
{
	a->depth++;
}

void ask_leave(struct ask *a)
{
	if (--a->depth > 0 || !a->done || a->steps || a->closing)
		return;
	a->closing = true;
	if (a->timing)
		uv_close((uv_handle_t *)&a->timer, ask_on_closed);
	else
		ask_free(a);
}

/* The job that it follows may stand still for a slow client. */
static void ask_make_room(struct ask *a)
{
	for (struct ask_step *s = a->steps; s; s = s->next) {
		if (s->event && s->call && !call_ended(s->call)) {
			call_room(s->call); /* may end it */
			return;
		}
	}
}

/* Each that is cancelled may end at once, and end others. */
static void ask_cancel_steps(struct ask *a)
{
	struct ask_step *s;

	do {
		for (s = a->steps; s && (!s->call || call_cancelled(s->call)); s = s->next)
			;
		if (s)
			call_cancel(s->call);
	} while (s);
}

void ask_cancel(struct ask *a)
{
	bool first = !a->left && !a->closing;

	ask_enter(a);
	a->left = true;
	a->lingers = first && a->on_leave && a->on_leave(a);
	if (a->lingers)
		ask_make_room(a);
	else
		ask_cancel_steps(a);
	ask_leave(a);
}

static void ask_on_gone(void *data)
{
	ask_cancel(data);
}

/* ---- answers ------------------------------------------------------------------------------- */

static bool ask_is_over(struct ask *a)
{
	bool was = a->done;

	a->done = true;
	return was;
}

static void ask_send_reply(struct ask *a, int status, struct str body, const char *type,
			   const struct http_header *headers, size_t n)
{
	if (a->q)
		http_reply(take_ptr(a->q), &(struct http_reply){ .status = status,
								 .type = body.n ? type : NULL,
								 .body = body,
								 .headers = headers,
								 .n_headers = n });
}

static void ask_reply_text(struct ask *a, int status, struct json_writer *w,
			   const struct http_header *headers, size_t n)
{
	struct err e = ERR_INIT;

	if (a->done || json_write_done(w, &e) == 0) {
		if (!ask_is_over(a))
			ask_send_reply(a, status, buf_str(w->buf), "application/json", headers, n);
	} else {
		ask_fail(a, &e);
	}
	buf_fini(w->buf);
}

void ask_reply(struct ask *a, int status, struct json_writer *w)
{
	ask_reply_text(a, status, w, NULL, 0);
}

void ask_reply_with(struct ask *a, int status, struct json_writer *w, struct http_header header)
{
	ask_reply_text(a, status, w, &header, 1);
}

void ask_reply_empty(struct ask *a, int status)
{
	if (!ask_is_over(a))
		ask_send_reply(a, status, STR_NONE, NULL, NULL, 0);
}

/* ---- failures ------------------------------------------------------------------------------ */

bool e2b_is_gone(enum err_code code)
{
	return code == ERR_SANDBOX_NOT_FOUND || code == ERR_GUEST || code == ERR_IDLE ||
	       code == ERR_PAUSED;
}

static int status_of(const struct ask *a, const struct err *e)
{
	if (a->row->form == E2B_MITOS)
		return err_info(e->code)->http;
	if (a->row->form != E2B_CONTROL && e2b_is_gone(e->code))
		return 502;
	switch (e->code) {
	case ERR_GUEST:
	case ERR_IDLE:
		return 404;
	case ERR_NOT_A_FILE:
	case ERR_COMMAND_NOT_FOUND:
	case ERR_COMMAND_NOT_RUN:
		return 400;
	case ERR_DISK_FULL:
		return 507;
	default:
		return err_info(e->code)->http;
	}
}

static const char *connect_of(const struct ask *a, const struct err *e)
{
	const char *plain = api_codes[api_code_of(e->code)].connect;

	if (a->row && a->row->form == E2B_MITOS)
		return plain;
	switch (e->code) {
	case ERR_NOT_A_FILE:
	case ERR_TOO_LARGE:
	case ERR_COMMAND_NOT_FOUND:
	case ERR_COMMAND_NOT_RUN:
		return "invalid_argument";
	case ERR_SANDBOX_NOT_FOUND:
	case ERR_GUEST:
	case ERR_IDLE:
	case ERR_PAUSED:
		return "unavailable";
	case ERR_UNAUTHORIZED:
		return "unauthenticated";
	default:
		return plain;
	}
}

static void write_connect(struct json_writer *w, const char *code, const char *message)
{
	json_write_object(w);
	json_put_text(w, "code", code);
	json_put_text(w, "message", message);
	json_write_object_end(w);
}

static void ask_frame(struct ask *a, unsigned flags, struct str text)
{
	char head[FRAME_HEAD];

	frame_head(head, flags, text.n);
	ask_write(a, (struct str){ head, sizeof(head) });
	ask_write(a, text);
}

/* A client of a stream hears of a failure in its last frame only. */
static void end_frame(struct ask *a, const char *code, const char *message)
{
	autobuf struct buf b = BUF_INIT(PROBLEM_MAX);
	struct json_writer w = json_writer(&b);
	struct err e;

	json_write_object(&w);
	if (code) {
		json_write_key(&w, "error");
		write_connect(&w, code, message);
	}
	json_write_object_end(&w);
	ask_frame(a, FRAME_END, json_write_done(&w, &e) < 0 ? STR_LIT("{}") : buf_str(&b));
}

static void end_stream(struct ask *a, const char *code, const char *message)
{
	if (!a->stream)
		return;
	if (e2b_is_frames(a->row->form))
		end_frame(a, code, message);
	if (code && !e2b_is_frames(a->row->form))
		http_stream_break(take_ptr(a->stream)); /* else it would seem to be whole */
	else
		http_stream_end(take_ptr(a->stream));
}

static void reply_failure(struct ask *a, int status, const char *connect, const char *message)
{
	static const struct http_header later = { "Retry-After", STR_LIT("1") };
	autobuf struct buf b = BUF_INIT(PROBLEM_MAX);
	struct json_writer w = json_writer(&b);
	size_t n = status == 429 || status == 503;
	struct err e;

	if (a->row->form == E2B_CODE) {
		ask_send_reply(a, status, str_of(message), "text/plain; charset=utf-8", &later, n);
		return;
	}
	if (a->row->form >= E2B_UNARY && status != 502) {
		write_connect(&w, connect, message);
	} else {
		json_write_object(&w);
		json_put_int(&w, "code", status);
		json_put_text(&w, "message", message);
		if (status == 502)
			json_put_str(&w, "sandboxId", a->sandbox);
		json_write_object_end(&w);
	}
	if (json_write_done(&w, &e) < 0)
		b.n = 0;
	ask_send_reply(a, status, buf_str(&b), "application/json", &later, n);
}

static void fail(struct ask *a, int status, const char *connect, const char *why)
{
	char message[ERR_MSG_MAX];
	struct err e;

	if (ask_is_over(a))
		return;
	snprintf(message, sizeof(message), "%s", why);
	ops_redact(a->x->o.ops, message, sizeof(message)); /* no call may have */
	if (a->row && e2b_is_frames(a->row->form) && status != 502 && a->q && ask_open(a, &e) < 0)
		status = 503;
	if (a->stream)
		end_stream(a, connect, message);
	else if (a->q)
		reply_failure(a, status, connect, message);
}

void ask_fail(struct ask *a, const struct err *e)
{
	struct err err = *e;

	fail(a, a->row ? status_of(a, &err) : 500, connect_of(a, &err), err.msg);
}

void ask_fail_with(struct ask *a, enum err_code code, const char *fmt, ...)
{
	struct err e = ERR_INIT;
	va_list ap;

	e.code = code;
	va_start(ap, fmt);
	vsnprintf(e.msg, sizeof(e.msg), fmt, ap);
	va_end(ap);
	ask_fail(a, &e);
}

void ask_fail_as(struct ask *a, const char *connect, const char *message)
{
	fail(a, api_connect_status(connect), connect, message);
}

/* ---- streams ------------------------------------------------------------------------------- */

static void ask_on_stream_closed(void *owner, const struct err *why)
{
	struct ask *a = owner;

	a->stream = NULL;
	ask_cancel(a);
}

static void ask_on_drained(void *owner)
{
	struct ask *a = owner;

	ask_enter(a);
	ask_make_room(a);
	ask_leave(a);
}

int ask_open(struct ask *a, struct err *e)
{
	static const struct http_stream_events events = { ask_on_stream_closed, ask_on_drained };
	static const char *const types[] = {
		[E2B_CONTROL] = "application/json",  [E2B_HTTP] = "application/octet-stream",
		[E2B_UNARY] = "application/json",    [E2B_STREAM] = "application/connect+json",
		[E2B_CODE] = "application/x-ndjson", [E2B_MITOS] = "application/connect+json",
	};
	static const struct http_header plain[] = { { "X-Content-Type-Options",
						      STR_LIT("nosniff") } };

	if (a->stream)
		return 0;
	if (!a->q)
		return err_set(e, ERR_CANCELLED, "the client is gone");
	a->stream = http_stream_start(a->q,
				      &(struct http_reply){ .status = 200,
							    .type = types[a->row->form],
							    .headers = plain,
							    .n_headers = 1 },
				      &events, a, e);
	if (!a->stream)
		return -1;
	if (a->row->form >= E2B_CODE)
		http_stream_allow(a->stream, CODE_FULL);
	a->q = NULL;
	return 0;
}

void ask_write(struct ask *a, struct str bytes)
{
	if (a->stream && bytes.n)
		http_stream_write(a->stream, bytes);
}

void ask_send(struct ask *a, struct json_writer *w)
{
	struct err e;

	if (!a->done && json_write_done(w, &e) == 0) {
		if (e2b_is_frames(a->row->form))
			ask_frame(a, 0, buf_str(w->buf));
		else if (buf_add(w->buf, "\n", 1, &e) == 0)
			ask_write(a, buf_str(w->buf));
	}
	buf_fini(w->buf);
}

void ask_end_stream(struct ask *a)
{
	if (ask_is_over(a))
		return;
	if (a->stream)
		end_stream(a, NULL, NULL);
	else if (a->q) /* its client left before there was one */
		reply_failure(a, err_info(ERR_CANCELLED)->http, "canceled", "the client has gone");
}

/* ---- steps --------------------------------------------------------------------------------- */

/* A step stands first while it is told of, for ask_now(). */
static void step_put_first(struct ask_step *s)
{
	struct ask *a = s->ask;
	struct ask_step **at = &a->steps;

	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	s->next = a->steps;
	a->steps = s;
}

static void step_end(struct ask_step *s, const void *result, const struct err *err)
{
	struct ask *a = s->ask;
	struct ask_step **at;

	ask_enter(a);
	step_put_first(s);
	s->then(a, result, err);
	for (at = &a->steps; *at != s; at = &(*at)->next)
		;
	*at = s->next;
	json_free(s->doc);
	ask_leave(a);
}

static void step_on_answer(void *client, const struct field_table *t, const void *result)
{
	step_end(client, result, NULL);
}

static void step_on_fail(void *client, const struct err *e)
{
	step_end(client, NULL, e);
}

static int step_on_decode(void *client, void *request, struct err *e)
{
	struct ask_step *s = client;

	if (s->doc)
		return field_decode(s->op->request, json_root(s->doc), s->ask->arena, request, e);
	memcpy(request, s->request, s->op->request->size);
	return 0;
}

static int step_on_open(void *client, struct err *e)
{
	struct ask_step *s = client;

	enum e2b_form form = s->ask->row ? s->ask->row->form : E2B_UNARY;

	/* Others keep the events, or begin their answer themselves. */
	return form == E2B_STREAM || form == E2B_HTTP ? ask_open(s->ask, e) : 0;
}

static void step_on_event(void *client, const void *event)
{
	struct ask_step *s = client;
	struct ask *a = s->ask;

	ask_enter(a);
	step_put_first(s);
	s->event(a, event);
	ask_leave(a);
}

bool ask_is_full(const struct ask *a)
{
	return a->stream && http_stream_waiting(a->stream) > FULL;
}

static bool step_on_full(void *client)
{
	return ask_is_full(((struct ask_step *)client)->ask);
}

static void step_on_hold(void *client, bool hold)
{
}

static const struct op_sink plain_sink = { .answer = step_on_answer, .fail = step_on_fail };
static const struct op_sink stream_sink = { .answer = step_on_answer,
					    .fail = step_on_fail,
					    .open = step_on_open,
					    .event = step_on_event,
					    .full = step_on_full,
					    .hold = step_on_hold };

struct call *ask_now(struct ask *a)
{
	return a->steps ? a->steps->call : NULL;
}

static void step_start(struct ask *a, const struct ask_step *from)
{
	struct err e = ERR_INIT;
	struct ask_step *s = arena_alloc(a->arena, sizeof(*s), &e);

	if (!s) {
		from->then(a, NULL, &e);
		json_free(from->doc);
		return;
	}
	*s = *from;
	s->ask = a;
	s->next = a->steps;
	a->steps = s;
	s->call = op_new(a->x->o.ops,
			 &(struct op_start){ .who = a->who,
					     .op = s->op,
					     .decode = step_on_decode,
					     .sink = s->event ? &stream_sink : &plain_sink,
					     .client = s,
					     .arena = a->arena,
					     .label = a->label },
			 &e);
	if (!s->call) {
		step_end(s, NULL, &e);
		return;
	}
	op_start(s->call);
}

struct json_writer *ask_args(struct ask *a, struct ask_args *args, bool has_sandbox)
{
	args->b = BUF_INIT(ARGS_MAX);
	json_writer_init(&args->w, &args->b);
	json_write_object(&args->w);
	if (has_sandbox)
		ask_arg_str(&args->w, "sandbox", a->sandbox);
	return &args->w;
}

void ask_arg_str(struct json_writer *w, const char *name, struct str value)
{
	json_put_str(w, name, value);
}

void ask_arg_uint(struct json_writer *w, const char *name, uint64_t value)
{
	json_put_uint(w, name, value);
}

void ask_arg_bool(struct json_writer *w, const char *name, bool value)
{
	json_put_bool(w, name, value);
}

static void start_args(struct ask *a, const struct op *op, struct ask_args *args, ask_event event,
		       ask_then then)
{
	struct ask_step s = { .op = op, .then = then, .event = event };
	struct err e = ERR_INIT;

	json_write_object_end(&args->w);
	if (json_write_done(&args->w, &e) == 0)
		s.doc = json_parse(buf_str(&args->b), NULL, &e);
	buf_fini(&args->b);
	ask_enter(a);
	if (s.doc)
		step_start(a, &s);
	else
		then(a, NULL, &e);
	ask_leave(a);
}

void ask_call(struct ask *a, const struct op *op, struct ask_args *args, ask_then then)
{
	start_args(a, op, args, NULL, then);
}

void ask_follow(struct ask *a, const struct op *op, struct ask_args *args, ask_event event,
		ask_then then)
{
	start_args(a, op, args, event, then);
}

void ask_call_with(struct ask *a, const struct op *op, const void *request, ask_then then)
{
	struct err e = ERR_INIT;
	void *copy = arena_alloc(a->arena, op->request->size, &e);
	struct ask_step s = { .op = op, .request = copy, .then = then };

	ask_enter(a);
	if (copy) {
		memcpy(copy, request, op->request->size);
		step_start(a, &s);
	} else {
		then(a, NULL, &e);
	}
	ask_leave(a);
}

/* ---- the timer ----------------------------------------------------------------------------- */

static void ask_on_tick(uv_timer_t *t)
{
	struct ask *a = t->data;

	ask_enter(a);
	if (a->done && !a->lingers) {
		uv_timer_stop(t);
		ask_cancel(a);
	} else {
		a->on_timer(a);
	}
	ask_leave(a);
}

void ask_every(struct ask *a, uint64_t ms, void (*on_timer)(struct ask *a))
{
	if (!a->timing && uv_timer_init(a->x->o.loop, &a->timer) < 0)
		return;
	a->timing = true;
	a->timer.data = a;
	a->on_timer = on_timer;
	uv_timer_start(&a->timer, ask_on_tick, ms, ms);
}

void ask_cancel_later(struct ask *a)
{
	if (!a->closing)
		ask_every(a, 1, a->on_timer);
}

/* ---- the beginning ------------------------------------------------------------------------- */

struct ask *ask_new(struct e2b *x, const struct principal *who, struct str sandbox, struct err *e)
{
	struct ask *a = calloc(1, sizeof(*a));
	char *id = NULL;

	if (a && (a->arena = arena_new(ARENA_MAX)))
		id = arena_dup(a->arena, sandbox, e);
	if (!id) {
		err_set(e, ERR_LIMIT, "out of memory");
		arena_free(a ? a->arena : NULL);
		free(a);
		return NULL;
	}
	a->x = x;
	a->who = who;
	a->sandbox = sandbox.p ? (struct str){ id, sandbox.n } : STR_NONE;
	a->next = x->asks;
	if (a->next)
		a->next->prev = a;
	x->asks = a;
	return a;
}

/* Its sandbox is named by the path or by a header; of a signed address by its signature. */
static struct str sandbox_of(struct e2b *x, const struct e2b_row *row, struct http_request *q)
{
	const struct str name = row->form == E2B_MITOS ? STR_LIT("X-Sandbox-Id")
						       : STR_LIT("E2b-Sandbox-Id");
	struct str id = http_request_segment(q,
					     "id"); /* of the control plane, and mitos' gateway */

	if (!id.p && row->form != E2B_CONTROL)
		id = http_request_header(q, name);
	if (row->form == E2B_MITOS && http_request_header_count(q, name) > 1)
		return STR_NONE;
	if (id.p || row->form != E2B_HTTP || http_request_principal(q) == &e2b_later)
		return id;
	return e2b_signed(x, q);
}

/* The one message of a Connect request, or the body. */
static int read_body(struct ask *a, struct err *e)
{
	struct str text = http_request_body(a->q);
	struct frames frames = { text };
	const struct json_options o = { .bytes = text.n };

	if (a->row->is_raw)
		return 0;
	if (e2b_is_frames(a->row->form)) {
		int n = frame_next(&frames, &text, e);

		if (n < 0)
			return -1;
		if (n == 0 || frames.left.n)
			return err_set(e, ERR_INVALID, "the request is no one message");
	}
	if (text.n == 0)
		return 0;
	a->doc = json_parse(text, &o, e);
	if (!a->doc)
		return -1;
	a->body = json_root(a->doc);
	return json_type(a->body) == JSON_OBJECT
		     ? 0
		     : err_set(e, ERR_INVALID, "the body is no JSON object");
}

static int check_member(const struct json_val *v, const struct e2b_member *m, struct err *e)
{
	enum json_type type;
	uint64_t n = 0;

	for (const char *part = m->path, *end; part; part = *end ? end + 1 : NULL) {
		end = strchrnul(part, '.');
		v = json_get_str(v, (struct str){ part, (size_t)(end - part) });
	}
	type = json_type(v);
	if (type == JSON_ABSENT || type == JSON_NULL)
		return 0;
	if (m->type == JSON_INT && (!json_uint64(v, &n) || n > m->max))
		return err_set(e, ERR_INVALID, "%s: a whole number from 0 to %llu", m->path,
			       (unsigned long long)m->max);
	if (m->type != JSON_INT && type != m->type)
		return err_set(e, ERR_INVALID, "%s: it is %s, not %s", m->path,
			       json_type_name(type), json_type_name(m->type));
	return 0;
}

static int read_timeout(struct ask *a, struct err *e)
{
	struct str text = http_request_header(a->q, STR_LIT("Connect-Timeout-Ms"));
	unsigned long long ms;

	if (!text.p)
		return 0;
	if (text.n > 10 || !http_length_parse(text, &ms))
		return err_set(e, ERR_INVALID, "Connect-Timeout-Ms is no number of 10 digits");
	a->timeout_ms = ms;
	return 0;
}

static int read_request(struct ask *a, struct err *e)
{
	if (a->who == &e2b_gone)
		return err_set(e, ERR_SANDBOX_NOT_FOUND, "the sandbox was not found");
	if (a->who == &e2b_later)
		return err_set(e, ERR_LIMIT, "too many signed addresses were asked for");
	if (a->row->form != E2B_CONTROL && !e2b_user(a->q, &a->as_root))
		return err_set(e, ERR_UNAUTHORIZED, "there is no such user: use user or root");
	if (read_timeout(a, e) < 0 || read_body(a, e) < 0)
		return -1;
	for (const struct e2b_member *m = a->row->members; m && m->path; m++) {
		if (check_member(a->body, m, e) < 0)
			return -1;
	}
	return 0;
}

void ask_run(struct e2b *x, const struct e2b_row *row, struct http_request *q)
{
	struct err e = ERR_INIT;
	struct ask *a = ask_new(x, http_request_principal(q), sandbox_of(x, row, q), &e);

	if (!a) {
		http_reply_error(q, &e);
		return;
	}
	a->row = row;
	a->q = q;
	snprintf(a->label, sizeof(a->label), "%.*s", STR_CUT(http_request_path(q), 63));
	http_request_on_gone(q, ask_on_gone, a);
	ask_enter(a);
	if (read_request(a, &e) < 0)
		ask_fail(a, &e);
	else
		row->run(a);
	ask_leave(a);
}

/* ---- small things -------------------------------------------------------------------------- */

struct str ask_dup(struct ask *a, struct str s)
{
	struct err e;
	char *copy = arena_dup(a->arena, s, &e);

	return copy ? (struct str){ copy, s.n } : STR_NONE;
}

struct str ask_printf(struct ask *a, const char *fmt, ...)
{
	char text[8192];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return ask_dup(a, str_of(text));
}

struct str ask_path(struct ask *a, struct str path)
{
	if (path.n > E2B_PATH_MAX || (path.n && memchr(path.p, '\0', path.n))) {
		ask_fail_with(a, ERR_INVALID, "the path is too long, or has a NUL");
		return STR_NONE;
	}
	if (str_is(path, "~") || str_starts(path, "~/"))
		path = (struct str){ path.p + 1, path.n - 1 };
	else if (path.n && path.p[0] == '/')
		return path;
	while (path.n && path.p[0] == '/')
		path = (struct str){ path.p + 1, path.n - 1 };
	return path.n ? ask_printf(a, E2B_HOME "/%.*s", STR_ARG(path)) : STR_LIT(E2B_HOME);
}

struct str e2b_base_name(struct str path)
{
	const char *slash;

	while (path.n > 1 && path.p[path.n - 1] == '/')
		path.n--;
	slash = path.n > 1 ? memrchr(path.p, '/', path.n) : NULL;
	return slash ? (struct str){ slash + 1, path.n - (size_t)(slash + 1 - path.p) } : path;
}

struct str e2b_parent(struct str path)
{
	struct str name = e2b_base_name(path);
	size_t n = (size_t)(name.p - path.p);

	while (n > 1 && path.p[n - 1] == '/')
		n--;
	return n ? (struct str){ path.p, n } : STR_LIT("/");
}

struct str ask_str(const struct json_val *v, const char *name)
{
	return json_str(json_get(v, name));
}

bool ask_uint(const struct json_val *v, const char *name, uint64_t *ret)
{
	return json_uint64(json_get(v, name), ret);
}
