/*
 * A post is one exchange with the server at a time:
 *
 *	WAITING		for a session, or for its turn to be sent again
 *	SENT		its POST is under way; an answer comes as JSON or as events
 *	RESUMING	its events broke off; a GET takes them up again
 */
#include "cli/bridge_impl.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "json/document/utf8.h"
#include "mcp/message/header_text.h"

enum {
	HEADERS_MAX = 10,
	BODY_MAX = 64 << 20,
	RETRY_MS = 1000, /* where a stream names no other time */
	RETRY_MS_MAX = 30000,
	TRIES_MAX = 5, /* without anything new */
};

#define VERSION_KEY "io.modelcontextprotocol/protocolVersion"

void bridge_post_fail(struct post *p, const struct err *e)
{
	struct rpc_fault f;

	log_info("mcp bridge: %s", e->msg);
	if (p->ours || p->answered || (!p->id.n && !p->is_batch))
		return;
	p->answered = true;
	rpc_fault_set(&f, RPC_INTERNAL_ERROR, "%s", e->msg);
	f.reason = err_info(e->code)->name;
	bridge_put_fault(p->b, &p->id, &f);
}

static void on_post_timer_closed(uv_handle_t *handle)
{
	struct post *p = handle->data;

	free(p);
}

void bridge_post_free(struct post *p)
{
	struct bridge *b = p->b;

	if (p->x)
		http_exchange_cancel(take_ptr(p->x));
	*p->at = p->next;
	if (p->next)
		p->next->at = p->at;
	b->n_posts--;
	if (b->opening == p)
		b->opening = NULL;
	free(p->text);
	free(p->version);
	free(p->method);
	free(p->name);
	sse_fini(&p->sse);
	buf_fini(&p->body);
	uv_close((uv_handle_t *)&p->timer, on_post_timer_closed);
}

struct post *bridge_post_new(struct bridge *b, struct str text)
{
	struct post *p = calloc(1, sizeof(*p));

	if (!p || (text.p && !(p->text = strndup(text.p, text.n)))) {
		free(p);
		return NULL;
	}
	p->n = text.n;
	p->b = b;
	p->body = BUF_INIT(BODY_MAX);
	sse_init(&p->sse, BODY_MAX, NULL);
	uv_timer_init(b->loop, &p->timer);
	p->timer.data = p;
	p->next = b->posts;
	p->at = &b->posts;
	if (p->next)
		p->next->at = &p->next;
	b->posts = p;
	b->n_posts++;
	return p;
}

void bridge_post_end(struct post *p)
{
	struct bridge *b = p->b;

	bridge_post_free(p);
	bridge_settle(b);
}

/* --- a session that was lost --- */

/* And was not begun in it: whoever asks for the rest of a call must not have it run a second time. */
static bool lost_its_session(const struct post *p)
{
	return p->status == 404 && p->generation > 0 && p->state == SENT && p->b->init_text &&
	       !p->resent;
}

static void send_waiting(struct bridge *b)
{
	struct post *next;

	for (struct post *p = b->posts; p; p = next) {
		next = p->next;
		if (p->state == WAITING && p->text)
			bridge_post_send(p);
	}
}

static void fail_waiting(struct bridge *b, const struct err *e)
{
	struct post *next;

	for (struct post *p = b->posts; p; p = next) {
		next = p->next;
		if (p->state == WAITING && p->text) {
			bridge_post_fail(p, e);
			bridge_post_free(p);
		}
	}
}

static void drop_stream(struct bridge *b)
{
	for (struct post *p = b->posts; p; p = p->next) {
		if (!p->text) {
			bridge_post_free(p);
			return;
		}
	}
}

/* Opens the session again with what the client opened it with. */
static void open_again(struct bridge *b)
{
	struct post *p;

	if (b->opening)
		return;
	log_info("mcp bridge: the server has forgotten the session; a new one is opened");
	free(take_ptr(b->session));
	drop_stream(b);
	p = bridge_post_new(b, (struct str){ b->init_text, b->init_n });
	if (!p) {
		fail_waiting(b, &(struct err){ ERR_LIMIT, "out of memory" });
		return;
	}
	p->ours = p->is_initialize = true;
	p->id = b->init_id;
	b->opening = p;
	bridge_post_send(p);
}

/* In the session that is there by now, or will be. */
static void send_again(struct post *p)
{
	struct bridge *b = p->b;

	buf_fini(&p->body);
	p->state = WAITING;
	p->resent = true;
	if (p->generation == b->generation && !b->opening)
		open_again(b);
	else if (!b->opening)
		bridge_post_send(p);
}

static void say_initialized(struct bridge *b)
{
	struct post *p = bridge_post_new(
		b, STR_LIT("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}"));

	if (!p)
		return;
	p->ours = p->opens_stream = true;
	bridge_post_send(p);
}

/* --- what comes back --- */

static void take_version(struct bridge *b, const struct json_val *result)
{
	struct str version = json_str(json_get(result, "protocolVersion"));

	if (!version.p || memchr(version.p, 0, version.n))
		return;
	free(b->version);
	b->version = strndup(version.p, version.n);
}

/* An error that names no request is the answer to this one. */
static void pass_on(struct post *p, struct str text, const struct rpc_msg *m)
{
	struct rpc_fault f;
	int64_t code = RPC_INTERNAL_ERROR;

	if (m->kind != RPC_RESPONSE || m->id.n || !p->id.n) {
		bridge_put_line(p->b, text);
		return;
	}
	json_int64(json_get(m->error, "code"), &code);
	rpc_fault_set(&f, (enum rpc_code)code, "%.*s",
		      STR_ARG(utf8_cut(json_str(json_get(m->error, "message")), 200)));
	bridge_put_fault(p->b, &p->id, &f);
}

/* One message of the server; false where it is none. */
static bool take_message(struct post *p, struct str text)
{
	const struct json_options any = { .bytes = BODY_MAX, .values = 1 << 24, .depth = 256 };
	AUTO(json_free) struct json_doc *doc = NULL;
	const struct json_val *root;
	struct rpc_fault f;
	struct rpc_id id;
	struct rpc_msg m;
	bool silent;

	if (rpc_parse(text, &any, &doc, &f, &id) < 0)
		return false;
	root = json_root(doc);
	p->tries = 0;
	if (json_type(root) == JSON_ARRAY) {
		p->answered = true;
		bridge_put_line(p->b, text);
		return true;
	}
	if (rpc_read(root, &m, &f, &silent) < 0)
		return false;
	if (m.kind == RPC_RESPONSE && (!m.id.n || str_eq(rpc_id_str(&m.id), rpc_id_str(&p->id))))
		p->answered = true;
	if (m.kind == RPC_RESPONSE && p->is_initialize)
		take_version(p->b, m.result);
	if (!p->ours || !p->answered)
		pass_on(p, text, &m);
	return true;
}

static void on_head(void *owner, struct http_exchange *x, int status)
{
	struct post *p = owner;
	struct str type = http_exchange_header(x, "Content-Type");
	struct str session = http_exchange_header(x, "Mcp-Session-Id");

	p->status = status;
	p->events = status == 200 && str_starts(type, "text/event-stream");
	if (p->is_initialize && status == 200 && session.p) {
		free(p->b->session);
		p->b->session = strndup(session.p, session.n);
		p->b->generation++;
	}
}

static void on_bytes(void *owner, struct http_exchange *x, struct str bytes)
{
	struct post *p = owner;
	struct sse_event ev;
	struct err e;
	int rc;

	if (!p->events) {
		rc = buf_add(&p->body, bytes.p, bytes.n, &e);
	} else {
		while ((rc = sse_next(&p->sse, &bytes, &ev, &e)) > 0) {
			if (ev.data.n > 0 && !take_message(p, ev.data))
				log_warn("mcp bridge: an event that is no message is dropped");
		}
	}
	if (rc == 0)
		return;
	http_exchange_cancel(take_ptr(p->x));
	bridge_post_fail(p, &e);
	bridge_post_end(p);
}

static void on_retry(uv_timer_t *timer)
{
	bridge_post_send(timer->data);
}

/* True where the events are taken up again later. */
static bool resume(struct post *p)
{
	uint64_t ms = p->sse.retry_ms >= 0 ? (uint64_t)p->sse.retry_ms : RETRY_MS;
	bool stream = !p->text;

	if (p->version || p->b->state > DRAINING || (!stream && (p->answered || !p->sse.id[0])))
		return false;
	if (!stream && p->tries >= TRIES_MAX)
		return false;
	if (p->tries > 0)
		ms = ms << (p->tries < 5 ? p->tries : 5) ?: 1;
	p->tries++;
	p->state = RESUMING;
	sse_restart(&p->sse);
	uv_timer_start(&p->timer, on_retry, ms < RETRY_MS_MAX ? ms : RETRY_MS_MAX, 0);
	return true;
}

static void take_status(struct post *p)
{
	struct str body = buf_str(&p->body);
	struct err e;

	if (p->status >= 200 && p->status < 300 && body.n == 0 && !p->id.n)
		return;
	if (p->state == RESUMING) {
		err_set(&e, ERR_TRANSPORT,
			"the server no longer knows of the call; it may have been carried out");
		bridge_post_fail(p, &e);
		return;
	}
	if (body.n > 0 && take_message(p, body))
		return;
	err_set(&e, ERR_TRANSPORT, "the server answered with HTTP status %d%s", p->status,
		p->status == 401 ? ": the token is missing or wrong" : "");
	bridge_post_fail(p, &e);
}

static void ended_initialize(struct post *p)
{
	struct bridge *b = p->b;
	bool again = p->ours, well = p->answered && p->status == 200;

	if (well && !again) {
		free(b->init_text);
		b->init_text = take_ptr(p->text);
		b->init_n = p->n;
		b->init_id = p->id;
		p->text = strdup("");
	}
	bridge_post_free(p);
	if (again && well) {
		say_initialized(b);
		send_waiting(b);
	} else if (again) {
		fail_waiting(b, &(struct err){ ERR_TRANSPORT,
					       "the server could not open a new session" });
	}
}

static void open_stream(struct bridge *b)
{
	struct post *p = bridge_post_new(b, STR_NONE);

	if (p)
		bridge_post_send(p);
}

static void on_stream_end(struct post *p)
{
	/* 405: the server has none; 404: the next request hears of it too */
	bool refused = p->status >= 400 && p->status < 500;

	buf_fini(&p->body);
	if (refused || !resume(p))
		bridge_post_end(p);
}

static void on_end(void *owner, struct http_exchange *x, const struct err *why)
{
	struct post *p = owner;
	struct bridge *b = p->b;
	struct err named = why ? *why : ERR_INIT, *e = why ? &named : NULL;

	if (e)
		err_wrap(e, "%s", b->url);

	p->x = NULL;
	if (!p->text) {
		on_stream_end(p);
		return;
	}
	if (!e && lost_its_session(p)) {
		send_again(p);
		return;
	}
	if (!e && !p->events)
		take_status(p);
	else if (!p->answered && resume(p))
		return;
	else if (e)
		bridge_post_fail(p, e);
	else if (p->id.n && !p->answered)
		bridge_post_fail(p, &(struct err){ ERR_TRANSPORT,
						   "the server's events ended without an answer" });
	if (p->opens_stream && p->status < 300 && b->session)
		open_stream(b);
	if (p->is_initialize)
		ended_initialize(p);
	else
		bridge_post_free(p);
	bridge_settle(b);
}

static const struct http_exchange_events events = { on_head, on_bytes, on_end };

/* --- to the server --- */

struct headers {
	struct http_header p[HEADERS_MAX];
	size_t n;
};

static void add(struct headers *h, const char *name, const char *value)
{
	if (value)
		h->p[h->n++] = (struct http_header){ name, str_of(value) };
}

void bridge_post_send(struct post *p)
{
	struct bridge *b = p->b;
	bool get = p->state == RESUMING || !p->text;
	const char *method = get ? "GET" : p->ends ? "DELETE" : "POST";
	struct headers h = { .n = 0 };
	struct err e = ERR_INIT;

	add(&h, "Accept", get ? "text/event-stream" : "application/json, text/event-stream");
	if (b->bearer)
		h.p[h.n++] = (struct http_header){ "Authorization",
						   secret_expose(b->bearer, "sent to the server") };
	if (!get && !p->ends)
		add(&h, "Content-Type", "application/json");
	if (p->version) {
		add(&h, "MCP-Protocol-Version", p->version);
		add(&h, "Mcp-Method", p->method);
		add(&h, "Mcp-Name", p->name);
	} else if (!p->is_initialize) {
		add(&h, "Mcp-Session-Id", b->session);
		p->generation = b->session ? b->generation : 0;
		add(&h, "MCP-Protocol-Version", b->version);
	}
	if (get && p->sse.id[0])
		add(&h, "Last-Event-ID", p->sse.id);
	p->status = 0;
	if (p->state == WAITING)
		p->state = SENT;
	p->x = http_exchange_start(
		b->http,
		&(struct http_spec){
			.method = method,
			.url = b->url,
			.headers = h.p,
			.n_headers = h.n,
			.body = get || p->ends ? STR_NONE : (struct str){ p->text, p->n },
		},
		&events, p, &e);
	if (p->x)
		return;
	bridge_post_fail(p, &e);
	bridge_post_free(p);
}

static char *header_text(struct str s)
{
	struct err e;

	return s.p ? mcp_header_encode(s, &e) : NULL;
}

void bridge_post_read_modern(struct post *p, const struct rpc_msg *m)
{
	static const char *const names[] = { "name", "uri", "taskId" };
	struct str version = json_str(json_get(json_get(m->params, "_meta"), VERSION_KEY));

	if (!version.p)
		return;
	p->version = header_text(version);
	p->method = header_text(m->method);
	for (size_t i = 0; i < ARRAY_LEN(names) && !p->name; i++)
		p->name = header_text(json_str(json_get(m->params, names[i])));
}
