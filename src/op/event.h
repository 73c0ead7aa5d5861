#pragma once
/* What happened to sandboxes: event.list. */
#include "op/ops.h"

struct event_view {
	uint64_t seq;
	struct str at, sandbox, kind, detail;
};

struct events_page {
	struct {
		const struct event_view *p;
		size_t n;
	} events;
	uint64_t next, oldest, newest;
};

extern const struct field_table event_view_table;
