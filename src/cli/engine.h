#pragma once
/* Options of the verbs that make sandboxes, and what they mean to the engine. */
#include "box/box.h"
#include "cli/option.h"

struct engine_options {
	uint64_t memory, disk;
	uint32_t pids, cpu_milli;
	const char *allow;
};

/* The rows of a struct S with a member `struct engine_options engine`. */
#define ENGINE_ROWS(S)                                                                                \
	OPTION(S, engine.memory, OPTION_SIZE, "memory", .letter = 'm', .arg = "SIZE",                 \
	       .env = "HOLT_MEMORY", .min = LIMIT_MEMORY_MIN, .max = LIMIT_MEMORY_MAX,                \
	       .doc = "Memory of a sandbox, files included, such as 512M or 2G; 1G if not said."),    \
		OPTION(S, engine.disk, OPTION_SIZE, "disk", .arg = "SIZE", .env = "HOLT_DISK",        \
		       .min = LIMIT_DISK_MIN, .max = LIMIT_MEMORY_MAX,                                \
		       .doc = "How much of it its files may take; 512M, or half of a small memory."), \
		OPTION(S, engine.pids, OPTION_COUNT, "pids", .arg = "N", .env = "HOLT_PIDS",          \
		       .min = LIMIT_PIDS_MIN, .max = LIMIT_PIDS_MAX,                                  \
		       .doc = "Processes and threads at once; 512 if not said."),                     \
		OPTION(S, engine.cpu_milli, OPTION_MILLI, "cpus", .arg = "N", .env = "HOLT_CPUS",     \
		       .min = LIMIT_CPU_MIN, .max = LIMIT_CPU_MAX,                                    \
		       .doc = "Share of processors, such as 0.5 or 2; all if not said."),             \
		OPTION(S, engine.allow, OPTION_TEXT, "allow", .arg = "LIST", .env = "HOLT_ALLOW",     \
		       .doc = "Isolation features, as holt doctor names them, that may be missing.")

static inline struct limits engine_limits(const struct engine_options *o)
{
	return (struct limits){
		.memory = o->memory,
		.disk = o->disk,
		.pids = o->pids,
		.cpu_milli = o->cpu_milli,
	};
}
