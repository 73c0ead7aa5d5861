#pragma once
/*
 * Processes hostile input in a confined child process: no privileges, no network, no new programs,
 * files only below two directories (Landlock; if the kernel lacks it, root gets a view with nothing
 * else, and other users get ERR_UNSUPPORTED), only the named descriptors, a short list of system
 * calls, bounded memory and time. A crash of the child is an error, and one that was killed is told
 * from it (err_ended()).
 */
#include <stddef.h>

#include "base/err.h"

struct confine {
	/* open directory in which it may make and remove files and links, but no devices; -1:
	 * none */
	int write;
	int read; /* the same to read below, whoever may; -1: none */
	int from; /* open file that it may read on; -1: none */
	int to; /* open file that it may write on; -1: none */
	const char *what; /* for messages: "read the layer" */
	enum err_code crash; /* what a crash says of the input; ERR_NONE: ERR_IMAGE */
};

/* Runs f in a new process and returns its result. The first `size` bytes at `out` are copied
 * back. The calling process must have only one thread. */
int confine_run(const struct confine *c, int (*f)(void *arg, void *out, struct err *e), void *arg,
		void *out, size_t size, struct err *e) MUST_USE;
