/* Answers: one JSON document, or a stream of them as lines or as frames of Connect. */
#include "door/http/internal.h"

#include <stdio.h>

#include "base/log.h"

/* ---- failures ------------------------------------------------------------------------------ */

enum {
	PROBLEM_MAX = 16 << 10,
	ANSWER_MAX = 64 << 20, /* room for a file's content with every byte escaped */
	RETRY_SECONDS = 1,
	TARGET_MAX = 256, /* an id, or its mark */
};

static struct api_problem problem_of(const struct exchange *a, const struct err *e)
{
	struct api_problem p = {
		.code = a->code != API_CODES ? a->code : api_code_of(e->code),
		.e = e,
		.context = a->call ? *call_about(a->call)
				   : (struct call_about){ .sandbox = a->target },
	};

	if (p.code == API_INVALID_INPUT && p.context.has_max_timeout_s)
		p.code = API_TIMEOUT_TOO_LARGE;
	if (p.code == API_QUOTA_EXCEEDED && !p.context.op.p)
		p.context.op = str_of(a->route->id);
	if (!p.context.dimension.p)
		p.context.dimension = api_dimension_of(e->code);
	if (e->code == ERR_COMMAND_NOT_FOUND || e->code == ERR_COMMAND_NOT_RUN) {
		p.context.has_exit_code = true;
		p.context.exit_code = err_info(e->code)->exit;
	}
	if (p.code == API_UNAVAILABLE) {
		p.context.has_retry_after_ms = true;
		p.context.retry_after_ms = RETRY_SECONDS * 1000;
	}
	return p;
}

int exchange_problem_text(const struct exchange *a, const struct api_problem *p, struct buf *to,
			  struct err *e)
{
	return a->route->kind == API_CONNECT ? api_connect_text(p, to, e)
					     : api_problem_text(p, to, e);
}

/* Fields that go with some statuses. */
static size_t problem_headers(int status, char *seconds, size_t size, struct http_header to[2])
{
	int n = snprintf(seconds, size, "%d", RETRY_SECONDS);

	if (status == 426) {
		to[0] = (struct http_header){ "Upgrade", STR_LIT("websocket") };
		to[1] = (struct http_header){ "Sec-WebSocket-Version", STR_LIT("13") };
		return 2;
	}
	to[0] = (struct http_header){ "Retry-After", { seconds, (size_t)n } };
	return status == 429 || status == 503 ? 1 : 0;
}

/* Adds the result that the call had all the same, behind the error. */
static int put_failed(const struct exchange *a, struct buf *to, struct err *e)
{
	struct json_writer w;

	if (!a->route->failed || !a->failed)
		return 0;
	to->n--; /* the object's end */
	if (buf_addf(to, e, ",\"result\":") < 0)
		return -1;
	w = json_writer(to);
	field_encode(a->route->failed, a->failed, &w);
	return json_write_done(&w, e) < 0 ? -1 : buf_addf(to, e, "}");
}

static void reply_problem(struct exchange *a, const struct api_problem *p)
{
	const struct api_code_row *row = &api_codes[p->code];
	bool connect = a->route->kind == API_CONNECT;
	char seconds[16];
	struct http_header headers[2];
	autobuf struct buf b = BUF_INIT(a->failed ? ANSWER_MAX : PROBLEM_MAX);
	int status = connect ? api_connect_status(row->connect) : row->http;
	struct err e = ERR_INIT;

	if (p->code == API_UNSUPPORTED_MEDIA_TYPE || p->code == API_BODY_TOO_LARGE ||
	    p->code == API_UPGRADE_REQUIRED)
		status = row->http;
	if (exchange_problem_text(a, p, &b, &e) < 0 || put_failed(a, &b, &e) < 0)
		b.n = 0;
	http_reply(take_ptr(a->q),
		   &(struct http_reply){
			   .status = status,
			   .type = "application/json",
			   .body = buf_str(&b),
			   .headers = headers,
			   .n_headers = problem_headers(status, seconds, sizeof(seconds), headers),
		   });
}

void exchange_write_frame(struct exchange *a, unsigned flags, struct str text)
{
	char head[FRAME_HEAD];

	frame_head(head, flags, text.n);
	if (a->ws) {
		exchange_socket_frame(a, (struct str){ head, sizeof(head) }, text);
		return;
	}
	http_stream_write(a->stream, (struct str){ head, sizeof(head) });
	http_stream_write(a->stream, text);
}

/* The text of the last frame. p: NULL if nothing failed. */
static void put_end(const struct api_problem *p, struct buf *to)
{
	struct err e;

	if (!p || buf_addf(to, &e, "{\"error\":") < 0 || api_connect_text(p, to, &e) < 0 ||
	    buf_addf(to, &e, "}") < 0)
		to->n = 0;
}

static const char *frames_type(const struct exchange *a)
{
	return a->binary ? "application/connect+proto" : "application/connect+json";
}

/* Connect knows no other status than 200 for a stream, and its clients would guess the code from
 * any other. So this one has its end alone. */
static void reply_end(struct exchange *a, const struct api_problem *p)
{
	autobuf struct buf end = BUF_INIT(PROBLEM_MAX), body = BUF_INIT(PROBLEM_MAX + FRAME_HEAD);
	char head[FRAME_HEAD];
	struct err e;

	put_end(p, &end);
	frame_head(head, FRAME_END, end.n);
	if (buf_add(&body, head, sizeof(head), &e) < 0 || buf_add(&body, end.p, end.n, &e) < 0)
		body.n = 0;
	http_reply(take_ptr(a->q), &(struct http_reply){
					   .status = 200,
					   .type = frames_type(a),
					   .body = buf_str(&body),
				   });
}

/* The last frame says how it ended; lines say it themselves. */
static void end_stream(struct exchange *a, const struct api_problem *p)
{
	autobuf struct buf b = BUF_INIT(PROBLEM_MAX);

	if (a->route->shape == API_TAR && p) {
		/* else it would seem to be whole; only the log can have the cause */
		log_warn("%s ends before its archive does: %s", a->route->op->action, p->e->msg);
		http_stream_break(take_ptr(a->stream));
		return;
	}
	if (a->route->shape == API_FRAMES) {
		put_end(p, &b);
		exchange_write_frame(a, FRAME_END, b.n > 0 ? buf_str(&b) : STR_LIT("{}"));
	}
	if (a->ws)
		exchange_socket_end(a, p);
	else
		http_stream_end(take_ptr(a->stream));
}

void exchange_write_failure(struct exchange *a, const struct err *e)
{
	struct api_problem p = problem_of(a, e);

	if (a->stream || a->ws)
		end_stream(a, &p);
	else if (a->q && exchange_speaks_frames(a))
		reply_end(a, &p);
	else if (a->q)
		reply_problem(a, &p);
}

void exchange_write_problem(struct exchange *a, const struct err *e)
{
	struct ops *ops = a->api->ops;
	char *target = a->call ? NULL : arena_alloc(a->arena, TARGET_MAX, &(struct err){ 0 });
	struct err said = *e;

	ops_redact(ops, said.msg, sizeof(said.msg));
	ops_redact(ops, said.pointer, sizeof(said.pointer));
	if (target) {
		snprintf(target, TARGET_MAX, "%.*s", STR_ARG(a->target));
		ops_redact(ops, target, TARGET_MAX);
	}
	a->target = target ? str_of(target) : STR_NONE;
	exchange_write_failure(a, &said);
}

/* ---- answers ------------------------------------------------------------------------------- */

/* The items of a list: all as an array, or the one. */
static void encode_bare(const struct field *row, const char *from, bool is_array,
			struct json_writer *w)
{
	const char *p = *(const char *const *)(from + row->at);
	size_t n = *(const size_t *)(from + row->count_at);

	if (!is_array) {
		field_encode(row->table, p, w);
		return;
	}
	json_write_array(w);
	for (size_t i = 0; i < n; i++)
		field_encode(row->table, p + i * row->elem, w);
	json_write_array_end(w);
}

static void encode(struct exchange *a, const struct field_table *t, const void *from,
		   struct json_writer *w)
{
	const struct api_route *r = a->route;
	bool is_array = r->shape == API_ARRAY;
	bool bare = r->bare ? r->bare(a->call) : is_array;

	if (r->answer && t == r->op->result)
		t = r->answer;
	if (bare)
		encode_bare(t->rows, from, is_array, w);
	else
		field_encode(t, from, w);
}

static char *answer_text(struct exchange *a, const struct field_table *t, const void *from,
			 size_t *ret_n, struct err *e)
{
	autobuf struct buf b = BUF_INIT(ANSWER_MAX);
	struct json_writer w = json_writer(&b);

	if (a->document) {
		*ret_n = strlen(a->document);
		return take_ptr(a->document);
	}
	encode(a, t, from, &w);
	if (json_write_done(&w, e) < 0)
		return NULL;
	*ret_n = b.n;
	return buf_take(&b);
}

static void answer_frame(struct exchange *a, const struct field_table *t, const void *from);

void exchange_write_answer(struct exchange *a, const struct field_table *t, const void *from)
{
	struct err e = ERR_INIT;
	size_t n = 0;
	char *text;

	if (a->stream || a->ws) {
		end_stream(a, NULL);
		return;
	}
	if (a->q && a->route->shape == API_FRAMES) {
		answer_frame(a, t, from);
		return;
	}
	if (!a->q)
		return;
	text = answer_text(a, t, from, &n, &e);
	if (!text) {
		call_say_done(a->call, t, from, &e);
		exchange_write_failure(a, &e);
	} else {
		http_reply(take_ptr(a->q), &(struct http_reply){ .status = 200,
								 .type = "application/json",
								 .body = { text, n },
								 .owned = text });
	}
}

/* ---- streams ------------------------------------------------------------------------------- */

/* Half of the door's queue: whoever stops when so much waits is never too slow. */
enum { FULL = 512 << 10 };

static void on_stream_closed(void *owner, const struct err *why)
{
	struct exchange *a = owner;

	a->stream = NULL;
	call_cancel(a->call);
}

static void on_stream_drained(void *owner)
{
	struct exchange *a = owner;

	if (a->on_room && !call_ended(a->call))
		a->on_room(a->on_room_data);
	else
		call_room(a->call);
}

static const struct http_stream_events stream_events = { on_stream_closed, on_stream_drained };

/* An object or an array has lines instead (api_route.lines). */
static const char *const stream_types[] = {
	[API_OBJECT] = "application/x-ndjson",
	[API_ARRAY] = "application/x-ndjson",
	[API_LINES] = "application/x-ndjson",
	[API_TAR] = "application/x-tar",
};

int exchange_stream_begin(struct exchange *a, struct err *e)
{
	const char *own = a->route->shape == API_TAR ? a->route->bytes_type
			: a->route->sse		     ? "text/event-stream"
						     : NULL;
	const struct http_reply head = { .status = 200,
					 .type = own ? own
					       : a->route->shape == API_FRAMES
						       ? frames_type(a)
						       : stream_types[a->route->shape] };

	if (!a->q)
		return err_set(e, ERR_CANCELLED, "the client is gone");
	a->stream = http_stream_start(a->q, &head, &stream_events, a, e);
	if (a->stream)
		a->q = NULL;
	else if (e->code == ERR_LIMIT)
		a->code = API_TOO_MANY_STREAMS;
	return a->stream ? 0 : -1;
}

int exchange_stream_start(struct call *c, void (*on_room)(void *data), void *data, struct err *e)
{
	struct exchange *a = exchange_of(c);

	a->on_room = on_room;
	a->on_room_data = data;
	return exchange_stream_begin(a, e);
}

bool exchange_stream_full(struct call *c)
{
	struct exchange *a = exchange_of(c);

	return (a->stream && http_stream_waiting(a->stream) > FULL) ||
	       (a->ws && http_ws_full(a->ws)); /* many small ones are much, too */
}

void exchange_send(struct call *c, const struct field_table *t, const void *from)
{
	from = call_redact_by(c, t, from);
	if (from)
		exchange_write(c, t, from);
	else
		call_cancel(c); /* a stream with a hole would seem to be whole */
}

void exchange_write(struct call *c, const struct field_table *t, const void *from)
{
	exchange_write_sse(c, STR_NONE, t, from);
}

void exchange_write_sse(struct call *c, struct str id, const struct field_table *t,
			const void *from)
{
	struct exchange *a = exchange_of(c);
	autobuf struct buf b = BUF_INIT(ANSWER_MAX);
	struct json_writer w = json_writer(&b);
	struct err e;

	if ((!a->stream && !a->ws) || (id.n && buf_addf(&b, &e, "id: %.*s\n", STR_ARG(id)) < 0) ||
	    (a->route->sse && buf_addf(&b, &e, "data: ") < 0))
		return;
	if (a->binary) {
		if (proto_encode(t, from, &b, &e) == 0)
			exchange_write_frame(a, 0, buf_str(&b));
		return;
	}
	field_encode(t, from, &w);
	if (json_write_done(&w, &e) < 0)
		return;
	if (a->route->shape == API_FRAMES)
		exchange_write_frame(a, 0, buf_str(&b));
	else if (a->ws)
		http_ws_send(a->ws, true, buf_str(&b));
	else if (buf_add(&b, "\n\n", a->route->sse ? 2 : 1, &e) == 0)
		http_stream_write(a->stream, buf_str(&b));
}

/* One that did not stream is a stream of one message. */
static void answer_frame(struct exchange *a, const struct field_table *t, const void *from)
{
	struct err e;

	if (t == a->route->op->result && a->route->answer)
		t = a->route->answer;
	if (exchange_stream_begin(a, &e) < 0) {
		exchange_write_failure(a, &e);
		return;
	}
	exchange_write(a->call, t, from);
	end_stream(a, NULL);
}
