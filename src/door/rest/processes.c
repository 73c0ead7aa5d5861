/* The programs of a sandbox, and signals to them, over REST and Connect. */
#include "op/process.h"

#include "door/connect/connect.h"

static const struct field done_fields[] = {
	FIELD(struct process_signalled, status, .flags = FIELD_REQUIRED, .doc = "Always \"ok\"."),
};
static const struct field_table done_table = FIELD_TABLE(struct process_signalled, done_fields);

static const struct field connect_view_fields[] = { PROCESS_ROWS("parentPid", "cpuMs",
								 "memoryBytes", "ageMs") };
static const struct field_table connect_view_table = FIELD_TABLE(struct process_view,
								 connect_view_fields);
static const struct field connect_list_fields[] = { PROCESSES_ROWS(connect_view_table) };
static const struct field_table connect_list_table = FIELD_TABLE(struct processes_view,
								 connect_list_fields);

static const struct op_member by_path[] = { API_BY_PATH };
static const struct op_member by_header[] = { CONNECT_BY_HEADER };
static const struct op_member connect_members[] = { CONNECT_BY_HEADER,
						    { "limit", .in = OP_HIDDEN } };

static const struct api_route rows[] = {
	{ .id = "sandboxes.processes",
	  .op = &process_list_op,
	  .projected = true,
	  .members = OP_MEMBERS(by_path),
	  .method = HTTP_GET,
	  .path = "/v1/sandboxes/{id}/processes",
	  .errors = API_MAY_SANDBOX },
	{ .id = "sandboxes.signal",
	  .op = &process_signal_op,
	  .projected = true,
	  .members = OP_MEMBERS(by_path),
	  .answer = &done_table,
	  .method = HTTP_POST,
	  .path = "/v1/sandboxes/{id}/signal",
	  .errors = API_MAY_SANDBOX | API_MAY(FORBIDDEN) },
	{ .id = "Processes",
	  .op = &process_list_op,
	  .projected = true,
	  .members = OP_MEMBERS(connect_members),
	  .answer = &connect_list_table,
	  .kind = API_CONNECT,
	  .method = HTTP_POST,
	  .path = CONNECT_PATH "Processes",
	  .errors = API_MAY_SANDBOX | API_MAY(EXEC_TIMEOUT) },
	{ .id = "Signal",
	  .op = &process_signal_op,
	  .projected = true,
	  .members = OP_MEMBERS(by_header),
	  .answer = &connect_empty_table,
	  .kind = API_CONNECT,
	  .method = HTTP_POST,
	  .path = CONNECT_PATH "Signal",
	  .errors = API_MAY_SANDBOX | API_MAY(FORBIDDEN) | API_MAY(EXEC_TIMEOUT) },
};
const struct api_resource api_processes = API_RESOURCE(rows);
