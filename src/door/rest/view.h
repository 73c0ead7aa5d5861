#pragma once
/* A sandbox as /v1 shows it. */
#include "door/http/common.h"

struct sandbox_limits_view {
	uint64_t memory_mb, disk_mb;
	uint32_t pids, open_files;
	bool has_open_files;
	bool has_cpus;
	double cpus;
};

struct sandbox_view {
	struct str id, template_id, endpoint, created_at, source, tier, cause;
	enum life_state state;
	uint32_t generation;
	bool has_fork_time_ms, has_deadline_unix, has_timeout_seconds, has_idle_seconds;
	double fork_time_ms;
	int64_t deadline_unix;
	uint64_t timeout_seconds, idle_seconds;
	enum life_retention retention;
	struct api_network network;
	struct sandbox_limits_view limits;
	bool from_pool;
};
extern const struct field_table sandbox_view_table;

/* Its texts are in the call's arena, or borrowed from the life until its next change. */
int sandbox_view(struct call *c, const struct life *l, struct sandbox_view *ret,
		 struct err *e) MUST_USE;
