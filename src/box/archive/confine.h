#pragma once
/*
 * Work on hostile input in a process of its own that can do little more than that: no privileges,
 * no network, no new programs, files below two directories only (Landlock; where the kernel lacks
 * it, root's sees nothing else, and a user's is refused: ERR_UNSUPPORTED), no descriptors but those
 * named here, the system calls of a short list, bounded memory and time. A crash of it is an error.
 */
#include <stddef.h>

#include "base/err.h"

struct confine {
	/* open directory below which it may make and remove files and links, no devices; -1:
	 * none */
	int write;
	int read; /* the same to read below, whoever may; -1: none */
	int from; /* open file that it may read on; -1: none */
	int to; /* open file that it may write on; -1: none */
	const char *what; /* for messages: "read the layer" */
};

/* Runs f in a new process and gives what it gave. `size` bytes at `out` are what it leaves there.
 * The calling process may have one thread only. */
int confine_run(const struct confine *c, int (*f)(void *arg, void *out, struct err *e), void *arg,
		void *out, size_t size, struct err *e) MUST_USE;
