#pragma once
/* Looks for records of calls in the log. */
#include "guard/audit/record.h"

/* Texts: all that is not STR_NONE must match. */
struct audit_query {
	struct str who, action, target, outcome;
	bool no_reads; /* leaves out reads that have succeeded */
	bool has_after;
	uint64_t after; /* only those with a higher seq; else the last ones */
	uint32_t limit; /* at least 1 */
};

/* Whether a record's who is the principal that is wanted: a name stands for all keys of it. */
bool audit_is_of(struct str who, struct str wanted);

/* A read that has succeeded: what pages and scripts ask for all the time. */
bool audit_is_read(const struct audit_record *r);

struct audit_found {
	struct audit_line *lines; /* owned: free() */
	size_t n;
};

/* The lines in their order. Blocks; takes a second for each GiB of the log. */
int audit_search(int folder, const struct audit_query *q, struct audit_found *ret,
		 struct err *e) MUST_USE;
