/*
 * PortForward, for clients of mitos: the bytes of a connection to a TCP port of the sandbox, which
 * are passed on as they are. Over HTTP/1.1 all that the client sends is in the request; over a
 * WebSocket, where each message is a frame, both sides send when they like. The connection counts
 * among those of forwarded ports, and ends with the sandbox.
 */
#include "door/connect/connect.h"

#include <stdlib.h>
#include <unistd.h>
#include <uv.h>

#include "base/budget.h"
#include "box/host/box.h"
#include "hub/sandbox/forward.h"
#include "json/document/json.h"

enum {
	BODY_MAX = 8 << 20,
	PIECE = 16 << 10,
	QUEUE_HIGH = 512 << 10, /* from which on a client of a WebSocket waits */
	HALF_MS = 300000, /* of silence of the client after the server's end */
	PORT_MAX = 65535,
};

/* Named as those of the other routes to a server, for the policy. */
struct forward_request {
	struct str id;
	uint32_t port;
	bool ends; /* all that is sent stands in the request; no member of the operation */
};
static const struct field request_fields[] = {
	FIELD(struct forward_request, id, .flags = FIELD_REQUIRED, .min = 1, .max = API_ID_MAX,
	      .doc = "Id of the sandbox."),
	FIELD(struct forward_request, port, .flags = FIELD_REQUIRED, .min = 1, .max = PORT_MAX,
	      .doc = "TCP port in the sandbox, on its 127.0.0.1 or [::1]."),
};
static const struct field_table request_table = FIELD_TABLE(struct forward_request, request_fields);

struct piece {
	struct str data;
	bool close;
};
static const struct field piece_fields[] = {
	FIELD(struct piece, data, .flags = FIELD_BYTES | FIELD_PLAIN,
	      .doc = "Next bytes from the port."),
	FIELD(struct piece, close, .has = FIELD_HAS(struct piece, close),
	      .doc = "The port sends no more bytes."),
};
static const struct field_table piece_table = FIELD_TABLE(struct piece, piece_fields);

/* A message of the client after its request: bytes, or their end. */
struct word {
	struct str bytes;
	bool close;
};

/* ---- the connection -------------------------------------------------------------------------- */

struct forwarding {
	struct call *call; /* NULL: it has ended */
	struct hub_sandbox_port port;
	struct sandbox *sandbox; /* a reference */
	struct dial *dial;
	uv_tcp_t tcp;
	bool open; /* tcp is a handle */
	uv_shutdown_t shutdown;
	bool closes; /* no more is sent */
	bool server_ended; /* nor received */
	size_t queued; /* bytes on the way to the server */
	struct buf input; /* of the request, until it was sent */
	size_t counted; /* bytes of it in exchange_bodies() */
	bool ends;
	char piece[PIECE];
};

static void forwarding_free(struct forwarding *f)
{
	if (f)
		buf_fini(&f->input);
	free(f);
}

static void on_closed(uv_handle_t *h)
{
	forwarding_free(h->data);
}

static void uncount(struct forwarding *f, struct call *c)
{
	budget_give(exchange_bodies(c), f->counted);
	f->counted = 0;
}

/* err NULL: a good end. */
static void forward_end(struct forwarding *f, const struct err *err)
{
	struct call *c = take_ptr(f->call);

	if (!c)
		return;
	if (f->dial)
		sandbox_dial_cancel(take_ptr(f->dial));
	hub_sandbox_port_give(&f->port);
	sandbox_unref(f->sandbox);
	uncount(f, c);
	if (f->open)
		uv_close((uv_handle_t *)&f->tcp, on_closed);
	else
		forwarding_free(f);
	if (err)
		call_fail(c, err);
	else
		call_answer(c, &(struct op_nothing){ 0 });
}

static void forward_fail(struct forwarding *f, enum err_code code, const char *why)
{
	struct err e;

	err_set(&e, code, "%s", why);
	forward_end(f, &e);
}

static void on_life_end(void *arg)
{
	forward_fail(arg, ERR_GUEST, "the sandbox has ended");
}

static void on_cancel(void *arg)
{
	forward_fail(arg, ERR_CANCELLED, "the client went away");
}

/* Other streams that wait end well then. This one may be in the middle of something. */
static void on_drain(void *arg)
{
	forward_fail(arg, ERR_CANCELLED, "Holt is ending");
}

static void on_half(void *arg)
{
	struct forwarding *f = arg;

	if (f->queued)
		forward_fail(f, ERR_PORT, "the server in the sandbox takes no more");
	else
		forward_end(f, NULL);
}

/* A server may close its side first, and still read. */
static void forward_settle(struct forwarding *f)
{
	if (!f->server_ended)
		return;
	if (f->closes && !f->queued)
		forward_end(f, NULL);
	else
		call_on_quiet(f->call, HALF_MS, on_half, f);
}

/* ---- to the server --------------------------------------------------------------------------- */

struct sending {
	uv_write_t write;
	struct forwarding *of;
	size_t n;
	bool is_input;
	char bytes[]; /* those of the input are where they are */
};

static void on_sent(uv_write_t *w, int status)
{
	struct sending *s = w->data;
	struct forwarding *f = s->of;
	bool is_input = s->is_input;

	f->queued -= s->n;
	free(s);
	if (!f->call)
		return;
	if (is_input) {
		buf_fini(&f->input);
		uncount(f, f->call);
	}
	if (status < 0) {
		forward_fail(f, ERR_PORT, "the server in the sandbox takes no more");
		return;
	}
	if (f->queued < QUEUE_HIGH)
		call_hold(f->call, false); /* which may end it */
	if (f->call)
		forward_settle(f);
}

static int forward_put(struct forwarding *f, struct str bytes, struct err *e)
{
	bool is_input = bytes.p == f->input.p;
	struct sending *s;
	uv_buf_t piece;

	if (f->closes)
		return err_set(e, ERR_INVALID, "a message stands behind close");
	if (!bytes.n)
		return 0;
	s = malloc(sizeof(*s) + (is_input ? 0 : bytes.n));
	if (!s)
		return err_set(e, ERR_LIMIT, "out of memory");
	*s = (struct sending){ .of = f, .n = bytes.n, .is_input = is_input };
	s->write.data = s;
	if (!is_input)
		memcpy(s->bytes, bytes.p, bytes.n);
	piece = uv_buf_init(is_input ? f->input.p : s->bytes, (unsigned)bytes.n);
	if (uv_write(&s->write, (uv_stream_t *)&f->tcp, &piece, 1, on_sent) < 0) {
		free(s);
		return err_set(e, ERR_PORT, "the server in the sandbox takes no more");
	}
	sandbox_carried(f->sandbox, bytes.n, 0);
	f->queued += bytes.n;
	if (f->queued >= QUEUE_HIGH)
		call_hold(f->call, true);
	return 0;
}

static void on_shut(uv_shutdown_t *w, int status)
{
}

static void forward_close(struct forwarding *f)
{
	if (!f->closes)
		uv_shutdown(&f->shutdown, (uv_stream_t *)&f->tcp, on_shut);
	f->closes = true;
}

static int on_word(void *data, const void *message, struct err *e)
{
	const struct word *w = message;
	struct forwarding *f = data;

	if (w->close)
		forward_close(f);
	else if (forward_put(f, w->bytes, e) < 0)
		return -1;
	forward_settle(f);
	return 0;
}

/* ---- from the server ------------------------------------------------------------------------- */

static void on_piece(uv_handle_t *h, size_t wanted, uv_buf_t *ret)
{
	struct forwarding *f = h->data;

	*ret = uv_buf_init(f->piece, sizeof(f->piece));
}

/* The programs of a sandbox that is ended are gone before it is. */
static void on_server_end(struct forwarding *f)
{
	struct err e;

	if (!hub_sandbox_machine(f->port.hs, &e)) {
		on_life_end(f);
		return;
	}
	f->server_ended = true;
	call_send(f->call, &(struct piece){ .close = true });
	if (f->call)
		forward_settle(f);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *bytes)
{
	struct forwarding *f = stream->data;

	if (n == 0)
		return;
	if (n < 0 && n != UV_EOF) {
		forward_fail(f, ERR_PORT, "the server in the sandbox has broken the connection");
		return;
	}
	if (n < 0) {
		uv_read_stop(stream);
		on_server_end(f);
		return;
	}
	sandbox_carried(f->sandbox, 0, (uint64_t)n);
	call_send(f->call, &(struct piece){ .data = { f->piece, (size_t)n } });
	if (f->call && call_full(f->call))
		uv_read_stop(stream);
}

static void on_room(void *data)
{
	struct forwarding *f = data;

	if (f->call && !f->server_ended)
		uv_read_start((uv_stream_t *)&f->tcp, on_piece, on_read);
}

/* ---- the beginning --------------------------------------------------------------------------- */

/* The server counts a body until the answer begins. */
static int forward_count(struct forwarding *f, struct err *e)
{
	buf_fit(&f->input);
	if (budget_take(exchange_bodies(f->call), f->input.n, e) < 0)
		return -1;
	f->counted = f->input.n;
	return 0;
}

static int forward_begin(struct forwarding *f, int fd, struct err *e)
{
	if (uv_tcp_init(call_loop(f->call), &f->tcp) < 0) {
		close(fd);
		return err_set(e, ERR_LIMIT, "out of memory");
	}
	f->open = true;
	f->tcp.data = f;
	if (uv_tcp_open(&f->tcp, fd) < 0) {
		close(fd);
		return err_set(e, ERR_LIMIT, "out of memory");
	}
	if (call_waits(f->call, e) < 0 || forward_count(f, e) < 0 ||
	    call_open(f->call, on_room, f, e) < 0 || forward_put(f, buf_str(&f->input), e) < 0)
		return -1;
	if (f->ends)
		forward_close(f);
	on_room(f);
	return 0;
}

static void on_dialed(void *arg, int fd, const struct err *err)
{
	struct forwarding *f = arg;
	struct err e = ERR_INIT;

	f->dial = NULL;
	if (err)
		forward_end(f, err);
	else if (forward_begin(f, fd, &e) < 0)
		forward_end(f, &e);
	else
		call_listen(f->call, on_word, f);
}

static int read_input(struct call *c, struct buf *ret, struct err *e);

static void run_forward(struct call *c, const void *request)
{
	const struct forward_request *q = request;
	struct err e = ERR_INIT;
	struct sandbox *sb = call_sandbox(c, q->id, &e);
	struct hub_sandbox *l = sb ? call_hub_sandbox(c, q->id, &e) : NULL;
	struct forwarding *f = l ? calloc(1, sizeof(*f)) : NULL;

	if (l && !f)
		err_set(&e, ERR_LIMIT, "out of memory");
	if (f) {
		f->port = (struct hub_sandbox_port){ .on_end = on_life_end, .arg = f };
		f->input = BUF_INIT(BODY_MAX);
		f->ends = q->ends;
	}
	if (!f || read_input(c, &f->input, &e) < 0 || hub_sandbox_port_take(l, &f->port, &e) < 0) {
		forwarding_free(f);
		call_fail(c, &e);
		return;
	}
	f->call = c;
	f->sandbox = sandbox_ref(sb);
	f->dial = sandbox_dial_start(sb, (uint16_t)q->port, on_dialed, f);
	call_on_cancel(c, on_cancel, f);
	exchange_on_drain(c, on_drain, f);
}

/* To the policy it is what the routes that show a server are. */
static const struct op forward_op = {
	.action = "port.expose",
	.doc = "Forwards bytes to and from a port of the sandbox.",
	.effect = OP_EXECUTE,
	.flags = OP_WAITS,
	.request = &request_table,
	.target = OP_TARGET(struct forward_request, id),
	.result = &op_nothing_table,
	.event = &piece_table,
	.run = run_forward,
};

/* ---- messages -------------------------------------------------------------------------------- */

struct open {
	uint32_t port;
};
static const struct field open_fields[] = {
	FIELD(struct open, port, .flags = FIELD_REQUIRED, .min = 1, .max = PORT_MAX,
	      .doc = "TCP port in the sandbox."),
};
static const struct field_table open_table = FIELD_TABLE(struct open, open_fields);

/* Exactly one of its members is set. */
struct message {
	bool has_open, has_data, has_close;
	struct open open;
	struct str data;
	bool close;
};
static const struct field message_fields[] = {
	FIELD_OBJECT(struct message, open, open_table, .has = FIELD_HAS(struct message, has_open),
		     .doc = "The port to connect to; in the first message only."),
	FIELD(struct message, data, .has = FIELD_HAS(struct message, has_data),
	      .doc = "Next bytes for the port."),
	FIELD(struct message, close, .has = FIELD_HAS(struct message, has_close),
	      .doc = "No more bytes follow."),
};
static const struct field_table message_table = FIELD_TABLE(struct message, message_fields);

static int read_message(const struct json_val *v, struct arena *a, struct message *ret,
			struct err *e)
{
	if (!v || field_decode(&message_table, v, a, ret, e) < 0)
		return -1;
	if (ret->has_open + ret->has_data + ret->has_close != 1)
		return err_set(e, ERR_INVALID, "a message has one of open, data, close");
	return 0;
}

static int read_open(const struct message *m, struct forward_request *q, struct err *e)
{
	if (!m->has_open)
		return err_set(e, ERR_INVALID, "the first message has open");
	q->port = m->open.port;
	return 0;
}

static int read_request(struct call *c, void *request, struct err *e)
{
	struct forward_request *q = request;
	const struct json_val *v = exchange_body(c);
	struct message m;

	if (!v)
		return err_set(e, ERR_INVALID, "the first message has open");
	if (read_message(v, call_arena(c), &m, e) < 0 || read_open(&m, q, e) < 0)
		return -1;
	q->ends = true;
	exchange_forget_body(c);
	return 0;
}

/* The input in a request over HTTP. It is read when the call runs, so that no copy lasts as long as
 * the connection. */
static int read_input(struct call *c, struct buf *ret, struct err *e)
{
	const struct json_val *v;
	struct message m;
	bool closes = false;

	while ((v = exchange_next_message(c, e))) {
		if (closes)
			return err_set(e, ERR_INVALID, "a message stands behind close");
		if (read_message(v, call_arena(c), &m, e) < 0)
			return -1;
		if (m.has_open)
			return err_set(e, ERR_INVALID, "only the first message has open");
		closes = m.has_close && m.close;
		if (m.has_data && connect_bytes(ret, "data", m.data, e) < 0)
			return -1;
	}
	return e->code != ERR_NONE ? -1 : 0;
}

static int read_first(struct call *c, void *request, struct err *e)
{
	bool is_text;
	struct str text, first = exchange_first(c, &is_text);
	struct message m;

	return connect_unpack(is_text, first, &text, e) < 0 ||
			       read_message(exchange_parse_first(c, text, e), call_arena(c), &m,
					    e) < 0
		     ? -1
		     : read_open(&m, request, e);
}

static int forward_hear(struct call *c, struct arena *scratch, bool is_text, struct str message,
			struct err *e)
{
	AUTO(json_free) struct json_doc *doc = NULL;
	autobuf struct buf bytes = BUF_INIT(BODY_MAX);
	struct message m;
	struct str text;

	if (connect_unpack(is_text, message, &text, e) < 0 || !(doc = json_parse(text, NULL, e)) ||
	    read_message(json_root(doc), scratch, &m, e) < 0)
		return -1;
	if (m.has_open)
		return err_set(e, ERR_INVALID, "only the first message has open");
	if (m.has_data && connect_bytes(&bytes, "data", m.data, e) < 0)
		return -1;
	return call_hear(c, &(struct word){ buf_str(&bytes), m.has_close && m.close }, e);
}

static void forward_tell(struct call *c, const void *event)
{
	exchange_write(c, &piece_table, event);
}

/* ---- the rows -------------------------------------------------------------------------------- */

static const struct op_member members[] = { { "id", .as = "X-Sandbox-Id", .in = OP_HEADER } };
static const struct op_member socket_members[] = {
	{ "id", .as = "X-Sandbox-Id", .in = OP_HEADER, .or_query = "sandbox" },
};
#define FORWARD                                                                                    \
	.id = "PortForward", .op = &forward_op, .projected = true, .kind = API_CONNECT,            \
	.shape = API_FRAMES, .answer = &piece_table, .tell = forward_tell,                         \
	.path = CONNECT_PATH "PortForward",                                                        \
	.errors = API_MAY_SANDBOX | API_MAY(PORT_FAILED) | API_MAY(TOO_MANY_STREAMS)

static const struct api_route rows[] = {
	{ FORWARD, .method = HTTP_POST, .members = OP_MEMBERS(members), .body = &message_table,
	  .read = read_request, .body_max = BODY_MAX, .messages = true },
	{ FORWARD, .method = HTTP_GET, .members = OP_MEMBERS(socket_members),
	  .body = &message_table, .read = read_first, .hear = forward_hear,
	  .socket = "connect.sandbox.v1", .heard = &message_table },
};
const struct api_resource api_mitos_forward = API_RESOURCE(rows);
