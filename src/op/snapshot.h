#pragma once
/* A snapshot as clients see it: snapshot.take, snapshot.list, snapshot.get, snapshot.delete. */
#include "call/call.h"
#include "hub/sandbox/snapshots.h"

enum { SNAPSHOT_TTL_MAX = 365 * 86400 };

struct snapshot_view {
	struct str snapshot, name, source, template, digest, created_at, expires_at;
	uint64_t bytes, unpacked_bytes, disk_mb;
};
/* Its texts live as long as the call. */
int snapshot_view(struct call *c, const struct snapshot *s, struct snapshot_view *ret,
		  struct err *e) MUST_USE;
extern const struct field_table snapshot_view_table;

/* Rows of a table of it, by the names that a door has for them. */
#define SNAPSHOT_ROWS(id_, template_)                                                              \
	FIELD_NAMED(struct snapshot_view, snapshot, id_, .flags = FIELD_REQUIRED,                  \
		    .doc = "Id of the snapshot."),                                                 \
		FIELD(struct snapshot_view, name, .doc = "Display name, as it was given."),        \
		FIELD(struct snapshot_view, source,                                                \
		      .doc = "Sandbox that it was taken from; absent: it was "                     \
			     "imported."),                                                         \
		FIELD_NAMED(struct snapshot_view, template, template_, .flags = FIELD_REQUIRED,    \
			    .doc = "Template of its source, and of sandboxes that are restored "   \
				   "from it."),                                                    \
		FIELD(struct snapshot_view, digest, .flags = FIELD_REQUIRED,                       \
		      .doc = "SHA-256 of its archive (tar.zst), in hex."),                         \
		FIELD(struct snapshot_view, created_at, .flags = FIELD_REQUIRED,                   \
		      .doc = "When it was made, RFC 3339."),                                       \
		FIELD(struct snapshot_view, expires_at,                                            \
		      .doc = "When it is deleted; absent: never."),                                \
		FIELD(struct snapshot_view, bytes, .flags = FIELD_REQUIRED,                        \
		      .doc = "Size of its archive in bytes."),                                     \
		FIELD(struct snapshot_view, unpacked_bytes, .flags = FIELD_REQUIRED,               \
		      .doc = "Size of its contents in bytes."),                                    \
		FIELD(struct snapshot_view, disk_mb, .flags = FIELD_REQUIRED,                      \
		      .doc = "MiB for files in a restored sandbox, as in its source.")

struct snapshots_view {
	struct {
		const struct snapshot_view *p;
		size_t n;
	} snapshots;
	struct str next_cursor;
};

struct snapshot_deleted {
	struct str snapshot, status; /* "deleted" */
};

/* The snapshot of a request; a failure is about it. */
struct snapshot *call_snapshot(struct call *c, struct str id, struct err *e) MUST_USE;

/* One that was made for somebody who has gone: deletes it and ends the call. */
void snapshot_discard(struct call *c, const struct snapshot *s);
