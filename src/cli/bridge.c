/*
 * Lines become posts (bridge_post.c). Until an initialize is answered no other line is read, since only
 * the answer has the session's id.
 */
#include "cli/bridge_impl.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"

enum {
	QUEUE_MAX = 4 << 20, /* waiting for the client; then no line is read */
	QUEUE_HARD_MAX = 256 << 20,
	END_MS = 1000, /* for the end of the session, and for the client to take what waits */
};

static void end_session(struct bridge *b);
static void start_flushing(struct bridge *b);

/* --- to the client --- */

/* JSON has line breaks only between its tokens. */
void bridge_put_line(struct bridge *b, struct str text)
{
	const char *end;

	while ((end = memchr(text.p, '\n', text.n))) {
		size_t n = (size_t)(end - text.p);

		loop_writer_put(b->writer, (struct str){ text.p, n });
		loop_writer_put(b->writer, STR_LIT(" "));
		text = (struct str){ end + 1, text.n - n - 1 };
	}
	loop_writer_put(b->writer, text);
	loop_writer_put(b->writer, STR_LIT("\n"));
}

void bridge_put_fault(struct bridge *b, const struct rpc_id *id, const struct rpc_fault *f)
{
	autobuf struct buf text = BUF_INIT(4096);
	struct json_writer w = json_writer(&text);
	struct err e;

	rpc_write_fault(&w, id, f);
	if (json_write_done(&w, &e) == 0)
		bridge_put_line(b, buf_str(&text));
	else
		log_error("mcp bridge: %s", e.msg);
}

static struct post *find_post(struct bridge *b, const struct rpc_id *id)
{
	for (struct post *p = b->posts; p; p = p->next) {
		if (p->id.n && !p->ours && str_eq(rpc_id_str(&p->id), rpc_id_str(id)))
			return p;
	}
	return NULL;
}

/* The cancellation of a modern request, of which the server hears by the connection's end. */
static bool take_cancel(struct bridge *b, const struct rpc_msg *m)
{
	struct rpc_id id;
	struct post *p;

	if (m->kind != RPC_NOTIFICATION || !str_is(m->method, "notifications/cancelled") ||
	    !rpc_id_read(json_get(m->params, "requestId"), &id))
		return false;
	p = find_post(b, &id);
	if (!p || !p->version)
		return false;
	bridge_post_end(p);
	return true;
}

static int read_line(struct bridge *b, struct str line, struct post *p, const struct json_val *root,
		     struct rpc_fault *f)
{
	struct rpc_msg m;
	bool silent;

	if (json_type(root) == JSON_ARRAY) {
		p->is_batch = true;
		return 0;
	}
	if (rpc_read(root, &m, f, &silent) < 0) {
		p->id = m.id;
		return silent ? 0 : -1;
	}
	if (m.kind == RPC_REQUEST)
		p->id = m.id;
	if (m.kind != RPC_RESPONSE)
		bridge_post_read_modern(p, &m);
	p->is_initialize = m.kind == RPC_REQUEST && !p->version && str_is(m.method, "initialize");
	p->opens_stream = m.kind == RPC_NOTIFICATION &&
			  str_is(m.method, "notifications/initialized");
	if (p->is_initialize && !b->opening)
		b->opening = p;
	return 0;
}

static void take_line(struct bridge *b, struct str line)
{
	AUTO(json_free) struct json_doc *doc = NULL;
	struct rpc_fault f;
	struct rpc_id id;
	struct rpc_msg m;
	struct post *p;
	bool silent;

	if (rpc_parse(line, NULL, &doc, &f, &id) < 0) {
		bridge_put_fault(b, &id, &f);
		return;
	}
	if (json_type(json_root(doc)) != JSON_ARRAY &&
	    rpc_read(json_root(doc), &m, &f, &silent) == 0 && take_cancel(b, &m))
		return;
	p = bridge_post_new(b, line);
	if (!p) {
		rpc_fault_set(&f, RPC_INTERNAL_ERROR, "out of memory");
		f.reason = err_info(ERR_LIMIT)->name;
		bridge_put_fault(b, NULL, &f);
		return;
	}
	if (read_line(b, line, p, json_root(doc), &f) < 0) {
		bridge_put_fault(b, &p->id, &f);
		bridge_post_free(p);
		return;
	}
	bridge_post_send(p);
}

static void take_event(struct bridge *b, enum line_event event, struct str line)
{
	struct rpc_fault f;
	struct rpc_id id;

	if (event == LINE_TEXT && line.n > 0)
		take_line(b, line);
	if (event == LINE_TEXT || event == LINE_MORE)
		return;
	rpc_fault_set(&f, event == LINE_LOST ? RPC_INTERNAL_ERROR : RPC_INVALID_REQUEST,
		      event == LINE_LOST ? "out of memory" : "a message of more than %d bytes",
		      LINE_MAX_DEFAULT);
	f.reason = err_info(event == LINE_LOST ? ERR_LIMIT : ERR_TOO_LARGE)->name;
	rpc_sniff_id(&b->lines.sniff, &id);
	bridge_put_fault(b, &id, &f);
}

static bool may_read(const struct bridge *b)
{
	return !b->opening && b->n_posts < BRIDGE_POSTS_MAX &&
	       loop_writer_queued(b->writer) <= QUEUE_MAX;
}

static void serve(struct bridge *b)
{
	enum line_event event = LINE_TEXT;
	struct str line = STR_NONE;

	while (b->state == SERVING && event != LINE_MORE && may_read(b)) {
		event = line_next(&b->lines, &b->input, &line);
		take_event(b, event, line);
	}
	b->paused = event != LINE_MORE;
	if (!b->paused && b->state == SERVING)
		loop_reader_next(b->reader);
}

/* --- the end --- */

static void on_one_closed(void *owner)
{
	struct bridge *b = owner;

	if (--b->handles > 0)
		return;
	line_fini(&b->lines);
	free(b->url);
	secret_free(b->bearer);
	free(b->init_text);
	free(b->session);
	free(b->version);
	b->o.on_closed(b->o.owner);
	free(b);
}

static void on_timer_closed(uv_handle_t *handle)
{
	on_one_closed(handle->data);
}

static void shut(struct bridge *b)
{
	if (b->state == CLOSING)
		return;
	b->state = CLOSING;
	while (b->posts)
		bridge_post_free(b->posts);
	b->handles = 4;
	http_client_close(b->http, on_one_closed, b);
	loop_reader_close(b->reader, on_one_closed);
	loop_writer_close(b->writer, on_one_closed);
	uv_close((uv_handle_t *)&b->timer, on_timer_closed);
}

static void on_late(uv_timer_t *timer)
{
	struct bridge *b = timer->data;

	switch (b->state) {
	case DRAINING:
		log_warn("mcp bridge: %u requests are given up, the client has gone", b->n_posts);
		end_session(b);
		break;
	case ENDING:
		start_flushing(b);
		break;
	default:
		shut(b);
	}
}

static void set_state(struct bridge *b, enum bridge_state state, unsigned ms)
{
	b->state = state;
	uv_timer_start(&b->timer, on_late, ms, 0);
}

static void start_flushing(struct bridge *b)
{
	set_state(b, FLUSHING, END_MS);
	if (loop_writer_queued(b->writer) == 0)
		shut(b);
}

/* The server may forget the session at once. */
static void end_session(struct bridge *b)
{
	struct post *p;

	set_state(b, ENDING, END_MS);
	while (b->posts)
		bridge_post_free(b->posts);
	p = b->session ? bridge_post_new(b, STR_LIT("")) : NULL;
	if (!p) {
		start_flushing(b);
		return;
	}
	p->ours = p->ends = true;
	bridge_post_send(p);
}

static bool is_busy(const struct bridge *b)
{
	for (const struct post *p = b->posts; p; p = p->next) {
		if (p->text && !p->ours)
			return true;
	}
	return false;
}

void bridge_settle(struct bridge *b)
{
	if (b->state == SERVING && b->paused)
		serve(b);
	else if (b->state == DRAINING && !is_busy(b))
		end_session(b);
	else if (b->state == ENDING && !b->posts)
		start_flushing(b);
}

void bridge_stop(struct bridge *b)
{
	if (b->state != SERVING)
		return;
	set_state(b, DRAINING, b->o.drain_ms);
	bridge_settle(b);
}

/* --- the beginning --- */

static void on_input(void *owner, struct str bytes)
{
	struct bridge *b = owner;

	b->input = bytes;
	serve(b);
}

static void on_input_end(void *owner, const struct err *e)
{
	struct bridge *b = owner;
	struct str line = STR_NONE;

	if (e)
		log_warn("mcp bridge: %s", e->msg);
	take_event(b, line_last(&b->lines, &line), line);
	bridge_stop(b);
}

static const struct loop_reader_events reader_events = { on_input, on_input_end };

static void on_written(void *owner)
{
	struct bridge *b = owner;

	if (b->state == FLUSHING && loop_writer_queued(b->writer) == 0)
		shut(b);
	else if (b->state == SERVING && b->paused && may_read(b))
		serve(b);
}

static void on_broken(void *owner, const struct err *e)
{
	log_info("mcp bridge: %s", e->msg);
	shut(owner);
}

static const struct loop_writer_events writer_events = { on_written, on_broken };

static int make_bearer(struct bridge *b, const struct secret *token, struct err *e)
{
	struct str bytes = secret_expose(token, "made the header that the server wants");
	char line[512];
	int n = snprintf(line, sizeof(line), "Bearer %.*s", STR_ARG(bytes));

	if (n >= (int)sizeof(line))
		return err_set(e, ERR_INVALID, "a token of more than %zu bytes", sizeof(line) - 8);
	b->bearer = secret_new((struct str){ line, (size_t)n }, e);
	explicit_bzero(line, sizeof(line));
	return b->bearer ? 0 : -1;
}

/* A URL without a path means the MCP endpoint of a Holt. */
static int read_options(struct bridge *b, const struct bridge_options *o, struct err *e)
{
	const char *host = strstr(o->url, "://");
	const char *path = host ? strchr(host + 3, '/') : NULL;
	const char *more = path && path[1] ? "" : path ? "mcp" : "/mcp";

	b->o = *o;
	if (asprintf(&b->url, "%s%s", o->url, more) < 0)
		return err_set(e, ERR_LIMIT, "out of memory");
	return o->token ? make_bearer(b, o->token, e) : 0;
}

static void abandon(struct bridge *b)
{
	if (b->http)
		http_client_close(b->http, NULL, NULL);
	if (b->reader)
		loop_reader_close(b->reader, NULL);
	if (b->writer)
		loop_writer_close(b->writer, NULL);
	free(b->url);
	secret_free(b->bearer);
	free(b);
}

struct bridge *bridge_start(uv_loop_t *loop, const struct bridge_options *o, struct err *e)
{
	const struct http_client_options http = { .unix_socket = o->unix_socket,
						  .connections = 2 * BRIDGE_POSTS_MAX };
	autoclose int in = o->in_fd, out = o->out_fd;
	struct bridge *b = calloc(1, sizeof(*b));

	if (!b) {
		err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	signal(SIGPIPE, SIG_IGN);
	b->loop = loop;
	if (read_options(b, o, e) == 0)
		b->http = http_client_new(loop, &http, e);
	if (b->http)
		b->reader = loop_reader_new(loop, take_fd(&in), &reader_events, b, e);
	if (b->reader)
		b->writer = loop_writer_new(loop, take_fd(&out), QUEUE_HARD_MAX, &writer_events, b,
					    e);
	if (!b->writer) {
		abandon(b);
		return NULL;
	}
	line_init(&b->lines, LINE_MAX_DEFAULT);
	uv_timer_init(loop, &b->timer);
	b->timer.data = b;
	loop_reader_next(b->reader);
	return b;
}
