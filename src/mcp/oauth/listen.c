/*
 * The target of the browser's redirect, RFC 8252 section 7.3: an HTTP server on 127.0.0.1 that is
 * open only while a login is in progress. Anybody on the machine and any page in the browser can
 * reach it. So a request without the right state changes nothing, and an answer is accepted once.
 */
#include "http/server/server.h"
#include "mcp/oauth/internal.h"

#include <stdio.h>

#define PATH "/callback"

enum { GRACE_MS = 2000, CONNECTIONS = 16, URI_MAX = 64 };

struct oauth_door {
	struct mcp_oauth *o;
	struct http_server *server;
	struct http_routes routes;
	bool failed;
	struct err why;
};

static void on_closed(void *arg)
{
	struct oauth_door *d = arg;
	struct mcp_oauth *o = d->o;

	free(d);
	oauth_handle_gone(o);
}

void oauth_listen_stop(struct mcp_oauth *o)
{
	struct oauth_door *d = take_ptr(o->door);

	if (d)
		http_server_close(d->server, GRACE_MS, on_closed, d);
}

static void listen_say(struct http_request *q, int status, const char *text)
{
	static const struct http_header headers[] = {
		{ "Cache-Control", STR_LIT("no-store") },
		{ "Referrer-Policy", STR_LIT("no-referrer") },
		{ "Content-Security-Policy",
		  STR_LIT("default-src 'none'; frame-ancestors 'none'") },
	};
	struct http_reply reply = { .status = status,
				    .type = "text/plain; charset=utf-8",
				    .body = str_of(text),
				    .headers = headers,
				    .n_headers = ARRAY_LEN(headers),
				    .close = true };

	http_reply(q, &reply);
}

struct query {
	struct oauth_redirect r;
	bool broken;
};

static void listen_add(void *data, struct str name, struct str value)
{
	struct query *query = data;
	struct err unused;

	query->broken |= oauth_redirect_add(&query->r, name, value, &unused) < 0;
}

/* Called when the reply was sent and the server is not on the stack. */
static void on_answered(uv_timer_t *timer)
{
	struct mcp_oauth *o = timer->data;
	struct err e = o->door->why;

	if (o->door->failed)
		oauth_flow_failed(o, &e);
	else
		oauth_flow_came_back(o);
}

static void on_callback(void *owner, struct http_request *q)
{
	struct oauth_door *d = owner;
	struct mcp_oauth *o = d->o;
	struct query query = { .broken = o->door != d };
	bool is_ours = false;
	int rc = -1;

	if (!http_request_each_query(q, listen_add, &query))
		query.broken = true;
	if (!query.broken)
		rc = oauth_authorize_read(o, &query.r, &is_ours, &d->why);
	explicit_bzero(&query, sizeof(query));
	if (!is_ours) {
		listen_say(q, 400, "This is not the login that is waited for.\n");
		return;
	}
	listen_say(q, rc < 0 ? 400 : 200,
		   rc < 0 ? "The login failed. The program that asked for it says why.\n"
			  : "The login is done. This page can be closed.\n");
	d->failed = rc < 0;
	uv_timer_start(&o->timer, on_answered, 0, 0);
}

static const struct http_route route = { .path = PATH,
					 .methods = HTTP_GET,
					 .open = true,
					 .any_type = true,
					 .run = on_callback,
					 .doc = "Where a browser comes back to from a login." };

/* The port of our own redirect URI, or 0. */
static unsigned port_of(const char *uri)
{
	struct oauth_url u;
	struct err e;

	return uri && oauth_url_read(str_of(uri), "", &u, &e) == 0 && str_is(u.host, "127.0.0.1") &&
			       str_is(u.path, PATH)
		     ? u.port
		     : 0;
}

static int listen_on(struct oauth_door *d, unsigned port, struct err *e)
{
	char address[32];

	snprintf(address, sizeof(address), "127.0.0.1:%u", port);
	return http_server_listen(d->server, address, NULL, e);
}

int oauth_listen_start(struct mcp_oauth *o, const char *before, struct err *e)
{
	struct oauth_door *d = calloc(1, sizeof(*d));
	struct http_options options = { .limits = { .connections = CONNECTIONS } };
	unsigned want = port_of(before);
	char uri[URI_MAX];
	int port = -1;

	oauth_listen_stop(o);
	if (!d)
		return oauth_no_memory(e);
	*d = (struct oauth_door){ .o = o, .routes = { &route, 1, d } };
	options.routes = &d->routes;
	options.n_routes = 1;
	d->server = http_server_new(o->loop, &options, e);
	if (!d->server) {
		free(d);
		return -1;
	}
	o->handles++;
	o->door = d;
	if (want)
		port = listen_on(d, want, e);
	if (port < 0)
		port = listen_on(d, 0, e);
	if (port < 0)
		return -1;
	snprintf(uri, sizeof(uri), "http://127.0.0.1:%d" PATH, port);
	free(o->redirect);
	o->redirect = strdup(uri);
	return o->redirect ? 0 : oauth_no_memory(e);
}
