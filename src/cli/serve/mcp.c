/* MCP over HTTP as parts of `holt serve`: both transports offer the hub's server. */
#include "cli/serve/serve.h"
#include "mcp/transport/http.h"
#include "mcp/transport/sse.h"

static void *open_http(struct serving *s, struct http_routes *ret, struct err *e)
{
	const struct mcp_http_options o = { 0 };
	struct mcp_http *h = mcp_http_new(&s->loop, mcp_door_server(s->mcp), &o, e);

	if (h)
		*ret = mcp_http_routes(h);
	return h;
}

static void end_http_of(void *part, const void *who)
{
	mcp_http_end_of(part, who);
}

static void drain_http(void *part)
{
	mcp_http_drain(part);
}

static void close_http(void *part, void (*on_closed)(void *arg), void *arg)
{
	mcp_http_close(part, on_closed, arg);
}

static unsigned http_sessions(const void *part)
{
	struct mcp_http_stats n;

	mcp_http_stats(part, &n);
	return n.sessions;
}

const struct serve_part serve_http = {
	.name = "http",
	.open = open_http,
	.end_of = end_http_of,
	.drain = drain_http,
	.close = close_http,
	.sessions = http_sessions,
};

static void *open_sse(struct serving *s, struct http_routes *ret, struct err *e)
{
	const struct mcp_sse_options o = { 0 };
	struct mcp_sse *t = mcp_sse_new(&s->loop, mcp_door_server(s->mcp), &o, e);

	if (t)
		*ret = mcp_sse_routes(t);
	return t;
}

static void end_sse_of(void *part, const void *who)
{
	mcp_sse_end_of(part, who);
}

static void drain_sse(void *part)
{
	mcp_sse_drain(part);
}

static void close_sse(void *part, void (*on_closed)(void *arg), void *arg)
{
	mcp_sse_close(part, on_closed, arg);
}

static unsigned sse_sessions(const void *part)
{
	return mcp_sse_sessions(part);
}

const struct serve_part serve_sse = {
	.name = "sse",
	.open = open_sse,
	.end_of = end_sse_of,
	.drain = drain_sse,
	.close = close_sse,
	.sessions = sse_sessions,
};
