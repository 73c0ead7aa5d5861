/* Until an initialize is answered no other line is read, since the session's id comes with the
 * answer. */
#include "mcp/connect/internal.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"

enum {
	QUEUE_MAX = 4 << 20, /* bytes queued for the client; beyond that no line is read */
	QUEUE_HARD_MAX = 256 << 20,
	TEXT_MAX = 64 << 20,
	URL_BYTES_MAX = 64 << 10,
	END_MS = 1000, /* for the end of the session, and for the client to read what is queued */
};

static void end_session(struct mcp_relay *r);

/* --- to the client --- */

/* JSON has line breaks only between tokens. */
void relay_put_line(struct mcp_relay *r, struct str text)
{
	const char *end;

	while ((end = memchr(text.p, '\n', text.n))) {
		size_t n = (size_t)(end - text.p);

		loop_writer_put(r->writer, (struct str){ text.p, n });
		loop_writer_put(r->writer, STR_LIT(" "));
		text = (struct str){ end + 1, text.n - n - 1 };
	}
	loop_writer_put(r->writer, text);
	loop_writer_put(r->writer, STR_LIT("\n"));
}

void relay_put_fault(struct mcp_relay *r, const struct rpc_id *id, const struct rpc_fault *f)
{
	autobuf struct buf text = BUF_INIT(8192);
	struct json_writer w = json_writer(&text);
	struct err e;

	rpc_write_fault(&w, id, f);
	if (json_write_done(&w, &e) == 0)
		relay_put_line(r, buf_str(&text));
	else
		log_error("mcp relay: %s", e.msg);
}

/* --- from the client --- */

static void take_line(struct mcp_relay *r, struct str line)
{
	AUTO(json_free) struct json_doc *doc = NULL;
	struct rpc_fault f;
	struct rpc_id id;

	if (rpc_parse(line, NULL, &doc, &f, &id) < 0)
		relay_put_fault(r, &id, &f);
	else
		relay_take(r, line, json_root(doc));
}

static void take_event(struct mcp_relay *r, enum line_event event, struct str line)
{
	struct rpc_fault f;
	struct rpc_id id;

	if (event == LINE_TEXT && line.n > 0)
		take_line(r, line);
	if (event == LINE_TEXT || event == LINE_MORE)
		return;
	rpc_fault_set(&f, event == LINE_LOST ? RPC_INTERNAL_ERROR : RPC_INVALID_REQUEST,
		      event == LINE_LOST ? "out of memory" : "a message of more than %d bytes",
		      LINE_MAX_DEFAULT);
	f.reason = err_info(event == LINE_LOST ? ERR_LIMIT : ERR_TOO_LARGE);
	rpc_sniff_id(&r->lines.sniff, &id);
	relay_put_fault(r, &id, &f);
}

static bool may_read(const struct mcp_relay *r)
{
	return r->session != RELAY_SESSION_OPENS &&
	       mcp_fetch_under_way(r->fetch) < RELAY_MESSAGES_MAX &&
	       loop_writer_queued(r->writer) <= QUEUE_MAX;
}

static void read_lines(struct mcp_relay *r)
{
	enum line_event event = LINE_TEXT;
	struct str line = STR_NONE;

	while (r->state == RELAY_SERVING && event != LINE_MORE && may_read(r)) {
		event = line_next(&r->lines, &r->input, &line);
		take_event(r, event, line);
	}
	r->paused = event != LINE_MORE;
	if (!r->paused && r->state == RELAY_SERVING)
		loop_reader_next(r->reader);
}

/* --- the end --- */

static void on_one_closed(void *owner)
{
	struct mcp_relay *r = owner;

	if (--r->handles > 0)
		return;
	line_fini(&r->lines);
	relay_tools_free(r);
	free(r->url);
	secret_free(r->bearer);
	free(r->init_text);
	free(r->version);
	if (r->o.on_closed)
		r->o.on_closed(r->o.owner);
	free(r);
}

static void on_handle_closed(uv_handle_t *handle)
{
	on_one_closed(handle->data);
}

/* Closes the handles that exist, since the start may have failed. */
static void relay_shut(struct mcp_relay *r)
{
	uv_handle_t *all[] = { (uv_handle_t *)&r->timer, (uv_handle_t *)&r->turn,
			       (uv_handle_t *)&r->base.soon };

	if (r->state == RELAY_CLOSING)
		return;
	r->state = RELAY_CLOSING;
	while (r->calls)
		relay_call_free(r->calls);
	r->handles = (unsigned)ARRAY_LEN(all) + (r->http != NULL) + (r->reader != NULL) +
		     (r->writer != NULL);
	r->base.soon.data = r;
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		uv_close(all[i], on_handle_closed);
	if (r->http)
		http_client_close(r->http, on_one_closed, r);
	if (r->reader)
		loop_reader_close(r->reader, on_one_closed);
	if (r->writer)
		loop_writer_close(r->writer, on_one_closed);
}

static void on_late(uv_timer_t *timer)
{
	struct mcp_relay *r = timer->data;

	if (r->state == RELAY_DRAINING) {
		log_warn("mcp relay: %u messages are given up, the client has gone",
			 mcp_fetch_under_way(r->fetch));
		end_session(r);
	} else {
		relay_shut(r);
	}
}

static void set_state(struct mcp_relay *r, enum relay_state state, unsigned ms)
{
	r->state = state;
	uv_timer_start(&r->timer, on_late, ms, 0);
}

static void on_session_ended(void *owner)
{
	struct mcp_relay *r = owner;

	set_state(r, RELAY_FLUSHING, END_MS);
	if (loop_writer_queued(r->writer) == 0)
		relay_shut(r);
}

/* Takes at most END_MS. */
static void end_session(struct mcp_relay *r)
{
	uv_timer_stop(&r->timer);
	r->state = RELAY_ENDING;
	mcp_fetch_close(take_ptr(r->fetch), on_session_ended, r);
}

static void on_turn(uv_timer_t *turn)
{
	struct mcp_relay *r = turn->data;

	if (r->state == RELAY_SERVING && r->paused)
		read_lines(r);
	else if (r->state == RELAY_DRAINING && mcp_fetch_under_way(r->fetch) == 0)
		end_session(r);
}

void relay_look(struct mcp_relay *r)
{
	if (r->state < RELAY_ENDING)
		uv_timer_start(&r->turn, on_turn, 0, 0);
}

void mcp_relay_stop(struct mcp_relay *r)
{
	if (r->state != RELAY_SERVING)
		return;
	set_state(r, RELAY_DRAINING, r->o.drain_ms);
	relay_look(r);
}

/* --- the beginning --- */

static void on_input(void *owner, struct str bytes)
{
	struct mcp_relay *r = owner;

	r->input = bytes;
	read_lines(r);
}

static void on_input_end(void *owner, const struct err *e)
{
	struct mcp_relay *r = owner;
	struct str line = STR_NONE;

	if (r->state != RELAY_SERVING)
		return;
	if (e)
		log_warn("mcp relay: %s", e->msg);
	take_event(r, line_last(&r->lines, &line), line);
	mcp_relay_stop(r);
}

static const struct loop_reader_events reader_events = { on_input, on_input_end };

static void on_written(void *owner)
{
	struct mcp_relay *r = owner;

	if (r->state == RELAY_FLUSHING && loop_writer_queued(r->writer) == 0)
		relay_shut(r);
	else if (r->state == RELAY_SERVING && r->paused && may_read(r))
		read_lines(r);
}

static void on_broken(void *owner, const struct err *e)
{
	struct mcp_relay *r = owner;

	log_info("mcp relay: %s", e->msg);
	if (r->state < RELAY_ENDING)
		end_session(r);
	else if (r->state == RELAY_FLUSHING)
		relay_shut(r);
}

static const struct loop_writer_events writer_events = { on_written, on_broken };

static int make_bearer(struct mcp_relay *r, const struct secret *token, struct err *e)
{
	struct str bytes = secret_expose(token, "made the header that the server wants");
	char line[512];
	int n = snprintf(line, sizeof(line), "Bearer %.*s", STR_ARG(bytes));

	if (n >= (int)sizeof(line))
		return err_set(e, ERR_INVALID, "a token of more than %zu bytes", sizeof(line) - 8);
	r->bearer = secret_new((struct str){ line, (size_t)n }, e);
	explicit_bzero(line, sizeof(line));
	if (!r->bearer)
		return -1;
	r->header = (struct http_header){ "Authorization",
					  secret_expose(r->bearer, "sent to the server") };
	return 0;
}

static int add_parameter(struct buf *url, const char *name, const char *value, struct err *e)
{
	const char *mark = memchr(url->p, '?', url->n) ? "&" : "?";

	if (!value)
		return 0;
	if (buf_addf(url, e, "%s%s=", mark, name) < 0)
		return -1;
	for (const char *p = value; *p; p++) {
		bool plain = strchr("-_.,", *p) || (*p >= '0' && *p <= '9') ||
			     ((*p | 0x20) >= 'a' && (*p | 0x20) <= 'z');

		if ((plain ? buf_add(url, p, 1, e)
			   : buf_addf(url, e, "%%%02X", (unsigned)(unsigned char)*p)) < 0)
			return -1;
	}
	return 0;
}

/* A URL without a path means a Holt hub's MCP endpoint. */
static int read_options(struct mcp_relay *r, const struct mcp_relay_options *o, struct err *e)
{
	const char *host = strstr(o->url, "://");
	const char *path = host ? strchr(host + 3, '/') : NULL;
	const char *more = path && path[1] ? "" : path ? "mcp" : "/mcp";
	autobuf struct buf url = BUF_INIT(URL_BYTES_MAX);

	for (const char *p = o->tools ? o->tools : ""; *p; p++) {
		if (*p != '_' && *p != '-' && *p != ',' && !(*p >= '0' && *p <= '9') &&
		    !((*p | 0x20) >= 'a' && (*p | 0x20) <= 'z'))
			return err_set(e, ERR_INVALID,
				       "tools: names with commas between, not '%.80s'", o->tools);
	}
	if (buf_addf(&url, e, "%s%s", o->url, more) < 0 ||
	    add_parameter(&url, "tools", o->tools, e) < 0 ||
	    add_parameter(&url, "profile", o->profile, e) < 0 ||
	    add_parameter(&url, "modules", o->modules, e) < 0 ||
	    add_parameter(&url, "texts", o->texts, e) < 0)
		return -1;
	r->url = buf_take(&url);
	return o->token ? make_bearer(r, o->token, e) : 0;
}

static int open_fetch(struct mcp_relay *r, struct err *e)
{
	const struct http_client_options http = { .unix_socket = r->o.unix_socket,
						  .own_only = r->o.own_only,
						  .connections = 2 * RELAY_MESSAGES_MAX };
	const struct mcp_fetch_options o = { .base = &r->base,
					     .url = r->url,
					     .ev = &relay_events,
					     .owner = r,
					     .relays = true,
					     .stop_ms = END_MS };

	r->http = http_client_new(r->loop, &http, e);
	if (!r->http)
		return -1;
	r->memory.max = 2 * (size_t)TEXT_MAX;
	r->base.http = r->http;
	r->base.headers = &r->header;
	r->base.headers_n = r->bearer ? 1 : 0;
	r->base.text_max = TEXT_MAX;
	r->base.memory = &r->memory;
	r->fetch = mcp_fetch_new(r->loop, &o, e);
	return r->fetch ? 0 : -1;
}

static int open_all(struct mcp_relay *r, int *in, int *out, struct err *e)
{
	r->reader = loop_reader_new(r->loop, take_fd(in), &reader_events, r, e);
	if (!r->reader)
		return -1;
	r->writer = loop_writer_new(r->loop, take_fd(out), QUEUE_HARD_MAX, &writer_events, r, e);
	return r->writer ? open_fetch(r, e) : -1;
}

struct mcp_relay *mcp_relay_start(uv_loop_t *loop, const struct mcp_relay_options *o, struct err *e)
{
	autoclose int in = o->in_fd, out = o->out_fd;
	struct mcp_relay *r = calloc(1, sizeof(*r));

	if (!r)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	signal(SIGPIPE, SIG_IGN);
	r->o = *o;
	r->loop = loop;
	line_init(&r->lines, LINE_MAX_DEFAULT);
	uv_timer_init(loop, &r->timer);
	uv_timer_init(loop, &r->turn);
	mcp_exchange_base_init(&r->base, loop);
	r->timer.data = r->turn.data = r;
	if (read_options(r, o, e) < 0 || open_all(r, &in, &out, e) < 0) {
		r->o.on_closed = NULL;
		relay_shut(r);
		return NULL;
	}
	loop_reader_next(r->reader);
	return r;
}
