/* /v1/sandboxes/{id}/forward: ports of a sandbox on this machine's loopback. */
#include "hub/sandbox/forward.h"

#include <stdio.h>

#include "door/http/common.h"

enum { PORT_MAX = 65535, HOST_MAX = 32 };

/* ---- what is answered ---------------------------------------------------------------------- */

struct forward_view {
	struct str host;
	uint32_t guest_port;
};
static const struct field view_fields[] = {
	FIELD(struct forward_view, host, .flags = FIELD_REQUIRED,
	      .doc = "Where to connect to on the server's machine: 127.0.0.1 and a port."),
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
	      .doc = "Where to connect to on the server's machine."),
	FIELD(struct forward_row, guest_port, .flags = FIELD_REQUIRED,
	      .doc = "The port in the sandbox."),
	FIELD(struct forward_row, connections, .flags = FIELD_REQUIRED, .doc = "Open now."),
	FIELD(struct forward_row, connections_total, .flags = FIELD_REQUIRED, .doc = "So far."),
};
static const struct field_table row_table = FIELD_TABLE(struct forward_row, row_fields);

struct forwards_view {
	struct {
		struct forward_row *p;
		size_t n;
	} forwards;
};
static const struct field list_fields[] = {
	FIELD_OBJECTS(struct forwards_view, forwards, row_table, .flags = FIELD_REQUIRED,
		      .doc = "In the order in which they were made."),
};
static const struct field_table list_table = FIELD_TABLE(struct forwards_view, list_fields);

static struct str host_text(char to[HOST_MAX], uint16_t port)
{
	return (struct str){ to, (size_t)snprintf(to, HOST_MAX, "127.0.0.1:%u", port) };
}

/* ---- POST ---------------------------------------------------------------------------------- */

struct forward_body {
	uint32_t guest_port, host_port;
};
static const struct field body_fields[] = {
	FIELD(struct forward_body, guest_port, .flags = FIELD_REQUIRED, .min = 1, .max = PORT_MAX,
	      .doc = "The TCP port in the sandbox, at its 127.0.0.1 or its [::1]."),
	FIELD(struct forward_body, host_port, .max = PORT_MAX,
	      .doc = "The port of 127.0.0.1 on the server's machine; one that is free if absent or 0."),
};
static const struct field_table body_table = FIELD_TABLE(struct forward_body, body_fields);

struct forward_params {
	struct id_path path;
	struct forward_body body;
};
static const struct field parts[] = {
	API_ID_PATH(struct forward_params),
	FIELD_OBJECT(struct forward_params, body, body_table, .flags = FIELD_REQUIRED,
		     .doc = "Which port."),
};
static const struct field_table input = FIELD_TABLE(struct forward_params, parts);

static void run_start(struct call *c, const void *params)
{
	const struct forward_params *p = params;
	struct err e = ERR_INIT;
	struct life *l = call_life(c, p->path.id, &e);
	struct forward_view view = { .guest_port = p->body.guest_port };
	char host[HOST_MAX];
	uint16_t port;

	if (!l || forward_start(l, (uint16_t)p->body.guest_port, (uint16_t)p->body.host_port, &port,
				&e) < 0) {
		if (e.code == ERR_LIMIT)
			call_about(c)->dimension = STR_LIT("forwards");
		call_fail(c, &e);
		return;
	}
	view.host = host_text(host, port);
	call_answer(c, &view);
}

/* ---- GET ----------------------------------------------------------------------------------- */

struct list_params {
	struct id_path path;
};
static const struct field list_parts[] = { API_ID_PATH(struct list_params) };
static const struct field_table list_input = FIELD_TABLE(struct list_params, list_parts);

static void run_list(struct call *c, const void *params)
{
	const struct list_params *p = params;
	struct err e = ERR_INIT;
	struct life *l = call_life(c, p->path.id, &e);
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

/* ---- DELETE -------------------------------------------------------------------------------- */

struct end_query {
	uint32_t guest_port;
};
static const struct field end_fields[] = {
	FIELD(struct end_query, guest_port, .min = 1, .max = PORT_MAX,
	      .doc = "The port in the sandbox. Absent: all of them."),
};
static const struct field_table end_table = FIELD_TABLE(struct end_query, end_fields);

struct end_params {
	struct id_path path;
	struct end_query query;
};
static const struct field end_parts[] = {
	API_ID_PATH(struct end_params),
	FIELD_OBJECT(struct end_params, query, end_table, .doc = "Which."),
};
static const struct field_table end_input = FIELD_TABLE(struct end_params, end_parts);

static void run_end(struct call *c, const void *params)
{
	const struct end_params *p = params;
	struct err e = ERR_INIT;
	struct life *l = call_life(c, p->path.id, &e);

	if (!l || forward_stop(l, (uint16_t)p->query.guest_port, &e) < 0)
		api_done(c, &e);
	else
		api_done(c, NULL);
}

/* ---- the routes ---------------------------------------------------------------------------- */

#define PATH "/v1/sandboxes/{id}/forward"

static const struct api_route rows[] = {
	{ .id = "sandboxes.forward",
	  .op = &(const struct
		  op){ .action = "port.forward",
		       .doc = "Makes a TCP port of a sandbox a port of the server's loopback; at most 16 of "
			      "one sandbox, until it ends or the server does. The same one again is the "
			      "same port.",
		       .effect = OP_WRITE,
		       .request = &input,
		       .target = OP_TARGET(struct forward_params, path.id),
		       .result = &view_table,
		       .run = run_start },
	  .method = HTTP_POST,
	  .path = PATH,
	  .errors = API_MAY_SANDBOX | API_MAY(FORBIDDEN) },
	{ .id = "forwards.list",
	  .op = &(const struct op){ .action = "port.list",
				    .doc = "The ports of a sandbox that are forwarded.",
				    .effect = OP_READ,
				    .request = &list_input,
				    .target = OP_TARGET(struct list_params, path.id),
				    .result = &list_table,
				    .run = run_list },
	  .method = HTTP_GET,
	  .path = PATH,
	  .errors = API_MAY(NOT_FOUND) },
	{ .id = "forwards.delete",
	  .op = &(const struct
		  op){ .action = "port.unforward",
		       .doc = "Ends a forwarded port of a sandbox, or all of them, with their connections.",
		       .effect = OP_DESTROY,
		       .request = &end_input,
		       .target = OP_TARGET(struct end_params, path.id),
		       .result = &api_status_table,
		       .run = run_end },
	  .method = HTTP_DELETE,
	  .path = PATH,
	  .errors = API_MAY(NOT_FOUND) },
};
const struct api_resource api_forward = API_RESOURCE(rows);
