#pragma once
/* -v HOST:INSIDE[:ro|rw[,size=N]], as `holt run` and `holt up` take it. */
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

struct volume_words {
	char host[PATH_MAX]; /* absolute, without links (path_resolve()) */
	struct str inside; /* borrowed from the text */
	bool writable;
	bool all; /* rw-all */
	uint64_t size; /* 0: was not said */
};

/* ERR_INVALID: it is not of that form, or HOST is not there, or a link that may not be followed. */
int volume_read(const char *text, struct volume_words *ret, struct err *e) MUST_USE;

/* Tells a person at the terminal what is not writable in a folder that is given as rw; false: it is
 * not given so. */
bool volume_tell(const struct volume_words *v);
