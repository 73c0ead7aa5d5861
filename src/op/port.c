/* Ports of a sandbox: forwarded to this machine's loopback, and shown to browsers. */
#include <stdio.h>

#include "call/call.h"
#include "hub/core/preview.h"
#include "hub/sandbox/forward.h"
#include "op/ops.h"

enum { PORT_MAX = 65535, HOST_MAX = 32 };

struct forward_view {
	struct str host;
	uint32_t guest_port;
};
static const struct field view_fields[] = {
	FIELD(struct forward_view, host, .flags = FIELD_REQUIRED,
	      .doc = "Address to connect to on the server's machine: 127.0.0.1 and a port."),
	FIELD(struct forward_view, guest_port, .flags = FIELD_REQUIRED,
	      .doc = "The port in the sandbox."),
};
static const struct field_table view_table = FIELD_TABLE(struct forward_view, view_fields);

struct forward_row {
	struct str host;
	uint32_t guest_port, connections;
	uint64_t connections_total;
};
static const struct field row_fields[] = {
	FIELD(struct forward_row, host, .flags = FIELD_REQUIRED,
	      .doc = "Address to connect to on the server's machine."),
	FIELD(struct forward_row, guest_port, .flags = FIELD_REQUIRED,
	      .doc = "The port in the sandbox."),
	FIELD(struct forward_row, connections, .flags = FIELD_REQUIRED,
	      .doc = "Number of open connections."),
	FIELD(struct forward_row, connections_total, .flags = FIELD_REQUIRED,
	      .doc = "Number of connections so far."),
};
static const struct field_table row_table = FIELD_TABLE(struct forward_row, row_fields);

struct forwards_view {
	struct {
		struct forward_row *p;
		size_t n;
	} forwards;
};
static const struct field forwards_fields[] = {
	FIELD_OBJECTS(struct forwards_view, forwards, row_table, .flags = FIELD_REQUIRED,
		      .doc = "In order of creation."),
};
static const struct field_table forwards_table = FIELD_TABLE(struct forwards_view, forwards_fields);

static struct str host_text(char to[HOST_MAX], uint16_t port)
{
	return (struct str){ to, (size_t)snprintf(to, HOST_MAX, "127.0.0.1:%u", port) };
}

/* ---- port.forward -------------------------------------------------------------------------- */

struct forward_request {
	struct str sandbox;
	uint32_t guest_port, host_port;
};
static const struct field forward_fields[] = {
	OP_SANDBOX_ROW(struct forward_request),
	FIELD(struct forward_request, guest_port, .flags = FIELD_REQUIRED, .min = 1,
	      .max = PORT_MAX, .doc = "TCP port in the sandbox, on its 127.0.0.1 or [::1]."),
	FIELD(struct forward_request, host_port, .max = PORT_MAX,
	      .doc = "Port of 127.0.0.1 on the server's machine; a free one if absent or 0."),
};
static const struct field_table forward_table = FIELD_TABLE(struct forward_request, forward_fields);

static void port_forward_run(struct call *c, const void *request)
{
	const struct forward_request *q = request;
	struct err e = ERR_INIT;
	struct hub_sandbox *l = call_hub_sandbox(c, q->sandbox, &e);
	struct forward_view view = { .guest_port = q->guest_port };
	char host[HOST_MAX];
	uint16_t port;

	if (!l || forward_start(l, (uint16_t)q->guest_port, (uint16_t)q->host_port, call_owner(c),
				&port, &e) < 0) {
		if (e.code == ERR_LIMIT)
			call_about(c)->dimension = STR_LIT("forwards");
		call_fail(c, &e);
		return;
	}
	view.host = host_text(host, port);
	call_answer(c, &view);
}

const struct op port_forward_op = {
	.action = "port.forward",
	.doc = "Forwards a port of the server's loopback address to a TCP port of a "
	       "sandbox, at most 16 per sandbox. It lasts until it is ended, or until "
	       "the sandbox, the server, or the key that last asked for it ends. Asking "
	       "again returns the same port.",
	.effect = OP_WRITE,
	.request = &forward_table,
	.target = OP_TARGET(struct forward_request, sandbox),
	.result = &view_table,
	.run = port_forward_run,
};

/* ---- port.list ----------------------------------------------------------------------------- */

static void port_list_run(struct call *c, const void *request)
{
	struct err e = ERR_INIT;
	struct hub_sandbox *l = call_hub_sandbox(c, ((const struct op_sandbox *)request)->sandbox,
						 &e);
	struct forward_info info[FORWARDS_MAX];
	struct forward_row rows[FORWARDS_MAX];
	char hosts[FORWARDS_MAX][HOST_MAX];
	struct forwards_view view = { .forwards.p = rows };

	if (!l) {
		call_fail(c, &e);
		return;
	}
	view.forwards.n = forward_list(l, info);
	for (size_t i = 0; i < view.forwards.n; i++)
		rows[i] = (struct forward_row){ host_text(hosts[i], info[i].host_port),
						info[i].guest_port, info[i].connections,
						info[i].connections_total };
	call_answer(c, &view);
}

const struct op port_list_op = {
	.action = "port.list",
	.doc = "Lists the forwarded ports of a sandbox.",
	.effect = OP_READ,
	.flags = OP_NO_WAKE,
	.request = &op_sandbox_table,
	.target = OP_TARGET(struct op_sandbox, sandbox),
	.result = &forwards_table,
	.run = port_list_run,
};

/* ---- port.unforward ------------------------------------------------------------------------ */

struct unforward_request {
	struct str sandbox;
	uint32_t guest_port;
};
static const struct field unforward_fields[] = {
	OP_SANDBOX_ROW(struct unforward_request),
	FIELD(struct unforward_request, guest_port, .min = 1, .max = PORT_MAX,
	      .doc = "Port in the sandbox; absent: all forwarded ports."),
};
static const struct field_table unforward_table = FIELD_TABLE(struct unforward_request,
							      unforward_fields);

struct unforwarded {
	struct str status;
};
static const struct field unforwarded_fields[] = {
	FIELD(struct unforwarded, status, .flags = FIELD_REQUIRED, .doc = "Always ok."),
};
static const struct field_table unforwarded_table = FIELD_TABLE(struct unforwarded,
								unforwarded_fields);

static void port_unforward_run(struct call *c, const void *request)
{
	const struct unforward_request *q = request;
	struct err e = ERR_INIT;
	struct hub_sandbox *l = call_hub_sandbox(c, q->sandbox, &e);

	if (!l || forward_stop(l, (uint16_t)q->guest_port, &e) < 0)
		call_fail(c, &e);
	else
		call_answer(c, &(struct unforwarded){ STR_LIT("ok") });
}

const struct op port_unforward_op = {
	.action = "port.unforward",
	.doc = "Ends one or all forwarded ports of a sandbox, with their connections.",
	.effect = OP_DESTROY,
	.flags = OP_NO_WAKE,
	.request = &unforward_table,
	.target = OP_TARGET(struct unforward_request, sandbox),
	.result = &unforwarded_table,
	.run = port_unforward_run,
};

/* ---- port.preview -------------------------------------------------------------------------- */

struct preview_request {
	struct str sandbox;
	uint32_t port, ttl_seconds;
};
static const struct field preview_fields[] = {
	OP_SANDBOX_ROW(struct preview_request),
	FIELD(struct preview_request, port, .flags = FIELD_REQUIRED, .min = 1, .max = PORT_MAX,
	      .doc = "TCP port in the sandbox that its server listens on."),
	FIELD(struct preview_request, ttl_seconds, .min = 1, .max = PREVIEW_TTL_MAX,
	      .def = DEFAULT_INT(PREVIEW_TTL_DEFAULT), .doc = "Seconds until the link expires."),
};
static const struct field_table preview_table = FIELD_TABLE(struct preview_request, preview_fields);

struct preview_view {
	struct str url;
	int64_t expires_unix;
};
static const struct field link_fields[] = {
	FIELD(struct preview_view, url, .flags = FIELD_REQUIRED | FIELD_PLAIN,
	      .doc = "Whoever has this link sees what the server shows."),
	FIELD(struct preview_view, expires_unix, .flags = FIELD_REQUIRED,
	      .doc = "When the link expires, in seconds since 1970."),
};
static const struct field_table link_table = FIELD_TABLE(struct preview_view, link_fields);

static int port_make_link(struct call *c, const struct preview_request *q,
			  char url[PREVIEW_URL_MAX], int64_t *ret_expires, struct err *e)
{
	const struct previews *all = call_previews(c);
	struct hub_sandbox *l = call_hub_sandbox(c, q->sandbox, e);

	if (!l)
		return -1;
	if (!all)
		return err_set(e, ERR_UNSUPPORTED,
			       "this server shows no previews: holt serve --preview does");
	return preview_make(all, l, (uint16_t)q->port, q->ttl_seconds, call_owner(c), url,
			    ret_expires, e);
}

static void port_preview_run(struct call *c, const void *request)
{
	struct preview_view view = { .url = STR_NONE };
	char url[PREVIEW_URL_MAX];
	struct err e = ERR_INIT;

	if (port_make_link(c, request, url, &view.expires_unix, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	view.url = str_of(url);
	call_answer(c, &view);
}

const struct op port_preview_op = {
	.action = "port.preview",
	.doc = "Makes a link by which a browser reaches a server in a sandbox, under a "
	       "host name of its own.",
	.effect = OP_WRITE,
	.request = &preview_table,
	.target = OP_TARGET(struct preview_request, sandbox),
	.result = &link_table,
	.run = port_preview_run,
};
