/*
 * The beginning and the end of a request to a server in a sandbox. It is a call like every other
 * (call/call.h). The answer is the server's, so no result table describes it, and the hub can
 * report a failure only until the answer has begun.
 *
 *	request -> call -> a connection to the port
 *		-> expose_http.c or expose_socket.c -> exposed_end()
 */
#include "door/expose/internal.h"

#include <stdio.h>
#include <stdlib.h>

#include "http/message/head.h"

enum { ARENA_MAX = 256 << 10 };

/* ---- the end ------------------------------------------------------------------------------- */

static void free_exposed(struct exposed *x)
{
	*(x->prev ? &x->prev->next : &x->x->open) = x->next;
	if (x->next)
		x->next->prev = x->prev;
	if (x->sandbox)
		sandbox_carried(x->sandbox, x->in, x->out);
	sandbox_unref(x->sandbox);
	hub_sandbox_port_give(&x->port);
	arena_free(x->arena);
	free(x);
}

static void on_timer_closed(uv_handle_t *h)
{
	free_exposed(h->data);
}

static void expose_finish(struct exposed *x)
{
	x->call = NULL;
	if (x->timing)
		uv_close((uv_handle_t *)&x->timer, on_timer_closed);
	else
		free_exposed(x);
}

void exposed_end(struct exposed *x, const struct err *e)
{
	struct err err = e ? *e : ERR_INIT;

	if (call_ended(x->call))
		return;
	if (x->dial)
		sandbox_dial_cancel(take_ptr(x->dial));
	expose_http_stop(x);
	expose_socket_stop(x);
	if (e)
		call_fail(x->call, &err);
	else
		call_answer(x->call, NULL);
}

static void on_answer(void *client, const struct field_table *t, const void *result)
{
	expose_finish(client);
}

static void on_fail(void *client, const struct err *e)
{
	struct exposed *x = client;

	if (x->q)
		http_reply_error(take_ptr(x->q), e);
	expose_finish(x);
}

static void on_cancel(void *data)
{
	struct err e;

	err_set(&e, ERR_CANCELLED, "the client went away");
	exposed_end(data, &e);
}

void expose_drain(struct expose *x)
{
	struct exposed *next;
	struct err e;

	x->ending = true;
	err_set(&e, ERR_CANCELLED, "Holt is ending");
	for (struct exposed *one = x->open; one; one = next) {
		next = one->next;
		/* The door limits the time of all others. */
		if (one->call && (one->accepted || one->news))
			exposed_end(one, &e);
	}
}

/* One that ends may end others. */
void expose_end_of(struct expose *x, struct str owner)
{
	struct exposed *one = x->open;

	while (one) {
		if (!one->call || call_cancelled(one->call) || !str_is(owner, one->right.owner)) {
			one = one->next;
			continue;
		}
		call_cancel(one->call);
		one = x->open;
	}
}

/* ---- what is asked for --------------------------------------------------------------------- */

struct expose_path {
	struct str id;
	uint32_t port;
};
static const struct field path_fields[] = {
	FIELD(struct expose_path, id, .flags = FIELD_REQUIRED, .doc = "Id of the sandbox."),
	FIELD(struct expose_path, port, .flags = FIELD_REQUIRED, .doc = "TCP port in the sandbox."),
};
static const struct field_table path_table = FIELD_TABLE(struct expose_path, path_fields);

/* Sandbox and port come from the path; everything else is passed on. The call outlives the
 * request, whose strings its reply ends. */
static int read_path(struct exposed *x, struct expose_path *p, struct err *e)
{
	struct str port = http_request_segment(x->q, "port"), path = http_request_path(x->q);
	struct str id = http_request_segment(x->q, "id");
	unsigned long long number;
	char *copy;
	int n;

	if (port.n > 5 || !http_length_parse(port, &number) || number < 1 || number > 65535 ||
	    port.p[0] == '0')
		return err_set(e, ERR_INVALID, "path: port is a number from 1 to 65535");
	copy = arena_dup(x->arena, id, e);
	if (!copy)
		return -1;
	p->id = (struct str){ copy, id.n };
	p->port = (uint32_t)number;
	n = snprintf(x->prefix, sizeof(x->prefix), "%.*s", (int)(port.p + port.n - path.p), path.p);
	if (n >= (int)sizeof(x->prefix))
		return err_set(e, ERR_SANDBOX_NOT_FOUND, "there is no sandbox of such a name");
	x->as = (struct expose_as){ .port = p->port, .prefix = { x->prefix, (size_t)n } };
	return 0;
}

static int on_decode(void *client, void *request, struct err *e)
{
	struct exposed *x = client;
	struct expose_path *p = request;

	if (!x->right.port && read_path(x, p, e) < 0)
		return -1;
	if (x->right.port) {
		*p = (struct expose_path){ str_of(x->right.id), x->right.port };
		x->as = expose_as_preview(x->right.port);
		x->as.at_hub = x->at_hub;
	}
	x->as.is_token = x->x->is_token;
	x->as.owner = x->x->owner;
	return 0;
}

static const struct op_sink sink = { .answer = on_answer, .fail = on_fail };

static void on_dialed(void *arg, int fd, const struct err *err)
{
	struct exposed *x = arg;

	x->dial = NULL;
	if (err)
		exposed_end(x, err);
	else if (x->upgrades)
		expose_socket_start(x, fd);
	else
		expose_http_start(x, fd);
}

/* A link is valid for one sandbox, not for a later one with the same name, and as long as the key
 * or the conversation that made it. */
static int check_right(const struct exposed *x, const struct hub_sandbox *l, struct err *e)
{
	struct hub_sandbox_info i;

	hub_sandbox_info(l, &i);
	if (x->as.own_name && i.generation != x->right.generation)
		return err_set(e, ERR_LINK, "the link is to a sandbox that has ended");
	if (x->as.own_name && !ops_acts(x->x->ops, str_of(x->right.owner)))
		return err_set(e, ERR_LINK, "%s that made the link has ended",
			       str_starts(str_of(x->right.owner), CONVERSATION_PRINCIPAL)
				       ? "the conversation"
				       : "the key");
	return 0;
}

static void on_life_end(void *arg)
{
	struct exposed *x = arg;
	struct err e;

	err_set(&e, ERR_GUEST, "the sandbox has ended");
	if (x->call) /* otherwise it has just ended by itself */
		exposed_end(x, &e);
}

static int expose_begin(struct exposed *x, const struct expose_path *p, struct err *e)
{
	struct sandbox *sb = call_sandbox(x->call, p->id, e);
	struct hub_sandbox *l = sb ? call_hub_sandbox(x->call, p->id, e) : NULL;

	if (!l || check_right(x, l, e) < 0)
		return -1;
	x->port = (struct hub_sandbox_port){ .on_end = on_life_end, .arg = x };
	if (hub_sandbox_port_take(l, &x->port, e) < 0)
		return -1;
	x->sandbox = sandbox_ref(sb);
	x->upgrades = expose_socket_asked(x->q);
	x->chunked = http_request_header(x->q, STR_LIT("Transfer-Encoding")).p != NULL;
	x->dial = sandbox_dial_start(sb, (uint16_t)p->port, on_dialed, x);
	return 0;
}

static void expose_run(struct call *c, const void *params)
{
	struct exposed *x = call_client(c);
	struct err e = ERR_INIT;

	if (expose_begin(x, params, &e) == 0)
		call_on_cancel(c, on_cancel, x);
	else
		call_fail(c, &e);
}

static const struct op expose_op = {
	.action = "port.expose",
	.doc = "Sends a request to a server in a sandbox.",
	.effect = OP_EXECUTE,
	.flags = OP_WAITS,
	.request = &path_table,
	.target = OP_TARGET(struct expose_path, id),
	.run = expose_run,
};

/* ---- the request --------------------------------------------------------------------------- */

static size_t on_body_bytes(void *owner, struct str bytes)
{
	return expose_http_bytes(owner, bytes);
}

static void on_body_end(void *owner)
{
	expose_http_body_end(owner);
}

static void on_body_lost(void *owner)
{
	struct exposed *x = owner;

	x->q = NULL;
	call_cancel(x->call);
}

static const struct http_body_events body_events = { on_body_bytes, on_body_end, on_body_lost };

static void on_gone(void *data)
{
	struct exposed *x = data;

	call_cancel(x->call);
}

/* The principal of a link, whose seal names the one sandbox that it is good for. */
static const struct principal viewer = { .name = "preview",
					 .scopes = KEY_EXECUTE,
					 .sees_all = true };

static struct exposed *new_exposed(struct expose *all, struct http_request *q,
				   const struct preview_right *right, struct err *e)
{
	struct exposed *x = calloc(1, sizeof(*x));
	struct op_start start = { .who = right ? &viewer : http_request_principal(q),
				  .session = all,
				  .op = &expose_op,
				  .decode = on_decode,
				  .label = x ? x->label : NULL,
				  .sink = &sink,
				  .client = x };

	if (x)
		start.arena = x->arena = arena_new(ARENA_MAX);
	if (x && x->arena)
		x->call = op_new(all->ops, &start, e);
	else
		err_set(e, ERR_LIMIT, "out of memory");
	if (!x || !x->call) {
		arena_free(x ? x->arena : NULL);
		free(x);
		return NULL;
	}
	x->x = all;
	x->q = q;
	if (right)
		x->right = *right;
	snprintf(x->label, sizeof(x->label), "%.*s", STR_CUT(http_request_path(q), 63));
	x->next = all->open;
	if (x->next)
		x->next->prev = x;
	all->open = x;
	return x;
}

void expose_start(struct expose *all, struct http_request *q, const struct preview_right *right,
		  bool at_hub)
{
	struct err e;
	struct exposed *x = new_exposed(all, q, right, &e);

	if (!x) {
		http_reply_error(q, &e);
		return;
	}
	x->at_hub = at_hub;
	http_request_on_gone(q, on_gone, x);
	http_body_start(q, &body_events, x);
	op_start(x->call);
}

static void on_request(void *owner, struct http_request *q)
{
	expose_start(owner, q, NULL, false);
}

/* ---- the routes ---------------------------------------------------------------------------- */

#define DOC "What a server answers that listens on this port in the sandbox."

static const struct http_route rows[] = {
	{ .path = "/v1/sandboxes/{id}/expose/{port}",
	  .methods = EXPOSE_METHODS,
	  .any_type = true,
	  .streams = true,
	  .run = on_request,
	  .doc = DOC },
	{ .path = "/v1/sandboxes/{id}/expose/{port}/",
	  .methods = EXPOSE_METHODS,
	  .any_type = true,
	  .streams = true,
	  .run = on_request,
	  .doc = DOC },
};

struct expose *expose_new(const struct expose_options *o, struct err *e)
{
	struct expose *x = calloc(1, sizeof(*x));

	if (!x)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	x->loop = o->loop;
	x->ops = o->ops;
	x->is_token = o->is_token;
	x->owner = o->owner;
	return x;
}

void expose_free(struct expose *x)
{
	free(x);
}

struct http_routes expose_routes(const struct expose *x)
{
	return (struct http_routes){ .p = rows,
				     .n = ARRAY_LEN(rows),
				     .owner = (void *)x,
				     .below = "/v1/",
				     .explain = api_explain };
}
