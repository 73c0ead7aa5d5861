#pragma once
/*
 * What a sandbox uses, as clients see it: one table for all doors. Reading it does not count as a
 * use of the sandbox.
 */
#include "hub/sandbox/sandbox.h"
#include "json/field/field.h"

struct usage_view {
	struct str sandbox; /* borrowed from the sandbox until its next change */
	enum hub_sandbox_state state;
	bool has_memory, has_memory_peak, has_cpu, has_cpus, has_processes, has_disk;
	uint64_t memory_bytes, memory_peak_bytes, memory_limit_bytes;
	double cpu_ms, cpus_limit;
	uint64_t processes, processes_limit;
	uint64_t disk_bytes, disk_limit_bytes;
	uint64_t execs, execs_running, bytes_in, bytes_out, age_ms;
};
extern const struct field_table usage_view_table;

/* Usage of 1 to USAGE_MAX sandboxes that have a machine (hub_sandbox_machine()), in their order;
 * if one ends meanwhile, only its state. v is borrowed until the callback returns. */
typedef void (*hub_sandbox_usage_cb)(void *arg, const struct usage_view *v, size_t n,
				     const struct err *err);
void hub_sandbox_usage_start(struct box *box, struct hub_sandbox *const *of, size_t n,
			     hub_sandbox_usage_cb on_done, void *arg);
