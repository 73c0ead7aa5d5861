#pragma once
/*
 * What a sandbox uses, as clients see it: the one table is in REST, Connect's neighbours and MCP.
 * To be looked at is no use of it: it goes on being idle.
 */
#include "hub/sandbox/life.h"
#include "json/field/field.h"

struct usage_view {
	struct str sandbox; /* borrowed from the life until its next change */
	enum life_state state;
	bool has_memory, has_memory_peak, has_cpu, has_cpus, has_processes, has_disk;
	uint64_t memory_bytes, memory_peak_bytes, memory_limit_bytes;
	double cpu_ms, cpus_limit;
	uint64_t processes, processes_limit;
	uint64_t disk_bytes, disk_limit_bytes;
	uint64_t execs, execs_running, bytes_in, bytes_out, age_ms;
};
extern const struct field_table usage_view_table;

/* Of 1 to USAGE_MAX lives that have a machine (life_machine()), in their order; of those that end
 * meanwhile it says their state. v is borrowed until it returns. */
typedef void (*life_usage_cb)(void *arg, const struct usage_view *v, size_t n,
			      const struct err *err);
void life_usage_start(struct box *box, struct life *const *of, size_t n, life_usage_cb on_done,
		      void *arg);
