#pragma once
/*
 * Runs work in a child process, so that the parent can clean up however the work ends. Verbs that
 * build or fetch images use it. SIGINT, SIGTERM and SIGHUP are forwarded. After the child has
 * ended, `clean` is called, and then the signal ends this process, too.
 */
#include "base/err.h"

struct worker {
	void (*clean)(void *arg); /* may be NULL; called unless the child succeeded */
	void *arg;
};

/* Calls f in the child and returns its result. The first `size` bytes at `out` are copied back.
 * ERR_BUG if the child died without a result. */
int worker_run(const struct worker *w, int (*f)(void *arg, void *out, struct err *e), void *arg,
	       void *out, size_t size, struct err *e) MUST_USE;

struct worker_program {
	const char *const *argv; /* the first is looked up in PATH; NULL-terminated */
	int dir; /* working directory */
	/* drop its standard output; else it goes to our standard error */
	bool quiet;
	const char *without; /* what to do without it: "install the package skopeo" */
};

/* Runs a program of the host without a shell, with our rights and environment. Returns its exit
 * status, or 128 and the number of the signal that ended it. ERR_PROGRAM if it is not installed. */
int worker_exec(const struct worker_program *p, struct err *e) MUST_USE;
