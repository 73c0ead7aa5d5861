#pragma once
/*
 * Shared libraries that are loaded when they are first needed. The folder that may include a
 * library's headers calls library_load() before its first call into it. A program that is linked
 * with the library has no row for it, and library_load() has nothing to do; `holt` has rows
 * (bin/libraries.c).
 */
#include "base/err.h"

struct library_function {
	const char *name;
	/* where library_load() stores the function's address */
	void **address;
};

struct library {
	/* what library_load() is given */
	const char *name;
	/* the file, as the dynamic linker looks for it: "libcurl.so.4" */
	const char *soname;
	const struct library_function *functions;
	size_t n;
	bool loaded;
};

/* Rows are the caller's and outlive all else; called once, before any thread is started. */
void library_rows(struct library *rows, size_t n);

/* The name of a row, in their order; NULL: there are no more. */
const char *library_name(size_t i);

/* Idempotent, from any thread. ERR_PROGRAM where the library is missing or too old. */
int library_load(const char *name, struct err *e) MUST_USE;
