/*
 * Execs that clients find again by their id: those that POST /v1/exec starts in the background, and
 * those that requests have left behind. job_output.c reads their output.
 */
#include "door/rest/jobs.h"

enum { STDIN_BODY_MAX = 2 << 20 };

static const struct op_member all[] = { API_BY_PATH };
static const struct op_member one[] = { API_JOB_BY_PATH };

#define JOBS(id_, method_, path_, members_, ...)                                                   \
	{                                                                                          \
		.id = "execs." #id_, .op = &exec_##id_##_op, .projected = true,                    \
		.members = OP_MEMBERS(members_), .method = (method_),                              \
		.path = "/v1/sandboxes/{id}/execs" path_, .errors = API_MAY_SANDBOX, __VA_ARGS__   \
	}

static const struct api_route rows[] = {
	JOBS(list, HTTP_GET, "", all, .shape = API_ARRAY),
	JOBS(get, HTTP_GET, "/{exec}", one),
	JOBS(delete, HTTP_DELETE, "/{exec}", one),
	JOBS(stdin, HTTP_POST, "/{exec}/stdin", one, .body_max = STDIN_BODY_MAX),
	JOBS(resize, HTTP_POST, "/{exec}/resize", one),
	JOBS(signal, HTTP_POST, "/{exec}/signal", one),
};
const struct api_resource api_jobs = API_RESOURCE(rows);
