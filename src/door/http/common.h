#pragma once
/* Shared by several resources: rows of their tables, and small conversions. */
#include "door/http/routes.h"
#include "hub/sandbox/sandbox.h"
#include "base/when.h"
#include "op/sandbox_view.h"

/* The sandbox as a member of a body, as an answer's, and as a segment of the path. */
#define API_SANDBOX_ROW(S)                                                                         \
	FIELD(S, sandbox, .flags = FIELD_REQUIRED, .min = 1, .max = API_ID_MAX,                    \
	      .doc = "Id of the sandbox.")

/* Members of a projected route whose path names the sandbox. */
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

/* api_route.tell of an operation whose events are bytes (struct file_chunk), of API_TAR. */
void api_tell_chunk(struct call *c, const void *event);

/* An exec that its timeout ended, as a failure. */
void api_exec_timeout(struct call *c, struct err *e);
