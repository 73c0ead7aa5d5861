#pragma once
/*
 * One direction of a flow: bytes from one socket to another, both non-blocking. Little is copied
 * through a buffer, which costs the fewest system calls; as soon as that fills, the rest is moved
 * by splice(2) through a pipe, without being copied to this process.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

#include "base/buf.h"

enum { RELAY_PIPES = 64 /* that are kept for the next */ };

struct relay_pipes {
	int ends[RELAY_PIPES][2];
	size_t n;
};

enum relay_state {
	RELAY_READ, /* waits until `from` is readable */
	RELAY_WRITE, /* waits until `to` is writable */
	RELAY_PAUSED, /* the allowance is used up */
	RELAY_ENDED, /* `from` has ended, and `to` was told */
	RELAY_BROKEN, /* either of them is */
};

struct relay {
	int from, to; /* borrowed */
	struct buf held; /* goes to `to` first */
	int pipe[2]; /* -1: none */
	size_t piped;
	uint64_t bytes; /* that `to` has taken */
	bool bulk, eof, ended;
	bool keep_open; /* `to` is not told of the end */
};

void relay_init(struct relay *r, int from, int to, size_t held_max);
void relay_fini(struct relay *r, struct relay_pipes *p);

/* Moves what can be moved at once, at most about *allowance bytes, which it counts down. */
enum relay_state relay_run(struct relay *r, struct relay_pipes *p, uint64_t *allowance);

/* Only what is held: RELAY_READ once all of it is written. */
enum relay_state relay_flush(struct relay *r);
