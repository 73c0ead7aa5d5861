#pragma once
/* The resources, a file and a list of rows each (docs/HACKING.md, "Add a REST route"). */
#include "door/http/exchange.h"

struct api_resource {
	const struct api_route *rows;
	size_t n;
};

#define API_RESOURCE(rows_)                                                                        \
	{                                                                                          \
		.rows = (rows_), .n = ARRAY_LEN(rows_)                                             \
	}

extern const struct api_resource api_health, api_openapi, api_templates, api_sandboxes,
	api_lifecycle, api_network, api_exec, api_files, api_connect_exec, api_connect_files,
	api_processes, api_usage, api_events, api_archive, api_watch, api_connect_trees, api_jobs,
	api_job_output, api_exec_socket, api_snapshots, api_workspaces, api_workspace_archive,
	api_modules, api_export, api_connect_upload, api_job_attach, api_ports, api_secrets,
	api_audit, api_keys, api_approvals, api_run, api_javascript, api_conversations, api_prompts;

/* All routes, in the order of the files; NULL behind the last. */
const struct api_route *api_route_at(size_t i);

/* Likewise those that only clients of mitos have, or that are otherwise for them (--compat). */
extern const struct api_resource api_mitos_templates, api_mitos_sandboxes, api_mitos_exec,
	api_mitos_files, api_mitos_trees, api_mitos_forward;
const struct api_route *api_mitos_route_at(size_t i);

/* The tables of a route's parts, and where the struct of each begins in the request. */
struct api_parts {
	struct field_table places[OP_PLACES];
	size_t at[OP_PLACES];
	const char *body_doc; /* NULL: it has none */
	bool body_required;
	struct op_shape shape; /* what a projected route's borrow */
};
/* The header of a route whose operation is done once for a key: its request is a struct str. */
extern const struct field_table api_key_table;
/* The members that it lists; all others of a GET or a DELETE, which has no body, are parameters of
 * the query. */
struct op_members api_members(const struct api_route *r);
int api_parts_init(struct api_parts *p, const struct api_route *r, struct err *e) MUST_USE;
void api_parts_fini(struct api_parts *p);
