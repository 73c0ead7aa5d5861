/*
 * What sandboxes use: /v1/sandboxes/{id}/usage and /v1/vitals of one, /v1/usage of all that have
 * a machine, in pages, and Vitals over Connect, which says it again and again.
 */
#include "door/connect/connect.h"
#include "op/usage.h"

static const struct field sample_fields[] = {
	FIELD_NAMED(struct vitals_sample, sampled_at_unix, "sampledAtUnix", .flags = FIELD_REQUIRED,
		    .doc = "When, in seconds since 1970."),
	FIELD_NAMED(
		struct vitals_sample, cpu_percent, "cpuPercent",
		.has = FIELD_HAS(struct vitals_sample, has_percent),
		.doc = "Of one processor, since the sample before; absent in the first, and where "
		       "the host can't tell, as all that may be absent here."),
	FIELD_NAMED(struct vitals_sample, memory, "memUsedBytes",
		    .has = FIELD_HAS(struct vitals_sample, has_memory),
		    .doc = "Memory of its processes and files."),
	FIELD_NAMED(struct vitals_sample, memory_total, "memTotalBytes", .flags = FIELD_REQUIRED,
		    .doc = "The most it may be; of each process, where memUsedBytes is absent."),
	FIELD_NAMED(struct vitals_sample, processes, "processCount",
		    .has = FIELD_HAS(struct vitals_sample, has_processes),
		    .doc = "Processes and threads, its first process counted."),
	FIELD_NAMED(struct vitals_sample, disk, "diskUsedBytes",
		    .has = FIELD_HAS(struct vitals_sample, has_disk),
		    .doc = "What its files take."),
	FIELD_NAMED(struct vitals_sample, disk_total, "diskTotalBytes", .flags = FIELD_REQUIRED,
		    .doc = "The most they may take."),
};
static const struct field_table sample_table = FIELD_TABLE(struct vitals_sample, sample_fields);

static void tell_sample(struct call *c, const void *event)
{
	exchange_write(c, &sample_table, event);
}

static const struct op_member by_path[] = { API_BY_PATH };
static const struct op_member by_query[] = {
	{ "limit", .in = OP_QUERY },
	{ "cursor", .in = OP_QUERY },
};
static const struct op_member vitals_members[] = {
	CONNECT_BY_HEADER,
	{ "interval_seconds", .as = "intervalSeconds" },
};

static const struct api_route rows[] = {
	{ .id = "sandboxes.usage",
	  .op = &sandbox_usage_op,
	  .projected = true,
	  .members = OP_MEMBERS(by_path),
	  .method = HTTP_GET,
	  .path = "/v1/sandboxes/{id}/usage",
	  .errors = API_MAY_SANDBOX | API_MAY(EXEC_TIMEOUT) },
	{ .id = "vitals",
	  .op = &sandbox_usage_op,
	  .doc = "What a sandbox uses of its limits now, as sandboxes.usage has it; the body "
		 "names it.",
	  .projected = true,
	  .method = HTTP_POST,
	  .path = "/v1/vitals",
	  .errors = API_MAY_SANDBOX | API_MAY(EXEC_TIMEOUT) },
	{ .id = "usage",
	  .op = &hub_usage_op,
	  .projected = true,
	  .members = OP_MEMBERS(by_query),
	  .method = HTTP_GET,
	  .path = "/v1/usage",
	  .errors = API_MAY(SANDBOX_LOST) | API_MAY(EXEC_TIMEOUT) },
	{ .id = "Vitals",
	  .op = &sandbox_vitals_op,
	  .projected = true,
	  .members = OP_MEMBERS(vitals_members),
	  .answer = &sample_table,
	  .tell = tell_sample,
	  .kind = API_CONNECT,
	  .method = HTTP_POST,
	  .path = CONNECT_PATH "Vitals",
	  .shape = API_FRAMES,
	  .errors = API_MAY_SANDBOX | API_MAY(TOO_MANY_STREAMS) | API_MAY(EXEC_TIMEOUT) },
};
const struct api_resource api_usage = API_RESOURCE(rows);
