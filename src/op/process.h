#pragma once
/* The programs of a sandbox and signals to them: process.list, process.signal. */
#include "op/ops.h"

struct process_view {
	uint32_t pid, parent;
	struct str state;
	uint64_t cpu_ms, memory_bytes, age_ms;
	struct str command;
};

struct processes_view {
	struct {
		const struct process_view *p;
		size_t n;
	} processes;
	bool truncated;
};

struct process_signalled {
	struct str sandbox;
	uint32_t pid, signal;
	/* "ok" */
	struct str status;
};

/* Rows of a table of struct process_view, by the names that a door has for them. */
#define PROCESS_ROWS(parent_, cpu_, bytes_, age_)                                                  \
	FIELD(struct process_view, pid, .flags = FIELD_REQUIRED,                                   \
	      .doc = "Process id inside the sandbox."),                                            \
		FIELD_NAMED(struct process_view, parent, parent_, .flags = FIELD_REQUIRED,         \
			    .doc = "Process id of its parent."),                                   \
		FIELD(struct process_view, state, .flags = FIELD_REQUIRED,                         \
		      .doc = "State: R running, S or D waiting, T stopped, Z ended."),             \
		FIELD_NAMED(struct process_view, cpu_ms, cpu_, .flags = FIELD_REQUIRED,            \
			    .doc = "Processor time used, in milliseconds."),                       \
		FIELD_NAMED(struct process_view, memory_bytes, bytes_, .flags = FIELD_REQUIRED,    \
			    .doc = "Memory used, in bytes."),                                      \
		FIELD_NAMED(struct process_view, age_ms, age_, .flags = FIELD_REQUIRED,            \
			    .doc = "Time since its start, in milliseconds."),                      \
		FIELD(struct process_view, command, .flags = FIELD_REQUIRED,                       \
		      .doc = "Command line, as the process shows it.")

#define PROCESSES_ROWS(table_)                                                                     \
	FIELD_OBJECTS(struct processes_view, processes, table_, .flags = FIELD_REQUIRED,           \
		      .doc = "Sorted by process id, without the sandbox's init."),                 \
		FIELD(struct processes_view, truncated, .flags = FIELD_REQUIRED,                   \
		      .doc = "There are more processes.")
