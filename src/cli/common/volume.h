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
