/*
 * What sandboxes use: /v1/sandboxes/{id}/usage and /v1/vitals of one, /v1/usage of all that have
 * a machine, in pages, and Vitals over Connect, which says it again and again.
 */
#include "door/connect/connect.h"
#include "op/usage.h"

static const struct field sample_fields[] = {
	FIELD_NAMED(struct vitals_sample, sampled_at_unix, "sampledAtUnix", .flags = FIELD_REQUIRED,
		    .doc = "Time of the sample, in seconds since 1970."),
	FIELD_NAMED(
		struct vitals_sample, cpu_percent, "cpuPercent",
		.has = FIELD_HAS(struct vitals_sample, has_percent),
		.doc = "Processor usage in percent of one processor since the previous sample. "
		       "Absent in the first sample, and, like all optional members, if the host "
		       "can't measure it."),
	FIELD_NAMED(struct vitals_sample, memory, "memUsedBytes",
		    .has = FIELD_HAS(struct vitals_sample, has_memory),
		    .doc = "Memory of processes and files, in bytes."),
	FIELD_NAMED(struct vitals_sample, memory_total, "memTotalBytes", .flags = FIELD_REQUIRED,
		    .doc = "Memory limit in bytes; it applies to each process if memUsedBytes is "
			   "absent."),
	FIELD_NAMED(struct vitals_sample, processes, "processCount",
		    .has = FIELD_HAS(struct vitals_sample, has_processes),
		    .doc = "Number of processes and threads, including the first process."),
	FIELD_NAMED(struct vitals_sample, disk, "diskUsedBytes",
		    .has = FIELD_HAS(struct vitals_sample, has_disk),
		    .doc = "Disk usage in bytes."),
	FIELD_NAMED(struct vitals_sample, disk_total, "diskTotalBytes", .flags = FIELD_REQUIRED,
		    .doc = "Disk limit in bytes."),
};
static const struct field_table sample_table = FIELD_TABLE(struct vitals_sample, sample_fields);

static void tell_sample(struct call *c, const void *event)
{
	exchange_write(c, &sample_table, event);
}

static const struct op_member by_path[] = { API_BY_PATH };
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
	  .doc = "Shows what a sandbox uses, as sandboxes.usage does; the body names the sandbox.",
	  .projected = true,
	  .method = HTTP_POST,
	  .path = "/v1/vitals",
	  .errors = API_MAY_SANDBOX | API_MAY(EXEC_TIMEOUT) },
	{ .id = "usage",
	  .op = &hub_usage_op,
	  .projected = true,
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
