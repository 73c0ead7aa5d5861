/* Over HTTP: /mcp for both eras, /sse and /message for clients of 2024-11-05. */
#include <http/server/server.h>
#include <mcp/transport/http.h>
#include <mcp/transport/sse.h>
#include <signal.h>
#include <stdio.h>

#include "everything.h"

enum { GRACE_MS = 2000, ROUTES = 8 };

struct serving {
	struct everything *ev;
	struct mcp_httpd_route routes[ROUTES];
	struct mcp_httpd_routes tables[2];
	struct mcp_http *http;
	struct mcp_sse *sse;
	struct mcp_httpd_server *door;
	uv_signal_t interrupt, terminate;
	bool stopping;
};

static void on_closed(void *arg)
{
}

/* Nobody can ask for what tasks come to any more. */
static void on_door_closed(void *arg)
{
	struct serving *s = arg;

	mcp_server_end_tasks(s->ev->server);
	mcp_http_close(s->http, on_closed, NULL);
	mcp_sse_close(s->sse, on_closed, NULL);
}

/* The first ends it in order, the second now. */
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
	mcp_httpd_server_close(s->door, GRACE_MS, on_door_closed, s);
}

/* The routes as they are, but for everybody: there are no tokens here. */
static void open_routes(struct serving *s)
{
	const struct mcp_httpd_routes given[] = { mcp_http_routes(s->http),
						  mcp_sse_routes(s->sse) };
	size_t n = 0;

	for (size_t i = 0; i < MCP_ARRAY_LEN(given); i++) {
		s->tables[i] = (struct mcp_httpd_routes){ &s->routes[n], given[i].n,
							  given[i].owner };
		for (size_t j = 0; j < given[i].n && n < ROUTES; j++) {
			s->routes[n] = given[i].p[j];
			s->routes[n++].open = true;
		}
	}
}

static int start(struct serving *s, const char *address, struct mcp_err *e)
{
	struct mcp_httpd_options o = { .routes = s->tables, .n_routes = MCP_ARRAY_LEN(s->tables) };
	int port;

	s->http = mcp_http_new(&s->ev->loop, s->ev->server,
			       &(struct mcp_http_options){ .idle_ms = 0 }, e);
	s->sse = mcp_sse_new(&s->ev->loop, s->ev->server,
			     &(struct mcp_sse_options){ .body_max = 0 }, e);
	if (!s->http || !s->sse)
		return -1;
	open_routes(s);
	s->door = mcp_httpd_server_new(&s->ev->loop, &o, e);
	port = s->door ? mcp_httpd_server_listen(s->door, address, NULL, e) : -1;
	if (port < 0)
		return -1;
	printf("http://127.0.0.1:%d/mcp\n", port);
	fflush(stdout);
	return 0;
}

int serve_http(struct everything *ev, const char *address, struct mcp_err *e)
{
	struct serving s = { .ev = ev };

	signal(SIGPIPE, SIG_IGN);
	if (start(&s, address, e) < 0)
		return -1;
	s.interrupt.data = s.terminate.data = &s;
	uv_signal_init(&ev->loop, &s.interrupt);
	uv_signal_init(&ev->loop, &s.terminate);
	uv_signal_start(&s.interrupt, on_signal, SIGINT);
	uv_signal_start(&s.terminate, on_signal, SIGTERM);
	uv_run(&ev->loop, UV_RUN_DEFAULT);
	uv_close((uv_handle_t *)&s.interrupt, NULL);
	uv_close((uv_handle_t *)&s.terminate, NULL);
	uv_run(&ev->loop, UV_RUN_DEFAULT);
	return 0;
}
