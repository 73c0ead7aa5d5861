#pragma once
/* A snapshot as the answers of several routes have it. */
#include "door/http/common.h"
#include "hub/sandbox/snapshots.h"

struct snapshot_view {
	struct str id, name, source, template_id, digest, created_at, expires_at;
	uint64_t bytes, unpacked_bytes, disk_mb;
};
extern const struct field_table snapshot_view_table;

/* Its texts live as long as the call. */
int snapshot_view(struct call *c, const struct snapshot *s, struct snapshot_view *ret,
		  struct err *e) MUST_USE;

/* One that was made for somebody who has gone: deletes it and ends the call. */
void ask_discard_snapshot(struct call *c, const struct snapshot *s);

/* The one of this id; a failure is then about it. */
struct snapshot *ask_snapshot(struct call *c, struct str id, struct err *e) MUST_USE;

/* The snapshot as a segment of the path. */
extern const struct field_table snapshot_path_table;
#define API_SNAPSHOT_PATH(S)                                                                       \
	FIELD_OBJECT(S, path, snapshot_path_table, .flags = FIELD_REQUIRED, .doc = "The snapshot.")

enum { API_SNAPSHOT_TTL_MAX = 365 * 86400 };
