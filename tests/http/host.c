/*
 * An MCP server for the tests of the HTTP transports: tools whose every step the test controls,
 * limits that can be reached, and statistics.
 *
 *	mcp-http-host [NAME=VALUE ...]
 *
 * sets a field of the transports' options, prints the port that it listens on, and ends on SIGTERM
 * as a hub does. The tokens "alice" and "bob" are two principals.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "mcp/transport/http.h"
#include "mcp/transport/sse.h"

enum { GRACE_MS = 10000, HELD_MAX = 4096 };

struct host {
	uv_loop_t loop;
	uv_signal_t term;
	struct mcp_server *server;
	struct mcp_http *http;
	struct mcp_sse *sse;
	struct http_server *door;
	struct mcp_call *held[HELD_MAX];
	size_t held_n;
	unsigned cancelled; /* held calls that were */
	unsigned closing; /* parts that are not closed yet */
};

static struct host host;

/* --- arguments --- */

static int64_t number(const struct mcp_call *c, const char *name, int64_t otherwise)
{
	int64_t n = otherwise;

	json_int64(json_get(mcp_call_args(c), name), &n);
	return n;
}

static struct str text(const struct mcp_call *c, const char *name)
{
	return json_str(json_get(mcp_call_args(c), name));
}

/* --- calls that wait to be released --- */

static void on_cancel(struct mcp_call *c, void *data)
{
	size_t i = 0;

	while (host.held[i] != c)
		i++;
	host.held[i] = host.held[--host.held_n];
	host.cancelled++;
	mcp_call_text(c, STR_LIT("cancelled"));
}

static void hold(struct mcp_call *c)
{
	if (host.held_n == HELD_MAX) {
		mcp_call_text(c, STR_LIT("too many"));
		return;
	}
	host.held[host.held_n++] = c;
	mcp_call_on_cancel(c, on_cancel, NULL);
}

/* Those of the key that is given; all without one. */
static void release(struct mcp_call *c)
{
	struct str key = text(c, "key");
	unsigned n = 0;

	for (size_t i = 0; i < host.held_n;) {
		struct mcp_call *held = host.held[i];

		if (key.p && !str_eq(key, text(held, "key"))) {
			i++;
			continue;
		}
		host.held[i] = host.held[--host.held_n];
		n++;
		mcp_call_text(held, text(held, "key"));
	}
	mcp_call_text(c, n ? STR_LIT("released") : STR_LIT("none"));
}

/* --- the other tools --- */

static void echo(struct mcp_call *c)
{
	mcp_call_text(c, text(c, "text"));
}

/* bytes of text at once */
static void large(struct mcp_call *c)
{
	size_t n = (size_t)number(c, "bytes", 1);
	char *p = malloc(n + 1);

	memset(p, 'x', n);
	if (number(c, "say", 0))
		mcp_call_log(c, MCP_WARNING, NULL, STR_LIT("\"first\""));
	mcp_call_text(c, (struct str){ p, n });
	free(p);
}

/* A step of progress of all that is held; with a key, it is held itself, after its first. */
static void advance(struct mcp_call *c)
{
	static double at;

	at++;
	if (text(c, "key").p)
		hold(c);
	for (size_t i = 0; i < host.held_n; i++)
		mcp_call_progress(host.held[i], at, 0, NULL);
	if (!text(c, "key").p)
		mcp_call_text(c, STR_LIT("advanced"));
}

static void on_timer_closed(uv_handle_t *timer)
{
	free(timer);
}

static void on_timer(uv_timer_t *timer)
{
	struct mcp_call *c = timer->data;
	struct str said = text(c, "text");

	mcp_call_text(c, said.p ? said : STR_LIT("waited"));
	uv_close((uv_handle_t *)timer, on_timer_closed);
}

/* ms; can't be cancelled */
static void doze(struct mcp_call *c)
{
	uv_timer_t *timer = malloc(sizeof(*timer));

	uv_timer_init(&host.loop, timer);
	timer->data = c;
	uv_timer_start(timer, on_timer, (uint64_t)number(c, "ms", 1), 0);
}

/* n log records of so many bytes, then what `then` says: an answer, or to be held */
static void say(struct mcp_call *c)
{
	size_t bytes = (size_t)number(c, "bytes", 1);
	char *p = malloc(bytes + 32);

	for (int64_t i = 0; i < number(c, "n", 1); i++) {
		int at = snprintf(p, 32, "\"%" PRId64 " ", i);

		memset(p + at, 'x', bytes);
		p[(size_t)at + bytes] = '"';
		mcp_call_log(c, MCP_WARNING, NULL, (struct str){ p, (size_t)at + bytes + 1 });
	}
	free(p);
	if (str_is(text(c, "then"), "hold"))
		hold(c);
	else
		mcp_call_text(c, STR_LIT("said"));
}

static void disconnect(struct mcp_call *c)
{
	if (number(c, "say", 0))
		mcp_call_log(c, MCP_WARNING, NULL, STR_LIT("\"before\""));
	mcp_call_disconnect(c);
	mcp_call_log(c, MCP_WARNING, NULL, STR_LIT("\"away\""));
	hold(c);
}

/* n notifications that belong to no request */
static void change(struct mcp_call *c)
{
	for (int64_t i = 0; i < number(c, "n", 1); i++)
		mcp_server_changed(host.server, MCP_TOOLS);
	mcp_call_text(c, STR_LIT("changed"));
}

static void ask(struct mcp_call *c)
{
	static const char params[] =
		"{\"message\":\"Who?\",\"requestedSchema\":{\"type\":\"object\","
		"\"properties\":{\"name\":{\"type\":\"string\"}}}}";
	const struct mcp_ask form = { "who", MCP_ASK_FORM, str_of(params) };
	const struct json_val *answer = mcp_call_answer(c, "who");
	struct err e;

	if (answer)
		mcp_call_text(c, json_str(json_get(json_get(answer, "content"), "name")));
	else if (mcp_call_ask(c, &form, 1, STR_NONE, &e) < 0)
		mcp_call_cant_ask(c, MCP_ASK_FORM);
}

/* A task where it can be one; with ask, it asks for a name first. */
static void job(struct mcp_call *c)
{
	struct err e;

	if (!mcp_call_is_task(c) && mcp_call_can_task(c) && mcp_call_to_task(c, NULL, &e) < 0)
		mcp_call_fail(c, &e);
	else if (number(c, "ask", 0))
		ask(c);
	else
		hold(c);
}

static void stats(struct mcp_call *c)
{
	struct mcp_http_stats s;
	struct http_stats d;
	char out[512];
	int n;

	mcp_http_stats(host.http, &s);
	http_server_stats(host.door, &d);
	n = snprintf(out, sizeof(out),
		     "{\"sessions\":%u,\"posts\":%u,\"streams\":%u,\"stored\":%zu,\"sse\":%u,"
		     "\"held\":%zu,"
		     "\"cancelled\":%u,\"connections\":%u,\"slow\":%" PRIu64 "}",
		     s.sessions, s.posts, s.streams, s.stored, mcp_sse_sessions(host.sse),
		     host.held_n, host.cancelled, d.connections, d.slow);
	mcp_call_text(c, (struct str){ out, (size_t)n });
}

#define TOOL(name_, doc)                                                                           \
	{                                                                                          \
		.name = #name_, .description = doc, .input_schema = "{\"type\":\"object\"}",       \
		.run = name_                                                                       \
	}

static struct mcp_tool tools[] = {
	TOOL(echo, "Says text."),
	TOOL(large, "Says so many bytes; with say, a log record before."),
	TOOL(hold, "Waits until it is released."),
	TOOL(release, "Releases those of a key."),
	TOOL(advance, "Progress of what is held."),
	TOOL(doze, "Answers after a while."),
	TOOL(say, "Log records, then an answer."),
	TOOL(disconnect, "Has the stream closed, and waits to be released."),
	TOOL(change, "Tells that tools have changed."),
	TOOL(ask, "Asks for a name."),
	TOOL(stats, "Numbers."),
	{ .name = "job",
	  .description = "Waits until it is released, as a task.",
	  .input_schema = "{\"type\":\"object\"}",
	  .task = MCP_TASK_OPTIONAL,
	  .run = job },
};

/* --- options --- */

static struct mcp_http_options http_options;
static struct mcp_sse_options sse_options;
static struct http_limits limits;

static const struct {
	const char *name;
	unsigned *to;
} numbers[] = {
	{ "sessions", &http_options.sessions },
	{ "sessions_each", &http_options.sessions_each },
	{ "idle_ms", &http_options.idle_ms },
	{ "pulse_ms", &http_options.pulse_ms },
	{ "retry_ms", &http_options.retry_ms },
	{ "events", &http_options.events },
	{ "keep_ms", &http_options.keep_ms },
	{ "sse_sessions_each", &sse_options.sessions_each },
	{ "drain_ms", &http_options.drain_ms },
	{ "sse_drain_ms", &sse_options.drain_ms },
	{ "sse_pulse_ms", &sse_options.pulse_ms },
	{ "streams", &limits.streams },
	{ "connections", &limits.connections },
};

static const struct {
	const char *name;
	size_t *to;
} sizes[] = {
	{ "store_max", &http_options.store_max },
	{ "store_all", &http_options.store_all },
	{ "queue", &limits.stream_queue },
};

static int set(const char *argument)
{
	const char *is = strchr(argument, '=');
	size_t n = is ? (size_t)(is - argument) : 0;

	for (size_t i = 0; is && i < ARRAY_LEN(numbers); i++) {
		if (strlen(numbers[i].name) == n && strncmp(numbers[i].name, argument, n) == 0) {
			*numbers[i].to = (unsigned)strtoul(is + 1, NULL, 10);
			return 0;
		}
	}
	for (size_t i = 0; is && i < ARRAY_LEN(sizes); i++) {
		if (strlen(sizes[i].name) == n && strncmp(sizes[i].name, argument, n) == 0) {
			*sizes[i].to = strtoul(is + 1, NULL, 10);
			return 0;
		}
	}
	fprintf(stderr, "mcp-http-host: no option %s\n", argument);
	return -1;
}

/* --- the whole --- */

static const void *identify(void *owner, struct str bearer, bool local)
{
	static const char *const names[] = { "alice", "bob" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (str_is(bearer, names[i]))
			return names[i];
	}
	return NULL;
}

static struct str principal(void *owner, void *data)
{
	return str_of(data);
}

static void on_part_closed(void *arg)
{
	if (--host.closing == 0)
		uv_close((uv_handle_t *)&host.term, NULL);
}

static void on_door_closed(void *arg)
{
	mcp_server_end_tasks(host.server);
	host.closing = 2;
	mcp_http_close(host.http, on_part_closed, NULL);
	mcp_sse_close(host.sse, on_part_closed, NULL);
}

static void on_term(uv_signal_t *term, int signal)
{
	mcp_http_drain(host.http);
	mcp_sse_drain(host.sse);
	http_server_close(host.door, GRACE_MS, on_door_closed, NULL);
}

static int start(struct err *e)
{
	const struct mcp_server_options server = {
		.name = "mcp-http-host",
		.version = "1",
		.offer = { .tools = tools, .tools_n = ARRAY_LEN(tools) },
		.changes = MCP_TOOLS,
		.logging = true,
		.tasks = true,
		.principal = principal,
	};
	static struct http_routes routes[2];

	host.server = mcp_server_new(&server, e);
	if (!host.server)
		return -1;
	http_options.queue = sse_options.queue = limits.stream_queue;
	host.http = mcp_http_new(&host.loop, host.server, &http_options, e);
	host.sse = host.http ? mcp_sse_new(&host.loop, host.server, &sse_options, e) : NULL;
	if (!host.sse)
		return -1;
	routes[0] = mcp_http_routes(host.http);
	routes[1] = mcp_sse_routes(host.sse);
	host.door = http_server_new(&host.loop,
				    &(struct http_options){ .limits = limits,
							    .identify = identify,
							    .routes = routes,
							    .n_routes = ARRAY_LEN(routes) },
				    e);
	return host.door ? http_server_listen(host.door, "127.0.0.1:0", NULL, e) : -1;
}

int main(int argc, char **argv)
{
	struct err e;
	int port;

	log_init("mcp-http-host");
	signal(SIGPIPE, SIG_IGN);
	for (int i = 1; i < argc; i++) {
		if (set(argv[i]) < 0)
			return 2;
	}
	uv_loop_init(&host.loop);
	uv_signal_init(&host.loop, &host.term);
	uv_signal_start(&host.term, on_term, SIGTERM);
	port = start(&e);
	if (port < 0) {
		fprintf(stderr, "mcp-http-host: %s\n", e.msg);
		return 1;
	}
	printf("%d\n", port);
	fflush(stdout);
	uv_run(&host.loop, UV_RUN_DEFAULT);
	mcp_server_free(host.server);
	return uv_loop_close(&host.loop);
}
