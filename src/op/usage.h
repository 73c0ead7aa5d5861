#pragma once
/* What sandboxes use of their limits. To be looked at is no use of a sandbox. */
#include "hub/sandbox/usage.h"
#include "op/ops.h"
#include "op/page.h"

struct usages_view {
	struct {
		const struct usage_view *p;
		size_t n;
	} sandboxes;
	struct str next_cursor;
};

/* A sample of sandbox.vitals. */
struct vitals_sample {
	int64_t sampled_at_unix;
	bool has_percent, has_memory, has_processes, has_disk;
	double cpu_percent; /* of one processor, since the sample before */
	uint64_t memory, memory_total, processes, disk, disk_total;
};
