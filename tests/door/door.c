/*
 * A server with a route for each thing that the HTTP door can do, for tests that talk to it over
 * real sockets: door-host NAME=VALUE... prints its port, then a line for each thing that it is
 * told.
 *
 * The token "right" is anna's, "other" is bert's. Any line on standard input ends it in order.
 *
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "http/server/server.h"

static struct {
	uv_loop_t loop;
	uv_poll_t input;
	struct http_server *server;
	unsigned grace_ms;
	const char *tls_certificate, *tls_key, *listen, *socket;
} host = { .listen = "127.0.0.1:0" };

static const char *const principals[] = { "anna", "bert" };

static const void *identify(void *owner, struct str token, bool local)
{
	return str_is(token, "right") ? principals[0]
	     : str_is(token, "other") ? principals[1]
				      : NULL;
}

static void say(const char *what)
{
	printf("%s\n", what);
	fflush(stdout);
}

static void reply_text(struct http_request *q, struct str text)
{
	http_reply(q, &(struct http_reply){ .status = 200, .type = "text/plain", .body = text });
}

/* ---- at once ------------------------------------------------------------------------------- */

static void run_echo(void *owner, struct http_request *q)
{
	http_reply(q, &(struct http_reply){ .status = 200,
					    .type = "application/json",
					    .body = http_request_body(q) });
}

/* What the route was told of the request. */
static void run_show(void *owner, struct http_request *q)
{
	const char *who = http_request_principal(q);
	struct str name = http_request_query(q, STR_LIT("name"));
	enum { SIZE = 64 << 10 };
	char *text = malloc(SIZE);
	int n = snprintf(
		text, SIZE, "path=%.*s rest=%.*s who=%s name=%.*s%s x=%.*s n=%u peer=%s tls=%d",
		STR_ARG(http_request_path(q)), STR_ARG(http_request_rest(q)), who ? who : "-",
		STR_ARG(name), name.p ? "" : "(none)",
		STR_ARG(http_request_header(q, STR_LIT("X-Test"))),
		http_request_header_count(q, STR_LIT("X-Test")),
		str_is(http_request_peer(q), "unix") ? "unix" : "tcp", http_request_is_tls(q));

	http_reply(q, &(struct http_reply){ .status = 200,
					    .type = "text/plain",
					    .body = { text, (size_t)n },
					    .owned = text });
}

/* How much is kept of bodies at the moment. */
static void run_kept(void *owner, struct http_request *q)
{
	struct http_stats now;
	char text[32];
	int n;

	http_server_stats(host.server, &now);
	n = snprintf(text, sizeof(text), "%zu", now.body_bytes);
	http_reply(q, &(struct http_reply){
			      .status = 200, .type = "text/plain", .body = { text, (size_t)n } });
}

static void run_large(void *owner, struct http_request *q)
{
	size_t n = strtoul(http_request_rest(q).p, NULL, 10);
	char *text = malloc(n);

	memset(text, 'x', n);
	http_reply(q, &(struct http_reply){ .status = 200,
					    .type = "text/plain",
					    .body = { text, n },
					    .owned = text });
}

static void run_error(void *owner, struct http_request *q)
{
	struct err e;

	err_set(&e, ERR_LIMIT, "a \"quoted\"\ncause");
	http_reply_error(q, &e);
}

/* A header that a careless owner took from a stranger. */
static void run_inject(void *owner, struct http_request *q)
{
	struct http_header h = { "X-Copied", STR_LIT("a\r\nX-Forged: b") };

	http_reply(q, &(struct http_reply){ .status = 200, .headers = &h, .n_headers = 1 });
}

/* ---- later --------------------------------------------------------------------------------- */

struct later {
	uv_timer_t timer;
	struct http_request *q;
};

static void on_timer_closed(uv_handle_t *h)
{
	free(h->data);
}

static void on_timer(uv_timer_t *timer)
{
	struct later *l = timer->data;

	reply_text(l->q, STR_LIT("later"));
	uv_close((uv_handle_t *)timer, on_timer_closed);
}

static void on_gone(void *data)
{
	struct later *l = data;

	say("gone");
	if (uv_is_closing((uv_handle_t *)&l->timer))
		return;
	reply_text(l->q, STR_LIT("too late"));
	uv_close((uv_handle_t *)&l->timer, on_timer_closed);
}

static void on_gone_only(void *data)
{
	say("gone");
}

/* Answers after as many milliseconds as the path says; "stay" keeps on when the client went
 * away. */
static void run_later(void *owner, struct http_request *q)
{
	struct later *l = calloc(1, sizeof(*l));
	bool stay = http_request_query(q, STR_LIT("stay")).p != NULL;

	l->q = q;
	uv_timer_init(&host.loop, &l->timer);
	l->timer.data = l;
	uv_timer_start(&l->timer, on_timer, strtoul(http_request_rest(q).p, NULL, 10), 0);
	http_request_on_gone(q, stay ? on_gone_only : on_gone, l);
	say("waiting");
}

/* ---- streams ------------------------------------------------------------------------------- */

struct stream {
	struct http_stream *s;
	uv_timer_t timer;
	unsigned left;
	size_t size;
	bool hold; /* open after the last */
};

static void close_stream(struct stream *x)
{
	x->s = NULL;
	uv_close((uv_handle_t *)&x->timer, on_timer_closed);
}

static void on_stream_closed(void *owner, const struct err *why)
{
	printf("stream closed: %s\n", err_info(why->code)->name);
	fflush(stdout);
	close_stream(owner);
}

static void on_stream_drained(void *owner)
{
	say("stream drained");
}

static const struct http_stream_events stream_events = { on_stream_closed, on_stream_drained };

static void on_stream_tick(uv_timer_t *timer)
{
	struct stream *x = timer->data;
	char *piece;
	int n;

	if (x->left == 0 && x->hold) {
		uv_timer_stop(timer);
		return;
	}
	if (x->left == 0) {
		http_stream_end(x->s);
		close_stream(x);
		return;
	}
	piece = malloc(x->size + 32);
	n = sprintf(piece, "data: %u ", x->left--);
	memset(piece + n, 'x', x->size);
	memcpy(piece + (size_t)n + x->size, "\n\n", 2);
	http_stream_write(x->s, (struct str){ piece, (size_t)n + x->size + 2 });
	free(piece);
}

/* /stream/COUNT?ms=EVERY&size=BYTES: so many events, then the end, unless &hold; COUNT 0: none,
 * and no end. */
static void run_stream(void *owner, struct http_request *q)
{
	struct stream *x = calloc(1, sizeof(*x));
	struct str ms = http_request_query(q, STR_LIT("ms"));
	struct str size = http_request_query(q, STR_LIT("size"));
	struct err e;

	x->left = (unsigned)strtoul(http_request_rest(q).p, NULL, 10);
	x->hold = http_request_query(q, STR_LIT("hold")).p != NULL;
	x->size = size.p ? strtoul(size.p, NULL, 10) : 0;
	uv_timer_init(&host.loop, &x->timer);
	x->timer.data = x;
	if (x->left > 0)
		uv_timer_start(&x->timer, on_stream_tick, 0, ms.p ? strtoul(ms.p, NULL, 10) : 1);
	x->s = http_stream_start(q,
				 &(struct http_reply){ .status = 200,
						       .type = "text/event-stream",
						       .body = STR_LIT(": hello\n\n") },
				 &stream_events, x, &e);
	if (x->s)
		return;
	http_reply_error(q, &e);
	close_stream(x);
}

/* ---- bodies in pieces ---------------------------------------------------------------------- */

struct intake {
	struct http_request *q;
	uv_timer_t timer;
	size_t at_once,
		room; /* bytes that are taken at each tick, and of them still are; 0: any number */
	size_t refuse_at, n;
};

static void close_intake(struct intake *x)
{
	uv_close((uv_handle_t *)&x->timer, on_timer_closed);
}

static void on_intake_room(uv_timer_t *timer)
{
	struct intake *x = timer->data;

	x->room = x->at_once;
	http_body_resume(x->q);
}

static size_t on_intake_bytes(void *owner, struct str bytes)
{
	struct intake *x = owner;
	size_t took = x->at_once && bytes.n > x->room ? x->room : bytes.n;
	struct err e;

	x->room -= x->at_once ? took : 0;
	x->n += took;
	if (x->refuse_at && x->n >= x->refuse_at) {
		err_set(&e, ERR_DISK_FULL, "enough");
		http_reply_error(x->q, &e);
		close_intake(x);
	}
	return took;
}

static void on_intake_end(void *owner)
{
	struct intake *x = owner;
	char text[32];
	int n = snprintf(text, sizeof(text), "%zu", x->n);

	say("whole");
	reply_text(x->q, (struct str){ text, (size_t)n });
	close_intake(x);
}

static void on_intake_lost(void *owner)
{
	say("lost");
	close_intake(owner);
}

/* /intake?once=BYTES&ms=EVERY&refuse=BYTES: takes so many bytes at each tick, and refuses the
 * body when that many came. */
static void run_intake(void *owner, struct http_request *q)
{
	static const struct http_body_events events = { on_intake_bytes, on_intake_end,
							on_intake_lost };
	struct str once = http_request_query(q, STR_LIT("once"));
	struct str refuse = http_request_query(q, STR_LIT("refuse"));
	struct str ms = http_request_query(q, STR_LIT("ms"));
	unsigned long every = ms.p ? strtoul(ms.p, NULL, 10) : 1;
	struct intake *x = calloc(1, sizeof(*x));

	x->q = q;
	x->at_once = x->room = once.p ? strtoul(once.p, NULL, 10) : 0;
	x->refuse_at = refuse.p ? strtoul(refuse.p, NULL, 10) : 0;
	uv_timer_init(&host.loop, &x->timer);
	x->timer.data = x;
	if (x->at_once)
		uv_timer_start(&x->timer, on_intake_room, every, every);
	http_body_start(q, &events, x);
	say("intake");
}

/* ---- WebSockets ---------------------------------------------------------------------------- */

struct chat {
	struct http_ws *ws;
};

/* Echoes; "bye" ends it, "flood" sends more than anybody reads. */
static void on_message(void *owner, bool is_text, struct str message)
{
	struct chat *c = owner;

	if (str_is(message, "bye")) {
		http_ws_close(c->ws, 1000, STR_LIT("as you wish"));
		free(c);
	} else if (str_is(message, "flood")) {
		for (int i = 0; i < 100000; i++)
			http_ws_send(c->ws, true,
				     STR_LIT("0123456789012345678901234567890123456789"));
	} else {
		http_ws_send(c->ws, is_text, message);
	}
}

static void on_ws_closed(void *owner, unsigned code, const struct err *why)
{
	printf("ws closed: %u %s\n", code, err_info(why->code)->name);
	fflush(stdout);
	free(owner);
}

static const struct http_ws_events ws_events = { .on_message = on_message,
						 .on_closed = on_ws_closed };

static void run_ws(void *owner, struct http_request *q)
{
	struct chat *c = calloc(1, sizeof(*c));
	struct http_ws_options o = { .message_max = 100000, .protocol = "echo" };
	struct str ping = http_request_query(q, STR_LIT("ping"));
	struct err e;

	if (ping.p)
		o.ping_ms = (unsigned)strtoul(ping.p, NULL, 10);
	c->ws = http_ws_accept(q, &o, &ws_events, c, &e);
	if (c->ws)
		return;
	free(c);
	http_reply_error(q, &e);
}

/* ---- the whole ----------------------------------------------------------------------------- */

static const struct http_route route_rows[] = {
	{ "/open", HTTP_GET | HTTP_HEAD, true, false, 0, run_show, "needs no token" },
	{ "/show", HTTP_GET, false, false, 0, run_show, "what came" },
	{ "/below/", HTTP_GET, false, false, 0, run_show, "any path below" },
	{ "/echo", HTTP_POST, false, false, 0, run_echo, "the body" },
	{ "/kept", HTTP_GET, false, false, 0, run_kept, "bytes kept of bodies" },
	{ "/any", HTTP_POST | HTTP_PUT, false, true, 1000, run_echo, "a body of any type" },
	{ "/large/", HTTP_GET, false, false, 0, run_large, "so many bytes" },
	{ "/error", HTTP_GET, false, false, 0, run_error, "an error" },
	{ "/inject", HTTP_GET, false, false, 0, run_inject, "a bad header" },
	{ "/later/", HTTP_GET | HTTP_POST, false, false, 0, run_later, "an answer after a while" },
	{ "/stream/", HTTP_GET | HTTP_POST, false, false, 0, run_stream, "events" },
	{ "/ws", HTTP_GET, false, false, 0, run_ws, "an echo" },
	{ "/intake", HTTP_PUT, false, true, 0, run_intake, "a body in pieces", .streams = true },
};
static const struct http_routes routes = { route_rows, ARRAY_LEN(route_rows), NULL };

static char *read_file(const char *path)
{
	FILE *f = fopen(path, "r");
	char *text = calloc(1, 65536);

	if (f && fread(text, 1, 65535, f) > 0)
		fclose(f);
	return text;
}

static void on_closed(void *arg)
{
	say("closed");
}

static void on_input(uv_poll_t *poll, int status, int events)
{
	char line[64];

	if (read(STDIN_FILENO, line, sizeof(line)) > 0)
		http_server_close(host.server, host.grace_ms, on_closed, NULL);
	uv_close((uv_handle_t *)poll, NULL);
}

/* NAME=VALUE of the command line: a number of the limits, or one of the rest. */
static void set(struct http_options *o, char *arg)
{
	static const struct {
		const char *name;
		size_t at, size;
	} numbers[] = {
#define NUMBER(m) { #m, offsetof(struct http_limits, m), sizeof(((struct http_limits *)0)->m) }
		NUMBER(connections),
		NUMBER(headers),
		NUMBER(header_bytes),
		NUMBER(body),
		NUMBER(bodies),
		NUMBER(streams),
		NUMBER(stream_queue),
		NUMBER(rate),
		NUMBER(burst),
		NUMBER(header_ms),
		NUMBER(body_ms),
		NUMBER(idle_ms),
		NUMBER(connections_by_address),
	};
	static const char *origins[1], *hosts[1];
	char *value = strchr(arg, '=');

	*value++ = '\0';
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		unsigned long n = strtoul(value, NULL, 10);
		unsigned u = (unsigned)n;

		if (strcmp(arg, numbers[i].name) == 0)
			memcpy((char *)&o->limits + numbers[i].at,
			       numbers[i].size == sizeof(u) ? (void *)&u : (void *)&n,
			       numbers[i].size);
	}
	if (strcmp(arg, "grace_ms") == 0)
		host.grace_ms = (unsigned)strtoul(value, NULL, 10);
	else if (strcmp(arg, "listen") == 0)
		host.listen = value;
	else if (strcmp(arg, "socket") == 0)
		host.socket = value;
	else if (strcmp(arg, "anonymous") == 0)
		o->identify = NULL;
	else if (strcmp(arg, "metadata") == 0)
		o->metadata = value;
	else if (strcmp(arg, "certificate") == 0)
		host.tls_certificate = read_file(value);
	else if (strcmp(arg, "key") == 0)
		host.tls_key = read_file(value);
	else if (strcmp(arg, "origin") == 0)
		o->origins = (origins[0] = value, o->n_origins = 1, origins);
	else if (strcmp(arg, "host") == 0)
		o->hosts = (hosts[0] = value, o->n_hosts = 1, hosts);
}

int main(int argc, char **argv)
{
	struct http_options o = { .identify = identify, .routes = &routes, .n_routes = 1 };
	struct http_tls tls = { NULL };
	struct err e = ERR_INIT;
	int port;

	log_init("door-host");
	signal(SIGPIPE, SIG_IGN);
	for (int i = 1; i < argc; i++)
		set(&o, argv[i]);
	tls = (struct http_tls){ host.tls_certificate, host.tls_key };
	uv_loop_init(&host.loop);
	host.server = http_server_new(&host.loop, &o, &e);
	port = host.server ? http_server_listen(host.server, host.listen,
						tls.certificate ? &tls : NULL, &e)
			   : -1;
	if (port < 0 ||
	    (host.socket && http_server_listen_unix(host.server, host.socket, &e) < 0)) {
		fprintf(stderr, "%s\n", e.msg);
		return 1;
	}
	printf("%d\n", port);
	fflush(stdout);
	uv_poll_init(&host.loop, &host.input, STDIN_FILENO);
	uv_poll_start(&host.input, UV_READABLE, on_input);
	uv_run(&host.loop, UV_RUN_DEFAULT);
	if (uv_loop_close(&host.loop) != 0)
		say("handles left");
	free((void *)host.tls_certificate);
	free((void *)host.tls_key);
	return 0;
}
