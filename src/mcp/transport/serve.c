/* A whole program: an MCP server over HTTP, with both transports, on the default loop. */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "mcp/transport/http.h"
#include "mcp/transport/sse.h"

enum { GRACE_MS = 2000, ROUTES = 8, URL_MAX = 512 };

struct serving {
	struct mcp_server *server;
	struct http_route routes[ROUTES];
	struct http_routes tables[2];
	struct mcp_http *http;
	struct mcp_sse *sse;
	struct http_server *door;
	uv_signal_t interrupt, terminate;
	bool stopping;
};

static void on_part_closed(void *arg)
{
}

static void serving_close_parts(struct serving *s)
{
	if (s->http)
		mcp_http_close(s->http, on_part_closed, NULL);
	if (s->sse)
		mcp_sse_close(s->sse, on_part_closed, NULL);
}

/* Tasks end with the program, since nobody can ask for them later. */
static void on_door_closed(void *arg)
{
	struct serving *s = arg;

	mcp_server_end_tasks(s->server);
	serving_close_parts(s);
}

static void on_signal(uv_signal_t *handle, int number)
{
	struct serving *s = handle->data;

	if (s->stopping)
		_exit(128 + number);
	s->stopping = true;
	uv_unref((uv_handle_t *)&s->interrupt);
	uv_unref((uv_handle_t *)&s->terminate);
	mcp_http_drain(s->http);
	mcp_sse_drain(s->sse);
	http_server_close(s->door, GRACE_MS, on_door_closed, s);
}

/* Copies the routes and opens them to everybody, since there are no tokens here. */
static void serving_open_routes(struct serving *s)
{
	const struct http_routes given[] = { mcp_http_routes(s->http), mcp_sse_routes(s->sse) };
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(given); i++) {
		s->tables[i] = (struct http_routes){ &s->routes[n], given[i].n, given[i].owner };
		for (size_t j = 0; j < given[i].n && n < ROUTES; j++) {
			s->routes[n] = given[i].p[j];
			s->routes[n++].open = true;
		}
	}
}

/* Returns the port. */
static int serving_start(struct serving *s, const char *address, struct err *e)
{
	struct http_options o = { .routes = s->tables, .n_routes = ARRAY_LEN(s->tables) };
	uv_loop_t *loop = uv_default_loop();

	s->http = mcp_http_new(loop, s->server, &(struct mcp_http_options){ .idle_ms = 0 }, e);
	if (!s->http)
		return -1;
	s->sse = mcp_sse_new(loop, s->server, &(struct mcp_sse_options){ .body_max = 0 }, e);
	if (!s->sse)
		return -1;
	serving_open_routes(s);
	s->door = http_server_new(loop, &o, e);
	return s->door ? http_server_listen(s->door, address, NULL, e) : -1;
}

static void serving_run(struct serving *s)
{
	uv_loop_t *loop = uv_default_loop();

	s->interrupt.data = s->terminate.data = s;
	uv_signal_init(loop, &s->interrupt);
	uv_signal_init(loop, &s->terminate);
	uv_signal_start(&s->interrupt, on_signal, SIGINT);
	uv_signal_start(&s->terminate, on_signal, SIGTERM);
	uv_run(loop, UV_RUN_DEFAULT);
	uv_close((uv_handle_t *)&s->interrupt, NULL);
	uv_close((uv_handle_t *)&s->terminate, NULL);
}

int mcp_serve_http(const struct mcp_server_options *options, const char *address,
		   void (*on_ready)(const char *url), struct err *e)
{
	AUTO(mcp_server_free) struct mcp_server *srv = mcp_server_new(options, e);
	struct serving s = { .server = srv };
	const char *colon = strrchr(address, ':');
	char url[URL_MAX];
	int port;

	if (!srv)
		return -1;
	signal(SIGPIPE, SIG_IGN);
	port = serving_start(&s, address, e);
	if (port >= 0 && on_ready) {
		snprintf(url, sizeof(url), "http://%.*s:%d/mcp", colon ? (int)(colon - address) : 0,
			 address, port);
		on_ready(url);
	}
	if (port >= 0)
		serving_run(&s);
	else if (s.door)
		http_server_close(s.door, 0, on_door_closed, &s);
	else
		serving_close_parts(&s);
	uv_run(uv_default_loop(), UV_RUN_DEFAULT);
	return port < 0 ? -1 : 0;
}
