#include "mcp/transport/wire.h"

#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "rpc/rpc.h"

enum { REFUSAL_MAX = 8192 };

/* --- the set --- */

static void on_timer(uv_timer_t *timer)
{
	struct mcp_wires *set = timer->data;

	for (struct mcp_wire *w = set->first; w; w = w->next) {
		if (w->quiet && mcp_wire_waiting(w) == 0)
			http_stream_write(w->stream, STR_LIT(":\n\n"));
		w->quiet = true;
	}
	if (set->on_tick)
		set->on_tick(set->owner);
}

void mcp_wires_init(struct mcp_wires *set, uv_loop_t *loop, unsigned period_ms,
		    void (*on_tick)(void *owner), void *owner)
{
	*set = (struct mcp_wires){ .on_tick = on_tick, .owner = owner };
	uv_timer_init(loop, &set->timer);
	set->timer.data = set;
	uv_timer_start(&set->timer, on_timer, period_ms, period_ms);
	uv_unref((uv_handle_t *)&set->timer);
}

void mcp_wires_hurry(struct mcp_wires *set, unsigned ms)
{
	uv_timer_start(&set->timer, on_timer, ms, ms);
}

static void on_timer_closed(uv_handle_t *handle)
{
	struct mcp_wires *set = handle->data;

	set->on_closed(set->owner);
}

void mcp_wires_close(struct mcp_wires *set, void (*on_closed)(void *owner))
{
	assert(!set->first);
	set->on_closed = on_closed;
	uv_close((uv_handle_t *)&set->timer, on_timer_closed);
}

/* --- one stream --- */

static void unlink_wire(struct mcp_wire *w)
{
	*(w->prev ? &w->prev->next : &w->set->first) = w->next;
	if (w->next)
		w->next->prev = w->prev;
	w->set->n--;
	w->stream = NULL;
}

static void on_stream_closed(void *owner, const struct err *why)
{
	struct mcp_wire *w = owner;

	unlink_wire(w);
	w->events->on_closed(w->owner, why);
}

static void on_stream_drained(void *owner)
{
	struct mcp_wire *w = owner;

	if (w->events->on_drained)
		w->events->on_drained(w->owner);
}

static const struct http_stream_events stream_events = { .on_closed = on_stream_closed,
							 .on_drained = on_stream_drained };

int mcp_wire_open(struct mcp_wire *w, struct mcp_wires *set, struct http_request *q,
		  const struct http_header *headers, size_t n, const struct mcp_wire_events *events,
		  void *owner, struct err *e)
{
	struct http_header all[2 + MCP_WIRE_HEADERS] = {
		{ "Cache-Control", STR_LIT("no-cache, no-transform") },
		{ "X-Accel-Buffering", STR_LIT("no") },
	};

	assert(n <= MCP_WIRE_HEADERS && !w->stream);
	if (n > 0)
		memcpy(&all[2], headers, n * sizeof(*headers));
	w->stream = http_stream_start(q,
				      &(struct http_reply){ .status = 200,
							    .type = "text/event-stream",
							    .headers = all,
							    .n_headers = 2 + n },
				      &stream_events, w, e);
	if (!w->stream)
		return -1;
	w->set = set;
	w->events = events;
	w->owner = owner;
	w->quiet = true;
	w->prev = NULL;
	w->next = set->first;
	if (set->first)
		set->first->prev = w;
	set->first = w;
	set->n++;
	return 0;
}

void mcp_wire_write(struct mcp_wire *w, struct str events)
{
	w->quiet = false;
	http_stream_write(w->stream, events);
}

void mcp_wire_give(struct mcp_wire *w, struct buf *events)
{
	w->quiet = false;
	http_stream_give(w->stream, events);
}

size_t mcp_wire_waiting(const struct mcp_wire *w)
{
	return w->stream ? http_stream_waiting(w->stream) : 0;
}

void mcp_wire_end(struct mcp_wire *w)
{
	struct http_stream *stream = w->stream;

	if (!stream)
		return;
	unlink_wire(w);
	http_stream_end(stream);
}

/* --- refusals --- */

void mcp_wire_refuse(struct http_request *q, int status, const char *why)
{
	autobuf struct buf b = BUF_INIT(REFUSAL_MAX);
	struct json_writer w = json_writer(&b);
	struct rpc_fault f;
	struct err e;

	rpc_fault_set(&f, RPC_INVALID_REQUEST, "%s", why);
	rpc_write_fault(&w, NULL, &f);
	if (json_write_done(&w, &e) < 0)
		b.n = 0;
	http_reply(q, &(struct http_reply){
			      .status = status, .type = "application/json", .body = buf_str(&b) });
}

/* --- events --- */

static void join_lines(char *p, size_t n)
{
	for (size_t i = 0; i < n; i++) /* without a branch: a compiler makes vectors of that */
		p[i] = p[i] == '\n' || p[i] == '\r' ? ' ' : p[i];
}

int mcp_event_write(struct buf *b, const char *event, const char *id, unsigned retry_ms,
		    struct str data, struct err *e)
{
	size_t at;

	if (event && buf_addf(b, e, "event: %s\n", event) < 0)
		return -1;
	if (id && buf_addf(b, e, "id: %s\n", id) < 0)
		return -1;
	if (retry_ms > 0 && buf_addf(b, e, "retry: %u\n", retry_ms) < 0)
		return -1;
	if (data.p && buf_add(b, "data: ", 6, e) < 0)
		return -1;
	at = b->n;
	if (data.n > 0 && buf_add(b, data.p, data.n, e) < 0)
		return -1;
	join_lines(b->p + at, data.n);
	return buf_add(b, "\n\n", data.p ? 2 : 1, e);
}

int mcp_wire_narrow(struct mcp_session *s, struct http_request *q)
{
	const struct mcp_wish w = { .tools = http_request_query(q, STR_LIT("tools")),
				    .profile = http_request_query(q, STR_LIT("profile")),
				    .modules = http_request_query(q, STR_LIT("modules")),
				    .texts = http_request_query(q, STR_LIT("texts")) };
	struct err e;

	if ((!w.tools.p && !w.profile.p && !w.modules.p && !w.texts.p) ||
	    mcp_session_narrow(s, &w, &e) == 0)
		return 0;
	mcp_wire_refuse(q, 400, e.msg);
	return -1;
}
