/*
 * The beginning and the end of a request. The end has this order: the call has its answer or
 * failure, the reply is sent (or dropped, if the client went away or Connect's deadline has
 * passed), the timer is closed, everything is freed.
 */
#include "door/http/internal.h"

#include <stdio.h>

/* A request's copies: its texts, and what is decoded of a body. */
enum {
	ARENA_MAX = 64 << 20,
	PARSED_MAX = 1 << 20, /* bytes of a body that the loop parses: some milliseconds */
};

/* The principal of calls by open routes. */
static const struct principal anyone = { .name = "anyone", .scopes = KEY_READ };

static void exchange_free(struct exchange *a)
{
	for (size_t i = 0; i < ASK_DOCS; i++)
		json_free(a->docs[i]);
	json_free(a->message);
	if (a->gone)
		*a->gone = true;
	buf_fini(&a->kept);
	free(a->document);
	arena_free(a->arena);
	api_parts_fini(&a->own);
	free(a);
}

/* ---- the end ------------------------------------------------------------------------------- */

static void on_timer_closed(uv_handle_t *h)
{
	struct exchange *a = h->data;

	if (--a->closing == 0)
		exchange_free(a);
}

static void drain_no_more(struct exchange *a)
{
	if (!take_ptr(a->on_drain))
		return;
	if (a->drained_before)
		a->drained_before->drained_next = a->drained_next;
	else
		a->api->drained = a->drained_next;
	if (a->drained_next)
		a->drained_next->drained_before = a->drained_before;
}

void exchange_finish(struct exchange *a)
{
	drain_no_more(a);
	a->call = NULL;
	a->closing = (unsigned)a->timing + a->has_later;
	if (!a->closing) {
		exchange_free(a);
		return;
	}
	if (a->timing)
		uv_close((uv_handle_t *)&a->timer, on_timer_closed);
	if (a->has_later)
		uv_close((uv_handle_t *)&a->later, on_timer_closed);
}

/* Failures of a call are redacted already; this one has no call, or follows its answer. */
static void exchange_redact(const struct exchange *a, struct err *e)
{
	ops_redact(a->api->ops, e->msg, sizeof(e->msg));
	ops_redact(a->api->ops, e->pointer, sizeof(e->pointer));
}

static void on_answer(void *client, const struct field_table *t, const void *result)
{
	struct exchange *a = client;
	const struct api_route *r = a->route;
	struct err e = a->refused;

	if (r->show && result && e.code == ERR_NONE) {
		a->failed = result;
		result = r->show(a->call, result, &t, &e);
		if (result)
			a->failed = NULL;
		else
			exchange_redact(a, &e);
	}
	if (e.code != ERR_NONE)
		exchange_write_failure(a, &e);
	else
		exchange_write_answer(a, t, result);
	exchange_finish(a);
}

static void on_fail(void *client, const struct err *e)
{
	struct exchange *a = client;

	if (a->going_down && a->stream)
		exchange_write_answer(a, NULL, NULL);
	else
		exchange_write_failure(a, a->refused.code != ERR_NONE ? &a->refused : e);
	exchange_finish(a);
}

static int on_decode(void *client, void *request, struct err *e)
{
	return exchange_read(client, request, e);
}

/* The request must still be ended, when the call ends. */
static void on_gone(void *data)
{
	struct exchange *a = data;

	if (a->call)
		call_cancel(a->call);
	else
		a->left = true;
}

static int on_open(void *client, struct err *e)
{
	struct exchange *a = client;

	if (a->ws)
		return 0;
	return a->route->socket ? exchange_socket_open(a, e) : exchange_stream_begin(a, e);
}

static void on_event(void *client, const void *event)
{
	struct exchange *a = client;

	a->route->tell(a->call, event);
}

static bool on_full(void *client)
{
	struct exchange *a = client;

	return exchange_stream_full(a->call);
}

static void on_hold(void *client, bool hold)
{
	exchange_socket_hear(client, hold);
}

static const struct op_sink document = { .answer = on_answer, .fail = on_fail };
static const struct op_sink streaming = {
	.answer = on_answer,
	.fail = on_fail,
	.open = on_open,
	.event = on_event,
	.full = on_full,
};
static const struct op_sink socket_sink = { .answer = on_answer,
					    .fail = on_fail,
					    .open = on_open,
					    .event = on_event,
					    .full = on_full,
					    .hold = on_hold };

/* ---- a body that streams ------------------------------------------------------------------- */

static size_t on_body_bytes(void *owner, struct str bytes)
{
	struct exchange *a = owner;

	if (call_ended(a->call))
		return bytes.n; /* nobody wants them any more */
	return a->body ? a->body->on_bytes(a->body_data, bytes) : 0;
}

static void on_body_end(void *owner)
{
	struct exchange *a = owner;

	a->body_ended = true;
	if (a->body && !call_ended(a->call))
		a->body->on_end(a->body_data);
}

static void on_body_lost(void *owner)
{
	struct exchange *a = owner;

	a->q = NULL;
	call_cancel(a->call);
}

static const struct http_body_events body_events = { on_body_bytes, on_body_end, on_body_lost };

void exchange_body_start(struct call *c, const struct exchange_body_events *events, void *data)
{
	struct exchange *a = exchange_of(c);

	a->body = events;
	a->body_data = data;
	if (a->body_ended)
		events->on_end(data);
	else
		exchange_body_resume(c);
}

void exchange_body_resume(struct call *c)
{
	struct exchange *a = exchange_of(c);

	if (a->q)
		http_body_resume(a->q);
}

struct budget *exchange_bodies(struct call *c)
{
	return &exchange_of(c)->api->bodies;
}

/* ---- deadlines ----------------------------------------------------------------------------- */

static void on_deadline(uv_timer_t *t)
{
	struct exchange *a = t->data;
	struct err e;

	if (!a->q && !a->stream && !a->ws)
		return;
	if (a->silent)
		err_set(&e, ERR_TIMEOUT, "nothing was said on the WebSocket");
	else
		err_set(&e, ERR_TIMEOUT, "%llu ms were over", (unsigned long long)a->timeout_ms);
	/* A call may end after the door, which what it writes must not need. */
	if (a->call) {
		exchange_write_failure(a, &e);
		call_cancel(a->call);
	} else {
		exchange_write_problem(a, &e);
		exchange_finish(a);
	}
}

/* A call that only waits for news ends with the server; others may finish. */
static void on_drain(void *data)
{
	struct exchange *a = data;

	if (!call_is_waiting(a->call))
		return;
	a->going_down = true;
	call_cancel(a->call);
}

/* ---- the beginning ------------------------------------------------------------------------- */

/* A wrong body is no error here: reading it tells. */
static int find_operation(struct exchange *a, struct err *e)
{
	const struct api_route *r = a->route;
	struct err wrong;

	if (!r->other || exchange_parse_body(a, &wrong) < 0 ||
	    !r->is_other(a->api->ops, a->who, a->docs[1] ? json_root(a->docs[1]) : NULL))
		return 0;
	if (api_parts_init(&a->own, r->other, e) < 0)
		return -1;
	a->route = r->other;
	a->parts = &a->own;
	return 0;
}

int exchange_begin(struct exchange *a, struct err *e)
{
	const struct op_start start = { .who = a->who,
					.session = a->session,
					.op = a->route->op,
					.decode = on_decode,
					.sink = a->route->hear ? &socket_sink
					      : a->route->tell ? &streaming
							       : &document,
					.client = a,
					.arena = a->arena,
					.label = a->label,
					.audit_id = a->audit_id };

	a->call = op_new(a->api->ops, &start, e);
	if (a->call && a->route->projected && start.op->flags & OP_WAITS)
		exchange_on_drain(a->call, on_drain, a);
	return a->call ? 0 : -1;
}

/* The user's own programs, over the Unix socket, have a share of their own. */
static const char over_socket;

static struct exchange *exchange_new(struct api *api, size_t route, struct http_request *q,
				     struct err *e)
{
	struct exchange *a = calloc(1, sizeof(*a));
	const struct principal *who = http_request_principal(q);

	if (a)
		a->arena = arena_new(ARENA_MAX);
	if (!a || !a->arena) {
		err_set(e, ERR_LIMIT, "out of memory");
		free(a);
		return NULL;
	}
	a->api = api;
	a->route = api->routes[route];
	a->parts = &api->parts[route];
	a->who = who ? who : &anyone;
	a->session = str_is(http_request_peer(q), "unix") ? &over_socket : NULL;
	a->q = q;
	a->code = API_CODES;
	a->refused = a->wrong = (struct err)ERR_INIT;
	snprintf(a->label, sizeof(a->label), "%.*s", STR_ARG(http_request_path(q)));
	op_audit_id(api->ops, a->audit_id);
	if (*a->audit_id)
		http_request_mark(q, "Audit-Id", a->audit_id);
	return a;
}

/* It begins, unless e has why it can't. */
static void exchange_enter(struct exchange *a, struct err *e)
{
	if (e->code != ERR_NONE || find_operation(a, e) < 0 || exchange_begin(a, e) < 0) {
		http_reply_error(a->q, e);
		exchange_free(a);
		return;
	}
	if (a->route->streams)
		http_body_start(a->q, &body_events, a);
	op_start(a->call);
}

static void exchange_parse_aside(struct aside_work *w)
{
	exchange_parse_text((struct exchange *)w);
}

static void exchange_on_parsed(struct aside_work *w)
{
	struct exchange *a = (struct exchange *)w;
	struct err e = ERR_INIT;

	if (a->left)
		err_set(&e, ERR_CANCELLED, "the client went away");
	exchange_enter(a, &e);
}

/* Its body takes longer to parse than others may wait. */
static bool exchange_is_long(struct exchange *a)
{
	return http_request_body(a->q).n > PARSED_MAX && !a->route->streams && !a->route->socket;
}

void exchange_start(struct api *api, size_t route, struct http_request *q)
{
	struct err e = ERR_INIT;
	struct exchange *a = exchange_new(api, route, q, &e);

	if (!a) {
		http_reply_error(q, &e);
		return;
	}
	if (a->route->hear && !a->route->listens) {
		exchange_socket_await(a);
		return;
	}
	http_request_on_gone(q, on_gone, a);
	a->parsing.run = exchange_parse_aside;
	a->parsing.then = exchange_on_parsed;
	exchange_speaks_frames(a); /* how it is parsed */
	if (!exchange_is_long(a) ||
	    aside_work_start(&a->parsing, api->loop, NULL, http_request_body(q).n, &e) < 0)
		exchange_enter(a, &e);
}

/* ---- for resources ------------------------------------------------------------------------- */

struct exchange *exchange_of(struct call *c)
{
	return call_client(c);
}

void **exchange_state(struct call *c)
{
	return &exchange_of(c)->state;
}

static void on_later(uv_timer_t *t)
{
	struct exchange *a = t->data;

	if (a->call && !call_ended(a->call))
		a->on_later(a->call);
}

void exchange_later(struct call *c, uint64_t ms, void (*f)(struct call *c))
{
	struct exchange *a = exchange_of(c);

	if (!a->has_later && uv_timer_init(a->api->loop, &a->later) < 0)
		return;
	a->has_later = true;
	a->later.data = a;
	a->on_later = f;
	uv_timer_start(&a->later, on_later, ms, 0);
}

void exchange_end_with(struct call *c, const struct err *e)
{
	struct exchange *a = exchange_of(c);

	a->refused = *e;
	exchange_redact(a, &a->refused);
	call_cancel(c);
}

struct mitos *exchange_mitos(struct call *c)
{
	return exchange_of(c)->api->mitos;
}

void exchange_on_drain(struct call *c, void (*f)(void *data), void *data)
{
	struct exchange *a = exchange_of(c), *first;

	drain_no_more(a);
	first = a->api->drained;
	a->on_drain = f;
	a->on_drain_data = data;
	a->drained_before = NULL;
	a->drained_next = first;
	if (first)
		first->drained_before = a;
	a->api->drained = a;
}

void api_drain(struct api *api)
{
	while (api->drained) {
		struct exchange *a = api->drained;
		void (*f)(void *data) = a->on_drain;

		drain_no_more(a);
		if (!call_ended(a->call))
			f(a->on_drain_data);
	}
}

void exchange_time(struct exchange *a, uint64_t ms)
{
	if (!a->timing && uv_timer_init(a->api->loop, &a->timer) < 0)
		return;
	a->timing = true;
	a->timer.data = a;
	uv_timer_start(&a->timer, on_deadline, ms, 0);
}

void exchange_wait(struct call *c)
{
	struct exchange *a = exchange_of(c);

	if (!a->timing && a->timeout_ms > 0)
		exchange_time(a, a->timeout_ms);
}

struct sandbox *exchange_sandbox(struct call *c, struct str id, struct err *e)
{
	struct sandbox *sb = call_sandbox(c, id, e);

	if (sb)
		exchange_wait(c);
	return sb;
}

void exchange_fail_gone(struct call *c)
{
	struct err e;

	err_set(&e, ERR_CANCELLED, "the client went away");
	call_fail(c, &e);
}

void exchange_answer_document(struct call *c, char *text)
{
	struct str said = call_redact(c, str_of(text));

	exchange_of(c)->document = text;
	if (said.p != text) {
		exchange_of(c)->document = mem_dup(said.p, said.n);
		free(text);
	}
	call_answer(c, NULL);
}
