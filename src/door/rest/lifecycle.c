/* How long a sandbox lasts, pause and resume. */
#include "door/http/common.h"
#include "op/sandbox.h"

#define STATE_ROW                                                                                  \
	FIELD_NAMED_ENUM(struct sandbox_state, state, "status", hub_sandbox_state_names,           \
			 .flags = FIELD_REQUIRED, .doc = "New state of the sandbox.")
static const struct field paused_fields[] = { STATE_ROW };
static const struct field_table paused_table = FIELD_TABLE(struct sandbox_state, paused_fields);
static const struct field resumed_fields[] = { STATE_ROW, SANDBOX_LACKS_ROWS };
static const struct field_table resumed_table = FIELD_TABLE(struct sandbox_state, resumed_fields);

static const struct op_member timeout_members[] = {
	{ "seconds", .as = "timeout_seconds", .min = 1,
	  .doc = "New time to live in seconds, counted from now; at most 2592000 (30 days)." },
};

static const struct field deadline_fields[] = {
	FIELD(struct sandbox_timeout, status, .flags = FIELD_REQUIRED, .doc = "Always \"ok\"."),
	FIELD(struct sandbox_timeout, deadline_unix, .flags = FIELD_REQUIRED,
	      .doc = "Deadline of the sandbox, in seconds since 1970."),
	FIELD_NAMED(struct sandbox_timeout, seconds, "timeout_seconds", .flags = FIELD_REQUIRED,
		    .doc = "Time to live in seconds, as requested."),
};
static const struct field_table deadline_table = FIELD_TABLE(struct sandbox_timeout,
							     deadline_fields);

static const struct api_route rows[] = {
	{ .id = "set_timeout",
	  .op = &sandbox_set_timeout_op,
	  .projected = true,
	  .members = OP_MEMBERS(timeout_members),
	  .answer = &deadline_table,
	  .method = HTTP_POST,
	  .path = "/v1/set_timeout",
	  .errors = API_MAY_SANDBOX | API_MAY(TIMEOUT_TOO_LARGE) },
	{ .id = "pause",
	  .op = &sandbox_pause_op,
	  .projected = true,
	  .answer = &paused_table,
	  .method = HTTP_POST,
	  .path = "/v1/pause",
	  .errors = API_MAY_SANDBOX | API_MAY(UNSUPPORTED) },
	{ .id = "resume",
	  .op = &sandbox_resume_op,
	  .projected = true,
	  .answer = &resumed_table,
	  .method = HTTP_POST,
	  .path = "/v1/resume",
	  .errors = API_MAY_SANDBOX | API_MAY(UNSUPPORTED) | API_MAY(FILE_FAILED) },
};
const struct api_resource api_lifecycle = API_RESOURCE(rows);
