#pragma once
/*
 * The audit log as a hub writes it, on its loop. A record is in the file when audit_add() returns,
 * so it outlives the process; `synced` ones are also on the disk before their `done` is called, and
 * one fdatasync() serves all that wait. A session is one run of a hub: it begins with a signed
 * record, and ends with its seal.
 *
 * Where the file can't be written, audit_check() refuses calls before they run. The records of what
 * ran already are kept in memory, and follow once there is room.
 */
#include <uv.h>

#include "guard/audit/log.h"

struct audit;

struct audit_options {
	const char *folder; /* made if it is missing */
	const char *version; /* of Holt */
	uv_loop_t *loop;
	struct audit_limits limits;
};

/* Begins a session. */
struct audit *audit_open(const struct audit_options *o, struct err *e) MUST_USE;

/* Ends it. Nothing waits any more. The loop must be run once more. NULL-safe. */
void audit_close(struct audit *a);

void audit_limit(struct audit *a, const struct audit_limits *l);

/* Before a call runs: whether its record can be kept. light: it is of the kind that looks or frees
 * space, for which there is room a little longer. ERR_STORE_FULL, ERR_IO. */
int audit_check(struct audit *a, bool light, struct err *e) MUST_USE;

/* A waiter for a record. Embedded; valid until done. */
struct audit_wait {
	void (*done)(struct audit_wait *w);
	bool synced; /* wait for the disk */
	bool receipt; /* sign the line */
	/* Then: */
	struct audit_line line; /* what was written, or the receipt; empty where it will follow */
	/* private: */
	struct audit_wait *next;
};

/* Takes a record without seq and prev; its texts are borrowed until done, which may be called
 * before this returns. */
void audit_add(struct audit *a, const struct audit_record *r, struct audit_wait *w);

/* The receipt of a line of the log: itself where it is signed. */
int audit_receipt(struct audit *a, const struct audit_line *line, struct audit_line *ret,
		  struct err *e) MUST_USE;

struct audit_status {
	bool failing; /* calls are refused */
	size_t kept; /* records that will follow */
	uint64_t records; /* of this session, in the file */
	struct err why;
};
void audit_status(const struct audit *a, struct audit_status *ret);

int audit_folder(const struct audit *a);

/* The log for a program without a hub: one signed record in the same files, not synced. limits are
 * those of the hub, whose files these are: a record may begin a new file, and end an old one. */
int audit_check_one(const char *folder, struct err *e) MUST_USE;
int audit_add_one(const char *folder, const struct audit_limits *limits,
		  const struct audit_record *r, struct err *e) MUST_USE;
