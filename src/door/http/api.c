/* The routes of a kind as the door wants them: a table, with the form that its errors have. */
#include "door/http/api.h"

#include "call/once.h"
#include "door/http/internal.h"
#include "door/http/routes.h"

enum { BODIES_MAX = 256 << 20 }; /* as the door's, of those that do not stream */

static void run(void *owner, struct http_request *q)
{
	struct api *a = owner;

	exchange_start(a, (size_t)(http_request_route(q) - a->rows), q);
}

/* The body may name another operation, which is judged when it is known. */
static bool admits(void *owner, struct http_request *q)
{
	const struct api *a = owner;
	const struct api_route *r = a->routes[http_request_route(q) - a->rows];
	const struct principal *who = http_request_principal(q);
	struct err e;

	return !who || ops_may(a->ops, who, r->op, &e) == 0 ||
	       (r->other && ops_may(a->ops, who, r->other->op, &e) == 0);
}

/* ---- parts --------------------------------------------------------------------------------- */

/* A procedure of Connect has a message, and a POST a body, if only an empty one. */
static void take_projected(struct api_parts *p, const struct api_route *r)
{
	for (size_t i = 0; i < OP_PLACES; i++)
		p->places[i] = p->shape.places[i];
	if (r->body)
		p->places[OP_BODY] = *r->body;
	if (r->socket || r->streams)
		return;
	for (size_t i = 0; i < p->places[OP_BODY].n; i++)
		p->body_required |= (p->places[OP_BODY].rows[i].flags & FIELD_REQUIRED) != 0;
	if (p->places[OP_BODY].n || r->kind == API_CONNECT || r->method == HTTP_POST)
		p->body_doc = "What is asked for.";
}

static void take_rows(struct api_parts *p, const struct field_table *request)
{
	for (size_t i = 0; i < request->n; i++) {
		const struct field *f = &request->rows[i];
		enum op_place place = OP_BODY;

		while (place < OP_PLACES && strcmp(op_place_names[place], f->name) != 0)
			place++;
		assert(place < OP_PLACES);
		p->places[place] = *f->table;
		p->at[place] = f->at;
		if (place != OP_BODY)
			continue;
		p->body_doc = f->doc;
		p->body_required = f->flags & FIELD_REQUIRED;
	}
}

static const struct field key_fields[] = { {
	.name = "Idempotency-Key",
	.kind = FIELD_IS_STR,
	.in = sizeof(struct str),
	.min = 1,
	.max = IDEMPOTENT_KEY_MAX,
	.doc = "Key of the client's choice, visible ASCII. For 24 hours the same request with it "
	       "gets the first answer again; a different request with it is refused.",
} };
const struct field_table api_key_table = { .rows = key_fields,
					   .n = ARRAY_LEN(key_fields),
					   .size = sizeof(struct str) };

struct op_members api_members(const struct api_route *r)
{
	struct op_members m = r->members;

	if (!r->socket && (r->method == HTTP_GET || r->method == HTTP_DELETE))
		m.others = OP_QUERY;
	return m;
}

int api_parts_init(struct api_parts *p, const struct api_route *r, struct err *e)
{
	*p = (struct api_parts){ .body_doc = NULL };
	if (!r->projected)
		take_rows(p, r->op->request);
	else if (op_shape_init(&p->shape, r->op, api_members(r), e) < 0)
		return err_wrap(e, "route %s", r->id);
	else
		take_projected(p, r);
	if (r->op->flags & OP_KEYED && !r->tell) /* a stream is not kept */
		p->places[OP_HEADER] = api_key_table;
	return 0;
}

void api_parts_fini(struct api_parts *p)
{
	op_shape_fini(&p->shape);
}

/* ---- the rows ------------------------------------------------------------------------------ */

static int api_add(struct api *a, const struct api_route *r, struct err *e)
{
	if (r->kind != a->kind)
		return 0;
	if (api_parts_init(&a->parts[a->n], r, e) < 0)
		return -1;
	a->rows[a->n] = (struct http_route){
		.path = r->path,
		.methods = r->method,
		.open = r->open,
		/* exchange_read() checks the types of Connect; a DELETE has no body. */
		.any_type = r->kind == API_CONNECT || r->method == HTTP_DELETE || r->streams,
		.streams = r->streams,
		.body_max = r->body_max ? r->body_max
			  : r->streams	? 0
					: API_BODY_MAX,
		.run = run,
		.doc = r->doc ? r->doc : r->op->doc,
	};
	a->routes[a->n++] = r;
	return 0;
}

/* The first row with the path and method serves the request. */
static int api_fill(struct api *a, struct err *e)
{
	const struct api_route *r;
	size_t n = 0;

	for (size_t i = 0; api_route_at(i); i++)
		n++;
	for (size_t i = 0; api_mitos_route_at(i); i++)
		n++;
	a->rows = calloc(n, sizeof(*a->rows));
	a->routes = calloc(n, sizeof(*a->routes));
	a->parts = calloc(n, sizeof(*a->parts));
	if (!a->rows || !a->routes || !a->parts)
		return err_set(e, ERR_LIMIT, "out of memory");
	for (size_t i = 0; a->mitos && (r = api_mitos_route_at(i)); i++) {
		if (api_add(a, r, e) < 0)
			return -1;
	}
	for (size_t i = 0; (r = api_route_at(i)); i++) {
		if (api_add(a, r, e) < 0)
			return -1;
	}
	return 0;
}

AUTO_DEFINE(api_free, struct api)

struct api *api_new(uv_loop_t *loop, struct ops *ops, enum api_kind kind, struct mitos *mitos,
		    struct err *e)
{
	AUTO(api_free) struct api *a = calloc(1, sizeof(*a));

	if (!a)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	a->loop = loop;
	a->ops = ops;
	a->kind = kind;
	a->mitos = mitos;
	a->bodies.max = BODIES_MAX;
	return api_fill(a, e) < 0 ? NULL : take_ptr(a);
}

void api_free(struct api *a)
{
	if (!a)
		return;
	for (size_t i = 0; a->parts && i < a->n; i++)
		api_parts_fini(&a->parts[i]);
	free(a->rows);
	free(a->routes);
	free(a->parts);
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
		[API_PEOPLE] = { "/api/", api_explain },
	};

	return (struct http_routes){ .p = a->rows,
				     .n = a->n,
				     .owner = (void *)a,
				     .below = forms[a->kind].below,
				     .explain = forms[a->kind].explain,
				     .admits = admits };
}
