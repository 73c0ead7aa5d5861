#pragma once
/* The programs of a sandbox, as REST, Connect and MCP show them, each by a table of its own. */
#include "box/host/box.h"
#include "op/call.h"

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

/* Ends the call with them, or a failure. */
void processes_answer(struct call *c, struct sandbox *sb);
