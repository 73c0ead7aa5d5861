#pragma once
/* What several resources share: rows of their tables, and small conversions. */
#include "door/http/routes.h"
#include "hub/sandbox/life.h"
#include "hub/core/when.h"
#include "op/sandbox_view.h"

/* The sandbox as a member of a body, as an answer's, and as a segment of the path. */
#define API_SANDBOX_ROW(S)                                                                         \
	FIELD(S, sandbox, .flags = FIELD_REQUIRED, .min = 1, .max = API_ID_MAX,                    \
	      .doc = "Id of the sandbox.")

struct id_path {
	struct str id;
};
extern const struct field_table id_path_table;
#define API_ID_PATH(S)                                                                             \
	FIELD_OBJECT(S, path, id_path_table, .flags = FIELD_REQUIRED, .doc = "The sandbox.")

/* Of a projected route whose path names the sandbox. */
#define API_BY_PATH                                                                                \
	{                                                                                          \
		"sandbox", .as = "id", .in = OP_PATH                                               \
	}

/* The sandbox of a request about this path in it; NULL where the call has failed. */
struct sandbox *api_enter(struct call *c, struct str sandbox, struct str path);

/* An answer that says only that it is done. */
struct api_status {
	struct str status;
};
extern const struct field_table api_status_table;
/* Ends the call, which is arg, with "ok" or its failure. */
void api_done(void *arg, const struct err *err);

/* Of no part at all: the input of routes that take nothing. */
struct api_nothing {
	bool unused;
};
extern const struct field_table api_nothing_table;

/* Ends a sandbox that was made for somebody who has gone. */
void api_discard(struct life *l);

/* How many GET /v1/templates has. */
size_t api_templates_count(struct call *c);

/* The network that is asked for. */
struct api_network_wish {
	bool block;
	enum egress egress, inbound;
	struct field_strs allow_domains, allow_cidrs, inbound_cidrs;
};
extern const struct field_table api_network_wish_table;
/* ERR_INVALID that names the member which wants a network. */
int api_network_refuse(const struct api_network_wish *w, struct err *e) MUST_USE;

/* An exec that its timeout ended, as a failure. */
void api_exec_timeout(struct call *c, struct err *e);

/* An environment in the arena. */
int api_env(struct arena *a, const struct field_map *map, const struct env_var **ret,
	    struct err *e) MUST_USE;
