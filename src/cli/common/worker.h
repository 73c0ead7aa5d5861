#pragma once
/*
 * Work in a process of its own that this one waits for, so that whatever ends it, there is somebody to
 * clean up behind it: a verb that builds or fetches does all of it there. SIGINT, SIGTERM and SIGHUP
 * are passed on; when the child has ended, `clean` is called, and then they end this process, too.
 */
#include "base/err.h"

struct worker {
	void (*clean)(void *arg); /* may be NULL; called however the child has ended, but well */
	void *arg;
};

/* Calls f in the child, and gives what it gave; `size` bytes at `out` are what it leaves there. ERR_BUG where the child
 * ended without a word. */
int worker_run(const struct worker *w, int (*f)(void *arg, void *out, struct err *e), void *arg,
	       void *out, size_t size, struct err *e) MUST_USE;

struct worker_program {
	const char *const *argv; /* the first is looked up in PATH; NULL-terminated */
	int dir; /* working directory */
	bool quiet; /* what it prints on standard output is dropped; else it goes to our standard error */
	const char *without; /* what to do without it: "install the package skopeo" */
};

/* Runs a program of the system's, without a shell, with the rights and environment that we have. Its exit status, or 128
 * and the number of the signal that ended it. ERR_PROGRAM: there is none of that name. */
int worker_exec(const struct worker_program *p, struct err *e) MUST_USE;
