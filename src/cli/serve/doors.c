/* REST, Connect and servers in sandboxes as parts of `holt serve`, and the table of all parts. */
#include "cli/serve/serve.h"
#include "door/e2b/e2b.h"
#include "door/expose/expose.h"
#include "door/http/api.h"
#include "door/page/page.h"
#include "door/rest/mitos.h"
#include "guard/gate/gate.h"
#include "op/module/inlet.h"

static bool wants_mitos(const struct serving *s)
{
	return s->compat_mitos;
}

/* Its routes are of REST and Connect, which it outlives. */
static void *open_mitos(struct serving *s, struct http_routes *ret, struct err *e)
{
	return s->mitos;
}

static void end_mitos_of(void *part, const void *who)
{
	mitos_end_of(part, principal_owner(who));
}

static const void *identify_tokenless(void *part, struct http_request *q)
{
	return part ? mitos_identify(part, q) : NULL;
}

static void configure_mitos(void *part, struct config *c)
{
	mitos_configure(part, c);
}

static const struct serve_part serve_mitos = {
	.name = "mitos",
	.wanted = wants_mitos,
	.open = open_mitos,
	.identify = identify_tokenless,
	.end_of = end_mitos_of,
	.configure = configure_mitos,
};

static void *open_api(struct serving *s, enum api_kind kind, struct http_routes *ret, struct err *e)
{
	struct api *a = api_new(&s->loop, s->ops, kind, s->mitos, e);

	if (a)
		*ret = api_routes(a);
	return a;
}

static void *open_rest(struct serving *s, struct http_routes *ret, struct err *e)
{
	return open_api(s, API_REST, ret, e);
}

static void *open_people(struct serving *s, struct http_routes *ret, struct err *e)
{
	return open_api(s, API_PEOPLE, ret, e);
}

static void *open_connect(struct serving *s, struct http_routes *ret, struct err *e)
{
	return open_api(s, API_CONNECT, ret, e);
}

static void drain_api(void *part)
{
	api_drain(part);
}

static void free_api(void *part)
{
	api_free(part);
}

static const struct serve_part serve_rest = {
	.name = "rest",
	.open = open_rest,
	.drain = drain_api,
	.free = free_api,
};

static const struct serve_part serve_connect = {
	.name = "connect",
	.open = open_connect,
	.drain = drain_api,
	.free = free_api,
};

static const struct serve_part serve_people = {
	.name = "people",
	.open = open_people,
	.drain = drain_api,
	.free = free_api,
};

static bool is_token(void *owner, struct str text)
{
	return ((struct serving *)owner)->identify(owner, text, false) != NULL;
}

static void *open_expose(struct serving *s, struct http_routes *ret, struct err *e)
{
	const struct expose_options o = {
		.loop = &s->loop, .ops = s->ops, .is_token = is_token, .owner = s
	};
	struct expose *x = expose_new(&o, e);

	if (x)
		*ret = expose_routes(x);
	return x;
}

static void end_expose_of(void *part, const void *who)
{
	expose_end_of(part, principal_owner(who));
}

static void drain_expose(void *part)
{
	expose_drain(part);
}

static void free_expose(void *part)
{
	expose_free(part);
}

static struct http_routes previews(void *part)
{
	return expose_previews(part);
}

static const struct serve_part serve_expose = {
	.name = "expose",
	.open = open_expose,
	.previews = previews,
	.end_of = end_expose_of,
	.drain = drain_expose,
	.free = free_expose,
};

/* Clients of mitos run code by its interpreters. */
static bool wants_e2b(const struct serving *s)
{
	return s->compat_e2b || s->compat_mitos;
}

static const void *identify_of_mitos(void *owner, struct http_request *q)
{
	return mitos_identify(((const struct serving *)owner)->mitos, q);
}

static void *open_e2b(struct serving *s, struct http_routes *ret, struct err *e)
{
	struct e2b_options o = { .loop = &s->loop,
				 .ops = s->ops,
				 .config = s->config,
				 .secret = str_of(s->token),
				 .identify = s->identify,
				 .owner = s,
				 .of_mitos = s->compat_mitos ? identify_of_mitos : NULL,
				 .mitos_only = !s->compat_e2b };
	struct e2b *x;

	for (size_t i = 0; i < serve_parts_n; i++) {
		if (serve_parts[i] == &serve_expose) /* it was opened before */
			o.expose = s->parts[i];
	}
	x = e2b_new(&o, e);
	if (x)
		*ret = e2b_routes(x);
	return x;
}

static void configure_e2b(void *part, struct config *c)
{
	e2b_configure(part, c);
}

static void drain_e2b(void *part)
{
	e2b_drain(part);
}

static void close_e2b(void *part, void (*on_closed)(void *arg), void *arg)
{
	e2b_close(part, on_closed, arg);
}

static const struct serve_part serve_e2b = {
	.name = "e2b",
	.wanted = wants_e2b,
	.open = open_e2b,
	.configure = configure_e2b,
	.drain = drain_e2b,
	.close = close_e2b,
};

static void on_login_ended(void *owner, const struct principal *who)
{
	struct serving *s = owner;

	ops_end_calls_of(s->ops, who);
	if (s->door)
		http_server_end_of(s->door, who);
}

static void on_login(void *owner, const struct principal *who, const char *action, const char *id)
{
	const struct serving *s = owner;

	gate_audit_note(s->gate, who, action, str_of(id));
}

static const struct principal *named(void *owner, struct str name)
{
	const struct serving *s = owner;

	return s->named(name);
}

static void *open_page(struct serving *s, struct http_routes *ret, struct err *e)
{
	struct page *p = page_new(&(struct page_options){ .loop = &s->loop,
							  .url = s->url,
							  .token = s->token,
							  .folder = s->data,
							  .named = named,
							  .on_ended = on_login_ended,
							  .on_login = on_login,
							  .owner = s },
				  e);

	if (p)
		*ret = page_routes(p);
	return p;
}

static const void *identify_by_page(void *part, struct http_request *q)
{
	return page_identify(part, q);
}

static void end_page_of(void *part, const void *who)
{
	page_end_of(part, who);
}

static void close_page(void *part, void (*on_closed)(void *arg), void *arg)
{
	page_close(part, on_closed, arg);
}

static const struct serve_part serve_page = {
	.name = "page",
	.open = open_page,
	.identify = identify_by_page,
	.end_of = end_page_of,
	.close = close_page,
};

static void *open_inlets(struct serving *s, struct http_routes *ret, struct err *e)
{
	return inlets_new(s->ops, e);
}

static void close_inlets(void *part, void (*on_closed)(void *arg), void *arg)
{
	inlets_close(part, on_closed, arg);
}

/* For programs of sandboxes, which ask over no route. */
static const struct serve_part serve_inlets = {
	.name = "modules",
	.open = open_inlets,
	.close = close_inlets,
};

const struct serve_part *const serve_parts[] = { &serve_http,	&serve_sse,	&serve_mitos,
						 &serve_rest,	&serve_connect, &serve_people,
						 &serve_expose, &serve_e2b,	&serve_page,
						 &serve_inlets };
const size_t serve_parts_n = ARRAY_LEN(serve_parts);
