/*
 * WebSockets: the request upgrades, and from then on both sides send until the call ends. A client
 * that does not offer the route's subprotocol gets no WebSocket, so that the messages of each side
 * have a name and a version.
 */
#include "door/http/internal.h"
#include "http/message/head.h"

enum {
	MESSAGE_MAX = 256 << 10, /* of the client's */
	SPEECH_MAX = 64 << 20, /* of ours; the door's queue is smaller */
	PROBLEM_MAX = 16 << 10,
	SCRATCH_MAX = 4 << 20, /* what one message of the client's can decode to */
	SILENCE_MS = 10000, /* before the first message */
	KEPT_MAX = 1 << 20, /* of what was read before it could be heard */
};

/* Status codes of RFC 6455 section 7.4.1. */
enum { CLOSE_NORMAL = 1000, CLOSE_GOING = 1001, CLOSE_POLICY = 1008, CLOSE_FAILED = 1011 };

/* ---- a call that begins with a message ------------------------------------------------------ */

static void hear(struct exchange *a, bool is_text, struct str message)
{
	AUTO(arena_free) struct arena *scratch = arena_new(SCRATCH_MAX);
	struct err e;

	if (a->refused.code != ERR_NONE || call_ended(a->call))
		return;
	if (!scratch) {
		err_set(&e, ERR_LIMIT, "out of memory");
		exchange_end_with(a->call, &e);
	} else if (a->route->hear(a->call, scratch, is_text, message, &e) < 0) {
		exchange_end_with(a->call, &e);
	}
}

/* Stands before each message that is kept. */
struct kept_head {
	bool is_text;
	size_t n;
};

/* A few messages may have been read already, behind one for which somebody is asked first. */
static void exchange_socket_keep(struct exchange *a, bool is_text, struct str message)
{
	const struct kept_head head = { is_text, message.n };
	struct err e;

	if (buf_add(&a->kept, &head, sizeof(head), &e) < 0 ||
	    buf_add(&a->kept, message.p, message.n, &e) < 0)
		exchange_end_with(a->call, &e);
}

void exchange_socket_hear(struct exchange *a, bool hold)
{
	struct buf kept = a->kept;
	struct kept_head head;
	bool gone = false, *outer = a->gone;

	if (a->ws)
		http_ws_hold(a->ws, hold);
	if (hold)
		return;
	a->hears = true;
	a->kept = BUF_INIT(KEPT_MAX);
	a->gone = &gone; /* what is heard may end the call */
	for (size_t at = 0; at < kept.n && !gone; at += sizeof(head) + head.n) {
		memcpy(&head, kept.p + at, sizeof(head));
		hear(a, head.is_text, (struct str){ kept.p + at + sizeof(head), head.n });
	}
	if (!gone)
		a->gone = outer;
	else if (outer)
		*outer = true;
	buf_fini(&kept);
}

/* The call may have ended when this returns, and a with it. */
static void begin(struct exchange *a, bool is_text, struct str message)
{
	struct err e;

	if (exchange_begin(a, &e) < 0) {
		exchange_write_problem(a, &e);
		exchange_finish(a);
		return;
	}
	a->first_is_text = is_text;
	a->first = message;
	http_ws_hold(a->ws, true);
	op_start(a->call);
}

static void on_message(void *owner, bool is_text, struct str message)
{
	struct exchange *a = owner;

	if (a->call && call_ended(a->call))
		return;
	if (a->silent && a->timeout_ms > 0)
		exchange_time(a, a->timeout_ms);
	else if (a->silent && a->timing)
		uv_timer_stop(&a->timer);
	a->silent = false;
	if (!a->call)
		begin(a, is_text, message);
	else if (a->hears)
		hear(a, is_text, message);
	else
		exchange_socket_keep(a, is_text, message);
}

static void on_closed(void *owner, unsigned code, const struct err *why)
{
	struct exchange *a = owner;

	a->ws = NULL;
	if (a->call)
		call_cancel(a->call);
	else
		exchange_finish(a);
}

static void on_drained(void *owner)
{
	struct exchange *a = owner;

	if (a->call && !call_ended(a->call))
		call_room(a->call);
}

static const struct http_ws_events events = { on_message, on_closed, on_drained };

struct offer {
	const char *protocol;
	bool made;
};

static void look_for_offer(void *data, struct str name, struct str value)
{
	struct offer *o = data;

	if (http_same(name, STR_LIT("Sec-WebSocket-Protocol")))
		o->made |= http_list_has(value, o->protocol);
}

static int check(struct exchange *a, struct err *e)
{
	struct offer offer = { .protocol = a->route->socket };

	if (!http_list_has(http_request_header(a->q, STR_LIT("Upgrade")), "websocket")) {
		a->code = API_UPGRADE_REQUIRED;
		return err_set(e, ERR_INVALID, "this is a WebSocket of the subprotocol %s",
			       a->route->socket);
	}
	http_request_each_header(a->q, look_for_offer, &offer);
	if (!offer.made)
		return err_set(e, ERR_INVALID, "Sec-WebSocket-Protocol does not offer %s",
			       a->route->socket);
	return 0;
}

int exchange_socket_open(struct exchange *a, struct err *e)
{
	const struct http_ws_options o = { .message_max = MESSAGE_MAX,
					   .protocol = a->route->socket };

	if (!a->q)
		return err_set(e, ERR_CANCELLED, "the client is gone");
	if (check(a, e) < 0)
		return -1;
	a->kept = BUF_INIT(KEPT_MAX);
	a->ws = http_ws_accept(a->q, &o, &events, a, e);
	if (!a->ws) {
		if (e->code == ERR_LIMIT)
			a->code = API_TOO_MANY_STREAMS;
		return -1;
	}
	a->q = NULL;
	a->silent = !a->route->listens;
	if (a->silent)
		exchange_time(a, SILENCE_MS);
	return 0;
}

void exchange_socket_await(struct exchange *a)
{
	struct err e = ERR_INIT;

	if (exchange_read_target(a, &a->target, &e) == 0 &&
	    op_check_sandbox(a->api->ops, a->who, a->target, &e) == 0 &&
	    exchange_socket_open(a, &e) == 0)
		return;
	exchange_write_problem(a, &e);
	exchange_finish(a);
}

void exchange_write_bytes(struct call *c, struct str message)
{
	struct exchange *a = exchange_of(c);

	if (a->ws)
		http_ws_send(a->ws, false, message);
	else if (a->stream)
		http_stream_write(a->stream, message);
}

void exchange_socket_frame(struct exchange *a, struct str head, struct str rest)
{
	autobuf struct buf b = BUF_INIT(SPEECH_MAX);
	struct err e;

	if (buf_add(&b, head.p, head.n, &e) == 0 && buf_add(&b, rest.p, rest.n, &e) == 0)
		http_ws_send(a->ws, false, buf_str(&b));
}

void exchange_socket_end(struct exchange *a, const struct api_problem *p)
{
	struct str reason = p ? str_of(api_codes[p->code].name) : STR_LIT("");
	unsigned code = !p			      ? CLOSE_NORMAL
		      : p->code == API_CANCELED	      ? CLOSE_GOING
		      : api_codes[p->code].http < 500 ? CLOSE_POLICY
						      : CLOSE_FAILED;
	autobuf struct buf b = BUF_INIT(PROBLEM_MAX);
	struct err e;

	if (p && a->route->shape == API_LINES && exchange_problem_text(a, p, &b, &e) == 0)
		http_ws_send(a->ws, true, buf_str(&b));
	http_ws_close(take_ptr(a->ws), code, reason);
}
