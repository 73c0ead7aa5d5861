/* The routes of a kind as the door wants them: a table, with the form that its errors have. */
#include "api/api.h"

#include "api/ask_impl.h"
#include "api/routes.h"

enum { BODIES_MAX = 256 << 20 }; /* as the door's, of those that do not stream */

static void run(void *owner, struct http_request *q)
{
	struct api *a = owner;

	ask_start(a, a->routes[http_request_route(q) - a->rows], q);
}

static struct http_route row_of(const struct api_route *r)
{
	return (struct http_route){
		.path = r->path,
		.methods = r->method,
		.open = r->open,
		/* Connect has types of its own, which ask_read() looks at; a DELETE has no body. */
		.any_type = r->kind == API_CONNECT || r->method == HTTP_DELETE || r->streams,
		.streams = r->streams,
		.body_max = r->body_max ? r->body_max
			  : r->streams	? 0
					: API_BODY_MAX,
		.run = run,
		.doc = r->tool.doc,
	};
}

static int fill(struct api *a, struct err *e)
{
	const struct api_route *r;
	size_t n = 0;

	while (api_route_at(n))
		n++;
	a->rows = calloc(n, sizeof(*a->rows));
	a->routes = calloc(n, sizeof(*a->routes));
	if (!a->rows || !a->routes)
		return err_set(e, ERR_LIMIT, "out of memory");
	for (size_t i = 0; (r = api_route_at(i)); i++) {
		if (r->kind != a->kind)
			continue;
		a->rows[a->n] = row_of(r);
		a->routes[a->n++] = r;
	}
	return 0;
}

AUTO_DEFINE(api_free, struct api)

struct api *api_new(uv_loop_t *loop, struct hub *hub, enum api_kind kind, struct err *e)
{
	AUTO(api_free) struct api *a = calloc(1, sizeof(*a));

	if (!a) {
		err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	a->loop = loop;
	a->hub = hub;
	a->kind = kind;
	a->bodies.max = BODIES_MAX;
	return fill(a, e) < 0 ? NULL : take_ptr(a);
}

void api_free(struct api *a)
{
	if (!a)
		return;
	free(a->rows);
	free(a->routes);
	free(a);
}

struct http_routes api_routes(const struct api *a)
{
	static const struct {
		const char *below;
		int (*explain)(const struct http_problem *problem, struct buf *to, struct err *e);
	} forms[] = {
		[API_REST] = { "/v1/", api_explain },
		[API_CONNECT] = { "/sandbox.v1.Sandbox/", api_connect_explain },
	};

	return (struct http_routes){ .p = a->rows,
				     .n = a->n,
				     .owner = (void *)a,
				     .below = forms[a->kind].below,
				     .explain = forms[a->kind].explain };
}
